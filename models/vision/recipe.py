"""Make the starter vision pack from the collected images: render, train in three stages, fit the gate, export.

    python -m models.vision.recipe --data IMAGES/train --work SCRATCH

Everything is seeded and resumes where it stopped; about two hours and a half on two cores. `measure` and
`parity` then say what came out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from .collection import HOLD_OUT_SHARE
from .pack import PACK


def steps(data: Path, work: Path, out: Path) -> list[list[str]]:
    """The modules to run, with their arguments."""
    first, second, third, rendered, cache = (
        str(work / name) for name in ("first", "second", "third", "rendered", "cache")
    )
    earlier = work / "earlier"
    common = ["--data", str(data), "--rendered", rendered, "--cache", cache]
    onto = ["--data", str(data), "--cache", cache]
    mean = [third, f"{third}/average-260.pt", str(earlier / "vision.safetensors")]
    gated = str(work / "gated.safetensors")
    averages = [str(work / "first/average-700.pt"), str(work / "second/average-300.pt")]
    return [
        ["prepare", "--out", rendered, "--data", str(data)],
        ["train", *common, "--run", first],
        ["train", *common, "--run", second, "--stage", "second", "--start", first],
        ["export", second, *averages, *onto, "--kept", str(HOLD_OUT_SHARE), "--out", str(earlier)],
        ["train", *common, "--run", third, "--stage", "third", "--start", str(earlier / "vision.safetensors")],
        ["gate", *mean, *common, "--work", str(work / "gate"), "--out", gated],
        ["export", gated, *onto, "--out", str(out)],
    ]


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="collected images: SOURCES.csv and a folder a class")
    parser.add_argument("--work", type=Path, required=True, help="rendered images, checkpoints, logs")
    parser.add_argument("--out", type=Path, default=PACK)
    arguments = parser.parse_args()
    for module, *rest in steps(arguments.data, arguments.work, arguments.out):
        print(f"== {module}", flush=True)
        # A process each, so that training starts without what rendering kept in memory.
        subprocess.run([sys.executable, "-m", f"models.vision.{module}", *rest], check=True)


if __name__ == "__main__":
    main()
