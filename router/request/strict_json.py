"""JSON from a client, read so that no second reader could understand it differently.

Decodes a body, refuses duplicate keys anywhere in it, and checks types while a caller walks down. Every complaint is a
`RequestError` with a JSON pointer and constant words: nothing that the client wrote is repeated, not even a key.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import numpy as np

from router.request.errors import RequestError
from router.request.long_base64 import MOST_VALUES, hollowed

JsonObject = dict[str, Any]
JsonList = list[Any]

_COLON, _BACKSLASH = ord(":"), ord("\\")
# Bytes for each colon from which on it pays to go from one to the next.
_SPARSE = 1024
# Bytes up to which bytes.count is the fastest, however dense the colons are. It keeps the interpreter, too: what NumPy
# lets go of, threads beside the requests take.
_SHORT = 8192
_BYTE_OFFSET = re.compile(r"\(byte (\d+)\)$")
# Deeper values are pointed at by a parent; the pointers of a body of deeply nested lists would fill gigabytes.
_MAX_POINTER = 200


def decode(body: bytes, known: frozenset[str] = frozenset()) -> JsonObject:
    """The object in `body`. Raises RequestError for no JSON, invalid UTF-8, nesting or size beyond reason.

    Duplicate keys are refused because parsers disagree on which one counts: what is judged here has to be what the
    upstream reads. `known` are the keys of the API, the only ones that the pointer to such an object may name: any
    other is the client's own, and content.
    """
    hollow = hollowed(body)
    if hollow is not None and isinstance(hollow.document, dict):
        # What was taken out has neither colons nor escapes.
        _refuse_duplicate_keys(hollow.text, hollow.document, known)
        hollow.fill()
        return hollow.document
    try:
        document = msgspec.json.decode(body)
    except RecursionError:
        raise RequestError(400, "invalid_json", "The body is nested too deeply.") from None
    except msgspec.DecodeError as error:
        offset = _BYTE_OFFSET.search(str(error))
        where = f" (at byte {offset[1]})" if offset else ""
        raise RequestError(400, "invalid_json", f"The body is not valid JSON{where}.") from None
    if not isinstance(document, dict):
        raise wrong_type("", "an object", document)
    _refuse_duplicate_keys(body, document, known)
    return document


def object_at(value: object, pointer: str, known: frozenset[str]) -> JsonObject:
    """`value` as an object. Raises RequestError when it is none, or has a key that is a known one but for its case.

    The latter because some parsers match keys without regard to case (Go's encoding/json does): they would read
    `Content` where we read `content`.
    """
    if not isinstance(value, dict):
        raise wrong_type(pointer, "an object", value)
    if value.keys() <= known:
        return value
    for key in value:
        if key not in known and key.casefold() in known:
            raise RequestError(400, "ambiguous_key", "A key differs from a known one in its case only.", pointer)
    return value


def list_at(value: object, pointer: str) -> JsonList:
    """`value` as a list. Raises RequestError when it is none."""
    if not isinstance(value, list):
        raise wrong_type(pointer, "a list", value)
    return value


def string_at(value: object, pointer: str) -> str:
    """`value` as a string. Raises RequestError when it is none."""
    if not isinstance(value, str):
        raise wrong_type(pointer, "a string", value)
    return value


def optional_string(parent: JsonObject, key: str, pointer: str) -> str:
    """The string under `key` of the object at `pointer`; empty when absent or null. Raises RequestError."""
    value = parent.get(key)
    return "" if value is None else string_at(value, f"{pointer}/{key}")


def optional_list(parent: JsonObject, key: str, pointer: str) -> JsonList:
    """The list under `key` of the object at `pointer`; empty when absent or null. Raises RequestError."""
    value = parent.get(key)
    return [] if value is None else list_at(value, f"{pointer}/{key}")


def optional_flag(parent: JsonObject, key: str, pointer: str) -> bool:
    """The boolean under `key` of the object at `pointer`; false when absent or null. Raises RequestError."""
    value = parent.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise wrong_type(f"{pointer}/{key}", "a boolean", value)
    return value


def required(parent: JsonObject, key: str, pointer: str) -> object:
    """The value under `key` of the object at `pointer`. Raises RequestError, pointing where it is missing."""
    if key not in parent:
        raise RequestError(400, "missing_required_parameter", f"`{key}` is missing.", f"{pointer}/{key}")
    return parent[key]


def place_of(parent: JsonObject, key: str, pointer: str) -> str:
    """The pointer of the value under `key` of the object at `pointer`; of the object itself where it has none."""
    return f"{pointer}/{key}" if key in parent else pointer


def wrong_type(pointer: str, expected: str, value: object) -> RequestError:
    """The error for a value of another JSON type than expected."""
    return RequestError(400, "invalid_type", f"Expected {expected}, got {_json_type(value)}.", pointer)


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


def _refuse_duplicate_keys(body: bytes, document: JsonObject, known: frozenset[str]) -> None:
    # A colon in valid JSON either follows a key or stands in a string. When no string spells one as \u003a, the body
    # has exactly as many as the decoded document has keys and colons in its strings; each member that a later
    # duplicate replaced is missing from the second count. Two counts at memory speed, where a parser that reports
    # pairs would cost several times the decoding.
    expected = _keys_and_colons(document)
    if _has_colons(body, expected) and not _may_escape_a_colon(body):
        return
    pointer = _duplicate_key(body, known)
    if pointer is not None:
        raise RequestError(400, "duplicate_key", "An object has the same key twice.", pointer)


def _has_colons(body: bytes, expected: int) -> bool:
    """Whether the body has exactly so many colons."""
    if len(body) <= _SHORT:
        return body.count(b":") == expected
    if expected * _SPARSE > len(body):
        return int(np.count_nonzero(np.frombuffer(body, np.uint8) == _COLON)) == expected
    # Between far colons bytes.find goes three times as fast as NumPy.
    place = -1
    for _ in range(expected):
        place = body.find(b":", place + 1)
        if place < 0:
            return False
    return body.find(b":", place + 1) < 0


def _may_escape_a_colon(body: bytes) -> bool:
    if b"\\" not in body:
        return False
    array = np.frombuffer(body, np.uint8)
    # In valid JSON a backslash has a follower, and \u has four.
    escapes = np.flatnonzero(array == _BACKSLASH)
    unicode_escapes = escapes[array[escapes + 1] == ord("u")]
    unicode_escapes = unicode_escapes[unicode_escapes + 5 < len(array)]
    last_two = array[unicode_escapes + 4], array[unicode_escapes + 5] | 0x20
    return bool(np.any((last_two[0] == ord("3")) & (last_two[1] == ord("a"))))


def _keys_and_colons(document: JsonObject) -> int:
    count = values = 0
    stack: list[object] = [document]
    while stack:
        found = stack.pop()
        if isinstance(found, str):
            count += _colons(found)
            continue
        if isinstance(found, dict):
            count += len(found) + "".join(found).count(":")
            stack += found.values()
        elif isinstance(found, list):
            stack += found
        else:
            continue
        values += len(found)
        if values > MOST_VALUES:
            raise RequestError(400, "too_many_values", f"The body has more than {MOST_VALUES} values.")
    return count


def _colons(text: str) -> int:
    # str.find runs at memory speed and str.count does not; the long strings are data URIs, with one colon at index 4.
    if text.find(":", 5) < 0:
        return text.count(":", 0, 5)
    return text.count(":")


class _Ambiguous(dict[str, Any]):
    """An object that was written with a duplicate key."""


def _duplicate_key(body: bytes, known: frozenset[str]) -> str | None:
    """Pointer of an object with a duplicate key, as far as known keys lead to it; None when there is none."""
    found = False

    def build(pairs: list[tuple[str, Any]]) -> JsonObject:
        nonlocal found
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        found = True
        return _Ambiguous(members)

    try:
        document = json.loads(body, object_pairs_hook=build, parse_int=len, parse_float=len)
    except RecursionError:
        raise RequestError(400, "invalid_json", "The body is nested too deeply.") from None
    if not found:
        return None
    stack: list[tuple[str, bool, object]] = [("", True, document)]
    while stack:
        pointer, exact, value = stack.pop()
        if isinstance(value, _Ambiguous):
            return pointer
        children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, child in children:
            goes_on = exact and len(pointer) < _MAX_POINTER and (isinstance(key, int) or key in known)
            stack.append((f"{pointer}/{key}" if goes_on else pointer, goes_on, child))
    return ""
