"""Fit the tower's gate: what is strange to it gets low cosines with every text, whatever the text says.

    python -m models.vision.gate WEIGHTS... --data IMAGES/train --rendered RENDERED --work WORK --out gated.safetensors

The tower itself stays as it is. What it makes of collected and rendered images of known classes, of drawn pictures of
nothing (`models.rendering.nowhere`) and of photos made unrecognisable is computed once and kept in WORK; a small
network on it learns to tell the first two from the rest. The ragbag class is neither and is left out. `--judge` fits on
three quarters of the strange kinds at a time and says what happens to the others and to held-out images.
"""

from __future__ import annotations

import argparse
import io
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import save_file
from torch.nn import functional as fn

from models.rendering import SYSTEM_FONTS
from models.rendering.art import Art
from models.rendering.nowhere import NOWHERE

from .augment import PHOTOS, augmented, load, plain
from .bank import Bank, build
from .calibrate import calibrate
from .collection import KEPT_SHARE, Item, collected, rendered
from .figures import Floats
from .phrases import load as load_phrases
from .rejection import RAGBAG, WORDS, matched
from .text import TextTower
from .tower import QUIET, Gate, Tower
from .train import normalised
from .weights import averaged

SEED = 21
STEPS = 1500
KNOWN, STRANGE = 192, 128
RATE = 2e-3
DECAY = 0.3
DROPOUT = 0.4
NOISE = 0.3
VIEWS = {"real": 4, "rendered": 2, "strange": 2}
PER_KIND = 120
PER_PHOTO_KIND = 250
VOCABULARY = 2000
# Taken off the fitted logit: a stranger that matches harms less than a known image that no longer does. Chosen by
# `--judge` as the least at which held-out images lose at most a point.
LENIENCE = 1.5


@dataclass(frozen=True)
class Seen:
    """What the tower made of images: features for the gate, vectors before it, and each image's class or kind."""

    features: Floats
    vectors: Floats
    of: NDArray[np.str_]


def shuffled(image: Image.Image, rng: random.Random) -> Image.Image:
    """Its square pieces in any order, each turned."""
    n = rng.randint(4, 9)
    pieces = np.asarray(image.resize((n * 40, n * 40))).reshape(n, 40, n, 40, 3).swapaxes(1, 2).reshape(-1, 40, 40, 3)
    order = rng.sample(range(n * n), n * n)
    turned = np.stack([np.rot90(piece, rng.randrange(4)) for piece in pieces[order]])
    return Image.fromarray(turned.reshape(n, n, 40, 40, 3).swapaxes(1, 2).reshape(n * 40, n * 40, 3))


def phases(image: Image.Image, rng: random.Random) -> Image.Image:
    """Its waves, each shifted by chance: the same fineness and colours, and nothing to recognise."""
    values = np.asarray(image.resize((320, 320))).astype(float)
    noise = np.random.default_rng(rng.getrandbits(40)).normal(size=(320, 320))
    waves = np.fft.fft2(values, axes=(0, 1))
    waves[1:] *= np.exp(1j * np.angle(np.fft.fft2(noise))[1:])[..., None]
    mixed = np.fft.ifft2(waves, axes=(0, 1)).real
    mixed = (mixed - mixed.mean((0, 1))) / (mixed.std((0, 1)) + 1e-6) * values.std((0, 1)) + values.mean((0, 1))
    return Image.fromarray(np.clip(mixed, 0, 255).astype(np.uint8))


def mirrored(image: Image.Image, rng: random.Random) -> Image.Image:
    """One wedge of it, turned and mirrored about the middle."""
    values = np.asarray(image.resize((400, 400)))
    y, x = np.mgrid[-1:1:360j, -1:1:360j]
    turn = np.abs((np.arctan2(y, x) / (2 * np.pi) * rng.randint(3, 8)) % 1 - 0.5) * 2
    rows, columns = np.hypot(x, y) / 1.45 * 399, turn * rng.uniform(0.3, 0.9) * 399
    return Image.fromarray(values[rows.astype(int), columns.astype(int)])


UNRECOGNISABLE = {"shuffled photo": shuffled, "phases of a photo": phases, "mirrored photo": mirrored}


def strangers(photos: Sequence[Item]) -> dict[str, list[Item]]:
    """Images of nothing by kind, half of them as JPEG; labelled as the ragbag only to be augmented as photos are."""

    def kept(image: Image.Image, rng: random.Random) -> Item:
        out = io.BytesIO()
        if rng.random() < 0.5:
            image.save(out, "JPEG", quality=rng.randint(60, 95))
        else:
            image.save(out, "PNG", compress_level=1)
        return Item(out.getvalue(), RAGBAG, "stranger")

    found: dict[str, list[Item]] = {}
    for name, change in UNRECOGNISABLE.items():
        rng = random.Random(name)
        chosen = rng.sample(list(photos), min(PER_PHOTO_KIND, len(photos)))
        found[name] = [kept(change(load(item), rng), rng) for item in chosen]
    for name, draw in NOWHERE.items():
        rng = random.Random(f"x{name}")
        arts = [Art(random.Random(f"{name}:{seed}"), SYSTEM_FONTS) for seed in range(PER_KIND)]
        found[name] = [kept(draw(art).convert("RGB"), rng) for art in arts]
    return found


