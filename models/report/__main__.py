"""`python -m models.report --data DIR [--write]`: measures, shows, and with --write puts it into models/REPORT.md.

Sections that were measured with the same packs, limit and seed are taken from the working folder, so that a run that
was stopped goes on; `--only` measures some of them. `--text-work` is the folder of the text recipe, whose trainings
with one source held out are then told too.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from models.report import attacks, domains, images, outcome, personal, reading, writing
from models.report.outcome import Found, Outcome
from router.packs.store import open_pack

REPORT: Final = Path(__file__).parents[1] / "REPORT.md"
SEED: Final = 8
LIMIT: Final = 200

Section = Callable[[Path, Path, int, int], tuple[tuple[str, ...], list[Found], list[str]]]


def main() -> int:
    """0 when it is measured, whatever came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the data folder")
    parser.add_argument("--work", type=Path, help="where sections are kept; default: a folder that is dropped")
    parser.add_argument("--text-work", type=Path, help="the text recipe's folder, for sources held out one by one")
    parser.add_argument("--limit", type=int, default=LIMIT, help=f"texts of a source at most; default {LIMIT}")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", action="append", help="a section; may be repeated")
    parser.add_argument("--write", action="store_true", help=f"write {REPORT.name}")
    given = parser.parse_args()
    sections = _sections(given.text_work and given.text_work / "jailbreak")
    wanted = given.only or list(sections)
    if unknown := set(wanted) - set(sections):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(sections)}")
    packs = {name: open_pack("starter", name, Path("/nowhere")).digest for name in ("text", "vision")}
    with tempfile.TemporaryDirectory(prefix="pointsman-report-") as dropped:
        work = given.work or Path(dropped)
        work.mkdir(parents=True, exist_ok=True)
        done = [
            _measured(name, *sections[name], given.data, work, given.limit, given.seed, packs)
            for name in sections
            if name in wanted
        ]
    options = "" if given.limit == LIMIT else f" --limit {given.limit}"
    command = f"python -m models.report --data DIR{options}{' --text-work DIR' if given.text_work else ''} --write"
    text = writing.report(
        done, {f"starter-{name}": digest for name, digest in packs.items()}, given.limit, given.seed, command
    )
    if given.write:
        REPORT.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


def _sections(held_out: Path | None) -> Mapping[str, tuple[str, Section]]:
    return {
        "images": ("Images", images.measure),
        "domain": ("Fields and conversations", domains.measure),
        "jailbreak": ("Attacks", partial(attacks.measure, held_out=held_out)),
        "pii": ("Personal data", personal.measure_pii),
        "secrets": ("Secrets", personal.measure_secrets),
        "reading": ("Text inside images", reading.measure),
    }


def _measured(
    name: str, title: str, section: Section, data: Path, work: Path, limit: int, seed: int, packs: Mapping[str, str]
) -> Outcome:
    key = hashlib.sha256(f"{sorted(packs.items())} {limit} {seed}".encode()).hexdigest()
    kept = work / f"{name}.json"
    known = outcome.read(kept, key)
    if known is not None:
        return known
    print(f"{title} ...", file=sys.stderr, end=" ", flush=True)
    with tempfile.TemporaryDirectory(prefix="pointsman-cases-") as folder:
        began = time.monotonic()
        sizes, rows, tables = section(data, Path(folder), limit, seed)
        found = Outcome(title, sizes, tuple(rows), tuple(tables), time.monotonic() - began, key)
    outcome.write(found, kept)
    print(f"{found.seconds:.0f} s", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
