"""Takes out of a request's JSON what must not be kept: values that signals found, and images and files.

Pure functions on a decoded body, which stays JSON of the same shape. Who finds, and until when, is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

from router.request.view import AudioPart, FilePart, ImagePart, RequestView

STRUCTURAL: Final = frozenset(("type", "media_type", "mime_type", "mimeType", "format", "detail"))
"""Keys whose words say what a part is; they stay where the part itself goes."""

FALLBACKS: Final = ("<removed>", "<#>", "***", "")
"""Placeholders where the one with the type's name has a value in it that is to be replaced."""

DEEPEST: Final = 200
PASSES: Final = 4

_NO_LABEL: Final = re.compile(r"[^A-Za-z0-9_.\- ]+")

Attachment = ImagePart | FilePart | AudioPart


class UnsureError(Exception):
    """Nothing that could be kept is sure to be free of what has to go; `args[0]` is a word for why."""


def without_values(document: Any, values: Mapping[str, str]) -> Any:
    """The document with `<label>` in place of each value, wherever it stands: in strings and in names of members.

    Raises UnsureError where a value is left all the same.
    """
    wanted = {value: label for value, label in values.items() if value}
    if not wanted:
        return document
    # The longest first: one value may be part of another.
    pattern = re.compile("|".join(map(re.escape, sorted(wanted, key=len, reverse=True))))
    words = {value: _placeholder(label, wanted) for value, label in wanted.items()}
    for _ in range(PASSES):
        document = _mapped(document, lambda text: pattern.sub(lambda found: words[found[0]], text))
        if not any(pattern.search(text) for text in strings_of(document)):
            return document
    raise UnsureError("redaction")


def without_text(document: Any, pointer: str, word: str) -> None:
    """Put the word in place of every text at the pointer, or below it, and 0 in place of numbers.

    Raises UnsureError where nothing is there.
    """
    _replace(document, pointer, lambda _: f"<{_NO_LABEL.sub('', word)}>")


def attachments(view: RequestView) -> tuple[Attachment, ...]:
    """What a request carries beside text: images, files, audio."""
    return tuple(part for _, part in view.parts() if isinstance(part, Attachment))


def without_attachments(document: Any, parts: Iterable[Attachment]) -> int:
    """Put digest and size in the place of each; how many. Raises UnsureError where one is not found."""
    count = 0
    for part in parts:
        told = _told_of(part)
        _replace(document, part.pointer, lambda _, told=told: told)  # type: ignore[misc]
        count += 1
    return count


def value_at(document: Any, pointer: str) -> Any:
    """The value at a JSON pointer; raises UnsureError where there is none."""
    for step in _steps(pointer):
        document = _child(document, step)
    return document


def strings_of(document: Any) -> Iterable[str]:
    """Every string of the document, and every name of a member."""
    return (one for one in scalars_of(document) if isinstance(one, str))


def scalars_of(document: Any) -> Iterable[str | int | float]:
    """Every string and number of the document, and every name of a member."""
    stack = [document]
    while stack:
        match stack.pop():
            case bool():
                pass
            case str() | int() | float() as one:
                yield one
            case list() as items:
                stack.extend(items)
            case dict() as members:
                yield from members
                stack.extend(members.values())


def _told_of(part: Attachment) -> str:
    if isinstance(part, ImagePart) and not part.data:
        # A digest of an address would tell whoever guesses the address.
        return "removed:not_inline"
    return f"removed:sha256={sha256(part.data).hexdigest()};bytes={len(part.data)}"


def _placeholder(label: str, values: Collection[str]) -> str:
    """What stands for a value; nothing that is to be replaced is in it."""
    named = f"<{_NO_LABEL.sub('', label) or 'removed'}>"
    return next(word for word in (named, *FALLBACKS) if not any(value in word for value in values))


def _replace(document: Any, pointer: str, instead: Callable[[str], str]) -> None:
    steps = _steps(pointer)
    if not steps:
        raise UnsureError("redaction")
    parent = value_at(document, pointer.rpartition("/")[0])
    _child(parent, steps[-1])
    key: Any = int(steps[-1]) if isinstance(parent, list) else steps[-1]
    parent[key] = _mapped(parent[key], instead, structural=False)


def _mapped(value: Any, change: Callable[[str], str], structural: bool = True, depth: int = 0) -> Any:
    """The value with every string changed; `structural` ones and names of members too, or neither."""
    if depth > DEEPEST:
        raise UnsureError("nesting")
    match value:
        case str():
            return change(value)
        case bool():
            return value
        case int() | float() if not structural:
            return 0
        case list():
            return [_mapped(item, change, structural, depth + 1) for item in value]
        case dict() if structural:
            changed = {change(key): _mapped(item, change, True, depth + 1) for key, item in value.items()}
            if len(changed) != len(value):
                raise UnsureError("redaction")
            return changed
        case dict():
            return {
                key: item if key in STRUCTURAL and isinstance(item, str) else _mapped(item, change, False, depth + 1)
                for key, item in value.items()
            }
    return value


def _steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _child(value: Any, step: str) -> Any:
    match value:
        case dict() if step in value:
            return value[step]
        case list() if step.isdecimal() and step.isascii() and int(step[:9]) < len(value):
            return value[int(step)]
    raise UnsureError("redaction")
