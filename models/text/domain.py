"""Trains the domain head: `python -m models.text.domain --data DIR --work DIR`.

Logistic regression on the tower's own embedding, and the likeness to the nearest of labelled texts; their
log-probabilities are summed. Our questions are held out a fifth at a time, which gives the
temperature, and the confidence from which on an answer is right in nine of ten cases.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from models.text import dedupe
from models.text.calibrate import reliability, rising, softmax, temperature, wilson
from models.text.domain_data import Labelled, labelled
from models.text.domain_head import DomainHead
from models.text.encoder import WIDTH, Encoder
from models.text.known import known
from models.text.linear import balanced, fit
from models.text.pooled import pooled
from models.text.sources import rows
from router.signals.domain_anchors import SUBJECTS

SHARES = {"questions": 0.4, "topics": 0.46, "mmlu": 0.06, "tasks": 0.04, "everyday": 0.04}
DECAY = 3e-4
FOLDS = 5
WANTED = 0.9

Vectors = dict[str, NDArray[np.float32]]


def train(vectors: Vectors, labels: Mapping[str, NDArray[np.int64]]) -> DomainHead:
    """The head from labelled embeddings by source."""
    sizes = [(len(labels[source]), SHARES[source]) for source in vectors]
    targets = np.concatenate([labels[source] for source in vectors])
    features = np.concatenate(list(vectors.values()))
    linear = fit(features, targets, balanced(sizes, targets), len(SUBJECTS), DECAY)
    near = np.concatenate([vectors["questions"], vectors["topics"]])
    return DomainHead.of(linear, near, np.concatenate([labels["questions"], labels["topics"]]))


def held_out(vectors: Vectors, labels: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float32]:
    """Logits of each of our questions from a head that did not see it."""
    own, count = vectors["questions"], len(vectors["questions"])
    logits = np.zeros((count, len(SUBJECTS)), np.float32)
    for fold in range(FOLDS):
        out = np.arange(count) % FOLDS == fold
        head = train({**vectors, "questions": own[~out]}, {**labels, "questions": labels["questions"][~out]})
        with torch.no_grad():
            logits[out] = head(torch.from_numpy(own[out])).numpy()
    return logits


def confident(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """The least confidence from which on an answer, by itself, is right in `WANTED` of the cases.

    What all answers above a bound are right in, together, hides that those just above it are right in six of ten, and
    strangers' questions have more of these than ours. So it is the share at each confidence that has to reach `WANTED`,
    as the best rising curve through the held-out answers gives it.
    """
    sure = probabilities.max(axis=1)
    order = np.argsort(sure)
    curve = rising((probabilities.argmax(axis=1) == labels)[order].astype(np.float64))
    enough = np.flatnonzero(curve >= WANTED)
    return float(sure[order][enough[0]]) if len(enough) else 1.0


def main() -> None:
    """Train on everything but near-duplicates of what measures; calibrate; save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    encoder = Encoder(given.work)
    measuring = [row.text for row in rows(given.data, "authored/domain")]
    measured = known(pooled(encoder, measuring, given.work))[:, :WIDTH]
    vectors, labels = {}, {}
    for source, some in labelled(given.data).items():
        vectors[source], labels[source] = _apart(source, some, encoder, given.work, measuring, measured)
    logits = held_out(vectors, labels)
    own = labels["questions"]
    divisor = temperature(logits, own)
    scaled = logits.astype(np.float64) / divisor
    shares = softmax(scaled)
    bound = confident(shares, own)
    hits, sure = shares.argmax(axis=1) == own, shares.max(axis=1) >= bound
    figures = {
        "accuracy": round(float(hits.mean()), 4),
        "n": len(own),
        "interval": [round(x, 4) for x in wilson(int(hits.sum()), len(own))],
    }
    table = reliability(shares.max(axis=1), hits, np.ones(len(own)))
    figures["reliability"] = [[round(p, 3), round(right, 3), n] for p, right, n in table]
    figures |= {"sure": int(sure.sum()), "right of the sure": round(float(hits[sure].mean()), 4)}
    folder = given.work / "domain"
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(train(vectors, labels).state_dict(), folder / "head.pt")
    out = {"temperature": round(divisor, 4), "threshold": round(bound, 4), "figures": figures}
    (folder / "calibration.json").write_text(json.dumps(out, indent=1) + "\n")
    print(json.dumps(out, indent=1))


def _apart(
    source: str, some: Labelled, encoder: Encoder, work: Path, measuring: list[str], measured: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """A source's embeddings and labels without what nearly stands in the measuring set."""
    found = known(pooled(encoder, some.texts, work))[:, :WIDTH]
    alike = dedupe.by_grams(some.texts, measuring) | dedupe.by_cosine(found, measured)
    if alike.any():
        print(f"{source}: {alike.sum()} near-duplicates of measuring questions left out")
    return found[~alike], np.array(some.labels)[~alike]


if __name__ == "__main__":
    main()
