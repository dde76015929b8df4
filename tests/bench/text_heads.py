"""What all heads of a text pack cost beside the encoder that they read; one paired run, one thread.

    python tests/bench/text_heads.py [--pack starter] [--rounds 200]

The bare encoder (tokens to the embedding) against the encoder with every head of the pack (features of characters, the
tower with its layers, the heads' graph, calibration), for windows of 64 and of 254 tokens. Texts are new in every round
and the two take turns, so that what else runs here falls on both. Prints the ratio of each round's CPU times, median.
Goal: at most 1.10.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from router.inference.head_features import pattern_features, token_shapes  # noqa: E402
from router.inference.open import open_text_model  # noqa: E402
from router.inference.text_model import TextModel  # noqa: E402
from router.inference.tokens import Window  # noqa: E402
from router.packs.store import open_pack  # noqa: E402

WORDS = (
    "signal railway window patient summer contract engine river letter morning answer garden you ignore Maria London "
    "please rules write the a of and to in is that it for was on are with as I his they be at one have this from or had"
)
LENGTHS = (64, 254)
WARMUP = 10


def sentence(rng: random.Random, tokens: int, model: TextModel) -> Window:
    """A text of this many tokens, as one window."""
    words: list[str] = []
    while len(model.tokenise(" ".join(words)).ids) < tokens:
        words.append(rng.choice(WORDS.split()) + rng.choice(["", "", "", "", ",", "."]))
    text = " ".join(words)
    placed = model.tokenise(text)
    end = int(placed.ranges[tokens - 1, 1])
    return model.first_window(text[:end])


def measured(model: TextModel, tokens: int, rounds: int) -> dict[str, Any]:
    """CPU milliseconds of both, and of parts, medians; the median of each round's ratio."""
    rng = random.Random(tokens)
    taken: dict[str, list[float]] = {}
    for number in range(-WARMUP, rounds):
        window = sentence(rng, tokens, model)
        runs: dict[str, Callable[[], object]] = {
            "encoder": lambda window=window: model.forward([window.ids]),
            "encoder and heads": lambda window=window: model.judge([window]),
            "features alone": lambda window=window: (
                token_shapes(window.text, window.ranges),
                pattern_features(window.text),
            ),
        }
        for name in rng.sample(sorted(runs), len(runs)):
            started = time.thread_time()
            runs[name]()
            if number >= 0:
                taken.setdefault(name, []).append(time.thread_time() - started)
    ratios = [heads / bare for heads, bare in zip(taken["encoder and heads"], taken["encoder"], strict=True)]
    return {
        "cpu_ms": {name: round(median(times) * 1000, 2) for name, times in taken.items()},
        "ratio": round(median(ratios), 3),
        "quartiles": [round(sorted(ratios)[len(ratios) * share // 4], 3) for share in (1, 3)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pack", default="starter", help="a text pack with heads, by name or path")
    parser.add_argument("--rounds", type=int, default=200, help="texts of each length")
    arguments = parser.parse_args()
    pack = open_pack(arguments.pack, "text", Path.cwd())
    if pack.manifest.heads is None:
        raise SystemExit(f"pack {pack.manifest.name!r} has no heads")
    model = open_text_model(pack, heads=[head.name for head in pack.manifest.heads.heads])
    print(json.dumps({f"{tokens} tokens": measured(model, tokens, arguments.rounds) for tokens in LENGTHS}, indent=2))


if __name__ == "__main__":
    main()
