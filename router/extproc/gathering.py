"""A request's body that arrives in pieces, held until it is whole; and a whole one cut into pieces again.

For Envoys that stream bodies to the sidecar and wait to get every byte back. It bounds what is held and knows nothing
of what a body means.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

PIECE_BYTES: Final = 64 * 1024
"""How much goes back to Envoy at a time: what its documentation of FULL_DUPLEX_STREAMED recommends at most."""


class Gathering:
    """Pieces of one body, at most `limit` bytes of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._bytes = 0

    def add(self, piece: bytes) -> bool:
        """Keep a piece; False when the body is larger than the limit, and then nothing of it is held any more."""
        self._bytes += len(piece)
        if self._bytes > self._limit:
            self._pieces.clear()
            return False
        if piece:
            self._pieces.append(piece)
        return True

    def fits(self, piece: bytes) -> bool:
        """Whether this piece can be added."""
        return self._bytes + len(piece) <= self._limit

    def whole(self) -> bytes:
        """The body; the pieces are let go of, so that it is not held twice."""
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]


def in_pieces(body: bytes) -> Iterator[tuple[bytes, bool]]:
    """The body cut up, each piece with whether it is the last; one empty piece for an empty body."""
    for start in range(0, len(body) or 1, PIECE_BYTES):
        yield body[start : start + PIECE_BYTES], start + PIECE_BYTES >= len(body)
