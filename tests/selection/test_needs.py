from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from selection_cases import needs, request, upstream

from router.request.apis import parse
from router.request.view import AudioPart, FilePart, ImagePart, Part, RequestView, TextPart, ToolResultPart, Turn
from router.selection.needs import Needs, Unmet, estimate_tokens, explain, measure, wants_sizes
from router.selection.upstream import Upstream

INPUTS, OUTPUTS = ("text", "image", "audio", "file"), ("text", "image", "audio")
ABILITIES = ("tools", "json_schema", "logprobs", "parallel_choices")


def subsets(of: tuple[str, ...]) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(of))


wishes = st.builds(
    needs,
    st.integers(0, 2000),
    st.none() | st.integers(0, 2000),
    subsets(INPUTS),
    subsets(OUTPUTS),
    subsets(ABILITIES),
    st.lists(st.none() | st.tuples(st.integers(1, 3000), st.integers(1, 3000)), max_size=3).map(tuple),
)
upstreams = st.builds(
    lambda modalities, outputs, abilities, context, rule: Upstream(
        "m", "c", None, "m", tuple(modalities), context, abilities, None, None, rule, "", tuple(outputs)
    ),
    subsets(INPUTS),
    subsets(OUTPUTS),
    st.none() | subsets(ABILITIES),
    st.none() | st.integers(1, 4000),
    st.sampled_from(["", "fixed:576", "openai_tiles", "anthropic"]),
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Needs, Needs]:
    """Needs, and the same with less of everything."""
    more = draw(wishes)
    less = Needs(
        frozenset(x for x in more.inputs if draw(st.booleans())),
        frozenset(x for x in more.outputs if draw(st.booleans())),
        frozenset(x for x in more.abilities if draw(st.booleans())),
        draw(st.integers(0, more.text_tokens)),
        None if more.output_tokens is None else draw(st.none() | st.integers(0, more.output_tokens)),
        more.sizes[: draw(st.integers(0, len(more.sizes)))],
    )
    return more, less


@given(pairs(), st.lists(upstreams, max_size=4))
def test_who_meets_more_meets_less(both: tuple[Needs, Needs], rivals: list[Upstream]) -> None:
    more, less = both
    for one in rivals:
        if not more.unmet(one):
            assert not less.unmet(one)
        assert {need.word for need in less.unmet(one)} <= {need.word for need in more.unmet(one)}


@given(wishes, upstreams)
def test_an_upstream_that_can_do_everything_without_bound_meets_everything(wanted: Needs, one: Upstream) -> None:
    able = replace(one, modalities=INPUTS, outputs=OUTPUTS, capabilities=None, context_tokens=None)
    assert wanted.unmet(able) == ()


@given(wishes, st.lists(upstreams, min_size=1, max_size=4))
def test_the_client_is_told_something_wherever_nobody_can(wanted: Needs, rivals: list[Upstream]) -> None:
    missing = [wanted.unmet(one) for one in rivals]
    if all(missing):
        assert explain(missing).startswith("No model that this request may go to can take it. None of them meets")


def test_the_client_is_told_each_need_that_nobody_meets_and_no_models_name() -> None:
    small = upstream("small", context_tokens=100, capabilities=frozenset())
    large = upstream("large", context_tokens=900)
    wanted = needs(1000, 24, inputs=frozenset({"text", "image"}), abilities=frozenset({"tools"}))
    said = explain([wanted.unmet(small), wanted.unmet(large)])
    assert said == (
        "No model that this request may go to can take it. None of them meets: a context of about 1024 tokens, the "
        "answer included (the longest of these holds 900); image input."
    )


def test_where_each_need_is_met_by_some_the_client_is_told_that_none_meets_all() -> None:
    said = explain([(Unmet("ability", "tools"),), (Unmet("output", "audio"),)])
    assert said == (
        "No model that this request may go to can take it. None of them meets all of: calling tools; audio output."
    )


