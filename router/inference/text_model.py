"""The text tower by itself: tokenise, forward, and how a long text falls into windows.

Synchronous and without caches, so that the parity gate and the tests see exactly what serves; `text.py` puts it behind
the executor.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from router.inference.heads_model import HeadsModel, Judged
from router.inference.sessions import SessionAnywhere, open_session, require_io
from router.inference.tokens import Piece, Tokens, Window, squeezed
from router.packs.files import PackError, inside
from router.packs.manifest import TextGraph, TextTower

# A piece of this many characters is tokenised in about 30 ms, 120 ms for CJK; a cancelled text stops between pieces.
PIECE_CHARACTERS = 65_536
# A piece without a place to cut it grows up to this; the memory that tokenising takes grows with it.
LONGEST_PIECE = 2 * PIECE_CHARACTERS
# `Tokenizer.encode` keeps the GIL, `encode_batch` frees it but starts a thread: worth it from here on.
_GIL_CHARACTERS = 512
# Characters. A window of 256 tokens of any language has about 2,000; heads see a longer one squeezed.
_LONG_WINDOW = 16_384
_SURROGATES = re.compile("[\ud800-\udfff]")
# A BERT tokenizer splits in front of these, whatever stands around them: white space, punctuation, and the ideographs
# that it takes one by one.
_SPLIT_IN_FRONT = " \t\r\n" + string.punctuation
_IDEOGRAPHS = "\u4e00-\u9fff"


class WindowModel:
    """Tokenizer and session of one graph that reads text. Its methods may run in several threads at once."""

    def __init__(self, tower: TextGraph, folder: Path, session: SessionAnywhere | None = None) -> None:
        """Open what `lay_out` gave, the graph too unless there is a `session` of it; raises PackError."""
        self.tower = tower
        if session is None:
            graph = inside(folder, tower.graph.path)
            session = open_session(graph, tower.precision)
            require_io(session, graph, text_inputs(tower), tower.output, *layers_of(tower))
        self._session = session
        self._tokenizer = _load_tokenizer(inside(folder, tower.tokenizer.path))
        self._prefix, self._suffix = _special_tokens(self._tokenizer)
        self._body = tower.max_tokens - len(self._prefix) - len(self._suffix)
        if not 0 < tower.window_stride <= self._body:
            raise PackError(f"{folder}: window_stride {tower.window_stride} must lie between 1 and {self._body}")
        self._split = _split_pattern(self._tokenizer)

    @property
    def providers(self) -> tuple[str, ...]:
        """Execution providers that the session runs on."""
        return tuple(self._session.get_providers())

    def tokenise_piece(self, text: str, start: int) -> Piece:
        """Stage one for a stretch of the text that begins at `start`: short enough to be cancelled behind it.

        Pieces together have the tokens of the whole text: they are cut where a BERT tokenizer splits anyway, and other
        tokenizers get the text whole. Only a run of `LONGEST_PIECE` characters without any such place is cut blindly.
        Lone surrogates, which are not Unicode text, count as U+FFFD.
        """
        end = self._cut(text, start)
        stretch = text[start:end]
        clean = stretch if stretch.isascii() else _SURROGATES.sub("\ufffd", stretch)
        if len(clean) <= _GIL_CHARACTERS:
            encoding = self._tokenizer.encode(clean, add_special_tokens=False)
        else:
            (encoding,) = self._tokenizer.encode_batch([clean], add_special_tokens=False)
        ranges = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2) + np.int32(start)
        return Piece(np.array(encoding.ids, dtype=np.int32), ranges, end)

    def join(self, pieces: Sequence[Piece]) -> Tokens:
        """The tokens of the whole text and its windows: `window_stride` tokens from one's start to the next's."""
        ids = np.concatenate([piece.ids for piece in pieces])
        ranges = np.concatenate([piece.ranges for piece in pieces])
        overhang = max(len(ids) - self._body, 0)
        count = 1 + -(-overhang // self.tower.window_stride)
        starts = tuple(index * self.tower.window_stride for index in range(count))
        ends = tuple(min(start + self._body, len(ids)) for start in starts)
        first = [0, *(int(ranges[start, 0]) for start in starts[1:])]
        last = [*(int(ranges[end - 1, 1]) for end in ends[:-1]), pieces[-1].end]
        return Tokens(ids, starts, ends, tuple(zip(first, last, strict=True)), ranges)

    def tokenise(self, text: str) -> Tokens:
        """All of stage one in the calling thread."""
        pieces = [self.tokenise_piece(text, 0)]
        while pieces[-1].end < len(text):
            pieces.append(self.tokenise_piece(text, pieces[-1].end))
        return self.join(pieces)

    def _cut(self, text: str, start: int) -> int:
        if self._split is None or len(text) - start <= PIECE_CHARACTERS:
            return len(text)
        longest = min(start + LONGEST_PIECE, len(text))
        place = self._split.search(text, start + PIECE_CHARACTERS, longest)
        return place.start() if place else longest

    def window(self, tokens: Tokens, index: int) -> NDArray[np.int32]:
        """Token ids of one window as the graph takes them, special tokens included; at most `max_tokens`.

        A tower of fixed length gets its padding here.
        """
        body = tokens.ids[tokens.starts[index] : tokens.ends[index]]
        ids = np.concatenate([self._prefix, body, self._suffix])
        if not self.tower.fixed_length:
            return ids
        return np.pad(ids, (0, self.tower.max_tokens - len(ids)), constant_values=self.tower.pad_id)

    def body(self, row: NDArray[np.float32], tokens: Tokens, index: int) -> NDArray[np.float32]:
        """The part of a window's row of tokens (t, ...) that is about the text's own."""
        start = len(self._prefix)
        return row[start : start + tokens.ends[index] - tokens.starts[index]]

    def placed(self, text: str, tokens: Tokens, index: int) -> Window:
        """One window with all that this model is told of it."""
        return Window(self.window(tokens, index))

    def forward(self, windows: Sequence[NDArray[np.int32]]) -> NDArray[np.float32]:
        """Stage two: the graph's output (n, ...) float32 of n windows, padded to the longest.

        An int8 graph scales its activations by the greatest in the batch, so there each window runs alone.
        """
        if self.tower.precision == "int8" and len(windows) > 1:
            return _stacked([self.forward([window])[0] for window in windows])
        rows: NDArray[np.float32] = self._session.run([self.tower.output], self.feed(windows))[0]
        rows.flags.writeable = False
        return rows

    def feed(self, windows: Sequence[NDArray[np.int32]]) -> dict[str, NDArray[np.int64]]:
        """What the graph takes for n windows, by input name, padded to the longest."""
        longest = max(len(window) for window in windows)
        input_ids = np.full((len(windows), longest), self.tower.pad_id, dtype=np.int64)
        attention_mask = np.zeros_like(input_ids)
        for row, window in enumerate(windows):
            input_ids[row, : len(window)] = window
            attention_mask[row, : len(window)] = 1
        feed = {"input_ids": input_ids}
        if not self.tower.fixed_length:
            feed["attention_mask"] = attention_mask
        return feed


class TextModel(WindowModel):
    """A text tower: `forward` gives unit vectors (n, d), `judge` also what its `heads` say, from the same pass."""

    def __init__(
        self,
        tower: TextTower,
        folder: Path,
        session: SessionAnywhere | None = None,
        heads: HeadsModel | None = None,
    ) -> None:
        """See `WindowModel`; `heads` are of the same pack, and for a graph that is run here."""
        super().__init__(tower, folder, session)
        self.tower: TextTower = tower
        self.heads = heads

    def placed(self, text: str, tokens: Tokens, index: int) -> Window:
        """One window; where heads look at it, with its own characters, lone surrogates among them as U+FFFD."""
        ids = self.window(tokens, index)
        if self.heads is None:
            return Window(ids)
        ranges = tokens.ranges[tokens.starts[index] : tokens.ends[index]]
        # From the first token to the last, and not the window's span: white space around them says nothing.
        start, end = (int(ranges[0, 0]), int(ranges[-1, 1])) if len(ranges) else (0, len(text))
        own, ranges = text[start:end], ranges - np.int32(start)
        if len(own) > _LONG_WINDOW:
            own, ranges = squeezed(own, ranges)
        return Window(ids, own if own.isascii() else _SURROGATES.sub("\ufffd", own), ranges, len(self._prefix))

    def first_window(self, text: str) -> Window:
        """The first window of a text, tokenised in the calling thread."""
        return self.placed(text, self.tokenise(text), 0)

    def judge(self, windows: Sequence[Window]) -> list[Judged]:
        """Stage two: of each window its unit vector and what the heads say, from one pass of the tower."""
        heads = self.heads
        if heads is None:
            return [Judged(row) for row in self.forward([window.ids for window in windows])]
        if self.tower.precision == "int8" and len(windows) > 1:
            return [self.judge([window])[0] for window in windows]
        feed = self.feed([window.ids for window in windows])
        embeddings, *states = self._session.run([self.tower.output, *heads.layers], feed)
        embeddings.flags.writeable = False
        judged = []
        for row, window in enumerate(windows):
            own = {name: each[row : row + 1, : len(window)] for name, each in zip(heads.layers, states, strict=True)}
            judged.append(Judged(embeddings[row], heads.answers(own, window)))
        return judged


def layers_of(tower: TextGraph) -> tuple[str, ...]:
    """Names of the graph's outputs beside its own."""
    return tower.layers if isinstance(tower, TextTower) else ()


