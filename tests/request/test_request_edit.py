from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from request_documents import Members, texts_of, written_objects, written_values

from router.request import openai_chat
from router.request.edit import locate_model, set_model
from router.request.view import RequestView

MODELS = st.one_of(st.sampled_from(["qwen3-8b", 'a"b\\', "\u2028é\U0001f600", ""]), st.text(max_size=12))


def view_of(body: bytes) -> RequestView:
    return RequestView("openai.chat", None, (), (), False, len(body), locate_model(body))


@settings(max_examples=300)
@given(texts_of(written_objects(unique_keys=True)), MODELS)
def test_only_the_top_level_model_changes_whatever_the_document(body: bytes, model: str) -> None:
    view = view_of(body)
    result = set_model(body, view, model)
    assert json.loads(result) == {**json.loads(body), "model": model}
    span = view.model_span
    assert (span is None) == ("model" not in json.loads(body))
    if span is None:
        inserted = len(result) - len(body)
        assert any(result[:at] + result[at + inserted :] == body for at in range(len(body)))
    else:
        assert json.loads(body[span.start : span.end]) == json.loads(body)["model"]
        assert result[: span.start] == body[: span.start]
        assert result[len(result) - (len(body) - span.end) :] == body[span.end :]


@st.composite
def with_model_anywhere(draw: st.DrawFn) -> Members:
    pairs = [pair for pair in draw(written_objects(unique_keys=True)).pairs if pair[0] != "model"]
    at = draw(st.integers(0, len(pairs)))
    value = draw(written_values(unique_keys=True))
    return Members((*pairs[:at], ("model", value), *pairs[at:]))


@settings(max_examples=200)
@given(texts_of(with_model_anywhere()), MODELS)
def test_a_model_of_any_type_at_any_place_is_found(body: bytes, model: str) -> None:
    result = set_model(body, view_of(body), model)
    assert json.loads(result) == {**json.loads(body), "model": model}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model":"old","x":1}', b'{"model":"new","x":1}'),
        (b' {\n\t"x" : [ 1 ],\r\n "model" :\n "old" \n} \n', b' {\n\t"x" : [ 1 ],\r\n "model" :\n "new" \n} \n'),
        (rb'{"mod\u0065l":"o\u006cd"}', rb'{"mod\u0065l":"new"}'),
        (rb'{"a":"\"model\":\"old\"","model":"old"}', rb'{"a":"\"model\":\"old\"","model":"new"}'),
        (b'{"a":{"model":"old"},"model":"old"}', b'{"a":{"model":"old"},"model":"new"}'),
        (b'{"model":"old","a":{"model":"old"}}', b'{"model":"new","a":{"model":"old"}}'),
        (b'{"model":null}', b'{"model":"new"}'),
        (b"{}", b'{"model":"new"}'),
        (b" { \n } ", b' {"model":"new" \n } '),
        (b'{ "a":1}', b'{"model":"new", "a":1}'),
        (b'{"a":{"model":"old"}}', b'{"model":"new","a":{"model":"old"}}'),
        (b'{"Model":"old"}', b'{"model":"new","Model":"old"}'),
    ],
)
def test_every_other_byte_stays_as_the_client_sent_it(body: bytes, expected: bytes) -> None:
    assert set_model(body, view_of(body), "new") == expected


def test_a_body_that_is_no_object_has_no_model() -> None:
    for body in (b"[]", b'"model"', b"{"):
        with pytest.raises(msgspec.DecodeError):
            locate_model(body)


def test_parsed_request_carries_the_span_of_its_model() -> None:
    body = b'{"messages":[{"role":"user","content":"\\"model\\": 1"}], "model" : "gpt-4o" }'
    view = openai_chat.parse(body)
    assert view.model_span is not None
    assert body[view.model_span.start : view.model_span.end] == b'"gpt-4o"'
    assert set_model(body, view, "Qwen/Qwen3-8B") == body.replace(b"gpt-4o", b"Qwen/Qwen3-8B")
