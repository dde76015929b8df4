"""The tools that a client offers, where an API has name and description in the tool itself: Responses and Messages.

Every word of a definition is read, of a tool that an upstream brings along too; what only a server is told is not.
"""

from __future__ import annotations

from collections.abc import Iterator

from router.request.free_text import read_freely, text_of
from router.request.strict_json import JsonObject, list_at, object_at, optional_string, required, string_at
from router.request.view import TextPart, ToolDefinition, Turn

DEFINITION_KEYS = frozenset({"type", "name", "description", "tools"})
"""The keys of a definition that are read one by one."""

# Where and how an upstream reaches a server of tools; a model is shown neither.
_UNSEEN_KEYS = frozenset({"authorization", "authorization_token", "headers", "cache_control"})
_OWN_TYPES = frozenset({None, "function", "custom"})
# A namespace holds tools, and no tool holds a namespace.
_DEEPEST = 2


def read_tools(value: object, pointer: str, depth: int = 0) -> Iterator[ToolDefinition]:
    """The tools in a list of them, null for none; those in a namespace follow it. Raises RequestError."""
    for index, item in enumerate([] if value is None else list_at(value, pointer)):
        place = f"{pointer}/{index}"
        tool = object_at(item, place, DEFINITION_KEYS)
        kind = tool.get("type")
        if kind is not None:
            string_at(kind, f"{place}/type")
        yield _read_definition(tool, place, its_own=kind in _OWN_TYPES)
        if tool.get("tools") is not None and depth < _DEEPEST:
            yield from read_tools(tool["tools"], f"{place}/tools", depth + 1)


def read_tool_images(value: object, pointer: str) -> Iterator[Turn]:
    """The images in definitions of tools that an upstream brings along, such as the mask of one that edits pictures."""
    for index, tool in enumerate(value if isinstance(value, list) else ()):
        if isinstance(tool, dict) and tool.get("type") in _OWN_TYPES:
            continue
        place = f"{pointer}/{index}"
        images = tuple(part for part in read_freely(tool, place) if not isinstance(part, TextPart))
        if images:
            yield Turn(place, "developer", images)


def _read_definition(tool: JsonObject, pointer: str, its_own: bool) -> ToolDefinition:
    if its_own:
        name = string_at(required(tool, "name", pointer), f"{pointer}/name")
    else:
        name = optional_string(tool, "name", pointer)
    description = optional_string(tool, "description", pointer)
    rest = {key: found for key, found in tool.items() if key not in DEFINITION_KEYS and key not in _UNSEEN_KEYS}
    if its_own:
        return ToolDefinition(pointer, name, description, text_of(rest))
    # Bytes that such a tool is given, as of a skill, are no words.
    texts = [part.text for part in read_freely(rest, pointer) if isinstance(part, TextPart)]
    kind = str(tool["type"])
    return ToolDefinition(pointer, name, description, "\n".join([*texts, *([] if _is_word(kind) else [kind])]))


def _is_word(kind: str) -> bool:
    return text_of({"type": kind}) == ""
