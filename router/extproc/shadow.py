"""Tries another policy on requests that were answered, and tells where it would have done something else.

Nothing is done by it: it has no answer to give, counts towards no selection, and what goes wrong in it is a line in the
log. What the policy in force has observed counts for it as well, where the signal is the same; only what is missing is
asked, a step at a time, when neither the models nor the worker have anything else to do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from router.config.handling import ShadowSettings
from router.extproc.afterwards import Afterwards, idle_within
from router.extproc.courtesy import Courtesy
from router.inference.executor import InferenceExecutor
from router.policy.engine import Engine
from router.policy.model import Policy
from router.policy.verdict import Verdict
from router.records.basis import StoredBasis
from router.records.record import DecisionRecord
from router.records.redecide import Redecider, Undecidable
from router.records.replay import Compared, settle
from router.records.store import ShadowRow
from router.records.stored import StoredRecord, StoredShadow, encode_beside, to_stored
from router.request.view import RequestView
from router.signals.base import Cost, Observation, Signal, SignalName
from router.telemetry.instruments import Instruments

logger = logging.getLogger(__name__)

IDLE_SECONDS: Final = 1.0
"""How long a moment is waited for in which nothing else is to be done; a request of a busier time is not compared."""

GIVING_WAY_SECONDS: Final = 10.0
"""How long what was begun may give way to requests all in all, beside the time that the policy has for a decision."""

SECONDS: Final = 90.0
"""For one request; the policy's own time for a decision is shorter."""

_RANDOM_BITS: Final = 48
"""Of the last part of a record's identifier, which are random."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that the policy in force has decided."""

    record: DecisionRecord
    view: RequestView = field(repr=False)


class Remembered:
    """What is known already of the request that is being decided."""

    def __init__(self) -> None:
        self.known: Mapping[SignalName, Observation] = {}


class Recalling:
    """A signal that is asked only where its answer is not known already, and gives way to requests then."""

    def __init__(self, signal: Signal, remembered: Remembered, courtesy: Courtesy) -> None:
        self._signal = signal
        self._remembered = remembered
        self._courtesy = courtesy

    @property
    def name(self) -> SignalName:
        """The signal's own."""
        return self._signal.name

    @property
    def cost(self) -> Cost:
        """The signal's own."""
        return self._signal.cost

    async def prepare(self) -> None:
        """Nothing to do: the signal was prepared."""

    async def observe(self, view: RequestView) -> Observation:
        """What is known, or the signal's answer."""
        known = self._remembered.known.get(self.name)
        return known if known is not None else await self._courtesy.step_by_step(self._signal.observe(view))


@dataclass(frozen=True, slots=True)
class Other:
    """The shadow policy, ready to decide: its signals, and what replay decides by. `budget` is in seconds."""

    policy: Policy
    signals: Mapping[SignalName, Signal]
    redecider: Redecider
    budget: float


class Shadow:
    """One shadow beside one policy, whose basis is `basis`. `put` takes what the records are to say of it."""

    def __init__(
        self,
        settings: ShadowSettings,
        other: Other,
        policy: Policy,
        basis: StoredBasis,
        executors: Sequence[InferenceExecutor],
        instruments: Instruments,
        put: Callable[[ShadowRow], None] | None,
        release: Callable[[], None],
    ) -> None:
        """`release` lets go of what the shadow alone has opened."""
        self._share = settings.share
        self._other = other
        self._policy = policy
        self._basis = basis
        self._executors = executors
        self._instruments = instruments
        self._put = put
        self._release = release
        self._remembered = Remembered()
        self._courtesy = courtesy = Courtesy()
        recalling = {name: Recalling(signal, self._remembered, courtesy) for name, signal in other.signals.items()}
        self._engine = Engine(other.policy, recalling)
        self._afterwards: Afterwards[Answered] = Afterwards(
            self._compare,
            lambda _, error: self._leave_out("shed" if error is None else "failed"),
            settings.queue,
            SECONDS,
        )

    def attend(self, quiet_for: Callable[[], float]) -> None:
        """Give way to requests: see `Courtesy.attend`."""
        self._courtesy.attend(quiet_for)

    def take(self, record: DecisionRecord, view: RequestView, _: bytes) -> None:
        """Compare this request, if it is one of the share; later, and never waited for."""
        drawn = int(record.record[-_RANDOM_BITS // 4 :], 16) / 2**_RANDOM_BITS
        if drawn < self._share and not self._afterwards.offer(Answered(record, view), view.body_bytes):
            self._leave_out("shed")

    async def settled(self) -> None:
        """Return once nothing waits."""
        await self._afterwards.settled()

    def close(self) -> None:
        """Compare nothing more, and let go of what was opened for it."""
        self._afterwards.close()
        self._release()

    async def _compare(self, job: Answered) -> None:
        stored = to_stored(job.record)
        if self._basis.apis != self._other.redecider.basis.apis:
            # It may be no such request to the other policy.
            self._leave_out("undecidable")
            return
        verdict: Verdict | Undecidable | None = self._other.redecider.decide(stored, self._basis)
        exact = not isinstance(verdict, Undecidable)
        if isinstance(verdict, Undecidable):
            verdict = await self._asked(stored, job.view)
        if verdict is None:
            self._leave_out("shed")
            return
        compared = settle(stored, verdict, self._basis, self._policy, self._other.redecider)
        if compared.after is None:
            self._leave_out("undecidable")
            return
        self._tell(stored, compared, exact)

    async def _asked(self, stored: StoredRecord, view: RequestView) -> Verdict | None:
        """The other policy's verdict, with what is missing asked; None where there was no time for it."""
        for executor in self._executors:
            if not await idle_within(executor, IDLE_SECONDS):
                return None
        if not await self._courtesy.turn(IDLE_SECONDS):
            return None
        known = self._other.redecider.usable(stored, self._basis)
        self._remembered.known = known
        try:
            verdict = await self._engine.decide(view, self._other.budget + GIVING_WAY_SECONDS)
        finally:
            self._remembered.known = {}
        late = (one for name, one in verdict.observations.items() if name not in known)
        return None if any(one.status in ("shed", "timed_out") for one in late) else verdict

    def _tell(self, stored: StoredRecord, compared: Compared, exact: bool) -> None:
        self._instruments.shadow_compared.add(1)
        before, after = compared.before, compared.after
        assert after is not None
        if compared.changed:
            names = self._instruments.names
            labels = {"from": names.of("decision", before.decision), "to": names.of("shadow", after.decision)}
            self._instruments.shadow_differences.add(1, labels)
            fields = {"record": stored.record, "from": before.decision, "to": after.decision}
            logger.info("shadow differs", extra={"fields": fields})
        if self._put is not None:
            told = StoredShadow(
                self._other.policy.digest, after.decision, after.outcome, after.models, exact, compared.changed
            )
            self._put(ShadowRow(stored.record, compared.changed, encode_beside(told)))

    def _leave_out(self, reason: str) -> None:
        self._instruments.shadow_left_out.add(1, {"reason": reason})
