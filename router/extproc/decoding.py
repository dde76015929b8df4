"""Undoes a response's content codings while it comes, piece by piece and within bounds.

Requests are decoded whole (`router.request.content_coding`), because they are judged whole. A response is read as it
passes by: what has come is decoded as far as it goes, in steps of bounded size.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

import brotli

from router.request.content_coding import UnknownCoding, read_codings
from router.request.errors import RequestError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DECODED_BYTES: Final = 64 * 1024 * 1024
"""Decoded of one response at most, in each of its layers."""

_STEP: Final = 64 * 1024
_ZSTD_OPTIONS: Final[dict[int, int]] = {zstd.DecompressionParameter.window_log_max: 23}
"""8 MiB, the most that a content coding may ask for (RFC 9659)."""


class BrokenCodingError(Exception):
    """A body that is not what its content-encoding says."""


class TooMuchError(Exception):
    """More than is decoded."""


class _Layer(Protocol):
    def decode(self, piece: bytes) -> Iterator[bytes]:
        """Steps of bounded size; raises the library's own error."""

    @property
    def whole(self) -> bool:
        """Whether nothing is missing at the end of what came."""


class Decoding:
    """The layers of one body, undone. Without any, pieces come back as they are."""

    def __init__(self, header: str, limit: int | None = None) -> None:
        """`header` is the content-encoding, `limit` DECODED_BYTES by default; raises UnknownCoding."""
        try:
            codings = read_codings(header)
        except RequestError:
            # Layers beyond what is undone.
            raise UnknownCoding from None
        self.encoded = bool(codings)
        self._layers = [_LAYERS[coding]() for coding in reversed(codings)]
        self._decoded = [0] * len(codings)
        self._limit = DECODED_BYTES if limit is None else limit

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """What has become readable with this piece; raises BrokenCodingError and TooMuchError."""
        parts: Iterable[bytes] = (piece,)
        for number in range(len(self._layers)):
            parts = self._through(number, parts)
        try:
            for part in parts:
                if part:
                    yield part
        except (zlib.error, zstd.ZstdError, brotli.error, EOFError):
            raise BrokenCodingError from None

    @property
    def whole(self) -> bool:
        """Whether every layer has ended as it should."""
        return all(layer.whole for layer in self._layers)

    def _through(self, number: int, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            for step in self._layers[number].decode(part):
                self._decoded[number] += len(step)
                if self._decoded[number] > self._limit:
                    raise TooMuchError
                yield step


class _Inflate:
    """gzip, member after member; deflate as zlib's format, or raw as some servers send it (RFC 1952, 1950, 1951)."""

    def __init__(self, gzip: bool) -> None:
        self._gzip = gzip
        self._head = b""
        self._stream: Any = None

    @property
    def whole(self) -> bool:
        return not self._head and (self._stream is None or self._stream.eof)

    def decode(self, piece: bytes) -> Iterator[bytes]:
        while piece:
            if self._stream is None or self._stream.eof:
                piece = self._begin(piece)
                if self._stream is None or self._stream.eof:
                    return
            while True:
                out = self._stream.decompress(piece, _STEP)
                piece = self._stream.unconsumed_tail
                yield out
                if self._stream.eof or (not piece and len(out) < _STEP):
                    break
            piece = self._stream.unused_data if self._stream.eof else b""

    def _begin(self, piece: bytes) -> bytes:
        """Open a stream, once there is enough to tell which; what it is fed with first."""
        if self._gzip:
            self._stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
            return piece
        if self._stream is not None:
            raise EOFError
        head = self._head + piece
        if len(head) < 2:
            self._head = head
            return b""
        self._head = b""
        wrapped = head[0] & 0x0F == zlib.DEFLATED and int.from_bytes(head[:2], "big") % 31 == 0
        self._stream = zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
        return head


class _Brotli:
    """br (RFC 7932)."""

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self._began = False

    @property
    def whole(self) -> bool:
        return not self._began or self._stream.is_finished()

    def decode(self, piece: bytes) -> Iterator[bytes]:
        if not piece:
            return
        self._began = True
        if self._stream.is_finished():
            raise EOFError
        while True:
            out = self._stream.process(piece, output_buffer_limit=_STEP)
            piece = b""
            yield out
            # It says that it takes more while some of what it has is still to come.
            if not out or self._stream.is_finished():
                return


class _Zstd:
    """zstd, frame after frame (RFC 8878)."""

    def __init__(self) -> None:
        self._stream: Any = None

    @property
    def whole(self) -> bool:
        return self._stream is None or self._stream.eof

    def decode(self, piece: bytes) -> Iterator[bytes]:
        while piece:
            if self._stream is None or self._stream.eof:
                self._stream = zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)
            out = self._stream.decompress(piece, _STEP)
            yield out
            while not self._stream.needs_input and not self._stream.eof:
                yield self._stream.decompress(b"", _STEP)
            piece = self._stream.unused_data if self._stream.eof else b""


_LAYERS: Final[dict[str, Any]] = {
    "gzip": lambda: _Inflate(gzip=True),
    "deflate": lambda: _Inflate(gzip=False),
    "br": _Brotli,
    "zstd": _Zstd,
}
