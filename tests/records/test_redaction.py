from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.records.redaction import (
    UnsureError,
    attachments,
    strings_of,
    value_at,
    without_attachments,
    without_text,
    without_values,
)
from router.request.apis import parse

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
DOCUMENTS = st.recursive(
    TEXT | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(DOCUMENTS, st.dictionaries(st.text("ab<>#*remov ", max_size=6), TEXT, max_size=4))
def test_no_value_is_left_anywhere(document: Any, values: dict[str, str]) -> None:
    before = copy.deepcopy(document)
    try:
        after = without_values(document, values)
    except UnsureError:
        return
    assert document == before
    for text in strings_of(after):
        assert not any(value in text for value in values if value)
    json.dumps(after)


@given(DOCUMENTS, st.data())
def test_a_value_cut_from_the_document_is_gone(document: Any, data: st.DataObject) -> None:
    texts = [text for text in strings_of(document) if text]
    if not texts:
        return
    text = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, len(text) - 1))
    value = text[start : data.draw(st.integers(start + 1, len(text)))]
    try:
        after = without_values(document, {value: "EMAIL_ADDRESS"})
    except UnsureError:
        return
    assert not any(value in one for one in strings_of(after))


def test_a_value_is_replaced_by_its_type_in_strings_and_names() -> None:
    document = {"bob@x.org": [{"text": "bob@x.org or bob@x.org.uk"}, 3, None, True]}
    values = {"bob@x.org": "EMAIL_ADDRESS", "bob@x.org.uk": "EMAIL_ADDRESS"}
    assert without_values(document, values) == {
        "<EMAIL_ADDRESS>": [{"text": "<EMAIL_ADDRESS> or <EMAIL_ADDRESS>"}, 3, None, True]
    }


def test_two_names_that_become_one_are_not_kept() -> None:
    with pytest.raises(UnsureError):
        without_values({"a1": 1, "a2": 2}, {"a1": "X", "a2": "X"})


def test_a_text_is_replaced_with_all_below_it() -> None:
    document: Any = {"a/b": [{"type": "word", "x": ["one", 2, {"~": "two"}]}]}
    without_text(document, "/a~1b/0", "US_SSN")
    assert document == {"a/b": [{"type": "word", "x": ["<US_SSN>", 0, {"~": "<US_SSN>"}]}]}
    with pytest.raises(UnsureError):
        without_text(document, "/nowhere", "X")
    with pytest.raises(UnsureError):
        without_text(document, "", "X")


PNG = "iVBORw0KGgo="
FILE = "data:application/pdf;base64,JVBERi0xLjQ="
CHAT = {
    "model": "m",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a-name.png"}},
                {"type": "file", "file": {"filename": "a-name.pdf", "file_data": FILE}},
                {"type": "input_audio", "input_audio": {"data": "aGVsbG8=", "format": "wav"}},
            ],
        }
    ],
}
MESSAGES = {
    "model": "m",
    "max_tokens": 3,
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
                {"type": "tool_result", "tool_use_id": "t", "content": [
                    {"type": "image", "source": {"type": "url", "url": "https://example.com/a-name.png"}}
                ]},
            ],
        }
    ],
}  # fmt: skip


@pytest.mark.parametrize(("api", "document"), [("openai.chat", CHAT), ("anthropic.messages", MESSAGES)])
def test_images_and_files_leave_their_digest_and_a_request_that_can_be_read(api: Any, document: Any) -> None:
    document = copy.deepcopy(document)
    view = parse(api, json.dumps(document).encode())
    parts = attachments(view)
    assert without_attachments(document, parts) == len(parts) > 2
    text = json.dumps(document)
    assert not [secret for secret in (PNG, "JVBER", "aGVsbG8", "a-name") if secret in text]
    assert f"removed:sha256={view.images[0].digest};bytes=8" in text
    again = parse(api, text.encode())
    assert len(again.images) == len(view.images)
    assert [image.data for image in again.images] == [b""] * len(view.images)


def test_a_place_that_is_not_there_is_an_error() -> None:
    for pointer in ("/a/b", "/a/x", "/a/9", "/c"):
        with pytest.raises(UnsureError):
            value_at({"a": [1]}, pointer)
