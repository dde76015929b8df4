"""The checks of a policy over what a model answers, asked by the engine that also decides about requests.

A check is a decision whose only outcome is a refusal. What is asked when, and what becomes of the answer, others say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from router.policy.engine import Engine
from router.policy.model import Decision, Policy, Refuse
from router.policy.verdict import Verdict
from router.records.record_id import time_of
from router.records.store import AnswerRow
from router.records.stored import StoredAnswer, StoredFinding, encode_beside
from router.request.view import RequestView

SLACK: Final = 0.5
"""Seconds that a check may take beyond the budget, before whoever waits for it gives up."""

MOST_EVIDENCE: Final = 8
"""Places that are told of."""

NOT_CHECKED: Final = "The answer could not be checked, and the policy refuses what it could not check. Try again."


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an answer goes no further. `check` is the policy's name for what refused it, empty where nothing could be
    checked; `why` is `matched`, `unknown`, or what made it impossible. `evidence` points and never quotes."""

    check: str
    why: str
    status: int
    code: str
    message: str
    evidence: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Handling:
    """How answers are held: `chars` characters back, for `seconds` at most where that is not None, in at most `bytes`.

    `refuses_unreadable` says what becomes of answers that cannot be checked. `enforced` is False under a policy that
    only observes.
    """

    chars: int
    seconds: float | None
    bytes: int
    refuses_unreadable: bool
    enforced: bool = True


def policy_of_checks(policy: Policy, checks: Iterable[Decision]) -> Policy:
    """A policy that has nothing but these checks, in their order."""
    return replace(policy, decisions=tuple(checks), profiles=(), respect_requested_model=False, observe_only=False)


class AnswerChecks:
    """The checks of one policy. `cheap` says that no check asks a model, so that they can be asked often."""

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        budget: float,
        handling: Handling,
        cheap: bool,
        put: Callable[[AnswerRow], None] | None = None,
    ) -> None:
        """`policy` is that of the requests, `engine` has the checks', `budget` is in seconds each time.

        `put` takes what is kept beside the request's record; it must not block.
        """
        self.apis = policy.apis
        self.handling = handling
        self.cheap = cheap
        self.deadline = budget + SLACK
        self._budget = budget
        self._engine = engine
        self._put = put

    async def judge(self, view: RequestView) -> Refusal | None:
        """The refusal of the first check that matches, or is unknown and refuses then; None where none does."""
        verdict = await self._engine.decide(view, self._budget)
        outcome = verdict.outcome
        if not isinstance(outcome, Refuse):
            return None
        check = verdict.decision or ""
        if verdict.unknown_root:
            return Refusal(check, "unknown", 503, "not_judged", NOT_CHECKED, _missing(verdict))
        return Refusal(check, "matched", outcome.status, outcome.code, outcome.message, _found(verdict))

    def keep(self, record: str, refusal: Refusal, stream: bool, enforced: bool) -> None:
        """Keep beside this record why its answer did not pass, where records are kept."""
        # Envoy says whose answer it is, by a header; nothing is kept under a name that we have never given.
        if self._put is None or time_of(record) is None:
            return
        evidence = tuple(
            StoredFinding(**{name: value or "" for name, value in row.items()}) for row in refusal.evidence
        )
        told = StoredAnswer(refusal.check, refusal.why, stream, enforced, evidence)
        self._put(AnswerRow(record, encode_beside(told)))

    def unreadable(self, why: str) -> Refusal:
        """The refusal of an answer that cannot be checked at all."""
        return Refusal("", why, 503, "not_judged", NOT_CHECKED)


def _found(verdict: Verdict) -> tuple[dict[str, Any], ...]:
    rows = (
        {"signal": str(name), "pointer": one.pointer, "label": one.label}
        for name, observation in verdict.observations.items()
        if observation.matched
        for one in observation.evidence
    )
    return tuple(row for row, _ in zip(rows, range(MOST_EVIDENCE), strict=False))


def _missing(verdict: Verdict) -> tuple[dict[str, Any], ...]:
    rows = (
        {"signal": str(name), "status": observation.status, "reason": observation.reason}
        for name, observation in verdict.observations.items()
        if observation.matched is None
    )
    return tuple(row for row, _ in zip(rows, range(MOST_EVIDENCE), strict=False))
