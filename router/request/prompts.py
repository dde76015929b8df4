"""The prompt of a request without messages: one text or several, in legacy completions and embeddings.

Token ids are legal there, and no tokenizer of ours is the upstream's: such a prompt cannot be read.
"""

from __future__ import annotations

from router.request.errors import RequestError, UnreadablePrompt
from router.request.free_text import read_freely
from router.request.strict_json import wrong_type
from router.request.view import ImagePart, TextPart


def read_prompt(value: object, pointer: str, objects: bool = False) -> tuple[TextPart | ImagePart, ...]:
    """The texts of a string, a list of strings, or null; with `objects` also of objects, read freely.

    Raises RequestError, and UnreadablePrompt for token ids, alone or in lists.
    """
    match value:
        case None:
            return ()
        case str():
            return (TextPart(pointer, value),)
        case []:
            raise RequestError(400, "empty_array", "The list is empty.", pointer)
        case list():
            return tuple(part for index, item in enumerate(value) for part in _read(item, pointer, index, objects))
        case _:
            raise wrong_type(pointer, "a string or a list", value)


def _read(item: object, pointer: str, index: int, objects: bool) -> tuple[TextPart | ImagePart, ...]:
    match item:
        case str():
            return (TextPart(f"{pointer}/{index}", item),)
        case bool():
            raise wrong_type(f"{pointer}/{index}", "a string", item)
        case int() | list():
            raise UnreadablePrompt(pointer)
        case dict() if objects:
            return tuple(read_freely(item, f"{pointer}/{index}"))
        case _:
            raise wrong_type(f"{pointer}/{index}", "a string", item)
