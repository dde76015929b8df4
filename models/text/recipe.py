"""Makes the heads of starter-text from a folder of data: `python -m models.text.recipe --data DIR --work DIR`.

One step after another, each a command of its own (`--dry` shows them); what is done is not done again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from models.text.export import BINARY
from models.text.jailbreak_data import ATTACK_SETS


def steps(data: Path, work: Path) -> list[tuple[list[str], Path]]:
    """Arguments of each step, and the file that says that it is done."""
    both = ["--data", str(data), "--work", str(work)]
    found = [(["models.text.domain", *both], work / "domain" / "calibration.json")]
    found += [(["models.text.binary", name, *both], work / "binary" / f"{name}.json") for name in BINARY]
    found.append((["models.text.pii", *both], work / "pii" / "calibration.json"))
    for name in ("", *ATTACK_SETS):
        held = ["--without", name] if name else []
        done = work / "jailbreak" / f"logits-{name or 'all'}-0.json"
        found.append((["models.text.jailbreak", *both, *held], done))
    found.append((["models.text.jailbreak_finish", "--work", str(work)], work / "jailbreak" / "calibration.json"))
    found.append((["models.text.jailbreak_weighing", *both], work / "jailbreak" / "weighing.json"))
    found.append((["models.text.export", "--work", str(work)], work / "manifest_heads.yaml"))
    return found


def main() -> None:
    """Run what is not done yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--dry", action="store_true", help="only show the commands")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    for arguments, done in steps(given.data, given.work):
        state = "done" if done.exists() else "to do"
        print(f"{state}: python -m {' '.join(arguments)}", flush=True)
        if not done.exists() and not given.dry:
            subprocess.run([sys.executable, "-m", *arguments], check=True)


if __name__ == "__main__":
    main()
