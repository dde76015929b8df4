"""Asks signals and decides: cheap ones first, then those learned ones that can still change the outcome, all at once.

The engine owns the deadline and turns whatever goes wrong inside a signal into an observation. It knows neither Envoy
nor models; which upstream serves the outcome is `resolve.py`'s matter.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from router.policy.agenda import Agenda, Agendas
from router.policy.conclude import conclude, unanswered
from router.policy.eager import Done, Waits, begin
from router.policy.model import Policy
from router.policy.plan import Standing, contenders
from router.policy.profiles import profile_of
from router.policy.project import derive
from router.policy.verdict import Stage, Verdict
from router.request.view import RequestView
from router.signals.base import Observation, Signal, SignalName, failed
from router.telemetry.waiting import WAITING, Waiting

log = logging.getLogger(__name__)

CANCEL_GRACE: Final = 0.02
"""Seconds that a cancelled signal has to end before the verdict goes out without waiting for it."""

TIMED_OUT: Final = Observation("timed_out", None, reason="deadline")

Observations = dict[SignalName, Observation]


class Engine:
    """Decides requests under one policy; holds no state of any request.

    `signals` must hold every signal that a condition names, also through projections (KeyError otherwise).
    """

    def __init__(
        self,
        policy: Policy,
        signals: Mapping[SignalName, Signal],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._full = policy.evaluation == "full"
        self._models = frozenset(upstream.model for upstream in policy.upstreams)
        self._signals = signals
        self._agendas = Agendas(policy, {name: signal.cost for name, signal in signals.items()})
        self._tasks_on_their_way_out: set[asyncio.Task[Observation]] = set()

    async def decide(self, view: RequestView, budget: float) -> Verdict:
        """The verdict, at most about `budget` seconds from now; signals that would take longer are `timed_out`."""
        started = self._clock()
        deadline = started + budget
        profile = profile_of(self._policy, view)
        own_choice = self._policy.respect_requested_model and view.requested_model in self._models
        whole = self._agendas.of(profile, guards_only=False)
        agenda = self._agendas.of(profile, guards_only=own_choice)
        to_ask = whole if self._full else agenda
        observations: Observations = {}
        stages: list[Stage] = []

        if to_ask.cheap:
            began = self._clock()
            await self._ask_in_turn(to_ask.cheap, view, observations, started, deadline)
            stages.append(Stage("heuristic", to_ask.cheap, self._clock() - began, began - started))
        derive(to_ask.projections, observations)

        live = contenders(agenda.decisions, observations)
        wanted = self._wanted(to_ask, live, observations)
        if wanted:
            began = self._clock()
            live = await self._ask_together(sorted(wanted), view, to_ask, live, observations, started, deadline)
            stages.append(Stage("learned", tuple(sorted(wanted)), self._clock() - began, began - started))

        return conclude(
            self._policy,
            self._agendas,
            profile,
            own_choice,
            live,
            observations,
            stages,
            self._clock() - started,
        )

    def _wanted(self, agenda: Agenda, live: Sequence[Standing], observations: Observations) -> Collection[SignalName]:
        """Signals that are still to be asked."""
        if self._full:
            return agenda.asked.keys() - observations.keys()
        return unanswered(self._agendas, live, observations)

    async def _ask_in_turn(
        self,
        names: Iterable[SignalName],
        view: RequestView,
        observations: Observations,
        started: float,
        deadline: float,
    ) -> None:
        """Ask heuristics one after the other, without a task for each: most are done before a task would start."""
        left = iter(names)
        began = self._clock()
        late: list[SignalName] = []
        waiting = Waiting()
        before = WAITING.set(waiting)
        try:
            for name in left:
                began = self._clock()
                asked = self._begin(name, view) if began < deadline else None
                if isinstance(asked, Done):
                    observations[name] = asked.value.took(self._clock() - began, 0.0, began - started)
                    continue
                waited = waiting.seconds
                answer = await self._until(deadline, name, asked) if asked is not None else None
                if answer is None:
                    late.append(name)
                    break
                observations[name] = answer.took(self._clock() - began, waiting.seconds - waited, began - started)
        finally:
            WAITING.reset(before)
        # Of those that were not answered only the first was asked.
        for name in (*late, *left):
            now = self._clock()
            observations[name] = TIMED_OUT.took(now - began, at=began - started)
            began = now

    def _begin(self, name: SignalName, view: RequestView) -> Done[Observation] | Waits[Observation]:
        try:
            return begin(self._signals[name].observe(view))
        except (Exception, asyncio.CancelledError) as error:
            return Done(_without_answer(name, error))

    async def _until(self, deadline: float, name: SignalName, asked: Waits[Observation]) -> Observation | None:
        """The answer without its times; None where it is not there by the deadline."""
        try:
            async with asyncio.timeout(deadline - self._clock()):
                return await _answer(name, asked)
        except TimeoutError:
            return None

    async def _ask_together(
        self,
        names: Iterable[SignalName],
        view: RequestView,
        agenda: Agenda,
        live: tuple[Standing, ...],
        observations: Observations,
        started: float,
        deadline: float,
    ) -> tuple[Standing, ...]:
        """Ask all at once, drop those that stop mattering, and give up on the rest at the deadline."""
        began = self._clock()
        tasks = {asyncio.create_task(self._ask(name, view, started), name=f"signal {name}"): name for name in names}
        pending = set(tasks)
        try:
            while pending:
                done, pending = await asyncio.wait(
                    pending, timeout=deadline - self._clock(), return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    given_up = TIMED_OUT.took(self._clock() - began, at=began - started)
                    observations.update((tasks[task], given_up) for task in pending)
                    pending = set()
                for task in done:
                    observations[tasks[task]] = failed("cancelled") if task.cancelled() else task.result()
                derive(agenda.projections, observations)
                live = contenders((one.decision for one in live), observations)
                if not self._full:
                    wanted = self._wanted(agenda, live, observations)
                    pending = {task for task in pending if tasks[task] in wanted}
        finally:
            await self._end([task for task in tasks if not task.done()])
        return live

    async def _ask(self, name: SignalName, view: RequestView, started: float) -> Observation:
        began = self._clock()
        waiting = Waiting()
        before = WAITING.set(waiting)
        try:
            observation = await _answer(name, self._signals[name].observe(view))
        finally:
            WAITING.reset(before)
        return observation.took(self._clock() - began, waiting.seconds, began - started)

    async def _end(self, tasks: Collection[asyncio.Task[Observation]]) -> None:
        """Cancel and give each a moment to end; one that lingers is held until it has, and delays nobody."""
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        _, lingering = await asyncio.wait(tasks, timeout=CANCEL_GRACE)
        for task in lingering:
            self._tasks_on_their_way_out.add(task)
            task.add_done_callback(self._tasks_on_their_way_out.discard)


async def _answer(name: SignalName, asked: Awaitable[Observation]) -> Observation:
    try:
        return await asked
    except (Exception, asyncio.CancelledError) as error:
        return _without_answer(name, error)


def _without_answer(name: SignalName, error: Exception | asyncio.CancelledError) -> Observation:
    """What it means that asking ended like this; raises a cancellation of who asks."""
    if isinstance(error, asyncio.CancelledError):
        asker = asyncio.current_task()
        if asker is None or asker.cancelling():
            raise error
        # Nobody cancelled the question: what the signal waited for was.
        return failed("cancelled")
    if isinstance(error, TimeoutError):
        # A server has a time of its own, within the request's.
        return TIMED_OUT
    # The message may quote the request; the type can't.
    log.warning("signal %s raised %s", name, type(error).__name__)
    return failed(type(error).__name__)
