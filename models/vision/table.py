"""A report of `measure`, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def _between(interval: Sequence[float]) -> str:
    return f"[{interval[0]:.3f}, {interval[1]:.3f}]"


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    names = report["classes"]
    lines = [
        f"{report['images']} images, {len(names)} classes: "
        f"top-1 {report['top1']:.3f} {_between(report['top1_interval'])}, "
        f"macro {report['macro']:.3f} {_between(report['macro_interval'])}",
        "",
    ]
    matrix = np.array(report["confusion"])
    for index, name in enumerate(names):
        row = matrix[index]
        others = [f"{names[other]} {row[other]}" for other in np.argsort(-row) if other != index and row[other]]
        lines.append(f"{name:22s} n {row.sum():3d}  {row[index] / row.sum():.2f}   {', '.join(others)}")
    lines.append("")
    for signal, values in report["signals"].items():
        lines.append(
            f"{signal:18s} n {values['n']:3d}  "
            f"recall at 1 % {values['recall_at_1_percent']:.3f} {_between(values['interval_at_1_percent'])}, "
            f"at 2 % {values['recall_at_2_percent']:.3f} {_between(values['interval_at_2_percent'])}; "
            f"best of a policy's words at 1 % {values['concepts_recall_at_1_percent']:.3f}, "
            f"at 2 % {values['concepts_recall_at_2_percent']:.3f}; at 0.5: recall {values['matched_at_half']:.3f}, "
            f"false alarms {values['false_alarms_at_half']:.4f}"
        )
    for name in ("calibration", "unseen_calibration"):
        if name in report:
            c = report[name]
            lines.append(
                f"{name}: {c['pairs']} pairs, ECE {c['expected_calibration_error']:.4f}, "
                f"at 0.5 recall {c['recall_at_half']:.3f}, precision {c['precision_at_half']:.3f}, "
                f"false alarms {c['false_alarms_at_half']:.4f}"
            )
    if "unseen_mean" in report:
        each = ", ".join(f"{value:.2f}" for value in report["unseen_single"]["each"])
        lines.append(
            f"unseen phrasings: mean of six {report['unseen_mean']['top1']:.3f} "
            f"(macro {report['unseen_mean']['macro']:.3f}); single {each}, mean {report['unseen_single']['mean']:.3f}"
        )
    for name in ("unknown", "ragbag"):
        values = report[name]
        taken = ", ".join(f"{label} {count}" for label, count in values["taken_for"].items())
        lines.append(
            f"{name}: {values['match_nothing']:.3f} {_between(values['interval'])} of {values['n']} match nothing; "
            f"taken for: {taken or '-'}"
        )
    weak = ", ".join(f"{kind} {share:.2f}" for kind, share in report["unknown"]["by_kind"].items() if share < 0.8)
    lines.append(f"unknown kinds below 0.8: {weak or '-'}")
    speed = report["speed"]
    lines.append(
        f"one image on one core: median {speed['median']:.1f} ms, p95 {speed['p95']:.1f} ms ({speed['images']} images)"
    )
    return "\n".join(lines)
