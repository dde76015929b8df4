"""Content as several APIs write it: a string, a list of that API's own parts, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from router.request.nested import ContentPart
from router.request.strict_json import wrong_type
from router.request.view import TextPart


def read_contents(
    value: object, pointer: str, parts: str, read_part: Callable[[object, str], Iterable[ContentPart]]
) -> tuple[ContentPart, ...]:
    """The parts of the value, those of a list by `read_part`; `parts` is the API's word. Raises RequestError."""
    match value:
        case None:
            return ()
        case str():
            return (TextPart(pointer, value),)
        case list():
            return tuple(part for index, item in enumerate(value) for part in read_part(item, f"{pointer}/{index}"))
        case _:
            raise wrong_type(pointer, f"a string or a list of {parts}", value)
