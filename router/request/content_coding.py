"""Bodies that came compressed (RFC 9110, section 8.4): what codings a header names, and how they are undone and redone.

Decoding never holds more than its bounds allow, however well a bomb is packed, and takes nothing that two decoders
could read differently: no truncated stream, no trailing bytes. What becomes of a coding that is not known here is
decided elsewhere.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Final

import brotli

from router.request.errors import RequestError
from router.request.limits import RequestLimits

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST_LAYERS: Final = 4
"""Codings on top of each other. One is common, two happen behind proxies."""

MOST_MEMBERS: Final = 4_096
"""Members of a gzip body, or frames of a zstd one: 256 MiB in the blocks of 64 KiB that parallel packers write. Each
costs a decoder of its own, so that a body of empty ones would cost most."""

FREE_BYTES: Final = 1 << 20
"""Output that no ratio forbids: it costs a millisecond, and small bodies of one repeated letter pack very well."""

_PIECE_IN: Final = 16 * 1024
_PIECE_OUT: Final = 64 * 1024
_ZSTD_WINDOW_LOG: Final = 23
"""8 MiB, the most that a content coding may ask for (RFC 9659)."""
_ZSTD_OPTIONS: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
_ALIASES: Final = {"x-gzip": "gzip"}

_One = Callable[[bytes, int], Generator[bytes, None, int]]


class UnknownCoding(Exception):
    """A body in a coding that cannot be undone here; the coding's name is the client's, so it is not repeated."""


class _Broken(Exception):
    """A stream that ends too early, or after which more follows."""


def read_codings(header: str) -> tuple[str, ...]:
    """The codings of a content-encoding header in the order in which they were applied; `identity` is left out.

    Raises UnknownCoding, and RequestError (415) where there are more layers than are undone.
    """
    names = (name.strip().lower() for name in header.split(","))
    codings = tuple(_ALIASES.get(name, name) for name in names if name not in ("", "identity"))
    if any(name not in _DECODERS for name in codings):
        raise UnknownCoding
    if len(codings) > MOST_LAYERS:
        raise RequestError(415, "unsupported_content_encoding", f"More than {MOST_LAYERS} content codings are stacked.")
    return codings


def decode(body: bytes, codings: tuple[str, ...], limits: RequestLimits) -> bytes:
    """`body` without its codings, which are what `read_codings` gave.

    No layer may have more than `limits.decoded_bytes`, nor more than `limits.decoded_ratio` times the body's bytes once
    it is over 1 MiB. Memory stays within two layers and a window of the coding's. Raises RequestError: 413 past a
    bound, 400 for a stream that is broken, cut off or followed by more.
    """
    most = min(limits.decoded_bytes, max(FREE_BYTES, limits.decoded_ratio * len(body)))
    for coding in reversed(codings):
        body = _undone(body, coding, most)
    return body


def encode(body: bytes, codings: tuple[str, ...]) -> bytes:
    """`body` with these codings, applied in their order; the same bytes each time."""
    for coding in codings:
        body = _ENCODERS[coding](body)
    return body


def _undone(body: bytes, coding: str, most: int) -> bytes:
    # Its buffer is handed over without a copy, unlike a joined list.
    whole = io.BytesIO()
    size = 0
    try:
        for piece in _DECODERS[coding](body):
            size += len(piece)
            if size > most:
                raise RequestError(413, "request_too_large", "The decoded body is larger than this gateway takes.")
            whole.write(piece)
    except (_Broken, zlib.error, zstd.ZstdError, brotli.error, EOFError):
        message = f"The body is not valid {coding}, is cut off, or is followed by more."
        raise RequestError(400, "invalid_content_encoding", message) from None
    return whole.getvalue()


def _inflated(data: bytes, start: int, wbits: int) -> Generator[bytes, None, int]:
    """One stream of zlib's; returns the position behind it."""
    stream = zlib.decompressobj(wbits)
    while not stream.eof:
        piece = data[start : start + _PIECE_IN]
        start += len(piece)
        ended = not piece
        while not stream.eof:
            out = stream.decompress(piece, _PIECE_OUT)
            piece = stream.unconsumed_tail
            yield out
            # Less than the most means that nothing is held back; so does a pending tail of nothing.
            if not piece and len(out) < _PIECE_OUT:
                break
        if ended and not stream.eof:
            raise _Broken
    return start - len(stream.unused_data)


def _gzip_member(data: bytes, start: int) -> Generator[bytes, None, int]:
    return _inflated(data, start, 16 + zlib.MAX_WBITS)


def _zstd_frame(data: bytes, start: int) -> Generator[bytes, None, int]:
    stream = zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)
    while not stream.eof:
        piece = b""
        if stream.needs_input:
            piece = data[start : start + _PIECE_IN]
            start += len(piece)
            if not piece:
                raise _Broken
        yield stream.decompress(piece, _PIECE_OUT)
    return start - len(stream.unused_data)


def _all_of(one: _One) -> Callable[[bytes], Iterator[bytes]]:
    def every(data: bytes) -> Iterator[bytes]:
        position = 0
        for _ in range(MOST_MEMBERS):
            position = yield from one(data, position)
            if position == len(data):
                return
        raise _Broken

    return every


def _undo_deflate(data: bytes) -> Iterator[bytes]:
    """The coding is zlib's format by its definition, and raw deflate by an old custom; a zlib header tells them apart:
    raw deflate begins with those bits only where it pads with what no encoder pads with."""
    zlib_header = len(data) > 1 and data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2], "big") % 31 == 0
    end = yield from _inflated(data, 0, zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS)
    if end != len(data):
        raise _Broken


def _undo_brotli(data: bytes) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    start = 0
    while not stream.is_finished():
        piece = data[start : start + _PIECE_IN] if stream.can_accept_more_data() else b""
        start += len(piece)
        # Behind the end of a stream it raises by itself, if within the same piece.
        out = stream.process(piece, output_buffer_limit=_PIECE_OUT)
        if not piece and not out and not stream.is_finished():
            raise _Broken
        yield out
    if start != len(data):
        raise _Broken


_DECODERS: Final[dict[str, Callable[[bytes], Iterator[bytes]]]] = {
    "gzip": _all_of(_gzip_member),
    "deflate": _undo_deflate,
    "br": _undo_brotli,
    "zstd": _all_of(_zstd_frame),
}

# Levels at which packing takes about as long as the network would save on a fast one.
_ENCODERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "gzip": lambda body: gzip.compress(body, 4, mtime=0),
    "deflate": lambda body: zlib.compress(body, 4),
    "br": lambda body: brotli.compress(body, quality=4),
    "zstd": lambda body: zstd.compress(body, 3),
}
