"""The items of OpenAI Responses: messages, calls, what calls gave back, thoughts, and what is kept by the upstream.

Each becomes turns; what a tool gave back is one of the role `tool`, also where it stands in the item of the call. Items
of a type that is not known are read freely.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from router.request.calls import read_arguments, read_identifier, read_name
from router.request.data_uri import read_base64_or_data_uri, read_url
from router.request.embedded import image_of, read_embedded
from router.request.errors import RequestError
from router.request.free_text import read_freely
from router.request.nested import ContentPart
from router.request.openai_chat import ROLES
from router.request.openai_inputs import PART_TYPES, read_anything, read_input, read_inputs
from router.request.strict_json import JsonObject, object_at, optional_string, place_of, required, string_at
from router.request.view import Part, Role, ToolResultPart, Turn


@dataclass(frozen=True)
class _Call:
    """A call: the keys that say what is asked for, those of what came back, and the tool's name unless it has one."""

    arguments: tuple[str, ...]
    results: tuple[str, ...] = ()
    name: str = ""


_CALLS: Final = {
    "function_call": _Call(("arguments",)),
    "custom_tool_call": _Call(("input",)),
    "mcp_call": _Call(("arguments",), ("output", "error")),
    "mcp_approval_request": _Call(("arguments",)),
    "computer_call": _Call(("action", "actions"), name="computer"),
    "local_shell_call": _Call(("action",), name="local_shell"),
    "shell_call": _Call(("action",), name="shell"),
    "apply_patch_call": _Call(("operation",), name="apply_patch"),
    "code_interpreter_call": _Call(("code",), ("outputs",), name="code_interpreter"),
    "file_search_call": _Call(("queries",), ("results",), name="file_search"),
    "web_search_call": _Call(("action",), ("results",), name="web_search"),
    "tool_search_call": _Call(("arguments",), name="tool_search"),
    "image_generation_call": _Call(("revised_prompt",), ("error",), name="image_generation"),
    "program": _Call(("code",), name="program"),
}
_RESULTS: Final = {
    **dict.fromkeys(("function_call_output", "custom_tool_call_output", "computer_call_output"), "output"),
    **dict.fromkeys(("local_shell_call_output", "shell_call_output", "apply_patch_call_output"), "output"),
    "program_output": "result",
}
TOOL_ITEMS: Final = frozenset({"additional_tools", "tool_search_output"})
"""Types of items that offer tools, under `tools`."""

_KEPT: Final = frozenset({"item_reference", "compaction"})
_NAMES: Final = ("role", "name", "namespace", "server_label", "status", "phase")
_IDENTIFIERS: Final = ("id", "call_id", "approval_request_id")
_COMMON_KEYS: Final = frozenset({"type", *_NAMES, *_IDENTIFIERS})
ITEM_KEYS: Final = _COMMON_KEYS | {
    *(key for call in _CALLS.values() for key in (*call.arguments, *call.results)),
    *(*_RESULTS.values(), "result", "summary", "content", "tools"),
}
"""All keys of items that are read by their own rules."""


def read_items(items: list[object], pointer: str) -> tuple[Turn, ...]:
    """The turns of a list of items; what a model said, thought and called in one go is one. Raises RequestError."""
    runs: list[tuple[Turn, list[Part]]] = []
    answered = False
    for index, value in enumerate(items):
        place = f"{pointer}/{index}"
        item = object_at(value, place, ITEM_KEYS)
        kind = kind_of(item, place)
        speaks = kind == "message"
        for turn in _read_item(item, kind, place):
            # A model's answer is several items here; two messages of it are still two.
            goes_on = bool(runs) and turn.role == runs[-1][0].role == "assistant" and not (speaks and answered)
            if not goes_on:
                runs.append((turn, []))
            runs[-1][1].extend(turn.parts)
            answered = turn.role == "assistant" and (speaks or (goes_on and answered))
    return tuple(Turn(first.pointer, first.role, tuple(parts)) for first, parts in runs)


def kind_of(item: JsonObject, pointer: str) -> str:
    """An item's type; messages and references may leave it out. Raises RequestError."""
    kind = item.get("type")
    if kind is not None:
        return string_at(kind, f"{pointer}/type")
    if "role" not in item and "content" not in item and "id" in item:
        return "item_reference"
    return "message"


def is_kept(item: object) -> bool:
    """Whether an item stands for what only the upstream has."""
    return isinstance(item, dict) and kind_of(item, "") in _KEPT


