"""Findings as SARIF 2.1.0, which code hosts and editors show beside the file (OASIS, sarif-v2.1.0)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


@dataclass(frozen=True, slots=True)
class Row:
    """One result: `rule` is its kind, `level` error, warning or note; line and column count from 1."""

    rule: str
    level: str
    message: str
    line: int
    column: int


def sarif(policy: Path, rows: Sequence[Row]) -> dict[str, Any]:
    """One run of `pointsman check` over one file."""
    rules = sorted({row.rule for row in rows})
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "pointsman check",
                        "version": version("pointsman"),
                        "rules": [{"id": rule} for rule in rules],
                    }
                },
                # Columns count characters, not the units of UTF-16 that SARIF takes them for otherwise.
                "columnKind": "unicodeCodePoints",
                "results": [_result(policy, row, rules) for row in rows],
            }
        ],
    }


def _result(policy: Path, row: Row, rules: Sequence[str]) -> dict[str, Any]:
    region = {"startLine": row.line, "startColumn": row.column}
    place = {"artifactLocation": {"uri": quote(policy.as_posix())}, "region": region}
    return {
        "ruleId": row.rule,
        "ruleIndex": rules.index(row.rule),
        "level": row.level,
        "message": {"text": row.message},
        "locations": [{"physicalLocation": place}],
    }
