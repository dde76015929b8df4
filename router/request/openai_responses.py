"""OpenAI Responses (`POST /v1/responses`): a body becomes a RequestView.

What the upstream keeps is not in sight: with `previous_response_id`, `conversation`, a `prompt` template, an item by
reference or a compacted one, the model reads what no signal sees, and the view says so (`continues`).
"""

from __future__ import annotations

from collections.abc import Iterator

from router.request.beside import TopKeys, read_extras
from router.request.calls import read_identifier
from router.request.definitions import DEFINITION_KEYS, read_tool_images, read_tools
from router.request.edit import locate_model
from router.request.errors import RequestError
from router.request.free_text import read_other_keys
from router.request.openai_chat import UNSEEN_KEYS
from router.request.openai_inputs import INPUT_KEYS, read_anything
from router.request.openai_items import ITEM_KEYS, TOOL_ITEMS, is_kept, read_items
from router.request.request_facts import (
    RESPONSES_FACT_KEYS,
    read_output_limit,
    read_outputs,
    read_responses_needs,
)
from router.request.strict_json import (
    JsonList,
    JsonObject,
    decode,
    object_at,
    optional_flag,
    optional_string,
    string_at,
    wrong_type,
)
from router.request.view import Part, RequestView, TextPart, ToolDefinition, Turn

_PROMPT_KEYS = frozenset({"id", "version", "variables"})
_CONVERSATION_KEYS = frozenset({"id"})
_KEYS = TopKeys(
    read=frozenset(
        {"model", "input", "instructions", "previous_response_id", "conversation", "prompt", "tools", "stream"}
    ),
    facts=RESPONSES_FACT_KEYS | {"background_options", "reasoning"},
    unseen=UNSEEN_KEYS
    | {"include", "stream_options", "prompt_cache_options", "truncation", "moderation", "context_management"},
    beside={"documents": "tool", "messages": "user", "chat_template": "system", "chat_template_kwargs": "system"},
)
_NAMED_KEYS = _KEYS.all | ITEM_KEYS | INPUT_KEYS | DEFINITION_KEYS | _PROMPT_KEYS | {"parameters"}


def parse(body: bytes) -> RequestView:
    """The request in `body`. Raises RequestError with the JSON pointer of the offending value."""
    request = object_at(decode(body, _NAMED_KEYS), "", _KEYS.read | _KEYS.facts)
    model = request.get("model")
    continues = _continues(request)
    items = _items(request, continues)
    return RequestView(
        api="openai.responses",
        requested_model=None if model is None else string_at(model, "/model"),
        turns=(*_read_instructions(request), *_read_input(request)),
        tools=tuple(_read_tools(request, items)),
        stream=optional_flag(request, "stream", ""),
        body_bytes=len(body),
        model_span=locate_model(body) if "model" in request else None,
        extras=(
            *_read_prompt(request),
            *_read_kept(request),
            *_read_tool_images(request, items),
            *read_extras(request, _KEYS),
        ),
        outputs=read_outputs(request),
        max_output_tokens=read_output_limit(request, ("max_output_tokens",)),
        needs=read_responses_needs(request),
        continues=continues or any(map(is_kept, items)),
    )


def _continues(request: JsonObject) -> bool:
    options = request.get("background_options")
    kept = ("previous_response_id", "conversation", "prompt")
    return any(request.get(key) for key in kept) or (isinstance(options, dict) and bool(options.get("continuation_id")))


def _items(request: JsonObject, continues: bool) -> JsonList:
    value = request.get("input")
    if value is None and not continues:
        raise RequestError(400, "missing_required_parameter", "`input` is missing.", "/input")
    if value == [] and not continues:
        raise RequestError(400, "empty_array", "`input` is empty.", "/input")
    return value if isinstance(value, list) else []


def _read_input(request: JsonObject) -> tuple[Turn, ...]:
    match request.get("input"):
        case None:
            return ()
        case str() as text:
            return (Turn("/input", "user", (TextPart("/input", text),)),)
        case list() as items:
            return read_items(items, "/input")
        case other:
            raise wrong_type("/input", "a string or a list of items", other)


def _read_instructions(request: JsonObject) -> Iterator[Turn]:
    if text := optional_string(request, "instructions", ""):
        yield Turn("/instructions", "developer", (TextPart("/instructions", text),))


def _read_tools(request: JsonObject, items: JsonList) -> Iterator[ToolDefinition]:
    for tools, pointer in _tool_lists(request, items):
        yield from read_tools(tools, pointer)


def _read_tool_images(request: JsonObject, items: JsonList) -> Iterator[Turn]:
    for tools, pointer in _tool_lists(request, items):
        yield from read_tool_images(tools, pointer)


def _tool_lists(request: JsonObject, items: JsonList) -> Iterator[tuple[object, str]]:
    """Where tools are offered: at the top, and in the conversation."""
    yield request.get("tools"), "/tools"
    for index, item in enumerate(items):
        if isinstance(item, dict) and item.get("type") in TOOL_ITEMS:
            yield item.get("tools"), f"/input/{index}/tools"


def _read_prompt(request: JsonObject) -> Iterator[Turn]:
    """What fills the gaps of a template; the template itself is kept by the upstream."""
    if request.get("prompt") is None:
        return
    prompt = object_at(request["prompt"], "/prompt", _PROMPT_KEYS)
    parts: list[Part] = [*read_identifier(optional_string(prompt, "id", "/prompt"), "/prompt/id")]
    parts += read_identifier(optional_string(prompt, "version", "/prompt"), "/prompt/version")
    parts += read_anything(prompt.get("variables"), "/prompt/variables")
    parts += read_other_keys(prompt, _PROMPT_KEYS, "/prompt")
    yield from _turn("/prompt", parts)


def _read_kept(request: JsonObject) -> Iterator[Turn]:
    """References to what the upstream keeps, read as far as they are more than that."""
    identifier = optional_string(request, "previous_response_id", "")
    yield from _turn("/previous_response_id", [*read_identifier(identifier, "/previous_response_id")])
    match request.get("conversation"):
        case None:
            pass
        case str() as identifier:
            yield from _turn("/conversation", [*read_identifier(identifier, "/conversation")])
        case dict() as conversation:
            object_at(conversation, "/conversation", _CONVERSATION_KEYS)
            identifier = optional_string(conversation, "id", "/conversation")
            parts: list[Part] = [*read_identifier(identifier, "/conversation/id")]
            parts += read_other_keys(conversation, _CONVERSATION_KEYS, "/conversation")
            yield from _turn("/conversation", parts)
        case other:
            raise wrong_type("/conversation", "a string or an object", other)


def _turn(pointer: str, parts: list[Part]) -> Iterator[Turn]:
    if parts:
        yield Turn(pointer, "user", tuple(parts))
