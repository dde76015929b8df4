"""What was handled, as documents: one that is remembered, and one that is kept in the store. Plain JSON, no content."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from router.extproc.telling.handled import Handled

UNKNOWN: dict[str, Any] = {
    "requested_model": None,
    "model": None,
    "cluster": None,
    "signals": {},
    "profile": None,
    "selection": None,
    "skipped": [],
    "turns": None,
    "images": None,
    "stream": None,
    "parse_ms": None,
    "decide_ms": None,
    "select_ms": None,
}
"""What is not known of a request that was not judged."""


def summary_of(handled: Handled) -> dict[str, Any]:
    """A request without its trees."""
    told = {"at": moment(handled.began), "status": handled.status, "failure": handled.failure or None}
    if handled.record is not None:
        return {**handled.record.summary(), **told}
    return {
        "record": handled.identifier,
        "policy": handled.policy,
        "api": handled.api,
        "decision": "failure",
        "outcome": handled.outcome,
        "enforced": handled.enforced,
        "reason": handled.failure,
        **UNKNOWN,
        "body_bytes": handled.body_bytes,
        "duration_ms": round(handled.seconds * 1000, 3),
        **told,
    }


def whole_of(handled: Handled) -> dict[str, Any]:
    """A request with its trees."""
    trees = [] if handled.record is None else handled.record.whole()["decisions"]
    return {**summary_of(handled), "decisions": trees}


def moment(nanoseconds: int) -> str:
    """Unix time in RFC 3339, to the millisecond."""
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 10**6:03d}Z"
