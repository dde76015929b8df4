from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from api_bodies import OPAQUE, PDF_BASE64, PNG, PNG_BASE64, PNG_URI

from router.request.anthropic_messages import parse, parse_count
from router.request.anthropic_sources import UNKNOWN_SOURCE
from router.request.errors import RequestError
from router.request.openai_chat import parse as parse_chat
from router.request.view import (
    FilePart,
    ImagePart,
    Part,
    RequestView,
    TextPart,
    ToolCallPart,
    ToolDefinition,
    ToolResultPart,
    Turn,
)

PDF = base64.b64decode(PDF_BASE64)
NO_READER = "unreadable file type"


def view_of(*messages: Any, **rest: Any) -> RequestView:
    return parse(json.dumps({"model": "m", "max_tokens": 9, "messages": list(messages), **rest}).encode())


def content_of(*content: Any) -> tuple[Part, ...]:
    (turn,) = view_of({"role": "user", "content": list(content)}).turns
    return turn.parts


def error_of(**body: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        parse(json.dumps(body).encode())
    return caught.value


HELLO = {"role": "user", "content": "hello"}


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_every_role_is_read(role: str) -> None:
    assert view_of({"role": role, "content": "hello"}).turns == (
        Turn("/messages/0", role, (TextPart("/messages/0/content", "hello"),)),  # type: ignore[arg-type]
    )


def test_facts_about_the_request_as_a_whole() -> None:
    view = view_of(HELLO, stream=True)
    assert (view.api, view.requested_model, view.stream, view.max_output_tokens) == ("anthropic.messages", "m", True, 9)
    assert (view.outputs, view.needs, view.continues) == (("text",), frozenset(), False)


def test_a_count_of_tokens_is_the_same_request_without_an_answer() -> None:
    body = json.dumps({"model": "m", "messages": [HELLO], "system": "be kind"}).encode()
    counted, asked = parse_count(body), parse(body)
    assert (counted.api, counted.outputs, counted.stream) == ("anthropic.count_tokens", (), False)
    assert counted.turns == asked.turns
    assert counted.model_span == asked.model_span


@pytest.mark.parametrize(
    ("system", "parts"),
    [
        ("be kind", (TextPart("/system", "be kind"),)),
        ([{"type": "text", "text": "be kind"}], (TextPart("/system/0/text", "be kind"),)),
    ],
)
def test_the_system_prompt_is_the_first_turn(system: Any, parts: tuple[Part, ...]) -> None:
    view = view_of(HELLO, system=system)
    assert view.turns[0] == Turn("/system", "system", parts)
    assert len(view.turns) == 2


@pytest.mark.parametrize("system", [None, "", []])
def test_a_system_prompt_may_be_absent_or_say_nothing(system: Any) -> None:
    assert [span.text for span in view_of(HELLO, system=system).texts] == ["hello"]


BLOCK = "/messages/0/content/0"
SOURCE = f"{BLOCK}/source"


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "text", "text": "hello"}, (TextPart(f"{BLOCK}/text", "hello"),)),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}},
            (ImagePart(f"{SOURCE}/data", "inline", PNG, "image/png"),),
        ),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "*"}},
            (ImagePart(f"{SOURCE}/data", "malformed", media_type="image/png", reason="invalid base64"),),
        ),
        (
            {"type": "image", "source": {"type": "base64", "data": PNG_URI}},
            (ImagePart(f"{SOURCE}/data", "inline", PNG, "image/png"),),
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            (ImagePart(f"{SOURCE}/url", "not_fetched", url="https://example.com/a.png"),),
        ),
        (
            {"type": "image", "source": {"type": "url", "url": PNG_URI}},
            (ImagePart(f"{SOURCE}/url", "inline", PNG, "image/png"),),
        ),
        (
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
            (ImagePart(f"{SOURCE}/file_id", "not_fetched"),),
        ),
        (
            {"type": "image", "source": {"type": "cloud", "place": "some place there"}},
            (TextPart(SOURCE, "some place there"), ImagePart(SOURCE, "malformed", reason=UNKNOWN_SOURCE)),
        ),
        (
            {
                "type": "document",
                "title": "the title",
                "context": "the context",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF_BASE64},
            },
            (
                TextPart(f"{BLOCK}/title", "the title"),
                TextPart(f"{BLOCK}/context", "the context"),
                FilePart(SOURCE, "the title", PDF, "application/pdf"),
                ImagePart(f"{SOURCE}/data", "malformed", media_type="application/pdf", reason=NO_READER),
            ),
        ),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a text"}},
            (FilePart(SOURCE, "", b"a text", "text/plain"), TextPart(f"{SOURCE}/data", "a text")),
        ),
        (
            {"type": "document", "source": {"type": "content", "content": "a text"}},
            (TextPart(f"{SOURCE}/content", "a text"),),
        ),
        (
            {
                "type": "document",
                "source": {
                    "type": "content",
                    "content": [
                        {"type": "text", "text": "a text"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}},
                    ],
                },
            },
            (
                TextPart(f"{SOURCE}/content/0/text", "a text"),
                ImagePart(f"{SOURCE}/content/1/source/data", "inline", PNG, "image/png"),
            ),
        ),
        (
            {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
            (FilePart(SOURCE, status="not_fetched"), ImagePart(f"{SOURCE}/url", "not_fetched")),
        ),
        (
            {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
            (
                FilePart(SOURCE, file_id="file_1", status="not_fetched"),
                ImagePart(f"{SOURCE}/file_id", "not_fetched"),
            ),
        ),
        (
            {
                "type": "search_result",
                "source": "kb",
                "title": "a title",
                "content": [{"type": "text", "text": "a hit"}],
            },
            (
                TextPart(f"{BLOCK}/source", "kb"),
                TextPart(f"{BLOCK}/title", "a title"),
                TextPart(f"{BLOCK}/content/0/text", "a hit"),
            ),
        ),
        ({"type": "thinking", "thinking": "hm", "signature": OPAQUE}, (TextPart(f"{BLOCK}/thinking", "hm"),)),
        ({"type": "redacted_thinking", "data": OPAQUE}, ()),
        (
            {"type": "tool_use", "id": "t", "name": "f", "input": {"x": ["é", 1]}},
            (ToolCallPart(f"{BLOCK}/input", "t", "f", '{"x":["é",1]}'),),
        ),
        (
            {"type": "tool_use", "id": "t", "name": "f", "input": {"x": 'a\n"b"'}},
            (
                ToolCallPart(f"{BLOCK}/input", "t", "f", '{"x":"a\\n\\"b\\""}'),
                TextPart(f"{BLOCK}/input", '{"x":"a\n"b""}'),
            ),
        ),
        (
            {"type": "server_tool_use", "id": "t", "name": "web_search", "input": {}},
            (ToolCallPart(f"{BLOCK}/input", "t", "web_search", "{}"),),
        ),
        (
            {"type": "mcp_tool_use", "id": "t", "name": "look", "server_name": "crm", "input": {}},
            (ToolCallPart(f"{BLOCK}/input", "t", "look", "{}"),),
        ),
        (
            {"type": "container_upload", "file_id": "file_1"},
            (FilePart(BLOCK, file_id="file_1", status="not_fetched"), ImagePart(f"{BLOCK}/file_id", "not_fetched")),
        ),
        ({"type": "hologram", "said": "some words"}, (TextPart(BLOCK, "some words"),)),
        (
            {"type": "video", "source": {"type": "file", "file_id": "file_1"}},
            (ImagePart(SOURCE, "malformed", reason=UNKNOWN_SOURCE),),
        ),
        (
            {"type": "video", "source": {"type": "base64", "media_type": "video/mp4", "data": OPAQUE}},
            (ImagePart(BLOCK, "malformed", media_type="", reason=NO_READER),),
        ),
        (
            {"type": "hologram", "content": [{"type": "text", "text": "some words"}]},
            (TextPart(f"{BLOCK}/content/0/text", "some words"),),
        ),
        ({"type": "compaction", "content": "a summary of it"}, (TextPart(BLOCK, "a summary of it"),)),
    ],
)
def test_every_type_of_block_is_read(block: dict[str, Any], expected: tuple[Part, ...]) -> None:
    assert content_of(block) == expected


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}}


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("42", (TextPart(f"{BLOCK}/content", "42"),)),
        (None, ()),
        (
            [{"type": "text", "text": "42"}, IMAGE],
            (
                TextPart(f"{BLOCK}/content/0/text", "42"),
                ImagePart(f"{BLOCK}/content/1/source/data", "inline", PNG, "image/png"),
            ),
        ),
        (
            [{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF_BASE64}}],
            (
                FilePart(f"{BLOCK}/content/0/source", "", PDF, "application/pdf"),
                ImagePart(
                    f"{BLOCK}/content/0/source/data", "malformed", media_type="application/pdf", reason=NO_READER
                ),
            ),
        ),
    ],
)
def test_results_of_tools_hold_their_texts_images_and_documents(content: Any, parts: tuple[Any, ...]) -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": content}
    (turn,) = view_of({"role": "user", "content": [block]}).turns
    assert turn == Turn("/messages/0", "tool", (ToolResultPart(f"{BLOCK}/content", "t", parts),))


