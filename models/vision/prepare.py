"""Render the part of the training images that nobody photographed.

    python -m models.vision.prepare --out RENDERED [--per-kind 150] [--data IMAGES/train]

With `--data` the portraits among the collected images lend their faces to identity documents. Files that exist stay.
"""

from __future__ import annotations

import argparse
import random
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path

from PIL import Image

from models.rendering import FIRST_UNSEEN_SEED, KINDS, render

LONG_SIDE = 448
RESAMPLES = (Image.Resampling.BICUBIC, Image.Resampling.LANCZOS, Image.Resampling.BILINEAR, Image.Resampling.BOX)


@cache
def _portraits(folder: Path | None) -> tuple[Image.Image, ...]:
    if folder is None:
        return ()
    return tuple(Image.open(file).convert("RGB") for file in sorted((folder / "person_face").glob("*.jpg")))


def _make(kind: str, seeds: range, out: Path, faces: Path | None) -> int:
    made = 0
    for seed in seeds:
        file = out / kind / f"{seed}.jpg"
        if file.exists():
            continue
        image = render(kind, seed, portraits=_portraits(faces))
        rng = random.Random(seed)
        image.thumbnail((LONG_SIDE, LONG_SIDE), rng.choice(RESAMPLES))
        part = file.with_suffix(".part")
        image.save(part, "JPEG", quality=rng.randint(78, 94))
        part.rename(file)
        made += 1
    return made


def prepare(out: Path, per_kind: int, faces: Path | None, processes: int, kinds: list[str]) -> None:
    """Render every kind by its share, in processes."""
    jobs = []
    with ProcessPoolExecutor(processes) as pool:
        for kind in kinds:
            (out / kind).mkdir(parents=True, exist_ok=True)
            count = round(per_kind * KINDS[kind].share)
            if count > FIRST_UNSEEN_SEED:
                raise SystemExit("the seeds from FIRST_UNSEEN_SEED on are kept for what is shown and measured")
            jobs += [
                pool.submit(_make, kind, range(start, min(count, start + 20)), out, faces)
                for start in range(0, count, 20)
            ]
        made = 0
        for done, job in enumerate(as_completed(jobs), start=1):
            made += job.result()
            print(f"\r{done}/{len(jobs)} batches, {made} images rendered", end="", flush=True)
    print()


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--per-kind", type=int, default=150, help="before each kind's share")
    parser.add_argument("--data", type=Path, help="collected images, for their portraits")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kinds", nargs="*", default=sorted(KINDS))
    arguments = parser.parse_args()
    prepare(arguments.out, arguments.per_kind, arguments.data, arguments.processes, arguments.kinds)


if __name__ == "__main__":
    main()
