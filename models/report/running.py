"""Runs cases through the pipeline as `pointsman eval` does: a policy and cases as files, read by its own readers."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from router.config.load import load_policy
from router.evaluation.cases import read_cases
from router.evaluation.report import Labelled, Report, SignalFigures, figures_of, report_of
from router.evaluation.run import Came, run_cases

UPSTREAM: Final = {"model": "any", "cluster": "any", "modalities": ["text", "image"]}


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a section's cases. A case's name begins with its set and a slash."""

    report: Report
    came: tuple[Came, ...]

    def of_sets(self, signal: str, sets: Sequence[str]) -> list[Labelled]:
        """A signal's answers to the cases of these sets."""
        return [each for each in self.report.answers.get(signal, ()) if each.case.rpartition("/")[0] in sets]

    def figures(self, signal: str, sets: Sequence[str]) -> SignalFigures:
        """A signal's figures on these sets alone."""
        return figures_of(signal, self.of_sets(signal, sets))


def policy_of(signals: Mapping[str, Mapping[str, Any]], projections: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A policy that asks all of these; every signal must be read by a decision, and none of these ever wins."""
    families = [{family: name} for family, named in signals.items() for name in named]
    families += [{kind: name} for kind, named in (projections or {}).items() for name in named]
    return {
        "version": 1,
        "upstreams": [UPSTREAM],
        "default_model": "any",
        "encoders": {"text": "starter", "vision": "starter"},
        "signals": {family: dict(named) for family, named in signals.items()},
        **({"projections": dict(projections)} if projections else {}),
        "decisions": [
            {"name": f"of-{index}", "priority": 1, "when": leaf, "route": {"models": ["any"]}}
            for index, leaf in enumerate(families)
        ],
    }


def run(policy: Mapping[str, Any], cases: Sequence[Mapping[str, Any]], folder: Path, name: str) -> Run:
    """Write both files, read them as the command does, and run; one request a core at once."""
    file, requests = folder / f"{name}.yaml", folder / f"{name}.jsonl"
    file.write_text(yaml.safe_dump(dict(policy), sort_keys=False), encoding="utf-8")
    requests.write_text("".join(f"{json.dumps(case)}\n" for case in cases), encoding="utf-8")
    loaded = load_policy(file)
    cores = len(os.sched_getaffinity(0))
    came = asyncio.run(run_cases(loaded, read_cases(requests), cores, cores))
    return Run(report_of(name, loaded.policy.digest, loaded.limits.decision_ms / 1000, came), came)


def said(name: str, text: str, **expect: Any) -> dict[str, Any]:
    """A case of one user turn."""
    return {"name": name, "text": text, "expect": expect}
