"""Text inside images: keys, zones of travel documents and instructions that were planted, and images without any."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from models.report.outcome import Found, found
from models.report.planted import KINDS
from models.report.planting import LETTERS, planted_images
from models.report.running import policy_of, run
from router.evaluation.markdown import table
from router.evaluation.statistics import wilson
from router.signals.base import Observation

WITH_ZONES: Final = ("identity_card", "passport_or_id")
"""Grounds that may have a zone of their own, which is no mistake to find."""

SEEN: Final = "causes of earlier misses were mended, on other seeds"

SIGNALS: Final = {"key": "secret/planted", "zone": "pii/planted", "instruction": "jailbreak/planted"}


def measure(data: Path, folder: Path, limit: int, seed: int) -> tuple[tuple[str, ...], list[Found], list[str]]:
    """Sizes, figures and tables."""
    count = min(40, limit)
    cases = []
    grounds: dict[str, str] = {}
    for index, image in enumerate(planted_images(data / "images" / "dev", count, seed)):
        file = folder / f"planted-{index}{image.suffix}"
        file.write_bytes(image.data)
        # Of an image into which something was planted only that is known.
        asked = [kind for kind in KINDS if image.kind in (None, kind)]
        if image.kind is None and image.ground in WITH_ZONES:
            asked.remove("zone")
        expected = {SIGNALS[kind]: image.kind is not None for kind in asked}
        name = f"{'real' if image.real else 'drawn'}_{image.kind or 'nothing'}/{index}"
        grounds[name] = image.ground
        cases.append({"name": name, "images": [file.name], "expect": {"signals": expected}})
    signals: dict[str, dict[str, Any]] = {
        "secret": {"planted": {"read_images": True}},
        "pii": {"planted": {"types": ["TRAVEL_DOCUMENT"], "read_images": True}},
        "jailbreak": {"planted": {"read_images": True}},
    }
    done = run(policy_of(signals), cases, folder, "reading")
    kept, pointed = [], []
    for real in ("drawn", "real"):
        hits = []
        for kind in KINDS:
            answers = done.of_sets(SIGNALS[kind], [f"{real}_{kind}"])
            matched = [each.matched is True for each in answers]
            hits += matched
            kept += found(f"{real} images: {kind} found", wilson(sum(matched), len(matched)), len(matched))
        kept += found(
            f"{real} images: planted things found", wilson(sum(hits), len(hits)), len(hits), least=0.9, note=SEEN
        )
    for kind in KINDS:
        bare = done.of_sets(SIGNALS[kind], ["drawn_nothing", "real_nothing"])
        alarms = sum(each.matched is True for each in bare)
        kept += found(f"images with nothing planted: {kind} found all the same", wilson(alarms, len(bare)), len(bare))
    for came in done.came:
        for kind in KINDS:
            seen = came.observations.get(SIGNALS[kind])
            if seen is not None and seen.matched and came.case.name.partition("/")[0].endswith(kind):
                pointed.append(any(each.image == 0 and "box " in each.detail for each in seen.evidence))
    kept += found("findings whose evidence names image and box", wilson(sum(pointed), len(pointed)), len(pointed))
    missed = [
        (came.case.name.partition("/")[0].replace("_", " "), grounds[came.case.name], _why(came.observations))
        for came in done.came
        if not came.case.name.partition("/")[0].endswith("nothing")
        and not any(seen.matched for seen in came.observations.values())
    ]
    sizes = (
        f"{count} drawn and {count} real images, each with something planted, every second without too",
        f"type of {LETTERS[0]} to {LETTERS[1]} pixels",
    )
    return sizes, kept, [table(("missed", "on", "answer"), missed)] if missed else []


def _why(observations: Mapping[str, Observation]) -> str:
    (seen,) = observations.values()
    return "not found" if seen.matched is False else f"{seen.status}: {seen.reason}"
