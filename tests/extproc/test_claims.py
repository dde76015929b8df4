"""What Envoy passes on of what filters in front found out, as the policy reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from router.config.load import parse_policy
from router.config.problems import PolicyError
from router.extproc.claims import with_claims
from router.extproc.head import RequestHead, read_head
from router.extproc.house import build_house
from router.proto import ext_proc_pb2 as pb

JWT = "envoy.filters.http.jwt_authn"


def head(metadata: dict[str, Any] | None = None, attributes: dict[str, Any] | None = None, **sent: str) -> RequestHead:
    """A request with these headers sent, `_` for `-`, this metadata of one namespace, and these attributes."""
    message = pb.ProcessingRequest()
    for name, value in {":method": "POST", ":path": "/v1/chat/completions", **sent}.items():
        message.request_headers.headers.headers.add(key=name.replace("_", "-"), raw_value=value.encode())
    if metadata is not None:
        message.metadata_context.filter_metadata[JWT].update(metadata)
    if attributes is not None:
        message.attributes["envoy.filters.http.ext_proc"].update(attributes)
    return read_head(message.request_headers, message)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("gold", "gold"),
        ("", ""),
        ("größe", "größe"),
        (7, "7"),
        (0.5, "0.5"),
        (True, "true"),
        (["a", "b"], "a,b"),
        ([], ""),
        (["a,b"], None),
        (["a", 1], None),
        ({"deeper": "x"}, None),
        (None, None),
    ],
)
def test_a_claim_is_read_as_text(value: Any, text: str | None) -> None:
    found = with_claims(head({"payload": {"team": value}}), {"x-team": f"{JWT}:payload:team"}, {})
    assert found.get("x-team", "").encode("latin-1").decode() == (text or "")
    assert ("x-team" in found) == (text is not None)


@pytest.mark.parametrize(
    "path", [f"{JWT}:payload:other", f"{JWT}:other", "other:payload", f"{JWT}:payload:team:deeper"]
)
def test_what_is_not_there_is_missing_even_if_a_client_sends_a_header_of_that_name(path: str) -> None:
    found = with_claims(head({"payload": {"team": "gold"}}, x_team="forged", x_else="1"), {"x-team": path}, {})
    assert "x-team" not in found
    assert found["x-else"] == "1"


def test_an_attribute_is_read_in_place_of_a_header() -> None:
    sent = head(attributes={"source.address": "10.0.0.1:80"}, x_from="forged")
    assert with_claims(sent, {}, {"x-from": "source.address"})["x-from"] == "10.0.0.1:80"
    assert "x-from" not in with_claims(sent, {}, {"x-from": "source.port"})
    assert with_claims(sent, {}, {})["x-from"] == "forged"


WORDS = st.sampled_from(["", "a", "b", "a,b", "\ud7ff", "x" * 1000])
LEAVES = st.none() | st.booleans() | st.floats() | WORDS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=5
)


@given(st.dictionaries(WORDS, VALUES, max_size=3), WORDS)
def test_no_metadata_makes_it_fail(metadata: dict[str, Any], key: str) -> None:
    struct = Struct()
    struct.update(metadata)
    request = RequestHead("POST", "/", {}, metadata={"ns": struct}, attributes={"a": struct})
    with_claims(request, {"x-a": f"ns:{key}", "x-b": f"ns:{key}:{key}"}, {"x-c": key})


POLICY = """\
version: 1
upstreams: [{model: small, cluster: a}, {model: med, cluster: b}]
default_model: small
trusted_metadata: {X-Team: "envoy.filters.http.jwt_authn:payload:team"}
signals: {header: {gold: {name: x-team, any: [gold]}}}
decisions: [{name: gold, when: {header: gold}, route: {models: [med]}}]
"""


async def test_a_policy_decides_by_a_claim_and_not_by_a_header_of_its_name() -> None:
    loaded = parse_policy(POLICY.encode(), Path("p.yaml"))
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    async with build_house(loaded, 1) as house:
        by_claim = await house.pipeline.judge(head({"payload": {"team": "gold"}}), body)
        by_header = await house.pipeline.judge(head(x_team="gold"), body)
    assert dict(by_claim.metadata)["decision"] == "gold"
    assert dict(by_header.metadata)["decision"] == "default"


def test_a_name_has_one_source() -> None:
    policy = POLICY.replace("signals:", "trusted_headers: [x-team]\nsignals:")
    with pytest.raises(PolicyError, match=r"x-team.* has another source"):
        parse_policy(policy.encode(), Path("p.yaml"))
