"""What each precision costs and how near it comes to PyTorch, at the size of a published SigLIP; one paired run.

    python tests/bench/precisions.py [--rounds 20] [--warmup 3]

A SigLIP at base-patch16-224 size with seeded weights is exported in every precision that this machine can run, as it is
and with outlier gains in its LayerNorms. Speeds are CPU milliseconds of one forward pass of one input on one thread,
medians; the variants take turns in every round, in another order each time, so that what else runs here hits all of
them alike. Cosines are of the whole pipeline, from a file's bytes or a string on, over the twenty images and all texts
that packs are verified with. Memory is the greatest resident size of a process that does nothing but one export. Takes
some minutes and 6 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "export")]

from full_size import (  # noqa: E402
    Expected,
    TorchSiglip,
    cosines,
    equal_ids,
    equal_pixels,
    expected_of,
    image_cosines,
    open_towers,
    text_cosines,
    write_siglip_base,
)

from router.export.errors import ExportError  # noqa: E402
from router.export.hub import fetch  # noqa: E402
from router.export.pack import export_pack  # noqa: E402
from router.packs.parts import Precision  # noqa: E402

PRECISIONS: tuple[Precision, ...] = ("fp32", "int8", "bf16")
TIMED_TEXT = "a scanned page of a passport, with a photo and two lines of machine-readable characters"

Run = Callable[[], object]


def export_alone(checkpoint: str, to: str, precision: Precision) -> dict[str, Any]:
    """Runs in a process of its own: how long one export takes, and its greatest resident size."""
    started = time.perf_counter()
    try:
        export_pack(
            fetch(checkpoint, None, lambda step: None),
            Path(to),
            precision,
            force=False,
            allow_drift=True,
            progress=lambda step: None,
        )
    except ExportError as error:
        return {"not_run": str(error)}
    # The kernel's high-water mark of this program; getrusage would count the parent that it was forked from.
    status = Path("/proc/self/status").read_text()
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is not None
    return {
        "export_seconds": round(time.perf_counter() - started, 1),
        "export_peak_rss_gib": round(int(peak[1]) / 2**20, 2),
        "pack_mb": round(sum(path.stat().st_size for path in Path(to).rglob("*") if path.is_file()) / 1e6),
    }


def export_all(checkpoint: Path, packs: Path) -> dict[str, dict[str, Any]]:
    """One process an export, one after the other."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as alone:
        made = {}
        for precision in PRECISIONS:
            print(f"exporting {checkpoint.name} as {precision}", file=sys.stderr)
            made[precision] = alone.submit(
                export_alone, str(checkpoint), str(packs / f"{checkpoint.name}-{precision}"), precision
            ).result()
        return made


def nearness(folder: Path, expected: Expected) -> dict[str, Any]:
    """Cosines against PyTorch; least and mean."""
    vision, text = open_towers(folder)
    images, texts = image_cosines(vision, expected), text_cosines(text, expected)
    return {
        "image_cosine": {"least": round(float(images.min()), 8), "mean": round(float(images.mean()), 8)},
        "text_cosine": {"least": round(float(texts.min()), 8), "mean": round(float(texts.mean()), 8)},
        "equal_pixels": f"{equal_pixels(vision, expected)} of {len(images)}",
        "equal_ids": f"{equal_ids(text, expected)} of {len(texts)}",
    }


def least_cosine_between(rows: Any) -> float:
    """How far apart the reference's own embeddings lie: were they all alike, cosines would prove little."""
    each = np.concatenate([cosines(np.roll(rows, shift, axis=0), rows) for shift in range(1, len(rows))])
    return round(float(each.min()), 4)


def speeds(runs: dict[str, Run], rounds: int, warmup: int) -> dict[str, dict[str, float]]:
    """CPU milliseconds of each, medians, and the medians of each round's ratios to fp32 and to PyTorch."""
    order = random.Random(1)
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(-warmup, rounds):
        for name in order.sample(sorted(runs), len(runs)):
            started = time.process_time()
            runs[name]()
            spent = time.process_time() - started
            if number >= 0:
                taken[name].append(spent)

    def faster_than(other: str, name: str) -> float:
        return round(median(theirs / ours for theirs, ours in zip(taken[other], taken[name], strict=True)), 2)

    return {
        name: {
            "cpu_ms": round(median(times) * 1000, 1),
            "times_as_fast_as_fp32": faster_than("fp32", name),
            "times_as_fast_as_pytorch": faster_than("pytorch", name),
        }
        for name, times in taken.items()
    }


def timed(folders: dict[str, Path], reference: TorchSiglip, expected: Expected, rounds: int, warmup: int) -> Any:
    """Speeds of the forward passes, image and text."""
    opened = {name: open_towers(folder) for name, folder in folders.items()}
    file, pixels, ids = expected.files[0], expected.pixels[0], reference.ids(TIMED_TEXT)
    images: dict[str, Run] = {"pytorch": lambda: reference.image(pixels)}
    texts: dict[str, Run] = {"pytorch": lambda: reference.text(ids)}
    for name, (vision, text) in opened.items():
        images[name] = partial(vision.forward, vision.preprocess(file)[None])
        texts[name] = partial(text.forward, [text.window(text.tokenise(TIMED_TEXT), 0)])
    return {"image": speeds(images, rounds, warmup), "text": speeds(texts, rounds, warmup)}


def run(rounds: int, warmup: int) -> None:
    torch.set_num_threads(1)
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="precisions-") as scratch:
        for weights, outliers in (("plain", False), ("outliers", True)):
            checkpoint = write_siglip_base(Path(scratch) / weights, outliers=outliers)
            made = export_all(checkpoint, Path(scratch))
            folders = {
                name: Path(scratch) / f"{weights}-{name}" for name, each in made.items() if "not_run" not in each
            }
            reference = TorchSiglip(checkpoint)
            expected = expected_of(reference)
            if not outliers:
                print("timing", file=sys.stderr)
                report["speed"] = timed(folders, reference, expected, rounds, warmup)
            report[weights] = {
                "least_cosine_between_two_images": least_cosine_between(expected.images),
                "least_cosine_between_two_texts": least_cosine_between(expected.texts),
                **{
                    name: each | (nearness(folders[name], expected) if name in folders else {})
                    for name, each in made.items()
                },
            }
    print(json.dumps(report, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="forward passes of each variant that count")
    parser.add_argument("--warmup", type=int, default=3, help="and those before, that do not")
    arguments = parser.parse_args()
    run(arguments.rounds, arguments.warmup)


if __name__ == "__main__":
    main()
