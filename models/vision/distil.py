"""An experiment: the tower's embeddings taught to a small true SigLIP, patches and all. Not what the pack serves.

    python -m models.vision.distil --data IMAGES/train --rendered RENDERED --run RUN [--views 2] [--steps 1200]

The teacher is the pack's served graph. It sees every view once; the student, transformers' `SiglipVisionModel` from
nothing and a projection, learns to point the same way, on views that are shifted, recoloured and mixed, and to name
the class. Stops and resumes at checkpoints. `--images IMAGES/dev` measures what the last checkpoint tells apart.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as fn
from transformers import SiglipVisionConfig, SiglipVisionModel

from .augment import augmented, plain
from .bank import build
from .collection import KEPT_SHARE, Item, collected, rendered
from .figures import Floats, recall_at, top1
from .measure import read_images
from .pack import PACK, VisionPack, rgb
from .phrases import load
from .train import keep_memory, prototypes

SIZE = 160
PATCH = 16
BATCH = 64
DECAY = 0.05
SEED = 11


@dataclass(frozen=True)
class Views:
    """What the teacher saw, small, and what it made of it."""

    pixels: NDArray[np.uint8]
    vectors: Floats
    labels: NDArray[np.int64]


class Student(nn.Module):
    """SigLIP's vision tower, small, and a projection into the text tower's space."""

    def __init__(self) -> None:
        super().__init__()
        config = SiglipVisionConfig(
            hidden_size=192,
            intermediate_size=768,
            num_hidden_layers=6,
            num_attention_heads=3,
            image_size=SIZE,
            patch_size=PATCH,
        )
        self.vision = SiglipVisionModel(config)
        self.projection = nn.Linear(192, 384)

    def forward(self, pixel_values: Tensor) -> Tensor:
        """Normalised pixels to unit vectors."""
        pooled = self.vision(pixel_values=pixel_values).pooler_output
        return fn.normalize(self.projection(pooled), dim=-1)


def normalised(pixels: NDArray[np.uint8]) -> Tensor:
    """As SigLIP's processor does."""
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 127.5 - 1