def test_context_is_texts_and_images_by_the_upstreams_rule_and_the_answer() -> None:
    wanted = needs(100, 50, sizes=((512, 512), (512, 512)))
    assert wanted.context_tokens(upstream("a")) == 150
    assert wanted.context_tokens(upstream("a", image_tokens="fixed:576")) == 150 + 2 * 576
    assert wanted.context_tokens(upstream("a", image_tokens="openai_tiles")) == 150 + 2 * 255
    fits = upstream("a", image_tokens="fixed:10", context_tokens=170)
    assert not wanted.unmet(fits)
    assert wanted.unmet(replace(fits, context_tokens=169)) == (Unmet("context", "context", 170, 169),)


def view_of(*parts: Part, **rest: object) -> RequestView:
    return replace(request(), turns=(Turn("/messages/0", "user", parts),), **rest)


def png(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, "PNG")
    return buffer.getvalue()


IMAGE = ImagePart("/messages/0/content/1", "inline", png(30, 20), "image/png")
AWAY = ImagePart("/messages/0/content/2", "not_fetched", url="https://example.org/x.png")
BROKEN = ImagePart("/messages/0/content/3", "inline", b"no image")
TEXT = TextPart("/messages/0/content/0", "hello")
FILE = FilePart("/messages/0/content/4/file", data=b"%PDF")
IN_FILE = ImagePart("/messages/0/content/4/file/file_data", "malformed", reason="unreadable file type")


@pytest.mark.parametrize(
    ("parts", "inputs"),
    [
        ((), set()),
        ((TEXT,), {"text"}),
        ((TextPart("/x", ""),), set()),
        ((TEXT, IMAGE), {"text", "image"}),
        ((AWAY,), {"image"}),
        ((BROKEN,), {"image"}),
        ((AudioPart("/a", "wav", b"x"),), {"audio"}),
        ((FILE, IN_FILE, TextPart("/messages/0/content/4/file/filename", "x y")), {"file"}),
        ((FILE, IN_FILE, IMAGE), {"file", "image"}),
        ((ToolResultPart("/r", "c", (IMAGE,)),), {"image"}),
    ],
)
def test_inputs_are_the_kinds_of_parts_and_what_a_file_holds_is_the_files(
    parts: tuple[Part, ...], inputs: set[str]
) -> None:
    assert measure(view_of(*parts), False).inputs == inputs


def test_sizes_are_looked_up_where_a_rule_asks_for_them() -> None:
    view = view_of(IMAGE, AWAY, BROKEN)
    assert measure(view, True).sizes == ((30, 20), None, None)
    assert measure(view, False).sizes == (None, None, None)
    assert wants_sizes([upstream("a"), upstream("b", image_tokens="anthropic")])
    assert not wants_sizes([upstream("a"), upstream("b", image_tokens="fixed:576")])


def test_what_the_view_says_of_the_answer_is_taken_over() -> None:
    view = view_of(TEXT, outputs=("text", "audio"), max_output_tokens=7, needs=frozenset({"logprobs"}))
    found = measure(view, False, count=lambda _: 1234)
    assert (found.outputs, found.output_tokens, found.abilities) == ({"text", "audio"}, 7, {"logprobs"})
    assert found.text_tokens == 1234


@given(st.lists(st.text(max_size=40), max_size=4), st.text(max_size=20))
def test_more_text_never_has_fewer_tokens_and_nothing_breaks_the_estimate(texts: list[str], more: str) -> None:
    less = estimate_tokens(request(*(("user", text) for text in texts)))
    assert estimate_tokens(request(*(("user", text) for text in (*texts, more)))) >= less


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 4), ("a" * 300, 104), ("语" * 300, 304), ("д" * 300, 204), ("1" * 30 + "a" * 30, 44), ("\ud800" * 3, 7)],
)
def test_the_estimate_goes_by_bytes(text: str, tokens: int) -> None:
    assert estimate_tokens(request(("user", text))) == tokens


def test_tools_count_as_text() -> None:
    body = b'{"messages":[{"role":"user","content":"hi"}]%s}'
    tool = b',"tools":[{"type":"function","function":{"name":"look_up","description":"' + b"word " * 300 + b'"}}]'
    assert estimate_tokens(parse("openai.chat", body % tool)) > estimate_tokens(parse("openai.chat", body % b"")) + 450
