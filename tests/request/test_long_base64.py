from __future__ import annotations

import base64
import json
from collections.abc import Callable
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.request import long_base64
from router.request.apis import parse
from router.request.edit import locate_model, set_model
from router.request.errors import RequestError
from router.request.long_base64 import hollowed, known_base64, known_hollow, remembering
from router.request.strict_json import decode
from router.request.view import RequestView

LEAST = 12
"""In place of the real one, so that every string of some length is taken out, and no key of an API."""

NEVER = 2**40

RUNS = st.binary(min_size=9, max_size=30).map(lambda data: base64.b64encode(data).decode())


def outcome(read: Callable[[], object]) -> object:
    try:
        return read()
    except RequestError as error:
        return (error.status, error.code, error.message, error.pointer)


def both(read: Callable[[], object]) -> tuple[object, object]:
    """What is read with long base64 taken out, and without."""
    with patch.object(long_base64, "LEAST", LEAST):
        hollow = outcome(read)
    with patch.object(long_base64, "LEAST", NEVER):
        return hollow, outcome(read)


@st.composite
def strings(draw: st.DrawFn) -> str:
    """JSON strings: base64 alone, in data URIs, in text, escaped, broken."""
    run = draw(RUNS)
    form = draw(
        st.sampled_from(
            [
                *(
                    "%s",
                    "data:image/png;base64,%s",
                    "DATA:;base64,%s",
                    "data:image/png,%s",
                    " data:image/png;base64,%s",
                ),
                *("see data:image/png;base64,%s", "%s here", "data:image/png;base64,%s!", "\\u0041%s", 'a\\"%s'),
                *("data:image/png\\u003bbase64,%s", "data:a;base64,b,%s", '\\"data:image/png;base64,%s', "\u00e9%s"),
            ]
        )
    )
    return '"' + form.replace("%s", run) + '"'


VALUES = st.recursive(
    strings() | st.sampled_from(["1", "null", '"a"', '"a:b"', "[]", "{}"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda each: "[" + ",".join(each) + "]")
        | st.lists(st.tuples(strings() | st.sampled_from(['"a"', '"b"']), inner), max_size=3).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        )
    ),
    max_leaves=8,
)


@settings(max_examples=400)
@given(st.lists(st.tuples(st.sampled_from(['"model"', '"a"', '"b"']), VALUES), max_size=4))
def test_any_object_is_read_as_the_parser_reads_the_whole(pairs: list[tuple[str, str]]) -> None:
    body = ("{" + ",".join(f"{key}:{value}" for key, value in pairs) + "}").encode()
    hollow, whole = both(lambda: decode(body))
    assert hollow == whole


FRAGMENTS = st.sampled_from(
    [
        '"',
        '\\"',
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "data:",
        "data:a;base64,",
        "AAAABBBB",
        "A" * 20,
        "=",
        "1",
        "x",
    ]
)


@settings(max_examples=600)
@given(st.lists(FRAGMENTS, max_size=16).map("".join), st.booleans())
def test_what_is_no_json_is_refused_in_the_same_words(text: str, inside: bool) -> None:
    body = (f'{{"a":{text}}}' if inside else text).encode()
    hollow, whole = both(lambda: decode(body))
    assert hollow == whole


@settings(max_examples=200)
@given(
    st.permutations(["messages", "model", "stream", "prompt"]),
    st.lists(st.one_of(strings(), st.just('"x"')), min_size=1, max_size=4),
    RUNS | st.just("m"),
)
def test_a_request_and_its_model_are_found_alike(order: list[str], urls: list[str], model: str) -> None:
    parts = [f'{{"type":"text","text":{url}}}' for url in urls]
    parts += [f'{{"type":"image_url","image_url":{{"url":{url}}}}}' for url in urls]
    parts += [f'{{"type":"file","file":{{"filename":"a","file_data":{url}}}}}' for url in urls]
    members = {
        "messages": '[{"role":"user","content":[' + ",".join(parts) + "]}]",
        "model": f'"{model}"',
        "stream": "false",
        "prompt": urls[0],
    }
    body = ("{" + ",".join(f'"{key}": {members[key]}' for key in order) + "}").encode()
    hollow, whole = both(lambda: parse("openai.chat", body))
    assert hollow == whole
    if isinstance(hollow, RequestView):
        assert hollow.model_span == locate_model(body)
        assert json.loads(set_model(body, hollow, "other")) == {**json.loads(body), "model": "other"}


@pytest.mark.parametrize("url", ["QUJDQUJDQUJDQUJD", "data:image/png;base64,QUJDQUJDQUJDQUJD"])
def test_requests_as_small_as_here_are_read_with_it_taken_out(url: str) -> None:
    parts = [{"type": "text", "text": url}, {"type": "image_url", "image_url": {"url": url}}]
    body = json.dumps({"messages": [{"role": "user", "content": parts}], "model": "m", "stream": False}).encode()
    with patch.object(long_base64, "LEAST", LEAST), remembering():
        decode(body)
        assert known_hollow(body) is not None
        assert locate_model(body) == parse("openai.chat", body).model_span
    assert locate_model(body) == parse("openai.chat", body).model_span


def test_what_was_decoded_on_the_way_is_known_of_that_very_string_alone() -> None:
    data = bytes(range(256)) * 300
    text = "data:image/png;base64," + base64.b64encode(data).decode()
    body = json.dumps({"a": text}).encode()
    with remembering():
        read = decode(body)["a"]
        assert known_base64(read, 22) == data
        assert known_base64(read, 0) is None
        assert known_base64(text, 22) is None
    assert known_base64(read, 22) is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":"' + b"A" * 100_000 + b'"}',
        b'{"a":["data:;base64,' + b"A" * 100_000 + b'","' + b"B" * 200_000 + b'"]}',
    ],
)
def test_long_base64_is_taken_out_and_put_back(body: bytes) -> None:
    hollow = hollowed(body)
    assert hollow is not None
    assert len(hollow.text) < 200
    hollow.fill()
    assert hollow.document == json.loads(body)


def test_a_body_without_any_is_left_alone() -> None:
    assert hollowed(json.dumps({"a": "words and words " * 20_000}).encode()) is None
    assert hollowed(b"A" * 200_000) is None


def test_a_body_of_too_many_values_is_given_up_before_each_is_looked_at() -> None:
    run = "A" * 100_000
    many = json.dumps({"a": [0] * 200_000 + [run]}).encode()
    assert hollowed(many) is None
    assert outcome(lambda: decode(many)) == (400, "too_many_values", "The body has more than 200000 values.", "")
    assert hollowed(json.dumps({"a": [0] * 190_000 + [run]}).encode()) is not None
