"""Hidden states of windows on disk, as the jailbreak branch takes them: layer 4 in pairs, layer 6 as a mean."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.text.encoder import WIDTH, Encoder, Window
from router.inference.head_features import pattern_features


@dataclass(frozen=True, slots=True)
class States:
    """Of n windows: pairs (p, 384) float16 one behind the other, where each begins, means (n, 384), patterns (n, P)."""

    pairs: NDArray[np.float16]
    offsets: NDArray[np.int64]
    means: NDArray[np.float16]
    patterns: NDArray[np.float32]

    def batch(self, indices: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Pairs (n, p, 384), padded, and which of them are there (n, p)."""
        lengths = [int(self.offsets[i + 1] - self.offsets[i]) for i in indices]
        pairs = np.zeros((len(indices), max(lengths), WIDTH), np.float32)
        there = np.zeros(pairs.shape[:2], np.float32)
        for row, (i, length) in enumerate(zip(indices, lengths, strict=True)):
            pairs[row, :length] = self.pairs[self.offsets[i] : self.offsets[i + 1]]
            there[row, :length] = 1
        return pairs, there


def in_pairs(hidden: NDArray[np.float32]) -> NDArray[np.float32]:
    """Means of two tokens each, (ceil(t / 2), 384); an odd one at the end stays alone."""
    even = len(hidden) // 2 * 2
    pairs = hidden[:even].reshape(-1, 2, WIDTH).mean(axis=1)
    return np.concatenate([pairs, hidden[even:]])


STALE = 300.0
SHARD = 300
"""Windows that are computed and written at once, so that who was stopped loses little."""


def states(encoder: Encoder, windows: Sequence[Window], store: Path) -> States:
    """Computed once a window; `store` says where they stay. Several processes may share the work."""
    store.mkdir(parents=True, exist_ok=True)
    keys = [hashlib.sha256(window.ids.tobytes()).hexdigest()[:24] for window in windows]
    known: dict[str, _Row] = {}
    read: set[Path] = set()
    _read(store, known, read)
    missing = {key: window for key, window in zip(keys, windows, strict=True) if key not in known}
    # Shards of alike lengths waste no padding.
    order = sorted(missing, key=lambda key: (len(missing[key].ids), key))
    shards = [{key: missing[key] for key in order[start : start + SHARD]} for start in range(0, len(order), SHARD)]
    for patient in (False, True):
        for shard in shards:
            _computed(encoder, shard, store, patient)
    _read(store, known, read)
    rows = [known[key] for key in keys]
    offsets = np.concatenate([[0], np.cumsum([len(row.pairs) for row in rows])]).astype(np.int64)
    patterns = np.stack([pattern_features(window.characters) for window in windows])
    pairs = np.concatenate([row.pairs for row in rows])
    return States(pairs, offsets, np.stack([row.mean for row in rows]), patterns)


@dataclass(frozen=True, slots=True)
class _Row:
    pairs: NDArray[np.float16]
    mean: NDArray[np.float16]


def _read(store: Path, known: dict[str, _Row], read: set[Path]) -> None:
    for path in sorted(store.glob("*.npz")):
        if path in read or path.name.endswith(".part.npz"):
            continue
        with np.load(path) as found:
            ends, pairs, means = found["ends"], found["pairs"], found["means"]
            starts = [0, *ends[:-1].tolist()]
            for key, start, end, mean in zip(found["keys"].tolist(), starts, ends.tolist(), means, strict=True):
                known[key] = _Row(pairs[start:end], mean)
        read.add(path)


def _computed(encoder: Encoder, windows: dict[str, Window], store: Path, patient: bool) -> None:
    """Write one shard, unless it is there. Another process may be at it: who is patient waits for that."""
    file = store / f"{hashlib.sha256(''.join(windows).encode()).hexdigest()[:24]}.npz"
    claim = file.with_suffix(".claim")
    while not file.exists():
        if not _claimed(claim):
            if not patient:
                return
            time.sleep(2)
            continue
        pairs: list[NDArray[np.float16]] = [np.zeros((0, WIDTH), np.float16)] * len(windows)
        means = np.zeros((len(windows), WIDTH), np.float16)
        for index, hidden in encoder.hidden(list(windows.values())):
            pairs[index] = in_pairs(hidden[4]).astype(np.float16)
            means[index] = hidden[6].mean(0)
        part = file.with_suffix(".part.npz")
        ends = np.cumsum([len(each) for each in pairs])
        np.savez(part, keys=np.array(list(windows)), ends=ends, pairs=np.concatenate(pairs), means=means)
        part.replace(file)
        claim.unlink(missing_ok=True)


def _claimed(claim: Path) -> bool:
    """Whether the shard is ours: nobody's, or of somebody who is no longer at it."""
    try:
        claim.touch(exist_ok=False)
    except FileExistsError:
        if time.time() - claim.stat().st_mtime < STALE:
            return False
        claim.touch()
    return True
