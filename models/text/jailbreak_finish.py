"""Calibrates the jailbreak head that saw all sets: `python -m models.text.jailbreak_finish --work DIR`.

Positives are each set's texts as judged by the training that held the set out; negatives are collections of harmless
requests that no training saw. Needs `models.text.jailbreak` for everything, and once without each set.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from models.text.calibrate import platt, reliability, sigmoid, threshold, wilson
from models.text.jailbreak_data import ATTACK_SETS


def main() -> None:
    """Scale, bias, threshold, and the figures of the sets held out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    folder = given.work / "jailbreak"
    figures: dict[str, Any] = {}
    positives = []
    for name in ATTACK_SETS:
        file = folder / f"logits-{name}-{given.seed}.json"
        if not file.exists():
            continue
        found = json.loads(file.read_text())
        bound = threshold(sigmoid(np.array(found["threshold"])))
        own = np.array(found[name])
        hits = int((sigmoid(own) >= bound).sum())
        figures[name] = {
            "recall": round(hits / len(own), 4),
            "n": len(own),
            "interval": [round(x, 4) for x in wilson(hits, len(own))],
        }
        positives.append(own)
    negative = np.array(json.loads((folder / f"logits-all-{given.seed}.json").read_text())["threshold"])
    # Each set counts the same, however many texts it has.
    most = max(map(len, positives))
    positive = np.concatenate([np.resize(own, most) for own in positives])
    scale, bias = platt(negative, positive)
    low, high = sigmoid(scale * negative + bias), sigmoid(scale * positive + bias)
    weights = np.concatenate([np.full(len(low), 0.5 / len(low)), np.full(len(high), 0.5 / len(high))])
    hit = np.concatenate([np.zeros(len(low), bool), np.ones(len(high), bool)])
    table = reliability(np.concatenate([low, high]), hit, weights)
    out = {
        "scale": round(scale, 4),
        "bias": round(bias, 4),
        "threshold": round(threshold(low), 4),
        "held out": figures,
        "reliability": [[round(p, 3), round(share, 3), n] for p, share, n in table],
    }
    (folder / "calibration.json").write_text(json.dumps(out, indent=1) + "\n")
    shutil.copy(folder / f"head-all-{given.seed}.pt", folder / "head.pt")
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
