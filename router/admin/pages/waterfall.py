"""Where a request's time went: bars on one scale of milliseconds, in the order in which things began."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from router.admin.pages.evidence import Seen

Document = Mapping[str, Any]
SHORTEST: Final = 0.05
"""Milliseconds below which a bar says nothing."""

SLIMMEST: Final = 0.01
"""The share of the whole from which on a wait can be seen."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One span: `start`, `length` and `waited`, of it the part before any work was done, are shares of the whole."""

    name: str
    tone: str
    start: float
    length: float
    waited: float
    ms: float
    waited_ms: float
    signal: bool = False


def waterfall(record: Document, signals: Iterable[Seen]) -> list[Bar]:
    """The bars; none where the record has no times."""
    whole = record.get("duration_ms")
    if not whole or record.get("decide_ms") is None:
        return []
    return list(_bars(record, [one for one in signals if one.ms], float(whole)))


def _bars(record: Document, signals: list[Seen], whole: float) -> Iterator[Bar]:
    parse, decide, select = (record.get(f"{name}_ms") or 0.0 for name in ("parse", "decide", "select"))
    longest = max([whole, parse + decide, *(parse + one.at_ms + (one.ms or 0.0) for one in signals)])

    def bar(name: str, tone: str, start: float, ms: float, waited: float = 0.0, signal: bool = False) -> Bar:
        waiting = waited if waited / longest >= SLIMMEST else 0.0
        return Bar(name, tone, start / longest, ms / longest, waiting / longest, ms, waiting, signal)

    yield bar("read the body", "parse", 0.0, parse)
    yield bar("decide", "decide", parse, decide)
    for one in sorted(signals, key=lambda one: (one.kind == "derived", one.at_ms, one.ms or 0.0)):
        ms = one.ms or 0.0
        # Projections are computed as deciding ends.
        start = parse + (max(0.0, decide - select - ms) if one.kind == "derived" else one.at_ms)
        yield bar(one.name, one.kind if one.state != "unknown" else "unknown", start, ms, one.waited_ms, signal=True)
    if select > SHORTEST:
        yield bar("select a model", "select", parse + decide - select, select)
    rest = whole - parse - decide
    if rest > SHORTEST:
        yield bar("write the answer", "rest", parse + decide, rest)