@torch.no_grad()
def look(tower: Tower, items: Sequence[Item], views: int, names: Sequence[str], file: Path) -> Seen:
    """Every item as it is, and augmented `views - 1` times; kept in a file."""
    if not file.exists():
        features, vectors = [], []
        for number, item in enumerate(items):
            seen = [plain(item)] + [augmented(item, SEED * 1_000_003 + number * 16 + view) for view in range(1, views)]
            both = tower.seen(normalised(np.stack(seen)))
            features.append(both[0].numpy())
            vectors.append(both[1].numpy())
            if number % 100 == 0:
                print(f"\r{file.stem}: {number}/{len(items)}", end="", flush=True)
        print()
        np.savez(file, features=np.concatenate(features), vectors=np.concatenate(vectors))
    stored = np.load(file)
    return Seen(stored["features"], stored["vectors"], np.repeat(np.array(names), views))


def quiet_directions(bank: Bank) -> Floats:
    """(QUIET, 384), orthonormal: where texts have next to nothing, be they phrases or single words of the vocabulary.

    In three of them MiniLM's vectors are zero by its weights; in the others their spread is the smallest.
    """
    tower = TextTower()
    words = sorted(word for word in tower.vocabulary() if word.isalpha() and len(word) > 2)
    words = random.Random(SEED).sample(words, VOCABULARY)
    parts = [bank.vectors.reshape(-1, bank.vectors.shape[-1]).astype(np.float64), tower.embed(words).astype(np.float64)]
    spread = sum(part.T @ part / len(part) for part in parts)
    _, directions = np.linalg.eigh(spread)
    quiet: Floats = directions[:, :QUIET].T.astype(np.float32)
    return quiet


def places(features: Floats) -> Floats:
    """(QUIET, f): the strongest components of standardised features, each with a spread of 1."""
    centred = features.astype(np.float64)
    _, sizes, components = np.linalg.svd(centred - centred.mean(0), full_matrices=False)
    found: Floats = (components[:QUIET] / (sizes[:QUIET, None] / len(features) ** 0.5)).astype(np.float32)
    return found