def text_inputs(tower: TextGraph) -> tuple[str, ...]:
    """Names of the graph's inputs."""
    return ("input_ids",) if tower.fixed_length else ("input_ids", "attention_mask")


def _stacked(rows: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Rows (d,), or (t, d) with zeros behind the shorter ones, as one array."""
    if rows[0].ndim == 1:
        stacked = np.stack(rows)
    else:
        stacked = np.zeros((len(rows), max(len(row) for row in rows), *rows[0].shape[1:]), dtype=np.float32)
        for index, row in enumerate(rows):
            stacked[index, : len(row)] = row
    stacked.flags.writeable = False
    return stacked


def _load_tokenizer(path: Path) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise PackError(f"{path} is not a tokenizer.json that this version of tokenizers reads") from error
    # Published files bake in a length of 128; ours is the model's, and windows are cut by us.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _special_tokens(tokenizer: Tokenizer) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """What the tokenizer's template puts in front of a text and behind it."""
    empty = tokenizer.encode("").ids
    framed = tokenizer.encode("a")
    before = framed.special_tokens_mask.index(0)
    return np.array(empty[:before], dtype=np.int32), np.array(empty[before:], dtype=np.int32)


def _split_pattern(tokenizer: Tokenizer) -> re.Pattern[str] | None:
    """What a text may be cut in front of without changing its tokens; None when that is not known of the tokenizer.

    A special token written out in a text, such as `[SEP]`, is one token and must not be cut in its middle.
    """
    parts = json.loads(tokenizer.to_str())
    normalizer, pre_tokenizer = parts["normalizer"] or {}, parts["pre_tokenizer"] or {}
    if (normalizer.get("type"), pre_tokenizer.get("type")) != ("BertNormalizer", "BertPreTokenizer"):
        return None
    inside_specials = {mark for token in tokenizer.get_added_tokens_decoder().values() for mark in token.content[1:]}
    marks = re.escape("".join(mark for mark in _SPLIT_IN_FRONT if mark not in inside_specials))
    ideographs = _IDEOGRAPHS if normalizer["handle_chinese_chars"] else ""
    return re.compile(f"[{marks}{ideographs}]")
