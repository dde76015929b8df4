"""Checks for tests: over plain signals that look for words, and ones that never answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable

from router.extproc.answers.checks import AnswerChecks, Handling, policy_of_checks
from router.policy.engine import Engine
from router.policy.model import Decision, Policy, Refuse
from router.policy.predicate import Leaf
from router.records.store import AnswerRow
from router.request.view import RequestView, ToolCallPart
from router.selection.upstream import Upstream
from router.signals.base import Cost, Evidence, Observation, SignalName, failed, observed

SECRET = re.compile(r"sk-[0-9]{8}")
WORDS, CALLS, BROKEN, HUNG = (SignalName("keyword", name) for name in ("secret", "shell", "broken", "hung"))


class Words:
    """Whether a text says a secret; keeps all that it was shown."""

    name, cost = WORDS, Cost.HEURISTIC

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def prepare(self) -> None:
        """Nothing."""

    async def observe(self, view: RequestView) -> Observation:
        self.shown += (span.text for span in view.texts)
        found = [Evidence(span.pointer, label="sk") for span in view.texts if SECRET.search(span.text)]
        return observed(bool(found), evidence=tuple(found))


class Calls:
    """Whether a tool named shell is called with `rm`."""

    name, cost = CALLS, Cost.HEURISTIC

    async def prepare(self) -> None:
        """Nothing."""

    async def observe(self, view: RequestView) -> Observation:
        calls = [part for _, part in view.parts() if isinstance(part, ToolCallPart)]
        return observed(any(call.name == "shell" and "rm" in call.arguments for call in calls))


class Broken:
    name, cost = BROKEN, Cost.HEURISTIC

    async def prepare(self) -> None:
        """Nothing."""

    async def observe(self, _: RequestView) -> Observation:
        return failed("broken")


class Hung:
    name, cost = HUNG, Cost.TEXT_MODEL

    async def prepare(self) -> None:
        """Nothing."""

    async def observe(self, _: RequestView) -> Observation:
        await asyncio.Event().wait()
        raise AssertionError


def rules() -> Policy:
    return Policy(
        digest="0" * 64,
        on_failure="closed",
        respect_requested_model=False,
        upstreams=(Upstream(model="m", cluster="m", endpoint=None, rewrite_model="m", modalities=("text",)),),
        default_model="m",
        decisions=(),
    )


def check(signal: SignalName, name: str, unknown_matches: bool = True, priority: int = 0) -> Decision:
    refusal = Refuse(403, "policy_violation", "No.")
    return Decision(name, priority, True, unknown_matches, Leaf(signal), refusal, priority)


ALL = (check(WORDS, "no-secrets"), check(CALLS, "no-shell", priority=-1))


def checks(
    decisions: Iterable[Decision] = ALL,
    *,
    words: Words | None = None,
    chars: int = 40,
    seconds: float | None = None,
    size: int = 1 << 20,
    refuses: bool = True,
    enforced: bool = True,
    budget: float = 1.0,
    cheap: bool = True,
    put: Callable[[AnswerRow], None] | None = None,
) -> AnswerChecks:
    signals = {one.name: one for one in (words or Words(), Calls(), Broken(), Hung())}
    policy = policy_of_checks(rules(), decisions)
    handling = Handling(chars, seconds, size, refuses, enforced)
    return AnswerChecks(rules(), Engine(policy, signals), budget, handling, cheap, put)
