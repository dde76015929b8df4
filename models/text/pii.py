"""Trains the pii head: `python -m models.text.pii --data DIR --work DIR`. Seeded; the encoder's states stay on disk."""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from models.text.calibrate import temperature, threshold
from models.text.encoder import LAYERS, WIDTH, Encoder, Window
from models.text.pii_data import LABELS, Marked, own, plain, presidio, seen, seen_aside, unseen_plain
from models.text.tagger import Tagger
from router.inference.head_features import SHAPES, token_shapes

EPOCHS = 14
BATCH = 48
RATE = 1.5e-3
IGNORED = -100
NO_PERSON = -1
"""Of tokens that may be anything but a person."""

PERSON = LABELS.index("PERSON")


class Set:
    """Texts with their states and labels, ready to be drawn in batches."""

    def __init__(self, encoder: Encoder, marked: Sequence[Marked], file: Path) -> None:
        self.windows = [encoder.windows(each.text)[0] for each in marked]
        self.labels = [labels_of(window, each) for window, each in zip(self.windows, marked, strict=True)]
        self.hidden = _states(encoder, self.windows, file)
        ends = np.cumsum([len(window.ids) + 2 for window in self.windows])
        self.places = [slice(int(end) - len(w.ids) - 2, int(end)) for end, w in zip(ends, self.windows, strict=True)]

    def batch(self, indices: Sequence[int]) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
        """Hidden states by depth, shapes, which tokens are there, labels."""
        longest = max(len(self.windows[index].ids) for index in indices) + 2
        hidden = np.zeros((len(LAYERS), len(indices), longest, WIDTH), np.float32)
        shapes = np.zeros((len(indices), longest, SHAPES), np.float32)
        there = np.zeros((len(indices), longest), np.float32)
        labels = np.full((len(indices), longest), IGNORED, np.int64)
        for row, index in enumerate(indices):
            window, size = self.windows[index], len(self.windows[index].ids)
            hidden[:, row, : size + 2] = self.hidden[:, self.places[index]]
            shapes[row, 1 : size + 1] = token_shapes(window.text, window.ranges)
            there[row, : size + 2] = 1
            labels[row, 1 : size + 1] = self.labels[index]
        tensors = [torch.from_numpy(each) for each in hidden]
        return tensors, torch.from_numpy(shapes), torch.from_numpy(there), torch.from_numpy(labels)


def labels_of(window: Window, marked: Marked) -> NDArray[np.int64]:
    """Each token's label: that of the stretch that it lies in, at least in part."""
    labels = np.full(len(window.ids), NO_PERSON if marked.people_only else 0, np.int64)
    for start, end in marked.unsure:
        labels[(window.ranges[:, 0] < end) & (window.ranges[:, 1] > start)] = IGNORED
    for start, end, kind in marked.spans:
        labels[(window.ranges[:, 0] < end) & (window.ranges[:, 1] > start)] = LABELS.index(kind)
    return labels