@pytest.mark.parametrize(
    ("block", "texts"),
    [
        (
            {
                "type": "web_search_tool_result",
                "content": [{"type": "web_search_result", "title": "some title here", "encrypted_content": OPAQUE}],
            },
            ["some title here"],
        ),
        (
            {
                "type": "web_fetch_tool_result",
                "content": {
                    "type": "web_fetch_result",
                    "content": {"type": "document", "source": {"type": "text", "data": "a page"}},
                },
            },
            ["a page"],
        ),
        (
            {"type": "code_execution_tool_result", "content": {"type": "x", "stdout": "one two three", "content": []}},
            ["one two three"],
        ),
        ({"type": "mcp_tool_result", "content": [{"type": "text", "text": "seen"}]}, ["seen"]),
        ({"type": "hologram_tool_result", "content": "came back"}, ["came back"]),
    ],
)
def test_results_of_the_upstreams_tools_have_the_role_of_a_tool(block: dict[str, Any], texts: list[str]) -> None:
    view = view_of({"role": "assistant", "content": [{"type": "text", "text": "wait"}, {**block, "tool_use_id": "t"}]})
    assert [turn.role for turn in view.turns] == ["assistant", "tool"]
    assert [span.text for span in view.texts if span.role == "tool"] == texts
    assert isinstance(view.turns[1].parts[0], ToolResultPart)


