"""Names, identifiers and tool calls, as every API has them.

Knows no API's keys; where a call stands in a body, and what a name is the name of, callers say.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from router.request.free_text import is_identifier, is_label, name_text, unescaped
from router.request.view import TextPart, ToolCallPart


def read_name(name: str, pointer: str) -> Iterator[TextPart]:
    """A name as a text, unless it is a label, which tells a model nothing."""
    if name and not is_label(name):
        yield TextPart(pointer, name_text(name))


def read_identifier(identifier: str, pointer: str) -> Iterator[TextPart]:
    """An identifier as a text, unless it looks like one that a server made up."""
    if identifier and not is_identifier(identifier):
        yield TextPart(pointer, name_text(identifier))


def read_arguments(arguments: object, pointer: str, call_id: str, name: str) -> Iterator[ToolCallPart | TextPart]:
    """A call by its arguments: a text, or any other JSON; null is none. With escapes in them, also without."""
    text = "" if arguments is None else arguments if isinstance(arguments, str) else _written(arguments)
    yield ToolCallPart(pointer, call_id, name, text)
    if (read := unescaped(text)) != text:
        yield TextPart(pointer, read)


def _written(value: object) -> str:
    return msgspec.json.encode(value).decode()
