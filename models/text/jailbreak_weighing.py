"""Weighs what the `jailbreak` signal knows: `python -m models.text.jailbreak_weighing --data DIR --work DIR`.

Fits what the signal's method `combined` computes for a segment, from likeness, turns of phrase and the head, on each
text's best segment, and prints the constants that `router/signals/jailbreak_scoring.py` keeps. Needs
`models.text.jailbreak` for everything and once without each set, and `models.text.jailbreak_finish`. Figures are of
sets that took part neither in the head that judged them nor in the weighing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from models.text.branch import Branch
from models.text.calibrate import reliability, share, sigmoid, threshold
from models.text.encoder import Encoder
from models.text.jailbreak import logits_of
from models.text.jailbreak_data import ATTACK_SETS
from models.text.jailbreak_sets import ATTACKS, HARMLESS, attack_texts, diluted_texts, harmless_texts
from models.text.known import unit
from models.text.states import States, states
from router.signals.jailbreak_anchors import ATTACKS as ATTACK_ANCHORS
from router.signals.jailbreak_anchors import CONTRASTS
from router.signals.jailbreak_patterns import PATTERNS
from router.signals.jailbreak_scoring import (
    DOUBTFUL,
    PART_BYTES,
    SEGMENT_BYTES,
    SURELY,
    WITHOUT_HEAD,
    groups_in,
    log_odds,
    nearest,
)
from router.signals.texts import Segment, parts, segments, stretches, visible

Floats = NDArray[np.float64]

PRIOR = 0.4
"""Share of attacks among the texts that a score is calibrated for."""

DECAY, DECAY_OF_LIKENESS = 2e-4, 1e-4
HALF = 0.5
"""Weights are drawn towards so much of what they are without a head: sources of attacks are few, and those of texts
that are alike many."""
ROUNDS = 6
GROUPS = tuple(PATTERNS)


@dataclass(frozen=True, slots=True)
class Text:
    """Places of a text's segments among all of its set, and of each one's parts."""

    whole: range
    parts: Mapping[int, range]


@dataclass(frozen=True, slots=True)
class Set:
    """Texts as segments: what is known of each segment (s, 2 + groups), and its states, which heads judge."""

    texts: Sequence[Text] = field(repr=False)
    known: Floats = field(repr=False)
    states: States = field(repr=False)


class Reader:
    """Cuts texts as the signal does, and measures the segments."""

    def __init__(self, work: Path) -> None:
        self._encoder = Encoder(work)
        self._store = work / "jailbreak" / "states"
        self._anchors = [unit(self._states(list(some)).means) for some in (ATTACK_ANCHORS, CONTRASTS)]

    def read(self, texts: Sequence[str]) -> Set:
        """A set, with the parts of every segment that has some."""
        flat: list[str] = []
        places = []
        for text in texts:
            own = asyncio.run(_cut(text))
            whole = range(len(flat), len(flat) + len(own))
            flat += [segment.text for segment in own]
            smaller = {}
            for at, segment in zip(whole, own, strict=True):
                some = parts(segment, PART_BYTES)
                smaller[at] = range(len(flat), len(flat) + len(some))
                flat += [part.text for part in some]
            places.append(Text(whole, smaller))
        found = self._states(flat)
        vectors = unit(found.means)
        near = [nearest(vectors, anchors) for anchors in self._anchors]
        groups = np.array([[name in groups_in(text) for name in GROUPS] for text in flat], np.float64)
        return Set(places, np.concatenate([np.stack(near, 1), groups], 1), found)

    def _states(self, texts: Sequence[str]) -> States:
        return states(self._encoder, [self._encoder.windows(text)[0] for text in texts], self._store)


async def _cut(text: str) -> list[Segment]:
    found = [segment async for segment in segments(stretches(text, visible), SEGMENT_BYTES)]
    return found or [Segment(text, None)]


def described(some: Set, head: Branch, scale: float, bias: float) -> Floats:
    """(s, 3 + groups): what the weights stand for, in order: both likenesses, groups, the head's log-odds."""
    with torch.no_grad():
        logits = logits_of(head, some.states, range(len(some.known))).numpy()
    told = log_odds(sigmoid(scale * logits + bias))
    return np.concatenate([some.known, told[:, None]], 1)


def best(texts: Sequence[Text], odds: Floats) -> NDArray[np.int64]:
    """The place (n,) of each text's most suspicious segment, or part of a doubtful one."""
    least, most = log_odds(np.array(DOUBTFUL))
    found = []
    for text in texts:
        seen = [*text.whole]
        for at in text.whole:
            if least <= odds[at] < most:
                seen += text.parts[at]
        found.append(seen[int(odds[seen].argmax())])
    return np.array(found)


def odds_of(features: Floats, weights: Floats) -> Floats:
    """(s,) of weights whose last one is the bias."""
    found: Floats = features @ weights[:-1] + weights[-1]
    return found


def weigh(sets: Mapping[str, tuple[Set, Floats, bool, float]]) -> Floats:
    """Weights of the features and the bias; each set with its features, whether it is one of attacks, and its share."""
    by = WITHOUT_HEAD
    alone = np.array([by.likeness, -by.likeness * by.contrast, *(by.groups[name] for name in GROUPS)])
    centre = np.concatenate([alone * HALF, [0, 0]])
    weights = np.concatenate([alone * HALF, [0.7, by.bias]])
    for number in range(ROUNDS):
        rows, targets, counts = [], [], []
        for some, features, attack, each in sets.values():
            total = sum(other[3] for other in sets.values() if other[2] == attack)
            chosen = best(some.texts, odds_of(features, weights))
            rows.append(features[chosen])
            targets.append(np.full(len(chosen), float(attack)))
            side = PRIOR if attack else 1 - PRIOR
            counts.append(np.full(len(chosen), side * each / total / len(chosen)))
        found = _fitted(*map(np.concatenate, (rows, targets, counts)), weights, centre)
        found[1] = min(found[1], 0.0)
        found[2:-1] = np.maximum(found[2:-1], 0.0)
        weights = found if number else (weights + found) / 2
    return weights