def test_a_page_in_a_fetched_result_that_is_a_pdf_is_an_image_that_fails() -> None:
    page = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF_BASE64}}
    block = {"type": "web_fetch_tool_result", "tool_use_id": "t", "content": {"type": "x", "content": page}}
    (image,) = view_of({"role": "assistant", "content": [block]}).images
    assert (image.pointer, image.reason) == (f"{BLOCK}/content/content/source/data", NO_READER)


def test_a_conversation_with_tools_is_what_it_is_in_chat() -> None:
    ours = view_of(
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "sure"},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"x": 1}},
                {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "42"},
                {"type": "text", "text": "and now?"},
                IMAGE,
            ],
        },
        system="be kind",
    )
    chat = {
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "look"},
            {
                "role": "assistant",
                "content": "sure",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
                    {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "42"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "and now?"},
                    {"type": "image_url", "image_url": {"url": PNG_URI}},
                ],
            },
        ]
    }
    theirs = parse_chat(json.dumps(chat).encode())
    assert [turn.role for turn in ours.turns] == [turn.role for turn in theirs.turns]
    assert [(span.role, span.text) for span in ours.texts] == [(span.role, span.text) for span in theirs.texts]
    assert [span.text for span in ours.latest_user_texts] == ["and now?"]
    assert [image.digest for image in ours.images] == [image.digest for image in theirs.images]
    assert [turn.pointer for turn in ours.turns[-2:]] == ["/messages/2", "/messages/2"]


def test_unknown_keys_of_a_message_make_no_turn_of_their_own() -> None:
    (turn,) = view_of({**HELLO, "note": "some words here"}).turns
    assert [part.text for part in turn.parts if isinstance(part, TextPart)] == ["hello", "some words here"]