def _small(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.asarray(Image.fromarray(pixels).resize((SIZE, SIZE), Image.Resampling.BICUBIC))


def taught(items: Sequence[Item], names: Sequence[str], pack: VisionPack, views: int, file: Path) -> Views:
    """The teacher's pass: every item as it is, and augmented `views - 1` times; kept in a file."""
    if file.exists():
        stored = np.load(file)
        return Views(stored["pixels"], stored["vectors"], stored["labels"])
    size = pack.preprocessing.size[0]
    pixels, vectors, labels = [], [], []
    for number, item in enumerate(items):
        for view in range(views):
            seen = plain(item, size) if view == 0 else augmented(item, SEED * 1_000_003 + number * views + view, size)
            vectors.append(pack.embed_pixels(seen[None])[0])
            pixels.append(_small(seen))
            labels.append(names.index(item.label))
        if number % 200 == 0:
            print(f"\r{number}/{len(items)} images seen by the teacher", end="", flush=True)
    print()
    made = Views(np.stack(pixels), np.stack(vectors), np.array(labels))
    np.savez(file, pixels=made.pixels, vectors=made.vectors, labels=made.labels)
    return made


def _batch(views: Views, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Drawn with the classes alike, shifted, recoloured, and half of the batches mixed, targets likewise."""
    counts = np.bincount(views.labels)
    weight = 1 / np.sqrt(counts[views.labels])
    chosen = rng.choice(len(weight), BATCH, p=weight / weight.sum())
    pixels = normalised(views.pixels[chosen])
    shift = rng.integers(-8, 9, (BATCH, 2))
    pixels = torch.stack([torch.roll(one, (int(y), int(x)), (1, 2)) for one, (y, x) in zip(pixels, shift, strict=True)])
    gains = torch.from_numpy(rng.normal(1, 0.08, (BATCH, 3, 1, 1)).astype(np.float32))
    pixels = pixels * gains + torch.from_numpy(rng.normal(0, 0.08, (BATCH, 1, 1, 1)).astype(np.float32))
    vectors = torch.from_numpy(views.vectors[chosen])
    labels = fn.one_hot(torch.from_numpy(views.labels[chosen]), len(counts)).float()
    if rng.random() < 0.5:
        share, other = float(rng.beta(0.5, 0.5)), torch.from_numpy(rng.permutation(BATCH))
        pixels = pixels * share + pixels[other] * (1 - share)
        vectors = vectors * share + vectors[other] * (1 - share)
        labels = labels * share + labels[other] * (1 - share)
    return pixels, fn.normalize(vectors, dim=-1), labels


def train(arguments: argparse.Namespace) -> None:
    """To the end, from the last checkpoint if there is one."""
    run: Path = arguments.run
    run.mkdir(parents=True, exist_ok=True)
    keep_memory()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    bank = build(load(), arguments.cache or run)
    pack = VisionPack(arguments.pack)
    real, _ = collected(arguments.data, KEPT_SHARE)
    views = taught([*real, *rendered(arguments.rendered)], bank.names, pack, arguments.views, run / "views.npz")
    classes = torch.from_numpy(prototypes(bank))
    student = Student()
    print(
        f"{sum(p.numel() for p in student.parameters()) / 1e6:.2f} M parameters, {len(views.labels)} views", flush=True
    )
    optimiser = torch.optim.AdamW(student.parameters(), lr=arguments.rate, weight_decay=DECAY)
    checkpoint, first = run / "student.pt", 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        student.load_state_dict(state["student"])
        optimiser.load_state_dict(state["optimiser"])
        first = state["step"]
    began, running = time.monotonic(), 0.0
    for step in range(first, arguments.steps):
        rng = np.random.default_rng([SEED, step])
        pixels, vectors, labels = _batch(views, rng)
        done = step / arguments.steps
        for group in optimiser.param_groups:
            group["lr"] = arguments.rate * min(1.0, (step + 1) / 60) * (0.02 + 0.49 * (1 + math.cos(math.pi * done)))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.bf16):
            seen = student(pixels).float()
        away = 1 - (seen * vectors).sum(-1).mean()
        named = -(labels * fn.log_softmax(seen @ classes.T * 15, dim=-1)).sum(-1).mean()
        optimiser.zero_grad(set_to_none=True)
        (4 * away + named).backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimiser.step()
        running += float(away.detach())
        if (step + 1) % 50 == 0:
            speed = (step + 1 - first) * BATCH / (time.monotonic() - began)
            left = (arguments.steps - step - 1) * BATCH / speed / 60
            print(
                f"step {step + 1}: 1 - cosine {running / 50:.3f}, {speed:.1f} images/s, {left:.0f} min left", flush=True
            )
            running = 0.0
        if (step + 1) % 100 == 0 or step + 1 == arguments.steps:
            state = {"student": student.state_dict(), "optimiser": optimiser.state_dict(), "step": step + 1}
            torch.save(state, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").rename(checkpoint)


@torch.no_grad()
def judge(arguments: argparse.Namespace) -> None:
    """Top-1 and identity documents of the last checkpoint, and of its teacher, on images that trained neither."""
    torch.set_num_threads(1)
    bank = build(load(), arguments.cache or arguments.run)
    student = Student().eval()
    student.load_state_dict(torch.load(arguments.run / "student.pt", weights_only=True)["student"])
    files, labels = read_images(arguments.images)
    names = sorted(set(labels))
    classes = prototypes(bank)[[bank.names.index(name) for name in names]]
    truth = np.array([names.index(label) for label in labels])
    parts = []
    for start in range(0, len(files), 32):
        small = [rgb(file).resize((SIZE, SIZE), Image.Resampling.BICUBIC) for file in files[start : start + 32]]
        parts.append(student(normalised(np.stack([np.asarray(one) for one in small]))).numpy())
    identity = truth == names.index("passport_or_id")
    for who, vectors in (("student", np.concatenate(parts)), ("teacher", VisionPack(arguments.pack).embed(files))):
        scores = vectors @ classes.T
        figures = top1(scores, truth, names)
        recall = recall_at(scores[:, names.index("passport_or_id")], identity, 0.01)
        print(who, json.dumps({"top1": figures["top1"], "macro": figures["macro"], "identity_at_1_percent": recall}))


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the collected images that the teacher was trained on")
    parser.add_argument("--rendered", type=Path, help="what `python -m models.vision.prepare` made")
    parser.add_argument("--run", type=Path, required=True, help="views, checkpoints")
    parser.add_argument("--cache", type=Path, help="embeddings of the phrases (default: the run's folder)")
    parser.add_argument("--pack", type=Path, default=PACK, help="the teacher")
    parser.add_argument("--views", type=int, default=2)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--bf16", action="store_true", help="worth it on a CPU with AMX")
    parser.add_argument("--images", type=Path, help="measure on these instead of training")
    arguments = parser.parse_args()
    if arguments.images:
        judge(arguments)
    elif arguments.data and arguments.rendered:
        train(arguments)
    else:
        parser.error("--data and --rendered to train, or --images to measure")


if __name__ == "__main__":
    main()
