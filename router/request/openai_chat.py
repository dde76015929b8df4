"""OpenAI chat completions (`POST /v1/chat/completions`): a body becomes a RequestView.

Strict where content could hide (types, part types, duplicate or ambiguous keys), lenient where it could not: absent
content, options that only the upstream understands. What stands under unknown keys is let through, and read as text and
images. What goes upstream is the client's own bytes, so nothing here needs to be written back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.request.beside import TopKeys, read_extras
from router.request.calls import read_identifier, read_name
from router.request.edit import locate_model
from router.request.errors import RequestError
from router.request.free_text import read_other_keys, text_of
from router.request.openai_parts import (
    CONTENT_KEYS,
    read_content,
    read_function_call,
    read_tool_calls,
)
from router.request.request_facts import FACT_KEYS, read_needs, read_output_limit, read_outputs
from router.request.strict_json import (
    JsonObject,
    decode,
    list_at,
    object_at,
    optional_flag,
    optional_list,
    optional_string,
    place_of,
    required,
    string_at,
)
from router.request.view import Part, RequestView, Role, TextPart, ToolDefinition, ToolResultPart, Turn

_BODY_KEYS = frozenset({"model", "messages", "tools", "functions", "stream", "stream_options"})
_STREAM_OPTION_KEYS = frozenset({"include_usage"})
# `reasoning_content` and `reasoning` are what common servers put the thoughts of a model into, and read them from.
_REASONING = ("reasoning_content", "reasoning")
_MESSAGE_KEYS = frozenset(
    {"role", "content", "name", "refusal", "tool_calls", "tool_call_id", "function_call", *_REASONING}
)
# What most messages have, and nothing else.
_USUAL_KEYS = frozenset({"role", "content"})
_TOOL_KEYS = frozenset({"type", "function", "custom"})
_DEFINITION_KEYS = frozenset({"name", "description"})
ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""Who speaks, by OpenAI's words for it."""

UNSEEN_KEYS: Final = frozenset(
    {
        *("metadata", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "service_tier"),
        *("request_id", "cache_salt", "stop", "stop_token_ids", "logit_bias", "kv_transfer_params"),
    }
)
"""Options that steer a server and that no chat template is given."""
# Keys beside the conversation that a model is shown, and who usually writes them.
_BESIDE: dict[str, Role] = {
    "documents": "tool",
    "prompt": "user",
    "input": "user",
    "suffix": "user",
    "prediction": "assistant",
    "system": "system",
    "instructions": "developer",
    "chat_template": "system",
    "chat_template_kwargs": "system",
}
_KEYS = TopKeys(read=_BODY_KEYS, facts=FACT_KEYS, unseen=UNSEEN_KEYS, beside=_BESIDE)
_INNER_KEYS = _MESSAGE_KEYS | _TOOL_KEYS | _DEFINITION_KEYS | _STREAM_OPTION_KEYS | CONTENT_KEYS | {"parameters"}
_NAMED_KEYS = _KEYS.all | _INNER_KEYS
_TOP_KEYS = _BODY_KEYS | FACT_KEYS


def parse(body: bytes) -> RequestView:
    """The request in `body`. Raises RequestError with the JSON pointer of the offending value."""
    request = object_at(decode(body, _NAMED_KEYS), "", _TOP_KEYS)
    model = request.get("model")
    return RequestView(
        api="openai.chat",
        requested_model=None if model is None else string_at(model, "/model"),
        turns=read_messages(required(request, "messages", "")),
        tools=tuple(_read_tools(request)),
        stream=optional_flag(request, "stream", ""),
        body_bytes=len(body),
        model_span=locate_model(body) if "model" in request else None,
        include_usage=read_include_usage(request),
        extras=tuple(read_extras(request, _KEYS)),
        outputs=read_outputs(request),
        max_output_tokens=read_output_limit(request),
        needs=read_needs(request),
    )


def read_messages(value: object) -> tuple[Turn, ...]:
    """The turns in `messages`, of which there is at least one. Raises RequestError."""
    messages = list_at(value, "/messages")
    if not messages:
        raise RequestError(400, "empty_array", "`messages` is empty.", "/messages")
    return tuple(_read_message(message, f"/messages/{index}") for index, message in enumerate(messages))


def read_include_usage(request: JsonObject) -> bool:
    """Whether a stream has to end with a count of tokens. Raises RequestError."""
    options = request.get("stream_options")
    stream_options = {} if options is None else object_at(options, "/stream_options", _STREAM_OPTION_KEYS)
    return optional_flag(stream_options, "include_usage", "/stream_options")


def _read_message(value: object, pointer: str) -> Turn:
    message = object_at(value, pointer, _MESSAGE_KEYS)
    role = ROLES.get(string_at(required(message, "role", pointer), f"{pointer}/role"))
    if role is None:
        raise RequestError(400, "invalid_value", "Unknown role.", f"{pointer}/role")
    if role != "tool" and message.keys() <= _USUAL_KEYS:
        return Turn(pointer, role, read_content(message.get("content"), f"{pointer}/content"))
    return Turn(pointer, role, tuple(_read_parts(message, role, pointer)))


def _read_parts(message: JsonObject, role: Role, pointer: str) -> Iterator[Part]:
    yield from read_name(optional_string(message, "name", pointer), f"{pointer}/name")
    call_id = optional_string(message, "tool_call_id", pointer)
    yield from read_identifier(call_id, f"{pointer}/tool_call_id")
    content = read_content(message.get("content"), f"{pointer}/content")
    if role == "tool":
        yield ToolResultPart(place_of(message, "content", pointer), call_id, content)
    else:
        yield from content
    for key in ("refusal", *_REASONING):
        if text := optional_string(message, key, pointer):
            yield TextPart(f"{pointer}/{key}", text)
    if message.get("tool_calls") is not None:
        yield from read_tool_calls(message["tool_calls"], f"{pointer}/tool_calls")
    if message.get("function_call") is not None:
        yield from read_function_call(message["function_call"], f"{pointer}/function_call", "")
    yield from read_other_keys(message, _MESSAGE_KEYS, pointer)


def _read_tools(request: JsonObject) -> Iterator[ToolDefinition]:
    for index, item in enumerate(optional_list(request, "tools", "")):
        pointer = f"/tools/{index}"
        tool = object_at(item, pointer, _TOOL_KEYS)
        kind = string_at(required(tool, "type", pointer), f"{pointer}/type")
        if kind in ("function", "custom"):
            rest = {key: found for key, found in tool.items() if key not in ("type", kind)}
            yield _read_definition(required(tool, kind, pointer), f"{pointer}/{kind}", rest)
        else:
            # A tool that an upstream brings along, such as a search; only its author knows what its keys mean.
            yield ToolDefinition(pointer, "", parameters=text_of(tool))
    for index, item in enumerate(optional_list(request, "functions", "")):
        yield _read_definition(item, f"/functions/{index}", {})


def _read_definition(value: object, pointer: str, beside: JsonObject) -> ToolDefinition:
    definition = object_at(value, pointer, _DEFINITION_KEYS)
    name = string_at(required(definition, "name", pointer), f"{pointer}/name")
    description = optional_string(definition, "description", pointer)
    rest = {key: found for key, found in definition.items() if key not in _DEFINITION_KEYS}
    return ToolDefinition(pointer, name, description, text_of([rest, beside]))
