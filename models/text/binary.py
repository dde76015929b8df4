"""Trains a head that answers yes or no: `python -m models.text.binary harm --data DIR --work DIR`.

Logistic regression on what is known of a window. Sources of positives are held out one by one, for the figures and for
the calibration: what a source's texts get from a head that never saw it is what strangers' texts will get.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from models.text import dedupe
from models.text.binary_data import Side, Task, task
from models.text.calibrate import platt, reliability, share, sigmoid, threshold
from models.text.encoder import WIDTH, Encoder
from models.text.known import known
from models.text.linear import fit
from models.text.pooled import pooled

NAMES = ("harm", "creative", "fact_check", "complexity")
DECAY = {"harm": 1e-3, "creative": 3e-4, "fact_check": 1e-4, "complexity": 3e-4}

RATE = {"complexity": 0.1}
"""False alarms that the threshold allows, where not one in a hundred: at that rate a weak prior would say nothing."""

Vectors = dict[str, NDArray[np.float32]]


def _vectors(encoder: Encoder, texts: Mapping[str, Sequence[str]], work: Path) -> Vectors:
    return {source: known(pooled(encoder, list(some), work)) for source, some in texts.items()}


def train(yes: Vectors, no: Vectors, shares: Mapping[str, float], decay: float) -> nn.Linear:
    """Both sides weigh the same; sources within a side by `shares`, which name `yes:source` and `no:source`."""
    parts = [("yes:" + source, rows, 1) for source, rows in yes.items()] + [
        ("no:" + source, rows, 0) for source, rows in no.items()
    ]
    total = {side: sum(shares[name] for name, _, label in parts if label == side) for side in (0, 1)}
    targets = np.concatenate([np.full(len(rows), label, np.int64) for _, rows, label in parts])
    weights = np.concatenate(
        [np.full(len(rows), shares[name] / total[label] / len(rows), np.float32) for name, rows, label in parts]
    )
    return fit(np.concatenate([rows for _, rows, _ in parts]), targets, weights, 1, decay)


def score(layer: nn.Linear, rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """Logits (n,)."""
    with torch.no_grad():
        return layer(torch.from_numpy(rows))[:, 0].numpy().astype(np.float64)


def without(vectors: Vectors, source: str, held: NDArray[np.float32]) -> Vectors:
    """The other sources, without near-duplicates of the one that is held out."""
    unit = held[:, :WIDTH]
    kept = {}
    for name, rows in vectors.items():
        if name != source:
            kept[name] = rows[~dedupe.by_cosine(rows[:, :WIDTH], unit)]
    return kept


def shares_of(task: Task) -> dict[str, float]:
    """By `yes:source` and `no:source`."""

    def named(side: str, sources: Side) -> dict[str, float]:
        return {f"{side}:{source}": share for source, (_, share) in sources.items()}

    return named("yes", task.yes) | named("no", task.no)


def main() -> None:
    """Train on everything; figures with sources held out; calibrate; save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("head", choices=NAMES)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    encoder, about = Encoder(given.work), task(given.head, given.data)
    yes = _vectors(encoder, {source: texts for source, (texts, _) in about.yes.items()}, given.work)
    no = _vectors(encoder, {source: texts for source, (texts, _) in about.no.items()}, given.work)
    unseen_yes, unseen_no = (_vectors(encoder, texts, given.work) for texts in (about.unseen_yes, about.unseen_no))
    shares, decay = shares_of(about), DECAY[given.head]

    layer = train(yes, no, shares, decay)
    negatives = {source: score(layer, rows) for source, rows in unseen_no.items()}
    positives = {source: score(layer, rows) for source, rows in unseen_yes.items()}
    figures: dict[str, Any] = {}
    if not positives:
        for source, rows in yes.items():
            held = train(without(yes, source, rows), no, shares, decay)
            positives[source] = score(held, rows)
            own = np.concatenate([score(held, each) for each in unseen_no.values()])
            bound = threshold(sigmoid(own))
            hits = int((sigmoid(positives[source]) >= bound).sum())
            figures[f"held out: {source}"] = share(hits, len(rows))
    below, above = (np.concatenate(list(each.values())) for each in (negatives, positives))
    scale, bias = platt(below, above)
    bound = threshold(sigmoid(scale * below + bias), RATE.get(given.head, 0.01))
    for source, logits in {
        **{f"yes, {k}": v for k, v in positives.items()},
        **{f"no, {k}": v for k, v in negatives.items()},
    }.items():
        found = int((sigmoid(scale * logits + bias) >= bound).sum())
        figures[f"at the threshold: {source}"] = share(found, len(logits))
    figures["auc"] = round(float((above[:, None] > below[None]).mean()), 4)
    folder = given.work / "binary"
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(layer.state_dict(), folder / f"{given.head}.pt")
    low, high = sigmoid(scale * below + bias), sigmoid(scale * above + bias)
    weights = np.concatenate([np.full(len(low), 0.5 / len(low)), np.full(len(high), 0.5 / len(high))])
    hits = np.concatenate([np.zeros(len(low), bool), np.ones(len(high), bool)])
    table = reliability(np.concatenate([low, high]), hits, weights)
    figures["reliability"] = [[round(p, 3), round(right, 3), n] for p, right, n in table]
    out = {"scale": round(scale, 4), "bias": round(bias, 4), "threshold": round(bound, 4), "figures": figures}
    (folder / f"{given.head}.json").write_text(json.dumps(out, indent=1) + "\n")
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
