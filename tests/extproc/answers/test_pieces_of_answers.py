"""What is read of an answer as texts and calls, and what is known to be none."""

from __future__ import annotations

from typing import Any

import pytest

from router.extproc.answers.documents import NoJson, decoded, parts_of, pieces_of_answer
from router.extproc.answers.events import read_event
from router.extproc.answers.pieces import Called, Ended, Said, WholeCall, WholeText
from router.extproc.answers.wholes import read_answer

LONG = "QUJD" * 40


@pytest.mark.parametrize(
    "document",
    [
        {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "system_fingerprint": "fp_1"},
        {"choices": [{"finish_reason": "stop", "index": 0, "message": {"role": "assistant", "content": None}}]},
        {"choices": [{"logprobs": {"content": [{"token": "hello"}]}}], "usage": {"x": "y"}},
        {"object": "response", "instructions": "be kind", "tools": [{"description": "a tool"}], "output": []},
        {"content": [{"type": "redacted_thinking", "data": LONG}]},
        {"content": [{"type": "thinking", "thinking": "", "signature": LONG}]},
        {"data": [{"b64_json": LONG}]},
        [1, 2.5, None, True, {}, []],
    ],
    ids=str,
)
def test_an_apis_own_words_and_bytes_are_no_texts(document: Any) -> None:
    assert list(read_answer(document)) == []


def test_texts_have_the_place_where_they_stand() -> None:
    document = {"choices": [{"message": {"content": [{"type": "text", "text": "one"}], "a/b~": "two"}}]}
    assert list(read_answer(document)) == [
        WholeText("/choices/0/message/content/0/text", "one"),
        WholeText("/choices/0/message/a~1b~0", "two"),
    ]


def test_what_is_short_is_no_proof_and_read() -> None:
    assert list(read_answer({"data": "AKIAIOSFODNN7EXAMPLE"})) == [WholeText("/data", "AKIAIOSFODNN7EXAMPLE")]


def test_a_word_that_is_more_than_a_label_is_read() -> None:
    (text,) = read_answer({"id": "this is what the model said"})
    assert isinstance(text, WholeText)


def test_calls_have_their_names_and_arguments() -> None:
    chat = {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
    assert list(read_answer(chat)) == [WholeCall("/tool_calls/0/function", "", "f", "{}")]
    claude = {"content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {"a": "b"}}]}
    assert list(read_answer(claude)) == [WholeCall("/content/0", "t1", "f", '{"a": "b"}')]
    search = {"output": [{"type": "web_search_call", "id": "w", "status": "done", "action": {"query": "q"}}]}
    assert list(read_answer(search)) == [WholeCall("/output/0", "", "web_search", '{"action": {"query": "q"}}')]
    remote = {"type": "mcp_call", "name": "f", "arguments": "{}", "output": "what it gave", "id": "m"}
    assert list(read_answer(remote)) == [WholeCall("", "m", "f", "{}"), WholeText("/output", "what it gave")]


def test_parts_of_a_call_say_its_arguments_without_escapes_and_a_name_that_is_no_label() -> None:
    texts = [
        getattr(part, "text", "") for part in parts_of(WholeCall("", "c", "say all you know now", r'{"a":"\u0062"}'))
    ]
    assert '{"a":"b"}' in texts
    assert any("say all you know now" in text for text in texts)
    assert list(parts_of(Ended(("choice", 0)))) == []


@pytest.mark.parametrize(
    ("event", "pieces"),
    [
        (
            {"choices": [{"index": 2, "delta": {"content": "a"}}]},
            [Said(("choice", 2, "content"), "/choices/2/message/content", "a")],
        ),
        ({"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]}, [Ended(("choice", 1))]),
        ({"choices": [{"text": "a"}]}, [Said(("choice", 0, "text"), "/choices/0/text", "a")]),
        (
            {"choices": [{"delta": {"tool_calls": [{"index": 3, "function": {"arguments": "{"}}]}}]},
            [Called(("choice", 0, "tool_calls", 3), "/choices/0/message/tool_calls/3", "", "", "{")],
        ),
        (
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "a"}},
            [Said(("block", 1, "text"), "/content/1/text", "a")],
        ),
        (
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "tool_use", "name": "f", "input": {}},
            },
            [Called(("block", 1), "/content/1", "", "f", "")],
        ),
        ({"type": "content_block_stop", "index": 1}, [Ended(("block", 1))]),
        ({"type": "ping"}, []),
        (
            {"type": "response.output_text.delta", "output_index": 1, "content_index": 2, "delta": "a"},
            [Said(("item", 1, "response.output_text", 2, 0), "/output/1", "a")],
        ),
        (
            {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{"},
            [Called(("item", 1), "/output/1", "", "", "{")],
        ),
        ({"type": "response.audio.delta", "delta": LONG}, []),
    ],
    ids=str,
)
def test_events_add_to_what_they_belong_to(event: dict[str, Any], pieces: list[object]) -> None:
    assert list(read_event(event)) == pieces


def test_lone_surrogates_are_read_as_clients_read_them() -> None:
    assert decoded(rb'{"a": "\ud800"}') == {"a": "\ud800"}
    (call,) = read_answer({"name": "f", "arguments": {"a": "\ud800"}})
    assert isinstance(call, WholeCall)
    with pytest.raises(NoJson):
        decoded(b"{")
    assert pieces_of_answer(b"\xff{") == [WholeText("", "\ufffd{")]
    assert pieces_of_answer(b"") == []
