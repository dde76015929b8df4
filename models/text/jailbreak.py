"""Trains the jailbreak head: `python -m models.text.jailbreak --data DIR --work DIR [--without SET]`.

With `--without` a whole set of attacks is held out and measured; the figures of the card come from these. Seeded; goes
on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from models.text import dedupe
from models.text.branch import Branch
from models.text.encoder import Encoder, Window
from models.text.jailbreak_data import ATTACK_SETS, attack_rows, examples, threshold_rows
from models.text.known import unit
from models.text.sources import Row, rows
from models.text.states import States, states

STEPS = 420
BATCH = 28
RATE_OF_LAYER, RATE_OF_REST = 1e-4, 1e-3
WARM = 40
TRAINED = 0.5
"""Share of the trained layer in the one that is kept; the rest is the encoder's own. A set held out is found better
by the mean of the two than by what was fitted to the other sets (in-the-wild 0.79 against 0.63)."""
SMOOTH = 0.02
"""Labels are this much less than sure: collections hold a few texts that are no attacks."""

SHARES = {
    "jailbreak_inthewild": 0.36, "gptfuzzer": 0.08, "jailbreakbench_artifacts": 0.14,
    "jailbreak_dan_tap_autodan": 0.06,
    "own_direct": 0.18, "own_role_play": 0.08, "own_suffix": 0.10,
    "benign_instructions": 0.2, "gpteacher": 0.16, "clinc150": 0.04, "banking77": 0.03, "math_code_reasoning": 0.08,
    "mmlu_redux_subjects": 0.06, "harmful_requests": 0.08, "multijail": 0.06, "bipia": 0.06, "languages": 0.03,
    "security": 0.07, "quotations": 0.06, "python": 0.05, "near_misses": 0.04, "personas": 0.05,
}  # fmt: skip
"""How often a batch draws from a source, of attacks and of harmless texts each."""


class Trainer:
    """One training; `without` names a set that it must not see."""

    def __init__(self, data: Path, work: Path, without: str, seed: int) -> None:
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        self.file = work / "jailbreak" / f"{without or 'all'}-{seed}.pt"
        self.random = random.Random(seed)
        encoder = Encoder(work)
        self.examples = examples(data, encoder, 0)
        crops = [crop for example in self.examples for crop in example.crops]
        self.states = states(encoder, crops, work / "jailbreak" / "states")
        ends = np.cumsum([len(example.crops) for example in self.examples])
        self.places = [
            range(int(end) - len(each.crops), int(end)) for each, end in zip(self.examples, ends, strict=True)
        ]
        self.model = Branch()
        weights = load_file(encoder.folder / "model.safetensors")
        self.model.layer.begin_as(weights, 4)
        self.beginning = {name: value.clone() for name, value in self.model.layer.state_dict().items()}
        kept = self._kept(data, encoder, work, without)
        self.pools: dict[bool, dict[str, list[int]]] = {True: defaultdict(list), False: defaultdict(list)}
        for index in np.flatnonzero(kept):
            example = self.examples[index]
            if example.source != without:
                self.pools[example.attack][example.source].append(int(index))
        for attack, pools in self.pools.items():
            print(f"attack={attack}: " + ", ".join(f"{name} {len(pool)}" for name, pool in pools.items()), flush=True)

    def _kept(self, data: Path, encoder: Encoder, work: Path, without: str) -> NDArray[np.bool_]:
        """Examples that are no near-duplicates of what measures this training."""
        measuring = [row.text for row in rows(data, "tensor_trust")]
        vectors = [np.zeros((0, 384), np.float32)]
        if without:
            measuring += [row.text for row in attack_rows(data, without)]
            held, _ = measured(data, encoder, work, without)
            vectors.append(unit(held.means))
        else:
            for name in ("security_docs", "long_benign", "domain"):
                measuring += [row.text for row in rows(data, f"authored/{name}")]
        by_grams = dedupe.by_grams([example.text for example in self.examples], measuring)
        near = dedupe.by_cosine(unit(self.states.means), np.concatenate(vectors))
        by_cosine = np.array([near[list(place)].any() for place in self.places])
        alike = by_grams | by_cosine
        print(f"near-duplicates left out: {by_grams.sum()} by 8-grams, {by_cosine.sum()} by embedding", flush=True)
        return ~alike

    def run(self) -> Branch:
        """Train, from the last checkpoint on."""
        groups = [
            {"params": self.model.layer.parameters(), "lr": RATE_OF_LAYER},
            {"params": [*self.model.hidden.parameters(), *self.model.out.parameters()], "lr": RATE_OF_REST},
        ]
        optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: min((step + 1) / WARM, (STEPS - step) / (STEPS - WARM))
        )
        done, losses = self._resume(optimiser, schedule), []
        self.model.train()
        for step in range(done, STEPS):
            loss = self._loss()
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            losses.append(float(loss.detach()))
            if (step + 1) % 60 == 0 or step + 1 == STEPS:
                print(f"step {step + 1}: loss {np.mean(losses[-60:]):.4f}", flush=True)
                parts = {"model": self.model, "optimiser": optimiser, "schedule": schedule}
                state = {name: part.state_dict() for name, part in parts.items()}
                torch.save({**state, "step": step + 1, "random": self.random.getstate()}, self.file)
        trained = self.model.layer.state_dict()
        mixed = {name: TRAINED * value + (1 - TRAINED) * self.beginning[name] for name, value in trained.items()}
        self.model.layer.load_state_dict(mixed)
        return self.model.eval()

    def _resume(self, optimiser: torch.optim.Optimizer, schedule: torch.optim.lr_scheduler.LRScheduler) -> int:
        if not self.file.exists():
            return 0
        saved = torch.load(self.file, weights_only=False)
        self.model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        schedule.load_state_dict(saved["schedule"])
        self.random.setstate(saved["random"])
        return int(saved["step"])

    def _loss(self) -> Tensor:
        chosen = [self._draw(index < BATCH // 2) for index in range(BATCH)]
        crops = [crop for index in chosen for crop in self.places[index]]
        logits = logits_of(self.model, self.states, crops, 24)
        sizes = [len(self.places[index]) for index in chosen]
        highest = torch.stack([part.max() for part in logits.split(sizes)])
        wanted = torch.tensor([1 - SMOOTH if self.examples[index].attack else SMOOTH for index in chosen])
        return functional.binary_cross_entropy_with_logits(highest, wanted)

    def _draw(self, attack: bool) -> int:
        pools = self.pools[attack]
        names = list(pools)
        (name,) = self.random.choices(names, [SHARES[name] for name in names])
        return self.random.choice(pools[name])


def logits_of(model: Branch, known: States, indices: Sequence[int], batch: int = 32) -> Tensor:
    """(n,) of windows, computed in batches of alike lengths."""
    order = sorted(range(len(indices)), key=lambda at: int(known.offsets[indices[at] + 1] - known.offsets[indices[at]]))
    parts = []
    for start in range(0, len(order), batch):
        some = [indices[at] for at in order[start : start + batch]]
        pairs, there = known.batch(some)
        means, patterns = known.means[some].astype(np.float32), known.patterns[some]
        parts.append(model(*map(torch.from_numpy, (pairs, means, patterns, there)))[:, 0])
    back = torch.empty(len(order), dtype=torch.long)
    back[torch.tensor(order)] = torch.arange(len(order))
    return torch.cat(parts)[back]


def measured(data: Path, encoder: Encoder, work: Path, name: str) -> tuple[States, list[int]]:
    """States of all windows of a set's texts, and how many windows each text has; `threshold` for harmless ones."""
    several = threshold_rows(data) if name == "threshold" else evaluated(data, name)
    windows: list[list[Window]] = [encoder.windows(row.text) for row in several]
    store = work / "jailbreak" / "states"
    return states(encoder, [each for some in windows for each in some], store), [len(some) for some in windows]


