"""What embedded bytes are, when only the client says so: pictures, text, or something that nobody here can read.

By their content first and their media type second, because an upstream may go by either. Decodes texts, not images.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from router.request.data_uri import Source
from router.request.image_containers import sniff
from router.request.view import ImagePart, TextPart

UNREADABLE = "unreadable file type"
"""Why a file that may show a model anything stands for an image that fails."""

_TEXT_TYPES = frozenset(
    {
        *("application/json", "application/x-ndjson", "application/jsonl", "application/csv", "application/xml"),
        *("application/yaml", "application/x-yaml", "application/toml", "application/javascript", "application/sql"),
        *("application/x-sh", "application/x-python", "application/markdown"),
    }
)
_TEXT_SUFFIXES = ("+json", "+xml", "+yaml")
_UNTYPED = frozenset({"", "application/octet-stream"})
# The longer marks first: UTF-32's begins like UTF-16's.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_PDF, _PDF_HEAD = b"%PDF-", 1_024


def read_embedded(source: Source, pointer: str) -> Iterator[TextPart | ImagePart]:
    """The text and the image that the bytes of `source` are; an unreadable image where they are neither.

    What cannot be read here may show a model anything (a PDF, a TIFF, a video, a file by reference), so that it must
    not pass for a request without images: it comes as an ImagePart that fails every question about images.
    """
    if source.status != "inline":
        yield ImagePart(pointer, source.status, media_type=source.media_type, reason=source.reason)
        return
    readable = False
    if source.media_type.startswith("image/") or sniff(source.data) is not None:
        yield ImagePart(pointer, "inline", source.data, source.media_type)
        readable = True
    if is_text(source.media_type) or (source.media_type in _UNTYPED and not readable):
        text, exact = _decoded(source.data)
        if exact or source.media_type not in _UNTYPED:
            yield TextPart(pointer, text)
        readable = readable or exact
    if not readable:
        yield ImagePart(pointer, "malformed", media_type=source.media_type, reason=UNREADABLE)


def is_text(media_type: str) -> bool:
    """Whether a media type (lower case, no parameters) is one of text."""
    return media_type.startswith("text/") or media_type in _TEXT_TYPES or media_type.endswith(_TEXT_SUFFIXES)


def is_pdf(data: bytes) -> bool:
    """Whether common readers take the bytes for a PDF: they look for its mark in the first kilobyte."""
    return _PDF in data[:_PDF_HEAD]


def image_of(source: Source, pointer: str, url: str = "") -> ImagePart:
    """An image from where somebody calls it one, whatever the bytes are; `url` is kept where nothing is inline."""
    kept = "" if source.status == "inline" else url
    return ImagePart(pointer, source.status, source.data, source.media_type, kept, source.reason)


def _decoded(data: bytes) -> tuple[str, bool]:
    """The bytes as text, and whether they are text and nothing else."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return data.decode(encoding, "replace"), False
    return text, "\0" not in text and not is_pdf(data)
