"""Edits of a body that leave every other byte as the client sent it.

Works on byte ranges, never by decoding and encoding again. What to write is decided elsewhere.
"""

from __future__ import annotations

import re

import msgspec
import numpy as np

from router.request.long_base64 import known_hollow
from router.request.view import RequestView, Span


class _Envelope(msgspec.Struct):
    model: msgspec.Raw = msgspec.Raw()


_ENVELOPE = msgspec.json.Decoder(_Envelope)
# Where most clients write it: as the first member, or as the last. The strings have no escapes, and the quote before
# the key is none, so that what looks like two strings and a colon is just that, with the object's own braces around.
_FIRST = re.compile(rb'[ \t\r\n]*\{[ \t\r\n]*"model"[ \t\r\n]*:[ \t\r\n]*("[^"\\]*")')
_LAST = re.compile(rb'(?<!\\)"model"[ \t\r\n]*:[ \t\r\n]*("[^"\\]*")[ \t\r\n]*\}[ \t\r\n]*\Z')
_NEAR = 1024
"""Bytes at the end in which the last member is looked for."""
_REST_OF_EMPTY_OBJECT = re.compile(rb"[ \t\r\n]*\}")


def locate_model(body: bytes) -> Span | None:
    """Where the value of the top-level `model` stands in a JSON object; None when there is none.

    The body is a JSON object without duplicate keys: `strict_json` has refused all others. Megabytes are looked through
    only where the model stands between other members.
    """
    found = _FIRST.match(body) or _LAST.search(body, max(0, len(body) - _NEAR))
    if found is not None:
        return Span(*found.span(1))
    # Nearly all of a long body may have been taken out already.
    hollow = known_hollow(body)
    text = body if hollow is None else hollow.text
    value = _ENVELOPE.decode(text).model
    size = len(memoryview(value))
    if not size:
        return None
    # A Raw is a view into the buffer that was decoded, so the difference of the addresses is the offset.
    start = _address(value) - _address(text)
    if hollow is not None:
        return Span(hollow.place(start), hollow.place(start + size))
    return Span(start, start + size)


def set_model(body: bytes, view: RequestView, model: str) -> bytes:
    """`body` with `model` as its top-level model; `view` is what was parsed from this very body.

    Replaces the value and nothing else; a body without one gets it as its first member.
    """
    value = msgspec.json.encode(model)
    span = view.model_span
    if span is not None:
        return b"".join((body[: span.start], value, body[span.end :]))
    inside = body.index(b"{") + 1
    comma = b"" if _REST_OF_EMPTY_OBJECT.match(body, inside) else b","
    return b"".join((body[:inside], b'"model":', value, comma, body[inside:]))


def _address(buffer: bytes | msgspec.Raw) -> int:
    address: int = np.frombuffer(buffer, np.uint8).__array_interface__["data"][0]
    return address
