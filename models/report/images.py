"""Images: the three kinds that matter most and all classes, as a policy asks for them and by the tower alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from models.report.outcome import Found, found
from models.report.running import Run, policy_of, run
from models.report.sets import images, sample
from models.vision.phrases import load
from router.evaluation.markdown import label_table, reliability_table, signal_table
from router.evaluation.run import Came
from router.evaluation.statistics import recall_figure, wilson

CONCEPTS: Final[Mapping[str, tuple[str, ...]]] = {
    "identity_document": ("a passport", "an identity card", "a driver's licence"),
    "radiograph": ("a chest x-ray", "a radiograph"),
    "code_or_terminal": ("a screenshot of source code", "a terminal window"),
}
CLASSES: Final[Mapping[str, tuple[str, ...]]] = {
    "identity_document": ("passport_or_id",),
    "radiograph": ("chest_xray",),
    "code_or_terminal": ("code_screenshot", "terminal_screenshot"),
}
GOALS: Final = {"identity_document": (0.01, 0.97), "radiograph": (0.01, 0.98), "code_or_terminal": (0.02, 0.92)}
"""The rate of false alarms at which recall is told, and what it should be."""

SWAPPED: Final = {"passport_or_id": ("radiograph",), "chest_xray": ("identity_document",)}
"""What an image of a class must never be taken for."""

PHRASES: Final = 8
"""Training phrases that a class has in the policy, the first of its list."""

UNKNOWN: Final = "other"
"""The class of what is none of the others: icons, codes, textures."""


def measure(data: Path, folder: Path, limit: int, seed: int) -> tuple[tuple[str, ...], list[Found], list[str]]:
    """Sizes, figures and tables."""
    chosen = sample(images(data), limit * 4, seed)
    done = _through_policy(chosen, folder)
    rows = [*_important(done), *_classes(done), *_unknown(done)]
    tables = [signal_table(done.report.signals), *map(reliability_table, done.report.signals)]
    tables += [label_table(each) for each in done.report.labels]
    rows += _tower(data, folder)
    return (f"{len(chosen)} images of {len({kind for kind, _ in chosen})} classes",), rows, tables


def _through_policy(chosen: list[tuple[str, Path]], folder: Path) -> Run:
    known = load().classes
    names = sorted({kind for kind, _ in chosen} & set(known))
    signals = {name: {"concepts": list(concepts)} for name, concepts in CONCEPTS.items()}
    signals |= {f"class_{name}": {"concepts": list(known[name][:PHRASES])} for name in names}
    members = [f"image/class_{name}" for name in names]
    kind = {"of": members, "method": "softmax", "temperature": 0.05}
    policy = policy_of({"image": signals}, {"partition": {"kind": kind}})
    cases = []
    for index, (label, path) in enumerate(chosen):
        copy = folder / f"image-{index}{path.suffix}"
        shutil.copyfile(path, copy)
        expected: dict[str, Any] = {f"image/{name}": label in CLASSES[name] for name in CONCEPTS}
        expect: dict[str, Any] = {"signals": expected, "labels": {"partition/kind": f"class_{label}"}}
        cases.append({"name": f"{label}/{index}", "images": [copy.name], "expect": expect})
    return run(policy, cases, folder, "images")


def _important(done: Run) -> list[Found]:
    figures = {each.name: each for each in done.report.signals}
    kept = []
    for name, (rate, goal) in GOALS.items():
        signal, what = figures[f"image/{name}"], name.replace("_", " ")
        answers = done.report.answers[signal.name]
        ups, downs = (
            np.array([each.score or 0.0 for each in answers if each.expected is wanted]) for wanted in (True, False)
        )
        words = f"{what}, by the policy's words: recall at {rate:.0%} false alarms"
        kept += found(words, recall_figure(ups, downs, rate), signal.positives, least=goal)
        kept += found(f"{what}: recall at its threshold", signal.recall, signal.positives)
        kept += found(f"{what}: false alarms at its threshold", signal.false_positives, signal.negatives)
    swaps = [
        _taken_for(came, other) for came in done.came for other in SWAPPED.get(came.case.name.partition("/")[0], ())
    ]
    what = "identity documents and radiographs taken for each other"
    return [*kept, *found(what, wilson(sum(swaps), len(swaps)), len(swaps), most=0.0)]


def _taken_for(came: Came, signal: str) -> bool:
    """Whether the signal matched, or its class won."""
    by_class = came.observations["partition/kind"].label in {f"class_{name}" for name in CLASSES[signal]}
    return by_class or came.observations[f"image/{signal}"].matched is True


def _classes(done: Run) -> list[Found]:
    (labels,) = done.report.labels
    what = f"classes by {PHRASES} phrases each"
    kept = found(f"{what}: top-1", labels.accuracy, labels.accuracy.n)
    return [*kept, Found(f"{what}: mean over classes", len(labels.rows), labels.macro_recall)]


def _unknown(done: Run) -> list[Found]:
    quiet = [
        not any(came.observations[f"image/{name}"].matched for name in CONCEPTS)
        for came in done.came
        if came.case.name.startswith(f"{UNKNOWN}/")
    ]
    what = f"images of the class {UNKNOWN} that match none of the three"
    return found(what, wilson(sum(quiet), len(quiet)), len(quiet))


def _tower(data: Path, folder: Path) -> list[Found]:
    """The tower by itself, as the recipe measures it: a class stands for the mean of its phrases."""
    file = folder / "tower.json"
    command = [sys.executable, "-m", "models.vision.measure", "--images", str(data / "images" / "dev")]
    command += ["--unseen", str(data / "text" / "authored" / "unseen_phrasings.json"), "--json", str(file)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    told = json.loads(file.read_text(encoding="utf-8"))
    n = told["images"]
    whole, unseen, single = told["top1"], told["unseen_mean"], told["unseen_single"]
    kept = found("23 classes by the mean of all their phrases: top-1", wilson(round(whole * n), n), n, least=0.88)
    kept.append(Found("the same: mean over classes", len(told["classes"]), told["macro"], least=0.84))
    for name, (rate, goal) in GOALS.items():
        signal = told["signals"][name]
        recall = wilson(round(signal[f"recall_at_{rate * 100:.0f}_percent"] * signal["n"]), signal["n"])
        what = f"{name.replace('_', ' ')}, by the mean of its classes' phrases: recall at {rate:.0%} false alarms"
        kept += found(what, recall, signal["n"], least=goal)
    loss = whole - unseen["top1"]
    kept.append(Found("unseen phrasings, mean of six: loss of top-1", unseen["images"], loss, most=0.04))
    kept.append(Found("unseen phrasings, single: mean top-1", unseen["images"], single["mean"], least=0.65))
    for key, what, least in (
        ("unknown", "drawn images of kinds that training never saw: match no class", 0.8),
        ("ragbag", f"images of the class {UNKNOWN}: match no other class", None),
    ):
        if key in told:
            count = told[key]["n"]
            kept += found(what, wilson(round(told[key]["match_nothing"] * count), count), count, least=least)
    return kept
