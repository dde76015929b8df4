"""Anthropic messages (`POST /v1/messages`, and `count_tokens` beneath): a body becomes a RequestView.

As strict as chat completions about roles, types and doubtful keys, and as lenient about what only an upstream
understands. A message with results of tools in it becomes several turns, so that nothing a tool said passes for a
user's words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from router.request.anthropic_blocks import BLOCK_KEYS, is_result, read_block, read_blocks
from router.request.beside import TopKeys, read_extras
from router.request.definitions import DEFINITION_KEYS, read_tool_images, read_tools
from router.request.edit import locate_model
from router.request.errors import RequestError
from router.request.free_text import read_freely, read_other_keys
from router.request.request_facts import MESSAGES_FACT_KEYS, read_messages_needs, read_output_limit
from router.request.strict_json import (
    JsonObject,
    decode,
    list_at,
    object_at,
    optional_flag,
    required,
    string_at,
    wrong_type,
)
from router.request.view import Part, RequestView, Role, TextPart, Turn

_MESSAGE_KEYS = frozenset({"role", "content"})
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_KEYS = TopKeys(
    read=frozenset({"model", "messages", "system", "tools", "stream", "mcp_servers"}),
    facts=MESSAGES_FACT_KEYS | {"thinking", "thread", "container", "speed", "fallbacks"},
    unseen=frozenset(
        {
            *("metadata", "stop_sequences", "service_tier", "inference_geo", "user_profile_id", "anthropic_version"),
            *("anthropic_beta", "betas", "cache_control", "context_management", "diagnostics"),
        }
    ),
    beside={"documents": "tool", "prompt": "user", "input": "user", "prefill": "assistant", "instructions": "system"},
)
_NAMED_KEYS = _KEYS.all | _MESSAGE_KEYS | BLOCK_KEYS | DEFINITION_KEYS | {"input_schema", "properties"}
# How an upstream reaches a server of tools.
_UNSEEN_SERVER_KEYS = frozenset({"authorization_token"})


def parse(body: bytes) -> RequestView:
    """The request in `body`. Raises RequestError with the JSON pointer of the offending value."""
    request = object_at(decode(body, _NAMED_KEYS), "", _KEYS.read | _KEYS.facts)
    messages = list_at(required(request, "messages", ""), "/messages")
    if not messages:
        raise RequestError(400, "empty_array", "`messages` is empty.", "/messages")
    model = request.get("model")
    system = read_blocks(request.get("system"), "/system")
    turns = (turn for index, message in enumerate(messages) for turn in _read_message(message, f"/messages/{index}"))
    return RequestView(
        api="anthropic.messages",
        requested_model=None if model is None else string_at(model, "/model"),
        turns=(*([Turn("/system", "system", system)] if system else []), *turns),
        tools=tuple(read_tools(request.get("tools"), "/tools")),
        stream=optional_flag(request, "stream", ""),
        body_bytes=len(body),
        model_span=locate_model(body) if "model" in request else None,
        extras=(
            *_read_servers(request),
            *read_tool_images(request.get("tools"), "/tools"),
            *read_extras(request, _KEYS),
        ),
        max_output_tokens=read_output_limit(request, ("max_tokens",)),
        needs=read_messages_needs(request),
        continues=_continues(request) or any(map(_is_compacted, messages)),
    )


def parse_count(body: bytes) -> RequestView:
    """The request to count tokens in `body`: the same, but no answer is written. Raises RequestError."""
    return replace(parse(body), api="anthropic.count_tokens", stream=False, outputs=())


def _read_message(value: object, pointer: str) -> Iterator[Turn]:
    message = object_at(value, pointer, _MESSAGE_KEYS)
    role = _ROLES.get(string_at(required(message, "role", pointer), f"{pointer}/role"))
    if role is None:
        raise RequestError(400, "invalid_value", "Unknown role.", f"{pointer}/role")
    others = tuple(read_other_keys(message, _MESSAGE_KEYS, pointer))
    turns: list[Turn] = []
    content, place = message.get("content"), f"{pointer}/content"
    match content:
        case None:
            pass
        case str():
            turns.append(Turn(pointer, role, (TextPart(place, content),)))
        case list():
            for is_tools, run in groupby(enumerate(content), key=lambda item: is_result(item[1])):
                parts: tuple[Part, ...] = tuple(
                    p for index, block in run for p in read_block(block, f"{place}/{index}")
                )
                turns.append(Turn(pointer, "tool" if is_tools else role, parts))
        case _:
            raise wrong_type(place, "a string or a list of blocks", content)
    if turns and turns[-1].role == role:
        turns[-1] = Turn(pointer, role, (*turns[-1].parts, *others))
    elif others or not turns:
        turns.append(Turn(pointer, role, others))
    yield from turns


def _read_servers(request: JsonObject) -> Iterator[Turn]:
    """Servers of tools, without what only opens their doors."""
    servers = request.get("mcp_servers")
    for index, server in enumerate([] if servers is None else list_at(servers, "/mcp_servers")):
        pointer = f"/mcp_servers/{index}"
        shown = object_at(server, pointer, _UNSEEN_SERVER_KEYS)
        shown = {key: value for key, value in shown.items() if key not in _UNSEEN_SERVER_KEYS}
        if parts := tuple(read_freely(shown, pointer, labels=False)):
            yield Turn(pointer, "developer", parts)


def _continues(request: JsonObject) -> bool:
    thread = request.get("thread")
    return isinstance(thread, dict) and bool(thread.get("previous_message_id"))


def _is_compacted(message: object) -> bool:
    """Whether a message holds a summary of earlier ones that only the upstream can decrypt."""
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "compaction" and bool(block.get("encrypted_content"))
        for block in content
    )
