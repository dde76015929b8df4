"""Edits of a body that leave every other byte as the client sent it.

Works on byte ranges, never by decoding and encoding again. What to write is decided elsewhere.
"""

from __future__ import annotations

import re

import msgspec
import numpy as np

from router.request.view import RequestView, Span


class _Envelope(msgspec.Struct):
    model: msgspec.Raw = msgspec.Raw()


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_REST_OF_EMPTY_OBJECT = re.compile(rb"[ \t\r\n]*\}")


def locate_model(body: bytes) -> Span | None:
    """Where the value of the top-level `model` stands in a JSON object; None when there is none.

    Of duplicates it would be the last; `strict_json` has refused them before. Raises msgspec.DecodeError when the body
    is not a JSON object.
    """
    value = _ENVELOPE.decode(body).model
    size = len(memoryview(value))
    if not size:
        return None
    # A Raw is a view into the buffer that was decoded, so the difference of the addresses is the offset.
    start = _address(value) - _address(body)
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
