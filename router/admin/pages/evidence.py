"""What a signal answered, prepared for the eye: its state in a word, its score beside its threshold, its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Document = Mapping[str, Any]
Kind = Literal["text", "image", "derived", "fact"]
State = Literal["true", "false", "unknown"]

_TEXT: Final = frozenset(
    {
        *(
            "keyword",
            "embedding",
            "jailbreak",
            "pii",
            "secret",
            "complexity",
            "domain",
            "fact_check",
            "feedback",
            "reask",
        ),
        *("preference", "knowledge_base", "classifier", "language", "structure", "context"),
        *("tool_call", "tool_result", "memory_write"),
    }
)
_IMAGE: Final = frozenset({"image", "agreement"})
_DERIVED: Final = frozenset({"partition", "score", "band"})
WORDS: Final = {"true": "matched", "false": "no match", "unknown": "unknown"}
STATUSES: Final = {"failed": "failed", "timed_out": "timed out", "shed": "shed"}


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a signal begins to match, or with `below` ceases to. Of what it counted, where that is past all scores."""

    at: float
    below: bool = False

    @property
    def counted(self) -> bool:
        """Whether it bounds a count rather than a score."""
        return abs(self.at) > 1


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of evidence; `image` counts from 1, as people do."""

    pointer: str
    label: str
    score: float | None
    span: str
    image: int | None
    detail: str
    over: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """One signal's answer. It was asked `at_ms` after the body was read, and `waited_ms` for a thread."""

    name: str
    kind: Kind
    state: State
    word: str
    score: float | None
    value: float | None
    label: str
    reason: str
    pack: str
    ms: float | None
    waited_ms: float
    at_ms: float
    bound: Bound | None
    pieces: tuple[Piece, ...]
    left_out: int

    @property
    def images(self) -> tuple[int, ...]:
        """The images, from 1, that speak for the match."""
        return tuple(dict.fromkeys(piece.image for piece in self.pieces if piece.image is not None and piece.over))


def kind_of(name: str) -> Kind:
    """Whether a family looks at words, at pictures, at other signals, or at facts about the request."""
    family = name.partition("/")[0]
    if family in _IMAGE:
        return "image"
    if family in _DERIVED:
        return "derived"
    return "text" if family in _TEXT else "fact"


def state_of(matched: bool | None) -> State:
    """The word of three-valued logic."""
    return "unknown" if matched is None else "true" if matched else "false"


def seen(name: str, observation: Document, bound: Bound | None = None) -> Seen:
    """The answer as it is shown."""
    state = state_of(observation.get("matched"))
    rows = observation.get("evidence") or ()
    best = observation.get("score") if bound is None or bound.counted else None
    pieces = tuple(_piece(row, state, bound, best) for row in rows)
    kind = "image" if kind_of(name) == "text" and any(piece.image is not None for piece in pieces) else kind_of(name)
    return Seen(
        name=name,
        kind=kind,
        state=state,
        word=STATUSES.get(observation.get("status", ""), WORDS[state]),
        score=observation.get("score"),
        value=observation.get("value"),
        label=observation.get("label") or "",
        reason=observation.get("reason") or "",
        pack=observation.get("pack") or "",
        ms=observation.get("ms"),
        waited_ms=observation.get("waited_ms") or 0.0,
        at_ms=observation.get("at_ms") or 0.0,
        bound=bound,
        pieces=pieces,
        left_out=observation.get("evidence_left_out") or 0,
    )


def bounds_of(policy: Document | None) -> dict[str, Bound]:
    """Where each signal and projection of the policy begins to match, of those that have such a place."""
    if policy is None:
        return {}
    found: dict[str, Bound] = {}
    for row in (*policy.get("signals", ()), *policy.get("projections", ())):
        low, high = row.get("matching") or (None, None)
        if row.get("threshold") is not None:
            found[row["name"]] = Bound(row["threshold"], below=low is None and high is not None)
        elif low is not None:
            found[row["name"]] = Bound(low)
        elif high is not None:
            found[row["name"]] = Bound(high, below=True)
    return found


def _piece(row: Document, state: State, bound: Bound | None, best: float | None) -> Piece:
    """`best` is what the signal scored; where no bound is known, only evidence as good as that surely speaks for it."""
    score, image, span = row.get("score"), row.get("image"), row.get("span")
    if state != "true":
        over = False
    elif score is None:
        over = True
    elif bound is None or bound.counted:
        over = best is None or score >= best
    else:
        over = score <= bound.at if bound.below else score >= bound.at
    return Piece(
        pointer=row.get("pointer") or "",
        label=row.get("label") or "",
        score=score,
        span=f"{span[0]}–{span[1]}" if span else "",
        image=None if image is None else image + 1,
        detail=row.get("detail") or "",
        over=over,
    )
