"""The live list: which decisions are asked for, and each as a row with the evidence that counted most."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from router.admin.insight import Filter
from router.admin.pages.evidence import Bound, Kind, Seen, seen
from router.admin.pages.rendering import clock, quoted, score

Document = Mapping[str, Any]

CHIPS: Final = 4
LIMIT: Final = 200
OUTCOMES: Final = {"route": "routed", "refuse": "refused", "clarify": "asked back"}
SPANS: Final = {
    "": "any time",
    "1m": "last minute",
    "5m": "last 5 minutes",
    "15m": "last 15 minutes",
    "1h": "last hour",
    "24h": "last day",
}
_WORD: Final = re.compile(r"[a-z]+\Z")


@dataclass(frozen=True, slots=True)
class Chip:
    """A piece of evidence in a word or two. `kind` is `unknown` for an answer that is missing."""

    kind: Kind | str
    name: str
    told: str
    title: str


@dataclass(frozen=True, slots=True)
class Row:
    """One handled request."""

    identifier: str
    href: str
    at: str
    time: str
    tone: str
    outcome: str
    decision: str
    where: str
    chips: tuple[Chip, ...]
    more: int
    ms: float | None
    observed_only: bool


@dataclass(frozen=True, slots=True)
class Choices:
    """What the filters offer: values and their words."""

    decisions: Mapping[str, str]
    models: Mapping[str, str]
    signals: Mapping[str, str]


def filter_of(asked: Mapping[str, str]) -> Filter:
    """The filter that the address asks for; words that are none of the page's own are left out."""
    outcome, since = asked.get("outcome", ""), asked.get("since", "")
    return Filter(
        decision=asked.get("decision", ""),
        outcome=outcome if outcome in OUTCOMES else "",
        model=asked.get("model", ""),
        signal=asked.get("signal", ""),
        failed=asked.get("failed", "") == "1",
        since=since if since in SPANS else "",
        limit=LIMIT,
    )


def is_narrowed(wanted: Filter) -> bool:
    """Whether the filter leaves anything out."""
    return wanted != Filter(limit=LIMIT)


def choices(policy: Document | None, wanted: Filter) -> Choices:
    """Names of the policy, and the one that is chosen though the policy has it no more."""
    known = policy or {}
    decisions = [one["name"] for one in known.get("decisions", ())]
    return Choices(
        decisions=_with([*decisions, "default", "failure"], wanted.decision),
        models=_with([one["model"] for one in known.get("upstreams", ())], wanted.model),
        signals=_with(
            [one["name"] for one in (*known.get("signals", ()), *known.get("projections", ()))], wanted.signal
        ),
    )


def rows_of(
    records: Sequence[Document], now: datetime, digest: str = "", bounds: Mapping[str, Bound] | None = None
) -> list[Row]:
    """A row each, in the order given. `bounds` are those of the policy of this digest."""
    known = bounds or {}
    return [_row(record, now, known if record.get("policy") == digest else {}) for record in records]


def _with(names: Sequence[str], chosen: str) -> dict[str, str]:
    return {name: name for name in ([*names, chosen] if chosen else names)}


def _row(record: Document, now: datetime, bounds: Mapping[str, Bound]) -> Row:
    identifier = record.get("record") or ""
    answers = [seen(name, one, bounds.get(name)) for name, one in (record.get("signals") or {}).items()]
    telling = sorted((one for one in answers if one.state != "false"), key=_rank)
    chips = tuple(map(_chip, telling[:CHIPS]))
    kind = record.get("outcome") or ""
    failure = record.get("failure") or ""
    outcome, tone = ("failed", "failure") if failure else (OUTCOMES.get(kind, kind), kind)
    return Row(
        identifier=identifier,
        href=f"/decisions/{quoted(identifier)}" if identifier else "",
        at=record.get("at") or "",
        time=clock(record.get("at"), now),
        tone=tone if _WORD.match(tone) else "failure",
        outcome=outcome,
        decision="not judged" if failure else record.get("decision") or "",
        where=failure or record.get("model") or "answered here",
        chips=chips,
        more=len(telling) - len(chips),
        ms=record.get("duration_ms"),
        observed_only=record.get("enforced") is False,
    )


def _rank(answer: Seen) -> tuple[int, float]:
    """What is missing first, then what has a score, the surest first; plain facts last."""
    if answer.state == "unknown":
        return (0, 0.0)
    if answer.kind == "fact":
        return (3, 0.0)
    return (1 if answer.kind in ("image", "text") else 2, -(answer.score or 0.0))


def _chip(answer: Seen) -> Chip:
    if answer.state == "unknown":
        why = f"{answer.word}: {answer.reason}" if answer.reason else answer.word
        return Chip("unknown", answer.name, answer.word, why)
    told = score(answer.score) if answer.score is not None else ""
    if answer.images:
        told = f"{told} #{','.join(map(str, answer.images[:3]))}{'…' if len(answer.images) > 3 else ''}".strip()
    return Chip(answer.kind, answer.name, told, answer.label or "matched")
