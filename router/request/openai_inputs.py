"""The parts of a message or a tool's output in OpenAI Responses: `input_text`, `input_image`, `input_file` and so on.

A part that holds what its type does not name is refused, as in chat completions. A type that is not known is read
freely: this API gets new ones often, and what is read can be judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from router.request.calls import read_identifier, read_name
from router.request.contents import read_contents
from router.request.data_uri import Source, read_base64_or_data_uri, read_url
from router.request.embedded import read_embedded
from router.request.errors import RequestError
from router.request.free_text import read_other_keys
from router.request.nested import ContentPart, read_nested
from router.request.openai_parts import read_audio, read_image, refuse_strangers
from router.request.strict_json import JsonObject, object_at, optional_string, required, string_at
from router.request.view import FilePart, ImagePart, TextPart

_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
_IMAGES = frozenset({"input_image", "computer_screenshot"})
PART_TYPES = _TEXTS | _IMAGES | {"refusal", "input_file", "input_audio"}
"""The types that are read by their own rules."""

_VALUES = {
    **dict.fromkeys(_TEXTS, frozenset({"text"})),
    **dict.fromkeys(_IMAGES, frozenset({"image_url", "file_id"})),
    "refusal": frozenset({"refusal"}),
    "input_file": frozenset({"file_data", "file_url", "file_id", "filename"}),
    "input_audio": frozenset({"input_audio"}),
}
_VALUE_KEYS = frozenset().union(*_VALUES.values())
# Tokens of an answer that the client sends back, with their probabilities; no model is shown those.
_UNSEEN_KEYS = frozenset({"logprobs"})
INPUT_KEYS = _VALUE_KEYS | _UNSEEN_KEYS | {"type", "data", "format", "url"}
"""All keys that a part can have."""

_KEYS_OF_ANYTHING = INPUT_KEYS | {"content", "output", "outputs", "result", "results", "summary", "parts"}


def read_inputs(value: object, pointer: str) -> tuple[ContentPart, ...]:
    """The parts of a string, a list of parts, or null. Raises RequestError."""
    return read_contents(value, pointer, "parts", read_input)


def read_anything(value: object, pointer: str) -> tuple[ContentPart, ...]:
    """What stands in JSON of no known shape at `pointer`; see `nested.py`."""
    return read_nested(value, pointer, PART_TYPES, _KEYS_OF_ANYTHING, read_input)


def read_input(value: object, pointer: str) -> Iterator[ContentPart]:
    """One part: texts, images, files and audio in it. Raises RequestError."""
    part = object_at(value, pointer, INPUT_KEYS)
    kind = string_at(required(part, "type", pointer), f"{pointer}/type")
    if kind not in PART_TYPES:
        yield from read_anything(part, pointer)
        for key in ("file_id", "file_url"):
            if part.get(key):
                # Of what is kept elsewhere nobody knows that it is no picture.
                yield ImagePart(f"{pointer}/{key}", "not_fetched")
        return
    for key in _VALUE_KEYS - _VALUES[kind]:
        refuse_strangers(part, key, pointer)
    match kind:
        case "refusal":
            yield TextPart(f"{pointer}/refusal", string_at(required(part, "refusal", pointer), f"{pointer}/refusal"))
        case "input_audio":
            yield from read_audio(required(part, "input_audio", pointer), f"{pointer}/input_audio")
        case "input_file":
            yield from _read_file(part, pointer)
        case _ if kind in _IMAGES:
            yield from _read_image(part, pointer)
        case _:
            yield TextPart(f"{pointer}/text", string_at(required(part, "text", pointer), f"{pointer}/text"))
    yield from read_other_keys(part, INPUT_KEYS - {"data", "format", "url"}, pointer)


def _read_image(part: JsonObject, pointer: str) -> Iterator[ImagePart | TextPart]:
    file_id = optional_string(part, "file_id", pointer)
    if part.get("image_url") is None and not file_id:
        message = "An image needs `image_url` or `file_id`."
        raise RequestError(400, "missing_required_parameter", message, f"{pointer}/image_url")
    if part.get("image_url") is not None:
        yield from read_image(part["image_url"], f"{pointer}/image_url")
    if file_id:
        yield from read_identifier(file_id, f"{pointer}/file_id")
        yield ImagePart(f"{pointer}/file_id", "not_fetched")


def _read_file(part: JsonObject, pointer: str) -> Iterator[FilePart | ImagePart | TextPart]:
    name = optional_string(part, "filename", pointer)
    file_id = optional_string(part, "file_id", pointer)
    sources: dict[str, Source] = {}
    if data := optional_string(part, "file_data", pointer):
        sources["file_data"] = read_base64_or_data_uri(data)
    if url := optional_string(part, "file_url", pointer):
        sources["file_url"] = read_url(url)
    if file_id:
        sources["file_id"] = Source("not_fetched")
    if not sources:
        message = "A file needs `file_data`, `file_url` or `file_id`."
        raise RequestError(400, "missing_required_parameter", message, f"{pointer}/file_data")
    first = next(iter(sources.values()))
    yield FilePart(pointer, name, first.data, first.media_type, file_id, first.status, first.reason)
    yield from read_name(name, f"{pointer}/filename")
    yield from read_identifier(file_id, f"{pointer}/file_id")
    for key, source in sources.items():
        yield from read_embedded(source, f"{pointer}/{key}")