def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean over the tokens (n) of logits (n, labels): cross entropy, or that of "no person" where it is told."""
    told, other = labels >= 0, labels == NO_PERSON
    exact = functional.cross_entropy(logits[told], labels[told], label_smoothing=0.02, reduction="sum")
    people = torch.log_softmax(logits[other], -1)[:, PERSON].clamp(max=-1e-4)
    return (exact - torch.log1p(-people.exp()).sum()) / (told | other).sum()


def _states(encoder: Encoder, windows: Sequence[Window], file: Path) -> NDArray[np.float16]:
    """(layers, tokens, 384) of all windows one behind the other; other windows than before are computed anew."""
    digest = hashlib.sha256(b"".join(window.ids.tobytes() + b"." for window in windows)).hexdigest()
    file = file.with_name(f"{file.stem}-{digest[:16]}.npy")
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        ends = np.cumsum([len(window.ids) + 2 for window in windows])
        states = np.zeros((len(LAYERS), int(ends[-1]), WIDTH), np.float16)
        for index, hidden in encoder.hidden(windows):
            size = len(windows[index].ids) + 2
            for depth, layer in enumerate(LAYERS):
                states[depth, ends[index] - size : ends[index]] = hidden[layer]
        part = file.with_suffix(".part.npy")
        np.save(part, states)
        part.replace(file)
    return np.load(file, mmap_mode="r")


def train(data: Path, work: Path, seed: int) -> Tagger:
    """The head; its learning rate falls to nothing over the epochs."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    random_ = random.Random(seed)
    encoder = Encoder(work)
    marked = presidio(data, "train") + own(data, 1300, seed) + plain(data, seed) + seen(data)
    train_set = Set(encoder, marked, work / "pii" / "train.npy")
    model = Tagger(len(LABELS))
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.02)
    steps = EPOCHS * -(-len(marked) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min((step + 1) / 50, 1 - step / steps))
    model.train()
    for epoch in range(EPOCHS):
        losses = []
        for indices in _batches(train_set.windows, random_):
            hidden, shapes, there, labels = train_set.batch(indices)
            logits = model(hidden, shapes, there)
            loss = loss_of(logits.flatten(0, 1), labels.flatten())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            losses.append(float(loss.detach()))
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}", flush=True)
    return model.eval()


def _batches(windows: Sequence[Window], random_: random.Random) -> list[list[int]]:
    """Batches of texts of alike lengths, in a drawn order."""
    order = sorted(range(len(windows)), key=lambda index: len(windows[index].ids) + random_.random() * 8)
    batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
    random_.shuffle(batches)
    return batches


def threshold_of(model: Tagger, encoder: Encoder, data: Path, work: Path, divisor: float) -> float:
    """The bound that one in a hundred harmless texts reaches where nobody stands; none of them trained.

    Texts without names, and real requests with the people in them left out.
    """
    plain = Set(encoder, unseen_plain(data), work / "pii" / "plain.npy")
    aside = Set(encoder, seen_aside(data), work / "pii" / "aside.npy")
    surest = [*_surest(model, plain, divisor, slice(1, None)), *_surest(model, aside, divisor, slice(PERSON, None))]
    return min(max(threshold(np.array(surest)), 0.5), 0.95)


def _surest(model: Tagger, held: Set, divisor: float, kinds: slice) -> list[float]:
    """Each text's highest probability of one of the kinds, over tokens that are none."""
    found: list[float] = []
    for start in range(0, len(held.windows), BATCH):
        hidden, shapes, there, labels = held.batch(range(start, min(start + BATCH, len(held.windows))))
        with torch.no_grad():
            shares = torch.softmax(model(hidden, shapes, there) / divisor, -1)[:, :, kinds].amax(2)
        none = (labels == 0) | (labels == NO_PERSON)
        found += shares.masked_fill(~none, 0.0).amax(1).tolist()
    return found


def main() -> None:
    """Train, calibrate on templates that did not train, and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    model = train(given.data, given.work, given.seed)
    encoder = Encoder(given.work)
    held = Set(encoder, presidio(given.data, "calibrate"), given.work / "pii" / "calibrate.npy")
    with torch.no_grad():
        hidden, shapes, there, labels = held.batch(range(len(held.windows)))
        logits = model(hidden, shapes, there).flatten(0, 1)
    kept = labels.flatten() != IGNORED
    found = temperature(logits[kept].numpy(), labels.flatten()[kept].numpy())
    right = (logits[kept].argmax(1) == labels.flatten()[kept]).float().mean()
    print(f"held-out templates: {right:.4f} of {int(kept.sum())} tokens right, temperature {found:.3f}")
    torch.save(model.state_dict(), given.work / "pii" / "head.pt")
    bound = threshold_of(model, encoder, given.data, given.work, found)
    (given.work / "pii" / "calibration.json").write_text(
        json.dumps({"temperature": round(found, 4), "threshold": round(bound, 4)})
    )
    print(f"threshold {bound:.3f}")


if __name__ == "__main__":
    main()