def test_tools_of_every_kind_are_listed() -> None:
    view = view_of(
        HELLO,
        tools=[
            {
                "name": "f",
                "description": "does f",
                "input_schema": {"type": "object", "properties": {"q": {"description": "a question"}}},
            },
            {"type": "custom", "name": "g", "input_schema": {}, "input_examples": [{"x": "an example"}]},
            {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a b c"]},
        ],
    )
    assert view.tools == (
        ToolDefinition("/tools/0", "f", "does f", "a question"),
        ToolDefinition("/tools/1", "g", "", "an example"),
        ToolDefinition("/tools/2", "web_search", "", "a b c"),
    )


def test_servers_of_tools_are_read_but_for_the_keys_to_their_doors() -> None:
    servers = [{"type": "url", "name": "the server of tools", "url": "x", "authorization_token": "open sesame please"}]
    view = view_of(HELLO, mcp_servers=servers)
    assert [(span.pointer, span.text) for span in view.texts[1:]] == [("/mcp_servers/0", "the server of tools")]


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        ({"tools": [{"name": "f", "input_schema": {}}]}, {"tools"}),
        ({"tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "none"}}, set()),
        ({"tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "any"}}, {"tools"}),
        ({"output_config": {"format": {"type": "json_schema", "schema": {}}}}, {"json_schema"}),
        ({"output_format": {"type": "json_schema", "schema": {}}}, {"json_schema"}),
        ({"output_config": {"effort": "low"}}, set()),
    ],
)
def test_abilities_that_the_request_relies_on(options: dict[str, Any], needs: set[str]) -> None:
    assert view_of(HELLO, **options).needs == needs


@pytest.mark.parametrize(
    ("rest", "content", "expected"),
    [
        ({}, [], False),
        ({"thread": {"type": "create"}}, [], False),
        ({"thread": {"type": "continue", "previous_message_id": "msg_1"}}, [], True),
        ({}, [{"type": "compaction", "content": "x"}], False),
        ({}, [{"type": "compaction", "encrypted_content": OPAQUE}], True),
    ],
)
def test_what_the_upstream_keeps_is_said_to_be_out_of_sight(rest: Any, content: Any, expected: bool) -> None:
    assert view_of({"role": "user", "content": content}, **rest).continues is expected


def test_mere_settings_are_no_texts() -> None:
    view = view_of(
        {
            "role": "user",
            "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "5m"}}],
        },
        metadata={"user_id": "some words here"},
        stop_sequences=["some words here"],
        thinking={"type": "enabled", "budget_tokens": 1024},
        tool_choice={"type": "tool", "name": "get_weather"},
        service_tier="standard_only",
        container={"id": "container_1", "skills": [{"type": "anthropic", "skill_id": "pptx", "version": "latest"}]},
        context_management={"edits": [{"type": "clear_tool_uses_20250919"}]},
        output_config={"effort": "low"},
    )
    assert [span.text for span in view.texts] == ["x"]


def block(**keys: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [keys]}]}


def source(**keys: Any) -> dict[str, Any]:
    return block(type="image", source=keys)


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({}, "missing_required_parameter", "/messages"),
        ({"messages": []}, "empty_array", "/messages"),
        ({"messages": "x"}, "invalid_type", "/messages"),
        ({"messages": ["x"]}, "invalid_type", "/messages/0"),
        ({"messages": [{}]}, "missing_required_parameter", "/messages/0/role"),
        ({"messages": [{"role": "root"}]}, "invalid_value", "/messages/0/role"),
        ({"messages": [{"role": "tool"}]}, "invalid_value", "/messages/0/role"),
        ({"messages": [{"role": "user", "content": 1}]}, "invalid_type", "/messages/0/content"),
        ({"messages": [{"role": "user", "content": {}}]}, "invalid_type", "/messages/0/content"),
        ({"messages": [{"role": "user", "Content": "x"}]}, "ambiguous_key", "/messages/0"),
        ({"messages": [HELLO], "system": 1}, "invalid_type", "/system"),
        ({"messages": [HELLO], "system": ["x"]}, "invalid_type", "/system/0"),
        ({"messages": [HELLO], "System": "x"}, "ambiguous_key", ""),
        ({"messages": [HELLO], "model": 1}, "invalid_type", "/model"),
        ({"messages": [HELLO], "stream": 1}, "invalid_type", "/stream"),
        ({"messages": [HELLO], "max_tokens": "1"}, "invalid_type", "/max_tokens"),
        ({"messages": [HELLO], "tools": {}}, "invalid_type", "/tools"),
        ({"messages": [HELLO], "tools": [{}]}, "missing_required_parameter", "/tools/0/name"),
        ({"messages": [HELLO], "mcp_servers": {}}, "invalid_type", "/mcp_servers"),
        ({"messages": [HELLO], "mcp_servers": ["x"]}, "invalid_type", "/mcp_servers/0"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "invalid_type", "/messages/0/content/0"),
        (block(text="x"), "missing_required_parameter", "/messages/0/content/0/type"),
        (block(type="text"), "missing_required_parameter", "/messages/0/content/0/text"),
        (block(type="text", text=1), "invalid_type", "/messages/0/content/0/text"),
        (block(type="text", text="x", source={"type": "url"}), "ambiguous_key", "/messages/0/content/0"),
        (block(type="image", source={"type": "url", "url": "x"}, text="x"), "ambiguous_key", "/messages/0/content/0"),
        (block(type="tool_use", input={}), "missing_required_parameter", "/messages/0/content/0/name"),
        (block(type="tool_use", name="f", input={}, content="x"), "ambiguous_key", "/messages/0/content/0"),
        (block(type="tool_result", content=1), "invalid_type", "/messages/0/content/0/content"),
        (block(type="tool_result", tool_use_id=1), "invalid_type", "/messages/0/content/0/tool_use_id"),
        (block(type="tool_result", content="x", text="y"), "ambiguous_key", "/messages/0/content/0"),
        (block(type="image"), "missing_required_parameter", "/messages/0/content/0/source"),
        (block(type="document", source="x"), "invalid_type", "/messages/0/content/0/source"),
        (source(data="x"), "missing_required_parameter", "/messages/0/content/0/source/type"),
        (source(type="base64"), "missing_required_parameter", "/messages/0/content/0/source/data"),
        (source(type="base64", data=1), "invalid_type", "/messages/0/content/0/source/data"),
        (source(type="url", url="x", data="y"), "ambiguous_key", "/messages/0/content/0/source"),
        (source(type="base64", data="x", Data="y"), "ambiguous_key", "/messages/0/content/0/source"),
    ],
)
def test_illegal_requests_are_refused_with_a_pointer_to_the_offending_value(
    body: dict[str, Any], code: str, pointer: str
) -> None:
    error = error_of(**body)
    assert (error.status, error.code, error.pointer) == (400, code, pointer)
