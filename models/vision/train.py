"""Train the image tower against the locked text tower with SigLIP's sigmoid loss.

    python -m models.vision.train --data IMAGES/train --rendered RENDERED --run RUN1
    python -m models.vision.train --data IMAGES/train --rendered RENDERED --run RUN2 --stage second --start RUN1

Every pair of an image and a phrase is a yes or a no; all phrases of an image's class are yes. A softmax over classes,
each stood for by a few phrases drawn anew at every step, helps beside it. Stops and resumes at checkpoints.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as fn

from .augment import SIZE, augmented, plain
from .bank import DISTRACTOR, Bank, build
from .collection import HOLD_OUT_SHARE, KEPT_SHARE, Item, by_label, collected, rendered
from .phrases import load
from .sources import trunk_weights
from .tower import MEAN, STD, Tower
from .weights import read_weights, take

# Classes that a first tower confused, or that have few or uniform images: drawn more often than the others.
EMPHASIS = {
    "terminal_screenshot": 1.8,
    "code_screenshot": 1.5,
    "pcb_electronics": 1.6,
    "other": 1.5,
    "product": 1.3,
    "food": 1.2,
    "semiconductor_wafer": 1.2,
    "document_page": 1.5,
    "receipt_invoice": 1.5,
    "passport_or_id": 1.5,
    "ui_screenshot": 1.2,
    "payment_card": 0.4,
    "chart_plot": 1.4,
    "stranger": 5.0,
}
# How often a draw of the class takes a rendered image. Photos are hard to render, screens and papers are not.
RENDERED_SHARE = {
    "passport_or_id": 0.8,
    "code_screenshot": 0.5,
    "terminal_screenshot": 0.55,
    "ui_screenshot": 0.3,
    "receipt_invoice": 0.5,
    "chart_plot": 0.25,
    "table": 0.3,
    "diagram": 0.3,
    "document_page": 0.35,
    "handwriting": 0.3,
    "map": 0.2,
    "chest_xray": 0.25,
    "other_medical": 0.3,
    "pcb_electronics": 0.35,
    "semiconductor_wafer": 0.2,
    "vehicle": 0.08,
    "person_face": 0.06,
    "landscape": 0.08,
    "building": 0.08,
    "food": 0.04,
    "product": 0.08,
    "other": 0.4,
    "payment_card": 1.0,
}


@dataclass(frozen=True)
class Settings:
    """What a run depends on, besides its data."""

    steps: int = 1100
    # Where the run ends; before `steps` if another stage follows and its rate need not fall all the way.
    stop: int = 700
    batch: int = 48
    warmup: int = 100
    trunk_rate: float = 3e-4
    head_rate: float = 1e-3
    decay: float = 0.02
    ema: float = 0.997
    text_noise: float = 0.25
    mixup: float = 0.3
    class_loss: float = 1.0
    seed: int = 1
    # Share of the run up to which a size is trained; small images first, which costs half and loses little.
    sizes: tuple[tuple[float, int], ...] = ((0.5, 160), (0.75, 192), (1.0, 224))
    # For half of the run the edge detectors of ImageNet stay as they are: they cost most and change least.
    frozen_blocks: int = 5
    frozen_share: float = 0.5
    # Share of the collected images that is held out.
    kept: float = HOLD_OUT_SHARE

    def size(self, step: int) -> int:
        """The image size at this step."""
        return next(size for share, size in self.sizes if step < share * self.steps or share == 1.0)


# The first stage makes ImageNet's trunk land near the phrases, mostly on small images; the second goes on from its
# averaged weights at the sizes that are served, the trunk's first blocks frozen throughout.
STAGES = {
    "first": Settings(),
    "second": Settings(
        steps=850,
        stop=850,
        warmup=60,
        trunk_rate=2e-4,
        head_rate=6e-4,
        seed=2,
        sizes=((0.6, 192), (1.0, 224)),
        frozen_share=1.0,
    ),
    "third": Settings(
        steps=330,
        stop=330,
        warmup=40,
        trunk_rate=1.5e-4,
        head_rate=4e-4,
        ema=0.99,
        mixup=0.4,
        seed=3,
        sizes=((0.4, 224), (1.0, 256)),
        frozen_share=1.0,
        kept=KEPT_SHARE,
    ),
    "fourth": Settings(
        steps=360,
        stop=360,
        warmup=20,
        trunk_rate=8e-5,
        head_rate=2.5e-4,
        ema=0.99,
        seed=4,
        sizes=((1.0, 256),),
        frozen_share=1.0,
        kept=KEPT_SHARE,
    ),
}


@dataclass(frozen=True)
class Batch:
    """Images with what is true of them."""

    pixels: NDArray[np.uint8]
    target: NDArray[np.float32]
    weight: NDArray[np.float32]
    labels: NDArray[np.int64]


class Draws:
    """Batch number n is a function of the seed and n alone, whatever threads make it."""

    def __init__(self, real: Sequence[Item], made: Sequence[Item], bank: Bank, settings: Settings) -> None:
        self._real, self._made = by_label(real), by_label(made)
        self._bank, self._settings = bank, settings
        self._labels = sorted(set(self._real) | set(self._made))
        sizes = [math.sqrt(len(self._real.get(label, [])) + 40) * EMPHASIS.get(label, 1.0) for label in self._labels]
        self._chances = [size / sum(sizes) for size in sizes]

    def _one(self, rng: random.Random) -> Item:
        label = rng.choices(self._labels, self._chances)[0]
        real, made = self._real.get(label, []), self._made.get(label, [])
        take_made = made and (not real or rng.random() < RENDERED_SHARE.get(label, 0.2))
        return rng.choice(made if take_made else real)

    def batch(self, number: int) -> Batch:
        """Make batch `number`."""
        rng = random.Random(self._settings.seed * 1_000_003 + number)
        items = [self._one(rng) for _ in range(self._settings.batch)]
        size = self._settings.size(number)
        pixels = np.stack([augmented(item, rng.getrandbits(48), size) for item in items])
        truths = [self._bank.truth(item.label, item.kind) for item in items]
        labels = np.array([self._bank.names.index(item.label) for item in items])
        return Batch(pixels, np.stack([t for t, _ in truths]), np.stack([w for _, w in truths]), labels)

    def stream(self, start: int, end: int, threads: int = 1, ahead: int = 6) -> Iterator[Batch]:
        """Batches in order, made ahead by threads."""
        with ThreadPoolExecutor(threads) as pool:
            waiting: list[Future[Batch]] = []
            for number in range(start, end + ahead):
                if number < end:
                    waiting.append(pool.submit(self.batch, number))
                if len(waiting) > ahead or number >= end:
                    yield waiting.pop(0).result()
                    if not waiting:
                        return


class Losses(nn.Module):
    """SigLIP's pairwise loss over the whole bank, and the class loss on the side."""

    def __init__(self, bank: Bank, settings: Settings) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(math.log(10.0)))
        self.bias = nn.Parameter(torch.tensor(-5.0))
        self.class_scale = nn.Parameter(torch.tensor(math.log(15.0)))
        self._settings = settings
        self._vectors = torch.from_numpy(bank.vectors)
        self._group = torch.from_numpy(bank.group)
        self._rows = [np.flatnonzero(bank.group == index) for index in range(len(bank.names))]
        groups = bank.group.copy()
        groups[groups == DISTRACTOR] = len(bank.names)
        # Each class weighs the same, however many phrases it has.
        counts = np.bincount(groups)
        self._pair_weight = torch.from_numpy((1.0 / counts[groups]).astype(np.float32))

    def _texts(self, rng: np.random.Generator) -> Tensor:
        choice = torch.from_numpy(rng.integers(0, self._vectors.shape[1], self._vectors.shape[0]))
        texts = self._vectors[torch.arange(len(choice)), choice]
        noise = (
            torch.from_numpy(rng.standard_normal(texts.shape, dtype=np.float32))
            * self._settings.text_noise
            / math.sqrt(384)
        )
        return fn.normalize(texts + noise, dim=-1)

    def forward(
        self, images: Tensor, target: Tensor, weight: Tensor, classes: Tensor, rng: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """The pairwise loss and the class loss."""
        texts = self._texts(rng)
        logits = images @ texts.T * self.scale.exp() + self.bias
        pairs = fn.binary_cross_entropy_with_logits(logits, target, reduction="none") * weight * self._pair_weight
        sigmoid = pairs.sum() / len(images)
        few = int(rng.integers(1, 9))
        chosen = [rng.choice(rows, min(few, len(rows)), replace=False) for rows in self._rows]
        stood_for = torch.stack([fn.normalize(texts[torch.from_numpy(rows)].mean(0), dim=-1) for rows in chosen])
        scores = images @ stood_for.T * self.class_scale.exp()
        smooth = classes * 0.95 + 0.05 / classes.shape[1]
        by_class = -(smooth * fn.log_softmax(scores, dim=-1)).sum(-1).mean()
        return sigmoid, by_class


def normalised(pixels: NDArray[np.uint8]) -> Tensor:
    """Bytes to what the tower takes."""
    values = torch.from_numpy(pixels).permute(0, 3, 1, 2).float()
    return ((values - MEAN) / STD).contiguous(memory_format=torch.channels_last)


@torch.no_grad()
def embed_images(tower: Tower, items: Sequence[Item], size: int = SIZE) -> NDArray[np.float32]:
    """Without augmentation, as served."""
    tower.eval()
    parts = []
    for start in range(0, len(items), 32):
        pixels = np.stack([plain(item, size) for item in items[start : start + 32]])
        parts.append(tower(normalised(pixels)).float().numpy())
    return np.concatenate(parts)


def prototypes(bank: Bank) -> NDArray[np.float32]:
    """The mean of the phrases of each class."""
    means = np.stack([bank.vectors[bank.group == index, 0].mean(0) for index in range(len(bank.names))])
    unit: NDArray[np.float32] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return unit


def held_out_score(tower: Tower, bank: Bank, items: Sequence[Item]) -> tuple[float, float]:
    """Accuracy and its mean over classes."""
    scores = embed_images(tower, items) @ prototypes(bank).T
    truth = np.array([bank.names.index(item.label) for item in items])
    right = scores.argmax(1) == truth
    return float(right.mean()), float(np.mean([right[truth == index].mean() for index in np.unique(truth)]))


def keep_memory() -> None:
    """Have glibc keep freed tensors instead of giving them back: page faults cost a third of a step otherwise."""
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(-4, 0)  # M_MMAP_MAX
    mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def rate(step: int, settings: Settings) -> float:
    """Warm up, then half a cosine."""
    if step < settings.warmup:
        return (step + 1) / settings.warmup
    done = (step - settings.warmup) / max(1, settings.steps - settings.warmup)
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def _mixed(
    batch: Batch, classes: int, chance: float, rng: np.random.Generator
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    pixels = normalised(batch.pixels)
    target, weight = torch.from_numpy(batch.target), torch.from_numpy(batch.weight)
    labels = fn.one_hot(torch.from_numpy(batch.labels), classes).float()
    if rng.random() >= chance:
        return pixels, target, weight, labels
    other = torch.from_numpy(rng.permutation(len(pixels)))
    if rng.random() < 0.5:
        share = float(rng.beta(0.4, 0.4))
        pixels = pixels * share + pixels[other] * (1 - share)
    else:
        size = pixels.shape[-1]
        height, width = (int(size * rng.uniform(0.25, 0.65)) for _ in range(2))
        top, left = int(rng.integers(0, size - height)), int(rng.integers(0, size - width))
        pixels[:, :, top : top + height, left : left + width] = pixels[other][
            :, :, top : top + height, left : left + width
        ]
        share = 1 - height * width / size**2

    def mix(a: Tensor) -> Tensor:
        return a * share + a[other] * (1 - share)

    return pixels, mix(target), mix(weight), mix(labels)


def _decayed(module: nn.Module, decay: float, learning: float) -> list[dict[str, object]]:
    matrices = [p for p in module.parameters() if p.ndim > 1]
    others = [p for p in module.parameters() if p.ndim <= 1]
    return [
        {"params": matrices, "weight_decay": decay, "rate": learning},
        {"params": others, "weight_decay": 0.0, "rate": learning},
    ]


def run(arguments: argparse.Namespace, settings: Settings) -> None:
    """Train to the end, from the last checkpoint if there is one."""
    out: Path = arguments.run
    out.mkdir(parents=True, exist_ok=True)
    keep_memory()
    torch.manual_seed(settings.seed)
    torch.set_num_threads(arguments.threads)
    bank = build(load(), arguments.cache or out)
    real, held_out = collected(arguments.data, settings.kept)
    made = rendered(arguments.rendered) if arguments.rendered else []
    print(
        f"{len(real)} collected images, {len(held_out)} held out, {len(made)} rendered; {len(bank.phrases)} phrases",
        flush=True,
    )

    tower = Tower()
    if arguments.start:
        # A gate is fitted to a finished tower and would mean nothing to one that goes on learning.
        start = read_weights(arguments.start)
        take(tower, {name: tensor for name, tensor in start.items() if not name.startswith("gate.")})
    else:
        tower.trunk.load_imagenet(torch.load(trunk_weights(), weights_only=True))
    tower = tower.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    losses = Losses(bank, settings)
    head = [tower.tokens, tower.token_norm, tower.pool, tower.projection]
    groups = _decayed(tower.trunk, settings.decay, settings.trunk_rate)
    for part in [*head, losses]:
        groups += _decayed(part, settings.decay if part is not losses else 0.0, settings.head_rate)
    optimiser = torch.optim.AdamW(groups, lr=1.0)
    ema = {name: tensor.clone() for name, tensor in tower.state_dict().items()}
    first = 0
    checkpoint = out / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        tower.load_state_dict(state["tower"])
        losses.load_state_dict(state["losses"])
        optimiser.load_state_dict(state["optimiser"])
        ema, first = state["ema"], state["step"]
        print(f"resumed at step {first}", flush=True)

    def save(step: int) -> None:
        state = {
            "tower": tower.state_dict(),
            "losses": losses.state_dict(),
            "optimiser": optimiser.state_dict(),
            "ema": ema,
            "step": step,
            "settings": asdict(settings),
        }
        torch.save(state, checkpoint.with_suffix(".part"))
        checkpoint.with_suffix(".part").rename(checkpoint)
        torch.save(ema, out / f"average-{step}.pt")

    draws = Draws(real, made, bank, settings)
    judged = Tower()
    started, seen, running = time.monotonic(), 0, np.zeros(2)
    for step, batch in enumerate(draws.stream(first, settings.stop), start=first):
        tower.train()
        tower.trunk.frozen_blocks = settings.frozen_blocks if step < settings.frozen_share * settings.steps else 0
        rng = np.random.default_rng([settings.seed, step])
        torch.manual_seed(settings.seed * 1_000_003 + step)
        pixels, target, weight, labels = _mixed(batch, len(bank.names), settings.mixup, rng)
        for group in optimiser.param_groups:
            group["lr"] = group["rate"] * rate(step, settings)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.bf16):
            images = tower(pixels)
        sigmoid, by_class = losses(images.float(), target, weight, labels, rng)
        optimiser.zero_grad(set_to_none=True)
        (sigmoid + settings.class_loss * by_class).backward()
        torch.nn.utils.clip_grad_norm_(tower.parameters(), 3.0)
        optimiser.step()
        momentum = min(settings.ema, (1 + step) / (10 + step))
        with torch.no_grad():
            for name, tensor in tower.state_dict().items():
                if tensor.dtype.is_floating_point:
                    ema[name].lerp_(tensor, 1 - momentum)
        seen += len(pixels)
        running += [sigmoid.item(), by_class.item()]
        if (step + 1) % 25 == 0:
            speed = seen / (time.monotonic() - started)
            left = (settings.stop - step - 1) * settings.batch / speed / 60
            print(
                f"step {step + 1}/{settings.stop}  sigmoid {running[0] / 25:.3f}  class {running[1] / 25:.3f}  "
                f"{speed:.1f} images/s  {left:.0f} min left",
                flush=True,
            )
            running[:] = 0
        if (step + 1) % arguments.every == 0 or step + 1 == settings.stop:
            save(step + 1)
            judged.load_state_dict(ema)
            top1, macro = held_out_score(judged, bank, held_out)
            line = {
                "step": step + 1,
                "held_out_top1": round(top1, 4),
                "held_out_macro": round(macro, 4),
                "minutes": round((time.monotonic() - started) / 60, 1),
            }
            print(json.dumps(line), flush=True)
            with (out / "log.jsonl").open("a") as log:
                log.write(json.dumps(line) + "\n")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="collected images: SOURCES.csv and a folder a class")
    parser.add_argument("--rendered", type=Path, help="what `python -m models.vision.prepare` made")
    parser.add_argument("--run", type=Path, required=True, help="checkpoints and log; an existing one is resumed")
    parser.add_argument("--cache", type=Path, help="embeddings of the phrases (default: the run's folder)")
    parser.add_argument("--start", type=Path, help="a run or a weights file to begin from, not ImageNet's")
    parser.add_argument("--threads", type=int, default=1, help="more than one pays only on an idle machine")
    parser.add_argument("--every", type=int, default=100, help="steps between checkpoints")
    parser.add_argument(
        "--no-bf16", dest="bf16", action="store_false", help="train in float32 where the CPU lacks bfloat16"
    )
    parser.add_argument("--stage", choices=sorted(STAGES), default="first", help="which settings; see STAGES")
    parser.add_argument("--steps", type=int, help="instead of the stage's")
    parser.add_argument("--stop", type=int, help="instead of the stage's")
    parser.add_argument("--seed", type=int, help="instead of the stage's")
    arguments = parser.parse_args()
    settings = STAGES[arguments.stage]
    changed = {name: value for name in ("steps", "stop", "seed") if (value := getattr(arguments, name)) is not None}
    run(arguments, replace(settings, **changed))


if __name__ == "__main__":
    main()
