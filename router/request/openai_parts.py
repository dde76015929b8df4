"""The parts of an OpenAI chat message: its content, its tool calls.

A part of a type that OpenAI's API does not have is refused: an upstream might understand it, and then the model would
see what no guard has seen; so is a part that holds what its type does not name. What stands under unknown keys is let
through, and read: see `free_text.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from router.request.calls import read_arguments, read_identifier, read_name
from router.request.contents import read_contents
from router.request.data_uri import Source, read_base64_or_data_uri, read_url
from router.request.embedded import image_of, read_embedded
from router.request.errors import RequestError
from router.request.free_text import read_other_keys
from router.request.image_containers import sniff
from router.request.strict_json import (
    JsonObject,
    list_at,
    object_at,
    optional_string,
    place_of,
    required,
    string_at,
    wrong_type,
)
from router.request.view import AudioPart, FilePart, ImagePart, TextPart, ToolCallPart

ContentPart = TextPart | ImagePart | AudioPart | FilePart

_PART_KEYS = frozenset({"type", "text", "refusal", "image_url", "input_audio", "file"})
_IMAGE_KEYS = frozenset({"url"})
_AUDIO_KEYS = frozenset({"data", "format"})
_FILE_KEYS = frozenset({"file_data", "file_id", "filename"})
_CALL_KEYS = frozenset({"type", "id", "function", "custom"})
_FUNCTION_KEYS = frozenset({"name", "arguments"})
_CUSTOM_KEYS = frozenset({"name", "input"})
CONTENT_KEYS = _PART_KEYS | _IMAGE_KEYS | _AUDIO_KEYS | _FILE_KEYS | _CALL_KEYS | _FUNCTION_KEYS | _CUSTOM_KEYS
"""All keys that a message's content and its tool calls can have."""


def read_content(value: object, pointer: str) -> tuple[ContentPart, ...]:
    """The parts of a message's `content`: a string, a list of parts, or null. Raises RequestError."""
    return read_contents(value, pointer, "parts", _read_part)


def read_tool_calls(value: object, pointer: str) -> Iterator[ToolCallPart | TextPart | ImagePart]:
    """The calls of a message's `tool_calls`. Each part points at its arguments. Raises RequestError."""
    for index, item in enumerate(list_at(value, pointer)):
        place = f"{pointer}/{index}"
        call = object_at(item, place, _CALL_KEYS)
        call_id = optional_string(call, "id", place)
        yield from read_identifier(call_id, f"{place}/id")
        # Some clients leave the type out for functions, the only type there was at first.
        match call.get("type", "function"):
            case "function":
                yield from read_function_call(required(call, "function", place), f"{place}/function", call_id)
                refuse_strangers(call, "custom", place)
            case "custom":
                custom = object_at(required(call, "custom", place), f"{place}/custom", _CUSTOM_KEYS)
                name = string_at(required(custom, "name", f"{place}/custom"), f"{place}/custom/name")
                yield from read_name(name, f"{place}/custom/name")
                text = optional_string(custom, "input", f"{place}/custom")
                yield ToolCallPart(place_of(custom, "input", f"{place}/custom"), call_id, name, text)
                yield from read_other_keys(custom, _CUSTOM_KEYS, f"{place}/custom")
                refuse_strangers(call, "function", place)
            case _:
                raise RequestError(400, "invalid_value", "Unknown type of tool call.", f"{place}/type")
        yield from read_other_keys(call, _CALL_KEYS, place)


def read_function_call(value: object, pointer: str, call_id: str) -> Iterator[ToolCallPart | TextPart | ImagePart]:
    """A `function` with name and arguments, in `tool_calls` or as the older `function_call`. Raises RequestError."""
    function = object_at(value, pointer, _FUNCTION_KEYS)
    name = string_at(required(function, "name", pointer), f"{pointer}/name")
    yield from read_name(name, f"{pointer}/name")
    arguments = optional_string(function, "arguments", pointer)
    yield from read_arguments(arguments, place_of(function, "arguments", pointer), call_id, name)
    yield from read_other_keys(function, _FUNCTION_KEYS, pointer)


