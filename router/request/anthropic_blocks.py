"""The blocks of an Anthropic message: texts, pictures, documents, thoughts, calls, and what calls gave back.

A block of a type that is not known is read freely: this API gets new ones often, and what is read can be judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.request.anthropic_sources import SOURCE_KEYS, UNKNOWN_SOURCE, read_document_source, read_image_source
from router.request.calls import read_arguments, read_identifier, read_name
from router.request.contents import read_contents
from router.request.free_text import read_other_keys
from router.request.nested import ContentPart, read_nested
from router.request.openai_parts import refuse_strangers
from router.request.strict_json import JsonObject, object_at, optional_string, place_of, required, string_at
from router.request.view import FilePart, ImagePart, Part, TextPart, ToolResultPart

_CALLS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_CONTENT: Final = frozenset({"text", "image", "document", "search_result", "thinking", "container_upload"})
# The values that a type names; that another stands beside them leaves open which one counts.
_VALUES: Final = {
    "text": frozenset({"text"}),
    "image": frozenset({"source"}),
    "document": frozenset({"source"}),
    "search_result": frozenset({"source", "content"}),
    "thinking": frozenset({"thinking"}),
    "container_upload": frozenset({"file_id"}),
    "tool_use": frozenset({"input"}),
    "tool_result": frozenset({"content"}),
}
_VALUE_KEYS: Final = frozenset().union(*_VALUES.values())
_KEYS: Final = _VALUE_KEYS | {"type"}
BLOCK_KEYS: Final = _KEYS | SOURCE_KEYS | {"id", "name", "tool_use_id", "title", "context", "signature", "server_name"}
"""All keys of the blocks that are read by their own rules."""


def is_result(block: object) -> bool:
    """Whether a block is what a tool gave back, of the client's, the upstream's or another server's."""
    kind = block.get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and kind.endswith("tool_result")


def read_block(value: object, pointer: str) -> Iterator[Part]:
    """The parts of a block of a message. Raises RequestError."""
    block = object_at(value, pointer, _KEYS)
    kind = string_at(required(block, "type", pointer), f"{pointer}/type")
    if is_result(block):
        yield from _read_result(block, kind, pointer)
    elif kind in _CALLS or (kind.endswith("tool_use") and isinstance(block.get("name"), str)):
        _refuse_strangers(block, "tool_use", pointer)
        yield from _read_call(block, pointer)
    else:
        yield from _read_content_block(block, kind, pointer)


def read_blocks(value: object, pointer: str) -> tuple[ContentPart, ...]:
    """The content of a result, a document or a system prompt: a string, blocks, or null. Raises RequestError."""
    return read_contents(value, pointer, "blocks", _read_content)


def _read_content(value: object, pointer: str) -> Iterator[ContentPart]:
    block = object_at(value, pointer, _KEYS)
    kind = string_at(required(block, "type", pointer), f"{pointer}/type")
    yield from _read_content_block(block, kind, pointer)


def _read_content_block(block: JsonObject, kind: str, pointer: str) -> Iterator[ContentPart]:
    if kind not in _CONTENT:
        parts = _read_anything(block, pointer)
        yield from parts
        if block.get("source") and not any(isinstance(part, ImagePart) for part in parts):
            # Of what is shown from elsewhere nobody knows that it is no picture, such as a video.
            yield ImagePart(f"{pointer}/source", "malformed", reason=UNKNOWN_SOURCE)
        return
    _refuse_strangers(block, kind, pointer)
    known = _VALUES[kind] | {"type"}
    match kind:
        case "text" | "thinking":
            yield TextPart(f"{pointer}/{kind}", string_at(required(block, kind, pointer), f"{pointer}/{kind}"))
        case "image":
            yield from read_image_source(required(block, "source", pointer), f"{pointer}/source")
        case "document":
            title = optional_string(block, "title", pointer)
            yield from _text(title, f"{pointer}/title")
            yield from _text(optional_string(block, "context", pointer), f"{pointer}/context")
            yield from read_document_source(required(block, "source", pointer), f"{pointer}/source", title, read_blocks)
            known |= {"title", "context"}
        case "search_result":
            yield from _text(string_at(required(block, "source", pointer), f"{pointer}/source"), f"{pointer}/source")
            yield from _text(optional_string(block, "title", pointer), f"{pointer}/title")
            yield from read_blocks(block.get("content"), f"{pointer}/content")
            known |= {"title"}
        case _:
            file_id = string_at(required(block, "file_id", pointer), f"{pointer}/file_id")
            yield FilePart(pointer, file_id=file_id, status="not_fetched")
            yield from read_identifier(file_id, f"{pointer}/file_id")
            yield ImagePart(f"{pointer}/file_id", "not_fetched")
    yield from read_other_keys(block, known, pointer)


def _read_call(block: JsonObject, pointer: str) -> Iterator[Part]:
    call_id = optional_string(block, "id", pointer)
    yield from read_identifier(call_id, f"{pointer}/id")
    name = string_at(required(block, "name", pointer), f"{pointer}/name")
    yield from read_name(name, f"{pointer}/name")
    yield from read_name(optional_string(block, "server_name", pointer), f"{pointer}/server_name")
    yield from read_arguments(block.get("input"), place_of(block, "input", pointer), call_id, name)
    yield from read_other_keys(block, frozenset({"type", "id", "name", "server_name", "input"}), pointer)


def _read_result(block: JsonObject, kind: str, pointer: str) -> Iterator[Part]:
    call_id = optional_string(block, "tool_use_id", pointer)
    yield from read_identifier(call_id, f"{pointer}/tool_use_id")
    content, place = block.get("content"), place_of(block, "content", pointer)
    if kind == "tool_result":
        _refuse_strangers(block, kind, pointer)
        yield ToolResultPart(place, call_id, read_blocks(content, place))
    else:
        yield ToolResultPart(place, call_id, _read_anything(content, place))
    yield from read_other_keys(block, frozenset({"type", "tool_use_id", "content"}), pointer)


def _read_anything(value: object, pointer: str) -> tuple[ContentPart, ...]:
    return read_nested(value, pointer, _CONTENT, BLOCK_KEYS, _read_content)


def _text(text: str, pointer: str) -> Iterator[TextPart]:
    if text:
        yield TextPart(pointer, text)


def _refuse_strangers(block: JsonObject, kind: str, pointer: str) -> None:
    for key in _VALUE_KEYS - _VALUES[kind]:
        refuse_strangers(block, key, pointer)
