"""Asks signals and decides: cheap ones first, then those learned ones that can still change the outcome, all at once.

The engine owns the deadline and turns whatever goes wrong inside a signal into an observation. It knows neither Envoy
nor models; which upstream serves the outcome is `resolve.py`'s matter.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Literal

from router.policy.logic import signals_of
from router.policy.model import Decision, Policy
from router.policy.plan import Standing, by_rank, contenders, needed, reason_for, winner
from router.policy.verdict import Stage, Verdict
from router.request.view import RequestView
from router.signals.base import Cost, Observation, Signal, SignalName, failed

log = logging.getLogger(__name__)

CANCEL_GRACE: Final = 0.02
"""Seconds that a cancelled signal has to end before the verdict goes out without waiting for it."""

Observations = dict[SignalName, Observation]


class Engine:
    """Decides requests under one policy; holds no state of any request.

    `signals` must hold every signal that a condition names (KeyError otherwise). `evaluation="full"` asks them all, for
    those who want to see every answer; the decision is the same.
    """

    def __init__(
        self,
        policy: Policy,
        signals: Mapping[SignalName, Signal],
        clock: Callable[[], float] = time.perf_counter,
        evaluation: Literal["lazy", "full"] = "lazy",
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._full = evaluation == "full"
        self._models = frozenset(upstream.model for upstream in policy.upstreams)
        self._decisions = by_rank(policy.decisions)
        self._guards = tuple(decision for decision in self._decisions if decision.guard)
        self._signals = {name: signals[name] for name in _names(policy.decisions)}
        self._cheap = self._heuristics(self._decisions)
        self._cheap_for_guards = self._cheap if self._full else self._heuristics(self._guards)
        self._tasks_on_their_way_out: set[asyncio.Task[Observation]] = set()

    async def decide(self, view: RequestView, budget: float) -> Verdict:
        """The verdict, at most about `budget` seconds from now; signals that would take longer are `timed_out`."""
        started = self._clock()
        deadline = started + budget
        own_choice = self._policy.respect_requested_model and view.requested_model in self._models
        decisions = self._guards if own_choice else self._decisions
        observations: Observations = {}
        stages: list[Stage] = []

        cheap = self._cheap_for_guards if own_choice else self._cheap
        if cheap:
            began = self._clock()
            await self._ask_in_turn(cheap, view, observations, deadline)
            stages.append(Stage("heuristic", cheap, self._clock() - began))

        live = contenders(decisions, observations)
        wanted = self._signals.keys() - observations if self._full else needed(live, observations)
        if wanted:
            began = self._clock()
            live = await self._ask_together(sorted(wanted), view, live, observations, deadline)
            stages.append(Stage("learned", tuple(sorted(wanted)), self._clock() - began))

        won = winner(live)
        return Verdict(
            decision=won.decision.name if won else None,
            outcome=won.decision.outcome if won else None,
            reason=reason_for(won, decisions, observations)
            if won
            else ("requested_model" if own_choice else "no_match"),
            confidence=won.confidence.low if won else None,
            unknown_root=won is not None and won.tree.unknown,
            routes_considered=not own_choice,
            observations=observations,
            skipped=tuple(name for name in self._signals if name not in observations),
            stages=tuple(stages),
            seconds=self._clock() - started,
            decisions=self._policy.decisions,
        )

    def _heuristics(self, decisions: Iterable[Decision]) -> tuple[SignalName, ...]:
        return tuple(name for name in _names(decisions) if self._signals[name].cost is Cost.HEURISTIC)

    async def _ask_in_turn(
        self, names: Iterable[SignalName], view: RequestView, observations: Observations, deadline: float
    ) -> None:
        """Ask heuristics one after the other, without a task for each: most are done before a task would start."""
        left = list(names)
        try:
            async with asyncio.timeout(deadline - self._clock()):
                while left and self._clock() < deadline:
                    observations[left[0]] = await self._ask(left[0], view)
                    del left[0]
        except TimeoutError:
            pass
        observations.update((name, _timed_out()) for name in left)

    async def _ask_together(
        self,
        names: Iterable[SignalName],
        view: RequestView,
        live: tuple[Standing, ...],
        observations: Observations,
        deadline: float,
    ) -> tuple[Standing, ...]:
        """Ask all at once, drop those that stop mattering, and give up on the rest at the deadline."""
        tasks = {asyncio.create_task(self._ask(name, view), name=f"signal {name}"): name for name in names}
        pending = set(tasks)
        try:
            while pending:
                done, pending = await asyncio.wait(
                    pending, timeout=deadline - self._clock(), return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    observations.update((tasks[task], _timed_out()) for task in pending)
                    return _again(live, observations)
                for task in done:
                    observations[tasks[task]] = failed("cancelled") if task.cancelled() else task.result()
                live = _again(live, observations)
                if not self._full:
                    wanted = needed(live, observations)
                    pending = {task for task in pending if tasks[task] in wanted}
        finally:
            await self._end([task for task in tasks if not task.done()])
        return live

    async def _ask(self, name: SignalName, view: RequestView) -> Observation:
        began = self._clock()
        try:
            observation = await self._signals[name].observe(view)
        except Exception as error:
            # The message may quote the request; the type can't.
            log.warning("signal %s raised %s", name, type(error).__name__)
            observation = failed(type(error).__name__)
        return observation.took(self._clock() - began)

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


def _again(live: Iterable[Standing], observations: Observations) -> tuple[Standing, ...]:
    return contenders((one.decision for one in live), observations)


def _timed_out() -> Observation:
    return Observation("timed_out", None, reason="deadline")


def _names(decisions: Iterable[Decision]) -> tuple[SignalName, ...]:
    """Every signal that the decisions name, once, in the order of first mention."""
    return tuple(dict.fromkeys(name for decision in decisions for name in signals_of(decision.when)))
