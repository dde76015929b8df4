"""A tokenised text: its tokens, the windows that it falls into, and one such window as a model takes it. Plain data."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

LONGEST_STRETCH: Final = 128
"""Characters; see `squeezed`."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens of a stretch of text: ids (t,) and each one's character range in the text (t, 2), int32; where it ends."""

    ids: NDArray[np.int32] = field(repr=False)
    ranges: NDArray[np.int32] = field(repr=False)
    end: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """A tokenised text.

    `ids` (t,) int32 are the text's own tokens, without the special ones, and `ranges` (t, 2) int32 the characters of
    each, half-open. A window covers the tokens `starts[i]` to `ends[i]` and the characters `spans[i]`; there is at
    least one, and all together cover the text.
    """

    ids: NDArray[np.int32] = field(repr=False)
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    ranges: NDArray[np.int32] = field(repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes in memory; a window's four numbers and their tuple weigh about 200."""
        return self.ids.nbytes + self.ranges.nbytes + 200 * len(self.spans)


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """One window as a model takes it: `ids` (t,) int32, special tokens included.

    For heads also its own characters, and where in these each of its own tokens stands: `ranges` (own, 2), without the
    special tokens, of which `prefix` stand in front.
    """

    ids: NDArray[np.int32] = field(repr=False)
    text: str = field(default="", repr=False)
    ranges: NDArray[np.int32] | None = field(default=None, repr=False)
    prefix: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def digest(self) -> bytes:
        """Equal windows have equal ones; all that a model or a head is told follows from what goes in."""
        digest = hashlib.sha256(len(self.ids).to_bytes(4, "big"))
        digest.update(self.ids.tobytes())
        if self.ranges is not None:
            digest.update(self.ranges.tobytes())
        digest.update(self.text.encode("utf-8", "surrogatepass"))
        return digest.digest()


def squeezed(text: str, ranges: NDArray[np.int32]) -> tuple[str, NDArray[np.int32]]:
    """A window's text and its tokens' places (t, 2), with at most `LONGEST_STRETCH` characters of each token and of
    what stands between two: their beginnings and ends.

    A token is unknown from some hundred characters on, and may go on for megabytes, as may what tokenizers drop. What
    is computed for each character of a window must not follow them there.
    """
    edges = np.unique(np.concatenate([ranges.ravel(), [0, len(text)]]))
    lengths = np.diff(edges)
    moved = np.concatenate([[0], np.cumsum(np.minimum(lengths, LONGEST_STRETCH))]).astype(np.int32)
    half = LONGEST_STRETCH // 2
    kept = [
        text[start:end] if end - start <= LONGEST_STRETCH else text[start : start + half] + text[end - half : end]
        for start, end in itertools.pairwise(edges.tolist())
    ]
    return "".join(kept), moved[np.searchsorted(edges, ranges)]
