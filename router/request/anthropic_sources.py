"""Where an Anthropic block has its bytes from: base64, a URL, an uploaded file, a text, or blocks of their own.

A source of a type that is not known is read freely and stands for an image that cannot be read, since that is what it
may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from router.request.calls import read_identifier
from router.request.data_uri import Source, read_base64_or_data_uri, read_url
from router.request.embedded import image_of, read_embedded
from router.request.free_text import read_freely, read_other_keys
from router.request.nested import ContentPart
from router.request.openai_parts import refuse_strangers
from router.request.strict_json import JsonObject, object_at, optional_string, required, string_at
from router.request.view import FilePart, ImagePart, TextPart

_VALUES = {"base64": "data", "url": "url", "file": "file_id", "text": "data", "content": "content"}
_VALUE_KEYS = frozenset(_VALUES.values())
SOURCE_KEYS = _VALUE_KEYS | {"type", "media_type"}
"""All keys of a source."""

UNKNOWN_SOURCE = "unknown type of source"
"""Why what a source of that type gives stands for an image that fails."""


def read_image_source(value: object, pointer: str) -> Iterator[ContentPart]:
    """The image of a source. Raises RequestError."""
    source = object_at(value, pointer, SOURCE_KEYS)
    kind = _kind(source, pointer)
    media_type = optional_string(source, "media_type", pointer)
    match kind:
        case "base64":
            yield image_of(_bytes(source, pointer, media_type), f"{pointer}/data")
        case "url":
            url = string_at(required(source, "url", pointer), f"{pointer}/url")
            yield image_of(read_url(url), f"{pointer}/url", url)
        case "file":
            yield from _read_file_id(source, pointer)
        case _:
            yield from _read_unknown(source, pointer)
            return
    yield from _read_rest(source, media_type, pointer)


def read_document_source(
    value: object, pointer: str, name: str, read_content: Callable[[object, str], tuple[ContentPart, ...]]
) -> Iterator[ContentPart]:
    """The file of a source, and what can be read of it. `name` is the document's title. Raises RequestError."""
    source = object_at(value, pointer, SOURCE_KEYS)
    kind = _kind(source, pointer)
    media_type = optional_string(source, "media_type", pointer)
    match kind:
        case "base64":
            found = _bytes(source, pointer, media_type)
            yield FilePart(pointer, name, found.data, found.media_type, "", found.status, found.reason)
            yield from read_embedded(found, f"{pointer}/data")
        case "text":
            text = string_at(required(source, "data", pointer), f"{pointer}/data")
            yield FilePart(pointer, name, text.encode(), "text/plain")
            yield TextPart(f"{pointer}/data", text)
        case "content":
            yield from read_content(required(source, "content", pointer), f"{pointer}/content")
        case "url":
            found = read_url(string_at(required(source, "url", pointer), f"{pointer}/url"))
            yield FilePart(pointer, name, found.data, found.media_type, "", found.status, found.reason)
            yield from read_embedded(found, f"{pointer}/url")
        case "file":
            file_id = optional_string(source, "file_id", pointer)
            yield FilePart(pointer, name, file_id=file_id, status="not_fetched")
            yield from _read_file_id(source, pointer)
        case _:
            yield from _read_unknown(source, pointer)
            return
    yield from _read_rest(source, media_type, pointer)


def _kind(source: JsonObject, pointer: str) -> str:
    kind = string_at(required(source, "type", pointer), f"{pointer}/type")
    if kind in _VALUES:
        for key in _VALUE_KEYS - {_VALUES[kind]}:
            refuse_strangers(source, key, pointer)
    return kind


def _bytes(source: JsonObject, pointer: str, media_type: str) -> Source:
    """The bytes, of the type that the source names unless a data URI names one itself."""
    found = read_base64_or_data_uri(string_at(required(source, "data", pointer), f"{pointer}/data"))
    said = media_type.partition(";")[0].strip().lower()
    return Source(found.status, found.data, found.media_type or said, found.reason)


def _read_file_id(source: JsonObject, pointer: str) -> Iterator[ContentPart]:
    file_id = string_at(required(source, "file_id", pointer), f"{pointer}/file_id")
    yield from read_identifier(file_id, f"{pointer}/file_id")
    yield ImagePart(f"{pointer}/file_id", "not_fetched")


def _read_unknown(source: JsonObject, pointer: str) -> Iterator[ContentPart]:
    yield from read_freely(source, pointer)
    yield ImagePart(pointer, "malformed", reason=UNKNOWN_SOURCE)


def _read_rest(source: JsonObject, media_type: str, pointer: str) -> Iterator[ContentPart]:
    # A media type is a word of the API, unless it is more than that.
    yield from read_freely({"format": media_type}, f"{pointer}/media_type")
    yield from read_other_keys(source, SOURCE_KEYS, pointer)