def evaluated(data: Path, name: str) -> list[Row]:
    """All of a set's attacks; of JailbreakBench's, which are few templates, every third."""
    several = attack_rows(data, name)
    return several[::3] if name == "jailbreakbench_artifacts" else several


def greatest(model: Branch, known: States, sizes: Sequence[int]) -> NDArray[np.float64]:
    """Each text's greatest logit over its windows."""
    with torch.no_grad():
        logits = logits_of(model, known, range(sum(sizes)))
    return np.array([float(part.max()) for part in logits.split(list(sizes))])


def main() -> None:
    """Train once; write logits of what was held out and of what sets thresholds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--without", default="", choices=["", *ATTACK_SETS])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    trainer = Trainer(given.data, given.work, given.without, given.seed)
    model = trainer.run()
    torch.save(model.state_dict(), given.work / "jailbreak" / f"head-{given.without or 'all'}-{given.seed}.pt")
    encoder = Encoder(given.work)
    found = {}
    for name in ("threshold", *([given.without] if given.without else [])):
        found[name] = greatest(model, *measured(given.data, encoder, given.work, name))
    bound = float(np.quantile(found["threshold"], 0.99))
    out = {name: [round(float(value), 4) for value in values] for name, values in found.items()}
    (given.work / "jailbreak" / f"logits-{given.without or 'all'}-{given.seed}.json").write_text(json.dumps(out))
    for name, values in found.items():
        print(f"{name}: {(values > bound).mean():.3f} of {len(values)} above {bound:.3f}")


if __name__ == "__main__":
    main()
