from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from request_documents import Members, texts_of, written_objects

from router.request.errors import RequestError
from router.request.strict_json import decode


def has_duplicate(body: bytes) -> bool:
    found = False

    def build(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal found
        found = found or len(dict(pairs)) < len(pairs)
        return dict(pairs)

    json.loads(body, object_pairs_hook=build)
    return found


@given(texts_of(written_objects(unique_keys=True)))
def test_any_spelling_of_an_object_is_read_as_the_standard_parser_reads_it(body: bytes) -> None:
    assert decode(body) == json.loads(body)


@settings(max_examples=300)
@given(texts_of(written_objects(unique_keys=False)))
def test_duplicate_keys_are_refused_wherever_they_are_and_nothing_else_is(body: bytes) -> None:
    try:
        document = decode(body)
    except RequestError as error:
        assert error.code == "duplicate_key"
        assert has_duplicate(body)
    else:
        assert not has_duplicate(body)
        assert document == json.loads(body)


@given(texts_of(written_objects(unique_keys=True).map(lambda o: Members((*o.pairs, ("k", 1), ("x", ":"), ("k", ":"))))))
def test_a_duplicate_key_at_the_top_points_at_the_body(body: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        decode(body)
    assert (caught.value.status, caught.value.code) == (400, "duplicate_key")


KNOWN = frozenset({"model", "messages", "content", "type", "text", "tools", "function", "parameters", "metadata"})


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (rb'{"model":"a","mod\u0065l":"b"}', ""),
        (rb'{"messages":[{"role":"user","content":"a","content":"b"}]}', "/messages/0"),
        (rb'{"messages":[{"content":[{"type":"text"},{"text":"a","text":"b"}]}]}', "/messages/0/content/1"),
        (rb'{"tools":[{"function":{"parameters":{"My Secret":{"a":1,"a":2}}}}]}', "/tools/0/function/parameters"),
        (rb'{"metadata":{"patient_jane_doe":{"a":1,"a":2}}}', "/metadata"),
        (rb'{"jane":{"content":{"a":1,"a":2}}}', ""),
        (rb'{"a":"\u003a","a":"\u003A"}', ""),
        (rb'{"a":"\\u003a","a":"::"}', ""),
    ],
)
def test_duplicate_key_is_pointed_at_without_repeating_words_of_the_client(body: bytes, pointer: str) -> None:
    with pytest.raises(RequestError) as caught:
        decode(body, KNOWN)
    assert (caught.value.code, caught.value.pointer) == ("duplicate_key", pointer)


def test_the_pointer_to_a_duplicate_key_has_a_bounded_length() -> None:
    # Each of very many values deep in a body would have a pointer as long as the body is deep.
    body = b'{"content":' * 100 + rb'[{"a":1,"\u0061":2}]' + b"}" * 100
    with pytest.raises(RequestError) as caught:
        decode(body, KNOWN)
    assert caught.value.code == "duplicate_key"
    assert 0 < len(caught.value.pointer) < 300


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"}",
        b'{"a":1}x',
        b'{"a":1}{"a":1}',
        b'{"a":1,}',
        b"{'a':1}",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":01}',
        b'{"a":1e999}',
        b'{"a":"\n"}',
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        rb'{"a":"\ud800"}',
        rb'{"a":"\x41"}',
        b'\xef\xbb\xbf{"a":1}',
        '{"a":1}'.encode("utf-16"),
        b'{"a":' + b"9" * 5_000 + b"}",
        b'{"a":' + b"[" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"{/* */}",
        b"\x00",
    ],
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        decode(body)
    assert (caught.value.status, caught.value.code, caught.value.pointer) == (400, "invalid_json", "")


@pytest.mark.parametrize("body", [b"[]", b"null", b'"text"', b"1", b"true"])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(RequestError) as caught:
        decode(body)
    assert (caught.value.code, caught.value.pointer) == ("invalid_type", "")


def test_nesting_as_deep_as_the_parser_allows_is_still_checked_for_duplicates() -> None:
    for depth in (100, 400, 900, 2_000):
        body = b'{"a":' * depth + rb'{"b":"\u003a","b":1}' + b"}" * depth
        with pytest.raises(RequestError) as caught:
            decode(body)
        assert caught.value.code in ("duplicate_key", "invalid_json")


def test_a_body_of_very_many_values_is_refused() -> None:
    with pytest.raises(RequestError) as caught:
        decode(b'{"a":[' + b"1," * 200_000 + b"1]}")
    assert (caught.value.status, caught.value.code) == (400, "too_many_values")
    assert len(decode(b'{"a":[' + b"1," * 100_000 + b"1]}")["a"]) == 100_001


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_nothing_but_a_request_error(body: bytes) -> None:
    try:
        decode(body)
    except RequestError as error:
        assert error.status == 400
