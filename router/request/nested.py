"""Parts of an API's own types inside JSON whose shape we do not know, such as what a new kind of tool gave back.

Such parts are read as what they are, all else as free text. Nothing is refused here: where the shape is not known, a
word may mean something else than in the API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from router.request.errors import RequestError
from router.request.free_text import read_freely
from router.request.view import AudioPart, FilePart, ImagePart, TextPart

ContentPart = TextPart | ImagePart | AudioPart | FilePart

# Deeper, parts are free text as well. Parts lie two levels below a tool's result at most: a page that it fetched.
_DEEPEST = 8


def read_nested(
    value: object,
    pointer: str,
    types: frozenset[str],
    keys: frozenset[str],
    read_part: Callable[[object, str], Iterable[ContentPart]],
) -> tuple[ContentPart, ...]:
    """The parts in `value`, which stands at `pointer`: first those of `types`, by `read_part`, then the rest freely.

    A part that `read_part` refuses is free text. Pointers go as deep as only `keys` of the API lead, for any other key
    may be content; free text is all at `pointer`.
    """
    found: list[ContentPart] = []

    def without_parts(value: object, place: str, exact: bool, depth: int) -> object:
        if depth == _DEEPEST:
            return value
        if isinstance(value, list):
            return [
                without_parts(item, f"{place}/{index}" if exact else place, exact, depth + 1)
                for index, item in enumerate(value)
            ]
        if not isinstance(value, dict):
            return value
        kind = value.get("type")
        if isinstance(kind, str) and kind in types:
            try:
                parts = tuple(read_part(value, place))
            except RequestError:
                return value
            found.extend(parts if exact else (replace(part, pointer=place) for part in parts))
            return None
        rest = {}
        for name, item in value.items():
            known = exact and name in keys
            rest[name] = without_parts(item, f"{place}/{name}" if known else place, known, depth + 1)
        return rest

    rest = without_parts(value, pointer, True, 0)
    return (*found, *read_freely(rest, pointer))