def fit(known: Seen, strange: Seen, rendered_from: int, quiet: Floats) -> Gate:
    """Known images are drawn by the root of their class's size; rendered ones, from `rendered_from` on, less often."""
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    gate = Gate(known.features.shape[1])
    mean, spread = known.features.mean(0), known.features.std(0) + 1e-3
    gate.get_buffer("mean").copy_(torch.from_numpy(mean))
    gate.get_buffer("scale").copy_(torch.from_numpy(1 / spread))
    gate.get_buffer("quiet").copy_(torch.from_numpy(quiet))
    standard = (np.concatenate([known.features, strange.features]) - mean) / spread
    gate.get_buffer("place").copy_(torch.from_numpy(places(standard[:: max(1, len(standard) // 6000)])))
    yes, no = torch.from_numpy(standard[len(known.of) :]), torch.from_numpy(standard[: len(known.of)])
    made = np.arange(len(known.of)) >= rendered_from
    _, group, count = np.unique(np.char.add(known.of, np.where(made, "*", "")), return_inverse=True, return_counts=True)
    chance = np.where(made, 0.7, 1.0) / np.sqrt(count[group])
    optimiser = torch.optim.AdamW(gate.parameters(), lr=RATE, weight_decay=DECAY)
    truth = torch.cat([torch.zeros(KNOWN), torch.ones(STRANGE)])[:, None] * 0.96 + 0.02
    for step in range(STEPS):
        for settings in optimiser.param_groups:
            settings["lr"] = RATE * 0.5 * (1 + np.cos(np.pi * step / STEPS))
        first = torch.from_numpy(rng.choice(len(no), KNOWN, p=chance / chance.sum()))
        second = torch.from_numpy(rng.integers(0, len(yes), STRANGE))
        seen = torch.cat([no[first], yes[second]])
        seen = fn.dropout(seen + NOISE * torch.randn_like(seen), DROPOUT)
        loss = fn.binary_cross_entropy_with_logits(gate.logit(seen), truth)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        gate.fc2.bias.sub_(LENIENCE)
    return gate.eval()


@torch.no_grad()
def turned(gate: Gate, seen: Seen) -> Floats:
    """The vectors behind the gate."""
    vectors: Floats = gate(torch.from_numpy(seen.features), torch.from_numpy(seen.vectors)).numpy()
    return vectors


def told(gate: Gate | None, held_out: Seen, strange: Seen, bank: Bank) -> str:
    """What a calibrated gate does: own classes that match at a half, and strange images that match nothing."""
    known = [name for name in bank.names if name != RAGBAG]
    row = {phrase: index for index, phrase in enumerate(bank.phrases)}
    phrases = load_phrases().classes
    asked = np.stack([[bank.vectors[row[phrase], 0] for phrase in phrases[name][:WORDS]] for name in known])
    ours, theirs = (turned(gate, seen) if gate else seen.vectors for seen in (held_out, strange))
    general = np.ones(len(bank.group), dtype=bool)
    general[list(bank.only_kinds)] = False
    labels = np.array([bank.names.index(name) for name in held_out.of])
    fitted = calibrate(ours, labels, bank.vectors[general, 0], bank.group[general])
    yes = matched(ours, asked, fitted.scale, fitted.bias)
    own = [yes[index, known.index(name)] for index, name in enumerate(held_out.of) if name in known]
    nothing = matched(theirs, asked, fitted.scale, fitted.bias).sum(1) == 0
    kinds = {str(kind): float(nothing[strange.of == kind].mean()) for kind in np.unique(strange.of)}
    listed = ", ".join(f"{kind} {share:.2f}" for kind, share in kinds.items())
    return (
        f"scale {fitted.scale:.2f} bias {fitted.bias:.2f}: own class {np.mean(own):.3f} of {len(own)}, "
        f"strange ones match nothing {np.mean(list(kinds.values())):.3f} ({listed})"
    )


def gated(arguments: argparse.Namespace) -> None:
    """Look, fit, write; or judge."""
    torch.set_num_threads(1)
    work: Path = arguments.work
    work.mkdir(parents=True, exist_ok=True)
    tower = averaged(arguments.weights)
    bank = build(load_phrases(), arguments.cache or work)
    every, held_out = collected(arguments.data, KEPT_SHARE)
    real = [item for item in every if item.label != RAGBAG]
    made = [item for item in rendered(arguments.rendered) if item.label != RAGBAG]
    photos = [item for item in real if item.label in PHOTOS]
    parts = [
        look(tower, items, VIEWS[name], [item.label for item in items], work / f"{name}.npz")
        for name, items in (("real", real), ("rendered", made))
    ]
    known = Seen(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("features", "vectors", "of")))
    drawn = strangers(photos) if not (work / "strange.npz").exists() else {}
    kinds = [*UNRECOGNISABLE, *NOWHERE]
    counts = [PER_PHOTO_KIND if kind in UNRECOGNISABLE else PER_KIND for kind in kinds]
    listed = [item for kind in kinds for item in drawn.get(kind, [])]
    strange = look(tower, listed, VIEWS["strange"], np.repeat(np.array(kinds), counts).tolist(), work / "strange.npz")
    kept = look(tower, held_out, 1, [item.label for item in held_out], work / "held-out.npz")
    quiet = quiet_directions(bank)
    print("no gate:", told(None, kept, strange, bank))
    if arguments.judge:
        order = random.Random(SEED).sample(kinds, len(kinds))
        for quarter in range(4):
            away = np.isin(strange.of, order[quarter::4])
            sides = [Seen(strange.features[side], strange.vectors[side], strange.of[side]) for side in (~away, away)]
            gate = fit(known, sides[0], len(parts[0].of), quiet)
            print(f"without quarter {quarter}:", told(gate, kept, sides[1], bank), flush=True)
        return
    tower.gate = fit(known, strange, len(parts[0].of), quiet)
    print("all kinds:", told(tower.gate, kept, strange, bank))
    tensors = {name: tensor.contiguous() for name, tensor in tower.state_dict().items() if tensor.is_floating_point()}
    save_file(tensors, str(arguments.out))


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="+", help="runs, average-N.pt or .safetensors; their mean is taken")
    parser.add_argument("--data", type=Path, required=True, help="the collected images that the run used")
    parser.add_argument("--rendered", type=Path, required=True, help="what `python -m models.vision.prepare` made")
    parser.add_argument("--work", type=Path, required=True, help="what the tower makes of them is kept here")
    parser.add_argument("--cache", type=Path, help="embeddings of the phrases (default: WORK)")
    parser.add_argument("--out", type=Path, help="a weights file for `models.vision.export`")
    parser.add_argument("--judge", action="store_true", help="hold strange kinds out instead of writing")
    arguments = parser.parse_args()
    if not arguments.out and not arguments.judge:
        parser.error("--out or --judge")
    gated(arguments)


if __name__ == "__main__":
    main()
