"""Where requests stand among the traces, by the W3C's rules."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.propagate import get_global_textmap
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler

from router.telemetry.context import Joiner
from router.telemetry.propagation import MAX_HEADER_BYTES, W3C, Configured, Propagation

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
OTHER = f"00-{'1' * 32}-{'2' * 16}-01"


Make = Callable[..., Joiner]


def made(propagation: Propagation, sampler: Sampler | None = None) -> Joiner:
    return Joiner(sampler or ParentBased(ALWAYS_ON), RandomIdGenerator(), propagation, "test")


@pytest.fixture(params=["ours", "the SDK's"])
def joiner(request: pytest.FixtureRequest) -> Make:
    """Makes a joiner; ours has to do as the SDK's own propagators do."""
    return partial(made, W3C() if request.param == "ours" else Configured(get_global_textmap()))


def test_a_child_of_the_clients_span_that_hands_itself_on(joiner: Make) -> None:
    trace = joiner().join({"traceparent": PARENT, "tracestate": "a=1, b=2", "baggage": "user=me"}, {})
    assert trace.parent is not None
    assert (trace.trace_id, f"{trace.parent.span_id:016x}") == (TRACE, SPAN)
    assert dict(trace.headers) == {"traceparent": f"00-{TRACE}-{trace.context.span_id:016x}-01"}
    assert trace.context.span_id != trace.parent.span_id
    assert trace.remove == ()
    assert trace.context.trace_state.to_header() == "a=1,b=2"


@pytest.mark.parametrize(
    "traceparent",
    [
        "",
        "garbage",
        PARENT.upper(),
        PARENT + "-00",
        f"{PARENT},{OTHER}",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-0x",
        PARENT + "é" * 600,
    ],
)
def test_one_that_is_malformed_begins_anew_and_its_state_goes(joiner: Make, traceparent: str) -> None:
    trace = joiner().join({"traceparent": traceparent, "tracestate": "a=1", "baggage": "k=v"}, {})
    assert trace.parent is None
    assert trace.trace_id != TRACE
    assert dict(trace.headers)["traceparent"].startswith(f"00-{trace.trace_id}-")
    assert trace.remove == ("tracestate",)


def test_a_later_version_is_read_as_far_as_it_is_known(joiner: Make) -> None:
    assert joiner().join({"traceparent": f"cc-{TRACE}-{SPAN}-01-more"}, {}).trace_id == TRACE


def test_a_state_that_is_malformed_or_too_long_goes_and_the_trace_stays(joiner: Make) -> None:
    for state in ("no list", "a=1," + "b=" + "2" * MAX_HEADER_BYTES):
        trace = joiner().join({"traceparent": PARENT, "tracestate": state}, {})
        assert (trace.trace_id, trace.remove) == (TRACE, ("tracestate",))


def test_the_requests_own_headers_go_before_those_of_the_call(joiner: Make) -> None:
    both = joiner().join({"traceparent": PARENT}, {"traceparent": OTHER, "tracestate": "e=1"})
    assert (both.trace_id, dict(both.headers).keys()) == (TRACE, {"traceparent"})
    for headers in ({}, {"traceparent": "garbage"}):
        called = joiner().join(headers, {"traceparent": OTHER, "tracestate": "e=1"})
        assert called.trace_id == "1" * 32
        assert dict(called.headers)["tracestate"] == "e=1"


def test_what_is_not_sampled_is_handed_on_as_that(joiner: Make) -> None:
    off = joiner(ALWAYS_OFF).join({"traceparent": PARENT}, {})
    assert not off.sampled
    assert dict(off.headers)["traceparent"].endswith("-00")
    assert not joiner().join({"traceparent": PARENT[:-1] + "0"}, {}).sampled


def test_nothing_of_a_header_is_in_a_repr(joiner: Make) -> None:
    trace = joiner().join({"traceparent": "CANARY", "baggage": "CANARY"}, {"baggage": "CANARY"})
    assert "CANARY" not in repr(trace)


texts = st.text(st.characters(max_codepoint=255), max_size=80)
headers = st.dictionaries(
    st.sampled_from(["traceparent", "tracestate", "baggage"]),
    texts | st.sampled_from([PARENT, OTHER, "a=1", f"{PARENT} ", f"\t{PARENT}"]) | st.text(string.hexdigits + "-,="),
)


@given(headers, headers)
def test_whatever_comes_one_valid_header_goes_on(sent: dict[str, str], carried: dict[str, str]) -> None:
    trace = made(W3C()).join(sent, carried)
    other = made(Configured(get_global_textmap())).join(sent, carried)
    assert (trace.parent, set(trace.remove)) == (other.parent, set(other.remove))
    assert {name for name, _ in trace.headers} == {name for name, _ in other.headers}
    assert trace.context.trace_state == other.context.trace_state
    told = dict(trace.headers)
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]", told["traceparent"])
    assert trace.context.is_valid
    assert not {*told} & {*trace.remove}
    assert not {"traceparent", "baggage"} & {*trace.remove}
    if "baggage" in sent:
        assert "baggage" not in told
