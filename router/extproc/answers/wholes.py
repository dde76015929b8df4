"""Texts and calls in a value that is complete: a whole answer, or what an event of a stream says at once.

One reader for OpenAI's chat completions, completions and Responses, and for Anthropic's messages: their words do not
collide. Whatever string is not known to be an API's own word is text, so that a vendor's key hides nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from router.extproc.answers.pieces import Piece, WholeCall, WholeText
from router.request.free_text import is_identifier

# Their values are words of an API while they look like such.
_LABELS: Final = frozenset(
    {
        *("id", "object", "model", "type", "role", "status", "finish_reason", "native_finish_reason", "stop_reason"),
        *("system_fingerprint", "service_tier", "call_id", "item_id", "tool_use_id", "format", "phase", "provider"),
        *("name", "code", "annotation_index", "obfuscation", "request_id", "matched_stop", "container_id", "caller"),
    }
)
# Bytes, or proofs of where thoughts come from: long, and without a blank.
_OPAQUE: Final = frozenset(
    {
        *("signature", "thought_signature", "encrypted_content", "encrypted_index", "data", "result", "b64_json"),
        "partial_image_b64",
    }
)
BASE64: Final = re.compile(r"[A-Za-z0-9+/=_-]*\Z")
_LEAST_BYTES: Final = 64
_KIND: Final = re.compile(r"[a-z0-9_.]{1,64}\Z")
UNREAD: Final = frozenset({"logprobs", "prompt_logprobs", "usage"})
"""What an answer is made of said once more, letter by letter, or numbers."""
# A response of OpenAI's repeats what was asked for.
_ECHOES: Final = frozenset(
    {
        *("instructions", "tools", "tool_choice", "metadata", "prompt", "user", "text", "reasoning", "truncation"),
        *("safety_identifier", "prompt_cache_key", "prompt_cache_retention", "previous_response_id", "conversation"),
    }
)
OF_A_CALL: Final = frozenset({"name", "arguments", "input", "id", "call_id", "type", "status"})


def read_answer(document: object) -> Iterator[Piece]:
    """The pieces of a whole answer, a decoded JSON value of any shape, at their JSON pointers."""
    yield from texts_and_calls(document, "", "")


def texts_and_calls(value: object, pointer: str, name: str) -> Iterator[Piece]:
    """The texts and calls in a value that is complete."""
    match value:
        case str():
            if value and not is_word(name, value):
                yield WholeText(pointer, value)
        case list():
            for place, item in enumerate(value):
                yield from texts_and_calls(item, f"{pointer}/{place}", name)
        case dict():
            call = call_in(value)
            if call is not None:
                called, arguments, value = call
                yield WholeCall(pointer, word_of(value, "call_id") or word_of(value, "id"), called, arguments)
            echoes = _ECHOES if value.get("object") == "response" else frozenset[str]()
            for inner, item in value.items():
                if inner not in UNREAD and inner not in echoes:
                    yield from texts_and_calls(item, f"{pointer}/{escaped(inner)}", inner)
        case _:
            pass


def call_in(value: object) -> tuple[str, str, dict[str, Any]] | None:
    """The name, the arguments and the other members of a call; None for what is none."""
    if not isinstance(value, dict):
        return None
    kind, name = value.get("type"), value.get("name")
    for key in ("arguments", "input"):
        if isinstance(name, str) and key in value:
            given = value[key]
            text = "" if given is None else given if isinstance(given, str) else written(given)
            return name, text, {inner: item for inner, item in value.items() if inner not in ("name", "type", key)}
    if not isinstance(kind, str) or not kind.endswith("_call"):
        return None
    # Tools that an API brings along have no name of their own.
    said = {
        inner: item
        for inner, item in value.items()
        if inner not in OF_A_CALL and not (isinstance(item, str) and is_word(inner, item))
    }
    return kind.removesuffix("_call"), written(said), {}


def is_word(name: str, text: str) -> bool:
    """Whether a string is an API's own word, or bytes, by the key that it stands under."""
    if name in _OPAQUE and len(text) >= _LEAST_BYTES and BASE64.match(text):
        return True
    if name in ("type", "object") and _KIND.match(text):
        return True
    return name in _LABELS and is_identifier(text)


def number_of(value: object, otherwise: int) -> int:
    """An integer as it is, anything else as `otherwise`."""
    return value if type(value) is int else otherwise


def word_of(value: Any, name: str) -> str:
    """The string under this name of an object, empty where there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def written(value: object) -> str:
    """JSON written anew, with lone surrogates as they are."""
    return json.dumps(value, ensure_ascii=False)


def escaped(name: str) -> str:
    """A name as a step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")
