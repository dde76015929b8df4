"""Words and pictures in JSON that has no shape we know: schemas, options of one server, keys beside the known ones.

A chat template may show a model any of it, so that all of it is read, whatever it means. Also says which names are mere
labels. The known shapes are in `openai_chat.py` and `openai_parts.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from router.request.api_words import LONG_TYPES
from router.request.data_uri import read_base64_or_data_uri, read_url
from router.request.embedded import UNREADABLE, is_pdf, read_embedded
from router.request.image_containers import sniff
from router.request.strict_json import JsonObject
from router.request.view import ImagePart, TextPart

_PLAIN = re.compile(r"[A-Za-z0-9_.:/-]{0,64}\Z")
_SEPARATORS = re.compile(r"[_.:/-]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
# The escapes of JSON strings (RFC 8259, section 7).
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BLANK = re.compile(r"\s")
_MOST_WORDS_OF_A_LABEL = 2
# Identifiers that servers make up have words in front, and random letters that look like humps.
_MOST_WORDS_OF_AN_ID = 3

_PICTURE_KEYS = frozenset(
    {
        *("image", "images", "image_url", "image_urls", "image_data", "input_image", "img", "picture", "pictures"),
        *("video", "videos", "video_url", "input_video", "frames", "pixel_values"),
    }
)
# Beside them, `data` is the bytes of a file, whatever key is above.
_MEDIA_TYPE_KEYS = frozenset({"media_type", "mime_type", "mimeType"})
# Their values are words of an API, unless they are more than a label.
_LABEL_KEYS = _MEDIA_TYPE_KEYS | {"type", "id", "file_id", "index", "detail", "format", "cache_control", "ttl"}
# Proofs of where a model's thoughts come from, or the thoughts encrypted: no words, and long.
_OPAQUE_KEYS = frozenset({"signature", "thought_signature", "encrypted_content", "data"})
# No shorter base64 is a picture or a proof; no longer word is one that somebody joined of many.
_LEAST_BLOB = 64
_MOST_SPELLED = 4_096


@dataclass(frozen=True, slots=True)
class _String:
    """A string, the key of the client's it stands under, and whether any key above it promises a picture.

    `is_file`: what stands beside it says that it is the bytes of a file.
    """

    text: str
    key: str
    picture: bool
    is_key: bool = False
    is_file: bool = False


def is_label(text: str) -> bool:
    """Whether a name is too short and plain to tell a model anything: an identifier of one or two words."""
    return _PLAIN.match(text) is not None and _words(_spelled(text)) <= _MOST_WORDS_OF_A_LABEL


def is_identifier(text: str) -> bool:
    """Whether an identifier is one that a server could have made up."""
    return _PLAIN.match(text) is not None and _words(_SEPARATORS.sub(" ", text)) <= _MOST_WORDS_OF_AN_ID


def name_text(name: str) -> str:
    """A name, and on a second line its words when they are joined as in `some_name` or `someName`."""
    spelled = name if len(name) > _MOST_SPELLED or _BLANK.search(name) else _spelled(name)
    return name if spelled == name else f"{name}\n{spelled}"


def unescaped(arguments: str) -> str:
    """The JSON text of a tool call with the escapes of its strings undone, as templates show it to a model.

    Nothing is parsed: models write broken JSON, and of duplicate keys a parser would keep one.
    """
    if "\\" not in arguments:
        return arguments
    text = _ESCAPE.sub(_character, arguments)
    # Two escapes make one character beyond the basic plane; a lone half stays what it is.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def text_of(value: object) -> str:
    """All strings in `value`, one a line: keys that are more than labels too, types that are mere labels not."""
    return "\n".join(
        name_text(string.text) if string.is_key else string.text
        for string in _strings(value, "")
        if string.text and not (string.key == "type" and (is_label(string.text) or string.text in LONG_TYPES))
    )


def read_other_keys(parent: JsonObject, known: frozenset[str], pointer: str) -> Iterator[TextPart | ImagePart]:
    """What stands under the keys of the object at `pointer` that are not `known`; words of an API are left out."""
    if parent.keys() <= known:
        return
    others = {key: value for key, value in parent.items() if key not in known and value is not None}
    yield from read_freely(others, pointer)


def read_freely(value: object, pointer: str, labels: bool = True, key: str = "") -> Iterator[TextPart | ImagePart]:
    """The pictures in `value`, and its texts as one part, all of them at `pointer`: keys below may be content.

    `labels` says whether strings that are mere labels are texts; `key` is the API's own word above `value`.
    """
    texts: list[str] = []
    for string in _strings(value, key):
        if not string.text:
            continue
        if string.is_key:
            texts.append(name_text(string.text))
            continue
        embedded = tuple(_embedded(string, pointer))
        yield from embedded
        # Bytes that nobody here can read are no words either.
        is_bytes = any(
            isinstance(part, TextPart) or part.status != "malformed" or part.reason == UNREADABLE for part in embedded
        )
        # Two short words may happen to be base64 too.
        if (not is_bytes or len(string.text) < _LEAST_BLOB) and not _is_silent(string, labels):
            texts.append(name_text(string.text))
    if texts:
        yield TextPart(pointer, "\n".join(texts))


def _is_silent(string: _String, labels: bool) -> bool:
    text = string.text
    if string.key in _OPAQUE_KEYS and len(text) >= _LEAST_BLOB and not _BLANK.search(text):
        few_words = _words(_SEPARATORS.sub(" ", text)) <= _MOST_WORDS_OF_AN_ID
        return few_words and read_base64_or_data_uri(text).status == "inline"
    if string.key == "type" and text in LONG_TYPES:
        return True
    return (not labels or string.key in _LABEL_KEYS) and is_label(text)


def _embedded(string: _String, pointer: str) -> Iterator[TextPart | ImagePart]:
    text = string.text
    head = text[:_LEAST_BLOB].lstrip().lower()
    if string.is_file:
        yield from read_embedded(read_base64_or_data_uri(text), pointer)
    elif head.startswith("data:"):
        source = read_url(text)
        # Sentences begin with "Data:" as well.
        if source.status == "inline" or string.picture or "image/" in head or ";base64" in head:
            yield from read_embedded(source, pointer)
    elif string.picture:
        if not (string.key in _LABEL_KEYS and is_label(text)):
            source = read_base64_or_data_uri(text)
            url = "" if source.status == "inline" else text
            yield ImagePart(pointer, source.status, source.data, source.media_type, url, source.reason)
    elif len(text) >= _LEAST_BLOB and not _BLANK.search(text, 0, _LEAST_BLOB):
        source = read_base64_or_data_uri(text)
        if source.status == "inline" and (sniff(source.data) is not None or is_pdf(source.data)):
            yield from read_embedded(source, pointer)


def _strings(value: object, key: str) -> Iterator[_String]:
    """The strings in `value` in their order; keys only where they are more than labels."""
    stack: list[tuple[object, str, bool, bool]] = [(value, key, key.casefold() in _PICTURE_KEYS, False)]
    while stack:
        found, key, picture, is_file = stack.pop()
        match found:
            case str():
                yield _String(found, key, picture, is_file=is_file and bool(found))
            case list():
                stack.extend((item, key, picture, False) for item in reversed(found))
            case dict():
                for name in found:
                    if not is_label(name):
                        yield _String(name, key, picture, is_key=True)
                is_file = found.get("type") == "base64" or not _MEDIA_TYPE_KEYS.isdisjoint(found)
                stack.extend(
                    (item, name, picture or name.casefold() in _PICTURE_KEYS, is_file and name == "data")
                    for name, item in reversed(found.items())
                )
            case _:
                pass


def _character(escape: re.Match[str]) -> str:
    digits, letter = escape.groups()
    return chr(int(digits, 16)) if digits else _ESCAPED.get(letter, letter)


def _spelled(name: str) -> str:
    return _SEPARATORS.sub(" ", _HUMP.sub(" ", name))


def _words(spelled: str) -> int:
    return sum(word.isalpha() for word in spelled.split())
