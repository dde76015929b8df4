"""What the shipped heads do, from `heads.onnx` alone: `python -m models.text.measure --data DIR [--work DIR]`.

Figures come with how many texts they rest on and a 95 % interval (Wilson's). Sets that trained say so. Those of the
jailbreak sets held out need trainings of their own and stand in the card; `models.text.jailbreak_finish` gives them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from models.text.encoder import Encoder
from models.text.export import PACK
from models.text.figures_domain import domain
from models.text.figures_jailbreak import dilution, jailbreak
from models.text.figures_others import others
from models.text.figures_pii import pii
from models.text.judge import Judge

PARTS = {"domain": domain, "jailbreak": jailbreak, "dilution": dilution, "pii": pii, "others": others}


def main() -> None:
    """Print all figures; JSON to `--out`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="where the encoder's weights were unpacked; anew if not given")
    parser.add_argument(
        "--manifest", type=Path, default=PACK / "pack.yaml", help="whose `heads` say how to read logits"
    )
    parser.add_argument("--graph", type=Path, default=PACK / "heads.onnx")
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    about = yaml.safe_load(given.manifest.read_text(encoding="utf-8"))["heads"]["heads"]
    with tempfile.TemporaryDirectory() as scratch:
        judge = Judge(Encoder(given.work or Path(scratch)), given.graph, about)
        found: dict[str, Any] = {}
        for name in given.only or PARTS:
            found[name] = PARTS[name](judge, given.data)
            for line in _lines(found[name]):
                print(f"{name}: {line}", flush=True)
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _lines(figures: dict[str, Any]) -> Sequence[str]:
    return [f"{what}: {_shown(figure)}" for what, figure in figures.items()]


def _shown(figure: Any) -> str:
    if isinstance(figure, dict) and "n" in figure:
        return f"{figure['share']:.3f} of {figure['n']} ({figure['low']:.3f}-{figure['high']:.3f})"
    return f"{figure:.3f}" if isinstance(figure, (float, np.floating)) else str(figure)


if __name__ == "__main__":
    main()
