"""A body of each API that has nearly everything in it which the API knows, and ways to change one somewhere."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator
from typing import Any

from router.request.view import Api, AudioPart, FilePart, ImagePart, RequestView, ToolCallPart

PNG = b"\x89PNG\r\n\x1a\nrest" + bytes(60)
PNG_BASE64 = base64.b64encode(PNG).decode()
PNG_URI = "data:image/png;base64," + PNG_BASE64
PDF_BASE64 = base64.b64encode(b"%PDF-1.7 " + bytes(range(256))).decode()
OPAQUE = base64.b64encode(bytes(range(256))).decode()

CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "be kind"},
        {
            "role": "user",
            "name": "ann",
            "content": [
                {"type": "text", "text": "hello"},
                {"type": "image_url", "image_url": {"url": PNG_URI, "detail": "low"}},
                {"type": "file", "file": {"file_id": "file-1", "filename": "a.pdf"}},
                {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "refusal": "no",
            "reasoning_content": "hm",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "42"}]},
    ],
    "tools": [
        {"type": "function", "function": {"name": "f", "description": "does f", "parameters": {"type": "object"}}},
        {"type": "live_search", "hint": {"a": ["near"]}},
    ],
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
    "documents": [{"title": "x", "text": "y"}],
    "stream": True,
    "stream_options": {"include_usage": True},
}

RESPONSES: dict[str, Any] = {
    "model": "m",
    "instructions": "be kind",
    "previous_response_id": "resp_1",
    "conversation": {"id": "conv_1"},
    "prompt": {
        "id": "pmpt_1",
        "version": "2",
        "variables": {"city": "Rome", "photo": {"type": "input_image", "image_url": PNG_URI}},
    },
    "input": [
        {"role": "user", "content": "hello"},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": PNG_URI, "detail": "auto"},
                {"type": "input_image", "file_id": "file-1"},
                {"type": "input_file", "file_data": "data:application/pdf;base64," + PDF_BASE64, "filename": "a.pdf"},
                {"type": "input_file", "file_url": "https://example.com/a.pdf"},
                {"type": "input_file", "file_id": "file-2"},
                {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "thought"}],
            "content": [{"type": "reasoning_text", "text": "thinking"}],
            "encrypted_content": OPAQUE,
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": "sure",
                    "annotations": [{"type": "url_citation", "url": "https://example.com", "title": "a page"}],
                },
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"x":1}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "42"},
        {
            "type": "function_call_output",
            "call_id": "call_2",
            "output": [
                {"type": "input_text", "text": "a shot"},
                {"type": "input_image", "image_url": PNG_URI},
                {"type": "input_file", "file_data": PDF_BASE64, "filename": "b.pdf"},
            ],
        },
        {"type": "custom_tool_call", "call_id": "call_3", "name": "g", "input": "free text"},
        {"type": "custom_tool_call_output", "call_id": "call_3", "output": "given back"},
        {"type": "computer_call", "id": "cu_1", "call_id": "call_4", "action": {"type": "type", "text": "typed"}},
        {
            "type": "computer_call_output",
            "call_id": "call_4",
            "output": {"type": "computer_screenshot", "image_url": PNG_URI},
            "acknowledged_safety_checks": [{"id": "sc_1", "code": "malicious", "message": "take care of it"}],
        },
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rain"}},
        {
            "type": "file_search_call",
            "id": "fs_1",
            "queries": ["sun"],
            "results": [{"text": "found it", "filename": "c.txt", "score": 0.5}],
        },
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "code": "print(1)",
            "outputs": [{"type": "logs", "logs": "one"}, {"type": "image", "url": PNG_URI}],
        },
        {"type": "image_generation_call", "id": "ig_1", "revised_prompt": "a cat", "result": PNG_BASE64},
        {
            "type": "local_shell_call",
            "id": "ls_1",
            "call_id": "call_5",
            "action": {"type": "exec", "command": ["ls", "here"], "env": {}},
        },
        {"type": "local_shell_call_output", "id": "call_5", "output": "files"},
        {"type": "shell_call", "call_id": "call_6", "action": {"commands": ["pwd"]}},
        {"type": "shell_call_output", "call_id": "call_6", "output": [{"stdout": "/home", "stderr": "none at all"}]},
        {
            "type": "apply_patch_call",
            "call_id": "call_7",
            "operation": {"type": "update_file", "path": "a.py", "diff": "+ x"},
        },
        {"type": "apply_patch_call_output", "call_id": "call_7", "status": "completed", "output": "done well"},
        {
            "type": "mcp_list_tools",
            "server_label": "crm",
            "tools": [{"name": "look", "description": "looks up", "input_schema": {"type": "object"}}],
        },
        {"type": "mcp_approval_request", "id": "mr_1", "server_label": "crm", "name": "look", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mr_1", "approve": True, "reason": "go on"},
        {"type": "mcp_call", "id": "mc_1", "server_label": "crm", "name": "look", "arguments": "{}", "output": "seen"},
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "late"}]},
        {
            "type": "tool_search_output",
            "call_id": "call_8",
            "tools": [
                {"type": "function", "name": "found"},
                {"type": "image_generation", "input_image_mask": {"image_url": PNG_URI}},
            ],
        },
        {"type": "item_reference", "id": "msg_2"},
        {"type": "compaction", "encrypted_content": OPAQUE},
        {"type": "hologram", "note": "of the future", "content": [{"type": "input_text", "text": "new"}]},
    ],
    "tools": [
        {"type": "function", "name": "f", "description": "does f", "parameters": {"type": "object"}, "strict": True},
        {"type": "custom", "name": "g", "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}},
        {"type": "web_search", "filters": {"allowed_domains": ["example.com"]}},
        {"type": "mcp", "server_label": "crm", "server_url": "https://example.com", "authorization": "x y"},
        {"type": "image_generation", "input_image_mask": {"image_url": PNG_URI}},
        {"type": "namespace", "name": "ns", "description": "some", "tools": [{"type": "function", "name": "inner"}]},
    ],
    "text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}},
    "tool_choice": "auto",
    "reasoning": {"effort": "low"},
    "include": ["reasoning.encrypted_content"],
    "max_output_tokens": 100,
    "metadata": {"note": "unseen"},
    "stream": True,
}

COMPLETIONS: dict[str, Any] = {
    "model": "m",
    "prompt": ["def f():", "class C:"],
    "suffix": "return",
    "echo": True,
    "stop": ["\n"],
    "max_tokens": 5,
    "stream": True,
    "stream_options": {"include_usage": True},
}

EMBEDDINGS: dict[str, Any] = {
    "model": "m",
    "input": ["one", "two", {"text": "three", "image": PNG_URI}],
    "encoding_format": "float",
    "user": "ann",
}

MESSAGES: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "hello"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": OPAQUE},
                {"type": "redacted_thinking", "data": OPAQUE},
                {
                    "type": "text",
                    "text": "sure",
                    "citations": [{"type": "char_location", "cited_text": "the words", "document_title": "a title"}],
                },
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": ["one", {"y": "two"}]}},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rain"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": [
                        {
                            "type": "web_search_result",
                            "url": "https://example.com",
                            "title": "a page",
                            "encrypted_content": OPAQUE,
                        }
                    ],
                },
                {
                    "type": "web_fetch_tool_result",
                    "tool_use_id": "srvtoolu_2",
                    "content": {
                        "type": "web_fetch_result",
                        "url": "https://example.com/a",
                        "content": {
                            "type": "document",
                            "source": {"type": "text", "media_type": "text/plain", "data": "fetched"},
                        },
                    },
                },
                {
                    "type": "bash_code_execution_tool_result",
                    "tool_use_id": "srvtoolu_3",
                    "content": {
                        "type": "bash_code_execution_result",
                        "stdout": "out there",
                        "stderr": "",
                        "content": [],
                    },
                },
                {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "look", "server_name": "crm", "input": {}},
                {
                    "type": "mcp_tool_result",
                    "tool_use_id": "mcptoolu_1",
                    "content": [{"type": "text", "text": "seen"}],
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "is_error": False,
                    "content": [
                        {"type": "text", "text": "42"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}},
                        {
                            "type": "document",
                            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF_BASE64},
                        },
                        {
                            "type": "search_result",
                            "source": "kb",
                            "title": "t",
                            "content": [{"type": "text", "text": "r"}],
                        },
                        {"type": "tool_reference", "tool_name": "found"},
                    ],
                },
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "plain"},
                {"type": "text", "text": "and now"},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
                {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                {
                    "type": "document",
                    "title": "the title",
                    "context": "some context",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF_BASE64},
                },
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a text"}},
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a block"}]}},
                {"type": "document", "source": {"type": "content", "content": "a string"}},
                {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
                {"type": "document", "source": {"type": "file", "file_id": "file_2"}},
                {"type": "search_result", "source": "kb", "title": "t", "content": [{"type": "text", "text": "a hit"}]},
                {"type": "container_upload", "file_id": "file_3"},
                {"type": "hologram", "note": "of the future", "content": [{"type": "text", "text": "new"}]},
            ],
        },
        {"role": "system", "content": [{"type": "text", "text": "by the way"}]},
    ],
    "tools": [
        {"name": "f", "description": "does f", "input_schema": {"type": "object"}, "input_examples": [{"x": "one"}]},
        {"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["example.com"]},
    ],
    "mcp_servers": [
        {"type": "url", "name": "crm", "url": "https://example.com", "authorization_token": "x y"},
    ],
    "tool_choice": {"type": "auto"},
    "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "container": {"id": "container_1", "skills": [{"type": "custom", "skill_id": "skill_1"}]},
    "metadata": {"user_id": "ann"},
    "stop_sequences": ["\n"],
    "stream": True,
}

BODIES: dict[Api, dict[str, Any]] = {
    "openai.chat": CHAT,
    "openai.responses": RESPONSES,
    "openai.completions": COMPLETIONS,
    "openai.embeddings": EMBEDDINGS,
    "anthropic.messages": MESSAGES,
    "anthropic.count_tokens": {key: value for key, value in MESSAGES.items() if key not in ("stream", "max_tokens")},
}

Path = tuple[str | int, ...]

# No model is shown these: settings of a server, and what opens the doors of others.
UNSEEN = frozenset(
    {
        *("metadata", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "service_tier"),
        *("request_id", "cache_salt", "stop", "stop_token_ids", "logit_bias", "kv_transfer_params", "include"),
        *("stream_options", "prompt_cache_options", "truncation", "moderation", "context_management", "logprobs"),
        *("stop_sequences", "inference_geo", "user_profile_id", "anthropic_version", "anthropic_beta", "betas"),
        *("cache_control", "diagnostics", "authorization", "authorization_token", "headers", "model"),
    }
)


def walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value in a document, with the way to it."""
    yield path, value
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from walk(child, (*path, key))


def with_value(body: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """A copy of the body with `value` at the end of the way."""
    made = copy.deepcopy(body)
    at: Any = made
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return made


def pointer_of(path: Path) -> str:
    return "".join(f"/{step}" for step in path)


def shown(view: RequestView, words: str, pointer: str) -> bool:
    """Whether words of the client can be seen: in a text or a name, or there as an image or sound that fails."""
    return any(words in span.text for span in view.texts) or any(
        (isinstance(part, ToolCallPart) and words in part.name)
        or (isinstance(part, FilePart) and words in part.name)
        or (isinstance(part, AudioPart) and part.status == "malformed" and pointer == f"{part.pointer}/data")
        or (
            isinstance(part, ImagePart)
            and (words in part.url or (part.status == "malformed" and part.pointer == pointer))
        )
        or (isinstance(part, ImagePart) and words.lower() in part.media_type)
        for _, part in view.parts()
    )