def _fitted(rows: Floats, targets: Floats, counts: Floats, begin: Floats, centre: Floats) -> Floats:
    x, y, share_of = (torch.tensor(each, dtype=torch.float64) for each in (rows, targets, counts))
    weights = torch.tensor(begin, dtype=torch.float64, requires_grad=True)
    middle = torch.tensor(centre)
    held = torch.tensor([*[DECAY_OF_LIKENESS] * 2, *[DECAY] * len(GROUPS), 0.0, 0.0], dtype=torch.float64)
    optimiser = torch.optim.LBFGS([weights], max_iter=300, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        odds = x @ weights[:-1] + weights[-1]
        each = functional.binary_cross_entropy_with_logits(odds, y, reduction="none")
        loss = (each * share_of).sum() + (held * (weights - middle).square()).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    return weights.detach().numpy().copy()


class Judged:
    """All sets as each head judges them."""

    def __init__(self, data: Path, work: Path, seed: int) -> None:
        folder, reader = work / "jailbreak", Reader(work)
        numbers = json.loads((folder / "calibration.json").read_text())
        attacks = attack_texts(data)
        self.attacks = {name: reader.read(texts) for name, texts in attacks.items()}
        self.harmless = {name: reader.read(texts) for name, texts in harmless_texts(data).items()}
        self.diluted = {name: reader.read(texts) for name, texts in diluted_texts(attacks).items()}
        self._features: dict[tuple[str, int], Floats] = {}
        self._heads = {}
        for name in ("all", *ATTACK_SETS):
            self._heads[name] = Branch().eval()
            self._heads[name].load_state_dict(torch.load(folder / f"head-{name}-{seed}.pt"))
        self._scale, self._bias = numbers["scale"], numbers["bias"]

    def features(self, some: Set, head: str) -> Floats:
        """See `described`; computed once."""
        key = (head, id(some))
        if key not in self._features:
            self._features[key] = described(some, self._heads[head], self._scale, self._bias)
        return self._features[key]

    def weights(self, without: str = "") -> Floats:
        """Fitted to all sets but one, each judged by a head that did not see it; harmless texts by these in turns."""
        given = {}
        for name, some in self.attacks.items():
            if name != without:
                head = name if name in ATTACK_SETS else without or "all"
                given[f"+{name}"] = (some, self.features(some, head), True, ATTACKS[name][1])
        for name, some in self.harmless.items():
            by_head = [self.features(some, head) for head in ATTACK_SETS]
            mixed = by_head[0].copy()
            for number, text in enumerate(some.texts):
                own = [*text.whole, *(at for each in text.parts.values() for at in each)]
                mixed[own] = by_head[number % len(by_head)][own]
            given[f"-{name}"] = (some, mixed, False, HARMLESS[name][1])
        return weigh(given)

    def odds(self, some: Set, head: str, weights: Floats) -> Floats:
        """(n,): each text's."""
        found = odds_of(self.features(some, head), weights)
        return found[best(some.texts, found)]


def figures(judged: Judged) -> dict[str, Any]:
    """Each set of attacks held out of both, at 1 % of harmless requests; what is flagged then; reliability."""
    found: dict[str, Any] = {"held out": {}}
    ups, downs = [], []
    for name in ATTACK_SETS:
        weights = judged.weights(name)
        down = sigmoid(judged.odds(judged.harmless["threshold"], name, weights))
        up = sigmoid(judged.odds(judged.attacks[name], name, weights))
        bound = threshold(down)
        found["held out"][name] = share(int((up >= bound).sum()), len(up)) | {"threshold": round(bound, 3)}
        for other, some in judged.harmless.items():
            told = sigmoid(judged.odds(some, name, weights))
            found.setdefault(f"flagged, {other}", []).append(round(float((told >= bound).mean()), 3))
        for other, some in judged.diluted.items():
            told = sigmoid(judged.odds(some, name, weights))
            found.setdefault(f"found, {other}", []).append(round(float((told >= bound).mean()), 3))
        ups.append(up)
        downs.append(down)
    most = max(map(len, ups))
    up, down = np.concatenate([np.resize(each, most) for each in ups]), np.concatenate(downs)
    hits = np.concatenate([np.ones(len(up), bool), np.zeros(len(down), bool)])
    counts = np.where(hits, PRIOR / len(up), (1 - PRIOR) / len(down))
    table = reliability(np.concatenate([up, down]), hits, counts)
    found["reliability"] = [[round(p, 3), round(right, 3), n] for p, right, n in table]
    return found


def main() -> None:
    """Print the constants and the figures; `jailbreak/weighing.json` keeps them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    judged = Judged(given.data, given.work, given.seed)
    weights = judged.weights()
    constants = {
        "likeness": weights[0], "contrast": -weights[1] / weights[0],
        **dict(zip(GROUPS, weights[2:-2], strict=True)), "head": weights[-2], "bias": weights[-1],
    }  # fmt: skip
    down = sigmoid(judged.odds(judged.harmless["threshold"], "all", weights))
    out = {
        "constants": {name: round(float(value), 3) for name, value in constants.items()},
        "threshold": round(threshold(down), 4),
        "surely": SURELY,
        **figures(judged),
    }
    (given.work / "jailbreak" / "weighing.json").write_text(json.dumps(out, indent=1) + "\n")
    for name, value in out.items():
        print(f"{name}: {json.dumps(value)}")


if __name__ == "__main__":
    main()