def _read_item(item: JsonObject, kind: str, pointer: str) -> Iterator[Turn]:
    if kind == "message":
        role = _role_of(required(item, "role", pointer), pointer)
        content = read_inputs(item.get("content"), f"{pointer}/content")
        yield Turn(pointer, role, (*content, *_others(item, pointer, "content")))
    elif kind in _CALLS:
        yield from _read_call(item, _CALLS[kind], kind, pointer)
    elif kind in _RESULTS:
        key = _RESULTS[kind]
        result = _result(item.get(key), place_of(item, key, pointer), item, pointer)
        yield Turn(pointer, "tool", (result, *_others(item, pointer, key)))
    elif kind == "reasoning":
        thoughts = [*read_inputs(item.get("summary"), f"{pointer}/summary")]
        thoughts += read_inputs(item.get("content"), f"{pointer}/content")
        yield from _turn(pointer, "assistant", (*thoughts, *_others(item, pointer, "summary", "content")))
    elif kind == "mcp_list_tools":
        place = place_of(item, "tools", pointer)
        listed = ToolResultPart(place, "", read_anything(item.get("tools"), place))
        yield Turn(pointer, "tool", (listed, *_others(item, pointer, "tools")))
    else:
        yield from _turn(pointer, _likely_role(item, kind), tuple(_unknown(item, kind, pointer)))


def _read_call(item: JsonObject, call: _Call, kind: str, pointer: str) -> Iterator[Turn]:
    name = call.name or string_at(required(item, "name", pointer), f"{pointer}/name")
    call_id = optional_string(item, "call_id", pointer) or optional_string(item, "id", pointer)
    said: list[Part] = []
    asked = [key for key in call.arguments if item.get(key) is not None]
    for key in asked or call.arguments[:1]:
        said += read_arguments(item.get(key), place_of(item, key, pointer), call_id, name)
    if kind == "image_generation_call" and (made := optional_string(item, "result", pointer)):
        said += read_embedded(read_base64_or_data_uri(made), f"{pointer}/result")
    yield Turn(pointer, "assistant", (*said, *_others(item, pointer, "result", *call.arguments, *call.results)))
    results = [_result(item[key], f"{pointer}/{key}", item, pointer) for key in call.results if item.get(key)]
    yield from _turn(pointer, "tool", tuple(results))


def _result(value: object, place: str, item: JsonObject, pointer: str) -> ToolResultPart:
    call_id = optional_string(item, "call_id", pointer) or optional_string(item, "id", pointer)
    return ToolResultPart(place, call_id, tuple(_read_output(value, place)))


def _read_output(value: object, pointer: str) -> Iterator[ContentPart]:
    match value:
        case list():
            for index, output in enumerate(value):
                yield from _read_output(output, f"{pointer}/{index}")
        case {"type": str(kind)} if kind in PART_TYPES:
            yield from read_input(value, pointer)
        case {"type": "image", "url": str(url), **rest}:
            yield image_of(read_url(url), f"{pointer}/url", url)
            yield from read_freely(rest, pointer)
        case str() | None:
            yield from read_inputs(value, pointer)
        case _:
            yield from read_anything(value, pointer)


def _unknown(item: JsonObject, kind: str, pointer: str) -> Iterator[Part]:
    read = frozenset({"content", *_IDENTIFIERS, *(("tools",) if kind in TOOL_ITEMS else ())})
    for key in ("role", "status"):
        if isinstance(item.get(key), str):
            yield from read_name(item[key], f"{pointer}/{key}")
            read |= {key}
    yield from read_anything({key: value for key, value in item.items() if key not in read}, pointer)
    yield from read_anything(item.get("content"), f"{pointer}/content")
    yield from _identifiers(item, pointer)


def _others(item: JsonObject, pointer: str, *read: str) -> Iterator[Part]:
    """What stands beside an item's own values."""
    for key in _NAMES:
        value = item.get(key)
        if isinstance(value, str):
            yield from read_name(value, f"{pointer}/{key}")
        elif value is not None:
            yield from read_anything({key: value}, pointer)
    yield from _identifiers(item, pointer)
    rest = {key: found for key, found in item.items() if key not in _COMMON_KEYS and key not in read}
    if rest:
        yield from read_anything(rest, pointer)


def _identifiers(item: JsonObject, pointer: str) -> Iterator[Part]:
    for key in _IDENTIFIERS:
        yield from read_identifier(optional_string(item, key, pointer), f"{pointer}/{key}")


def _turn(pointer: str, role: Role, parts: tuple[Part, ...]) -> Iterator[Turn]:
    if parts:
        yield Turn(pointer, role, parts)


def _role_of(value: object, pointer: str) -> Role:
    role = ROLES.get(string_at(value, f"{pointer}/role"))
    if role is None:
        raise RequestError(400, "invalid_value", "Unknown role.", f"{pointer}/role")
    return role


def _likely_role(item: JsonObject, kind: str) -> Role:
    if isinstance(named := item.get("role"), str) and named in ROLES:
        return ROLES[named]
    if kind.endswith(("_output", "_result", "_response")) and kind != "mcp_approval_response":
        return "tool"
    return "assistant" if kind.endswith("_call") else "user"
