"""Holds what came of a case against what was expected, in words for people."""

from __future__ import annotations

from collections.abc import Iterator

from router.evaluation.cases import Expected
from router.evaluation.run import Came
from router.signals.base import Observation


def misses(came: Came) -> tuple[str, ...]:
    """What is not as expected; empty for a case that passes."""
    return tuple(_misses(came))


def truth(expected: Expected) -> bool | None:
    """The expected match; None: unknown."""
    return {"true": True, "false": False, "unknown": None}[str(expected).lower()]


def _misses(came: Came) -> Iterator[str]:
    expect, record = came.case.file.expect, came.record
    told = (
        ("decision", expect.decision, came.decision),
        ("outcome", expect.outcome, came.outcome),
        ("model", expect.model, record and record.model),
        ("status", expect.status, came.status),
        ("profile", expect.profile, record and record.verdict.profile),
    )
    wrong = [f"{what} {_word(got)}, expected {wanted}" for what, wanted, got in told if wanted not in (None, got)]
    if wrong and record is None:
        wrong.append(f"the request cannot be read: {came.trouble}")
    yield from wrong
    if record is not None and came.trouble:
        yield came.trouble
    for name, expected in expect.signals.items():
        seen = came.observations.get(name)
        if seen is None:
            yield _not_asked(name, came)
        elif seen.matched is not truth(expected):
            yield f"{name} {_answer(seen)}, expected {str(expected).lower()}"
    for name, label in expect.labels.items():
        seen = came.observations.get(name)
        if seen is None:
            yield _not_asked(name, came)
        elif seen.label != label:
            yield f"{name} says {seen.label or 'no label'}{_score(seen)}, expected {label}"
    for name, image in expect.evidence.items():
        seen = came.observations.get(name)
        if seen is None:
            yield _not_asked(name, came)
        elif (got := _image(seen)) != image:
            yield f"{name} names {'no image' if got is None else f'image {got}'}, expected image {image}"


def _not_asked(name: str, came: Came) -> str:
    if came.record is None:
        return f"{name} was not asked: {came.trouble}"
    profile = came.record.verdict.profile
    return f"{name} was not asked{f', the profile {profile} does not read it' if profile else ''}"


def _image(observation: Observation) -> int | None:
    """The image of the piece of evidence with the highest score."""
    pieces = [each for each in observation.evidence if each.image is not None]
    return max(pieces, key=lambda each: each.score or 0.0).image if pieces else None


def _answer(observation: Observation) -> str:
    if observation.matched is None:
        return f"unknown ({observation.status}: {observation.reason})"
    return f"{'matched' if observation.matched else 'did not match'}{_score(observation)}"


def _score(observation: Observation) -> str:
    number = observation.score if observation.value is None else observation.value
    return "" if number is None else f" at {number:.3f}"


def _word(value: object) -> str:
    return "none" if value is None else str(value)
