"""The checks of a loaded policy, made of its settings and of signals that are built already."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from router.config.load import LoadedPolicy
from router.extproc.answers.checks import AnswerChecks, Handling, policy_of_checks
from router.policy.agenda import signals_below
from router.policy.engine import Engine
from router.records.store import AnswerRow
from router.signals.base import Cost, Signal, SignalName


def read_by_checks(loaded: LoadedPolicy) -> frozenset[SignalName]:
    """The signals that the checks of answers rest on."""
    return signals_below(policy_of_checks(loaded.policy, loaded.checks))


def checks_of(
    loaded: LoadedPolicy, signals: Mapping[SignalName, Signal], put: Callable[[AnswerRow], None] | None
) -> AnswerChecks | None:
    """What checks answers; None where the policy has no checks. `put` keeps why one did not pass."""
    if not loaded.checks:
        return None
    settings = loaded.responses
    back = settings.hold_back
    closed = loaded.policy.on_failure == "closed"
    handling = Handling(
        chars=back.chars,
        seconds=None if back.ms is None else back.ms / 1000,
        bytes=settings.bytes,
        refuses_unreadable=closed if settings.unreadable is None else settings.unreadable == "refuse",
        enforced=not loaded.policy.observe_only,
    )
    cheap = all(signals[name].cost is Cost.HEURISTIC for name in read_by_checks(loaded))
    engine = Engine(policy_of_checks(loaded.policy, loaded.checks), signals)
    return AnswerChecks(loaded.policy, engine, loaded.limits.decision_ms / 1000, handling, cheap, put)