def refuse_strangers(parent: JsonObject, key: str, pointer: str) -> None:
    """Raises RequestError when the object at `pointer`, whose type names another key, has a value under `key` too."""
    if parent.get(key):
        message = "A value stands beside the one that `type` names; which of them counts is not certain."
        raise RequestError(400, "ambiguous_key", message, pointer)


def _read_part(value: object, pointer: str) -> Iterator[ContentPart]:
    part = object_at(value, pointer, _PART_KEYS)
    kind = string_at(required(part, "type", pointer), f"{pointer}/type")
    match kind:
        case "text" | "refusal":
            yield TextPart(f"{pointer}/{kind}", string_at(required(part, kind, pointer), f"{pointer}/{kind}"))
        case "image_url":
            yield from read_image(required(part, "image_url", pointer), f"{pointer}/image_url")
        case "input_audio":
            yield from read_audio(required(part, "input_audio", pointer), f"{pointer}/input_audio")
        case "file":
            yield from _read_file(required(part, "file", pointer), f"{pointer}/file")
        case _:
            raise RequestError(400, "invalid_value", "Unknown type of content part.", f"{pointer}/type")
    for key in _PART_KEYS - {"type", kind}:
        refuse_strangers(part, key, pointer)
    yield from read_other_keys(part, _PART_KEYS, pointer)


def read_image(value: object, pointer: str) -> Iterator[ImagePart | TextPart]:
    """An `image_url`: a URL or an object with one. Raises RequestError."""
    place = pointer
    url = value
    if isinstance(value, dict):
        place = f"{pointer}/url"
        url = required(object_at(value, pointer, _IMAGE_KEYS), "url", pointer)
    elif not isinstance(value, str):
        raise wrong_type(pointer, "an object or a string", value)
    text = string_at(url, place)
    yield image_of(read_url(text), place, text)
    if isinstance(value, dict):
        yield from read_other_keys(value, _IMAGE_KEYS, pointer)


def read_audio(value: object, pointer: str) -> Iterator[AudioPart | ImagePart | TextPart]:
    """An `input_audio` with data and format. Raises RequestError."""
    audio = object_at(value, pointer, _AUDIO_KEYS)
    place = f"{pointer}/data"
    source = read_base64_or_data_uri(string_at(required(audio, "data", pointer), place))
    form = optional_string(audio, "format", pointer)
    yield AudioPart(pointer, form, source.data, source.status, source.reason)
    yield from read_name(form, f"{pointer}/format")
    # An image is an image, whichever door it came through.
    if source.media_type.startswith("image/") or sniff(source.data) is not None:
        yield ImagePart(place, source.status, source.data, source.media_type, "", source.reason)
    yield from read_other_keys(audio, _AUDIO_KEYS, pointer)


def _read_file(value: object, pointer: str) -> Iterator[FilePart | ImagePart | TextPart]:
    file = object_at(value, pointer, _FILE_KEYS)
    name = optional_string(file, "filename", pointer)
    file_id = optional_string(file, "file_id", pointer)
    if file.get("file_data") is None:
        if not file_id:
            message = "A file needs `file_data` or `file_id`."
            raise RequestError(400, "missing_required_parameter", message, f"{pointer}/file_data")
        place, source = f"{pointer}/file_id", Source("not_fetched")
    else:
        place = f"{pointer}/file_data"
        source = read_base64_or_data_uri(string_at(file["file_data"], place))
    yield FilePart(pointer, name, source.data, source.media_type, file_id, source.status, source.reason)
    yield from read_name(name, f"{pointer}/filename")
    yield from read_identifier(file_id, f"{pointer}/file_id")
    yield from read_embedded(source, place)
    yield from read_other_keys(file, _FILE_KEYS, pointer)
