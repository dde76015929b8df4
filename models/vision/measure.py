"""Measure the pack on images that it was not trained on.

    python -m models.vision.measure --images IMAGES/dev [--unseen unseen_phrasings.json] [--json FILE]

Runs the served graph in onnxruntime and the locked text tower in numpy; no torch. A class stands for the mean of its
training phrases; `--unseen` adds phrases that were written apart from the recipe and never used in it.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .figures import Floats, confusion, interval, macro_interval, recall_at, sigmoid, top1, unit
from .pack import PACK, VisionPack
from .phrases import Phrases, load
from .rejection import RAGBAG, concepts, rejected, unknown_images
from .table import table
from .text import TextTower

# A policy's words for the things that matter most, as a user writes them.
SIGNALS = {
    "identity_document": ("passport_or_id",),
    "radiograph": ("chest_xray",),
    "code_or_terminal": ("code_screenshot", "terminal_screenshot"),
}
CONCEPTS = {
    "identity_document": ("a passport", "an identity card", "a driver's licence"),
    "radiograph": ("a chest x-ray", "a radiograph"),
    "code_or_terminal": ("a screenshot of source code", "a terminal window"),
}


def read_images(folder: Path) -> tuple[list[Path], list[str]]:
    """Files and classes, as SOURCES.csv lists them."""
    with (folder / "SOURCES.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [folder / row["file"] for row in rows], [row["class"] for row in rows]


def _means(tower: TextTower, wordings: dict[str, tuple[str, ...]], names: list[str]) -> Floats:
    return unit(np.stack([tower.embed(wordings[name]).mean(0) for name in names]))


def _around(recall: float, positive: NDArray[np.bool_]) -> tuple[float, float]:
    count = int(positive.sum())
    return interval(round(recall * count), count)


def _speed(pack: VisionPack, files: list[Path], count: int = 60) -> dict[str, float]:
    """Milliseconds of one core for one image at a time, from the file's bytes to the vector."""
    pack.embed(files[:2])
    spent = []
    for file in files[:: max(1, len(files) // count)]:
        began = time.thread_time()
        pack.embed([file])
        spent.append((time.thread_time() - began) * 1000)
    return {"images": len(spent), "median": float(np.median(spent)), "p95": float(np.percentile(spent, 95))}


def _signals(
    images: Floats, labels: NDArray[np.str_], prototypes: dict[str, Floats], tower: TextTower, scale: float, bias: float
) -> dict[str, Any]:
    """Each signal by the mean of its classes' phrases, and by the best of a policy's own words."""
    found: dict[str, Any] = {}
    for signal, classes in SIGNALS.items():
        positive = np.isin(labels, classes)
        by_mean = np.max([images @ prototypes[name] for name in classes], axis=0)
        concepts = images @ tower.embed(CONCEPTS[signal]).T
        matched = sigmoid(scale * concepts.max(1) + bias) >= 0.5
        found[signal] = {
            "n": int(positive.sum()),
            "recall_at_1_percent": recall_at(by_mean, positive, 0.01),
            "interval_at_1_percent": _around(recall_at(by_mean, positive, 0.01), positive),
            "recall_at_2_percent": recall_at(by_mean, positive, 0.02),
            "interval_at_2_percent": _around(recall_at(by_mean, positive, 0.02), positive),
            "concepts_recall_at_1_percent": recall_at(concepts.max(1), positive, 0.01),
            "concepts_recall_at_2_percent": recall_at(concepts.max(1), positive, 0.02),
            "matched_at_half": float(matched[positive].mean()),
            "false_alarms_at_half": float(matched[~positive].mean()),
        }
    return found


def _calibration(probabilities: Floats, truth: NDArray[np.bool_]) -> dict[str, Any]:
    """Ten bins of what was promised and what came."""
    bins = []
    for low in np.arange(0, 1, 0.1):
        inside = (probabilities >= low) & (probabilities < low + 0.1 + 1e-9 * (low > 0.85))
        if inside.any():
            bins.append(
                {
                    "from": round(float(low), 1),
                    "n": int(inside.sum()),
                    "promised": float(probabilities[inside].mean()),
                    "true": float(truth[inside].mean()),
                }
            )
    error = sum(b["n"] * abs(b["promised"] - b["true"]) for b in bins) / len(probabilities)
    said = probabilities >= 0.5
    return {
        "pairs": len(probabilities),
        "expected_calibration_error": float(error),
        "brier": float(np.mean((probabilities - truth) ** 2)),
        "recall_at_half": float(said[truth].mean()),
        "precision_at_half": float(truth[said].mean()) if said.any() else 0.0,
        "false_alarms_at_half": float(said[~truth].mean()),
        "bins": bins,
    }


def _unseen(
    wordings: dict[str, list[str]],
    images: Floats,
    labels: NDArray[np.str_],
    tower: TextTower,
    scale: float,
    bias: float,
) -> dict[str, Any]:
    """The same in words that nobody chose for this tower; images of classes without such words are left out."""
    names = sorted(set(wordings) & set(labels.tolist()))
    worded = np.isin(labels, names)
    images, truth = images[worded], np.array([names.index(label) for label in labels[worded]])
    vectors = {name: tower.embed(wordings[name]) for name in names}
    of_means = top1(images @ unit(np.stack([vectors[name].mean(0) for name in names])).T, truth, names)
    fewest = min(len(of_class) for of_class in vectors.values())
    single = [
        float(((images @ np.stack([vectors[n][i] for n in names]).T).argmax(1) == truth).mean()) for i in range(fewest)
    ]
    flat = np.concatenate([vectors[name] for name in names])
    owner = np.repeat(np.arange(len(names)), [len(vectors[name]) for name in names])
    probabilities = sigmoid(scale * (images @ flat.T) + bias)
    return {
        "unseen_mean": {"images": len(images), "top1": of_means["top1"], "macro": of_means["macro"]},
        "unseen_single": {"each": single, "mean": float(np.mean(single))},
        "unseen_calibration": _calibration(probabilities.ravel(), (owner[None, :] == truth[:, None]).ravel()),
    }


def measure(pack: VisionPack, folder: Path, phrases: Phrases, unseen: Path | None) -> dict[str, Any]:
    """All figures as one report."""
    files, labels = read_images(folder)
    images = pack.embed(files)
    tower = TextTower()
    names = sorted(set(labels))
    truth = np.array([names.index(label) for label in labels])
    label_array = np.array(labels)
    means = _means(tower, dict(phrases.classes), names)
    scores = images @ means.T
    scale, bias = float(pack.manifest["logit_scale"]), float(pack.manifest["logit_bias"])
    report: dict[str, Any] = {"images": len(files), "classes": names, **top1(scores, truth, names)}
    report["confusion"] = confusion(truth.tolist(), scores.argmax(1).tolist(), len(names)).tolist()
    right = scores.argmax(1) == truth
    report["top1_interval"] = interval(int(right.sum()), len(right))
    report["macro_interval"] = macro_interval(right, truth)
    report["speed"] = _speed(pack, files)
    asked = concepts(phrases, names, tower)
    drawn, kinds = unknown_images(pack)
    ragbag = images[label_array == RAGBAG]
    report["unknown"] = rejected(drawn, kinds, asked, names, scale, bias)
    report["ragbag"] = rejected(ragbag, [RAGBAG] * len(ragbag), asked, names, scale, bias)
    report["signals"] = _signals(images, label_array, dict(zip(names, means, strict=True)), tower, scale, bias)
    kept = [(index, phrase) for index, name in enumerate(names) for phrase in phrases.held_out[name]]
    cosines = images @ tower.embed([phrase for _, phrase in kept]).T
    true_pairs = np.array([index for index, _ in kept])[None, :] == truth[:, None]
    report["calibration"] = _calibration(sigmoid(scale * cosines + bias).ravel(), true_pairs.ravel())
    if unseen:
        report |= _unseen(json.loads(unseen.read_text(encoding="utf-8")), images, label_array, tower, scale, bias)
    return report


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, help="SOURCES.csv and a folder a class")
    parser.add_argument("--pack", type=Path, default=PACK)
    parser.add_argument("--unseen", type=Path, help="JSON: class to a list of phrases")
    parser.add_argument(
        "--json", type=Path, help="write the whole report here; without it, it is printed after the table"
    )
    arguments = parser.parse_args()
    report = measure(VisionPack(arguments.pack), arguments.images, load(), arguments.unseen)
    print(table(report))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    else:
        print(json.dumps(report))


if __name__ == "__main__":
    main()
