"""Runs cases through the pipeline that a worker would have, a few at a time, and keeps what came of each.

Two pipelines share models and cache. One decides as the policy says, and its answer is the case's. The other asks
every signal, for cases that say what signals should see: lazily, a signal that cannot change the outcome is not asked.
The decision's deadline is lifted in both, so that a slow machine changes no figure; who would have been late is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from router.config.load import LoadedPolicy
from router.evaluation.cases import MAX_TOLD, Case, CasesError, unknown_names
from router.evaluation.requests import CaseRequest, request_of
from router.extproc.house import build_house, move_in
from router.extproc.pipeline import Pipeline
from router.policy.agenda import signals_below
from router.records.record import DecisionRecord
from router.request.errors import RequestError
from router.request.reply import Reply
from router.signals.base import Observation

LIFTED_MS: Final = 60_000
"""As long as a policy may allow."""


@dataclass(frozen=True, slots=True)
class Came:
    """What came of a case. `record` is None for a request that could not be read; `seconds` as a worker decides it.

    `observations` are those that the case asks for, by family/name, from the pipeline that asks everything.
    """

    case: Case
    record: DecisionRecord | None
    status: int | None
    observations: dict[str, Observation]
    seconds: float | None
    trouble: str = ""

    @property
    def decision(self) -> str:
        """The decision's name; `failure` for a request that could not be read."""
        return self.record.decision if self.record else "failure"

    @property
    def outcome(self) -> str:
        """What was done with it."""
        return self.record.outcome if self.record else "unreadable"


def check_names(loaded: LoadedPolicy, cases: Sequence[Case]) -> None:
    """Raises CasesError for cases that speak of signals, projections or decisions that the policy does not have."""
    policy = loaded.policy
    asked = [*signals_below(policy), *(each.name for each in policy.projections)]
    names = {str(name): "" for name in asked}
    decisions = {one.name: "" for one in policy.all_decisions} | {"default": "", "failure": ""}
    # The nearest name is looked for each time, which takes long for a file that was made for another policy.
    lines = list(islice((line for case in cases for line in unknown_names(case, names, decisions)), MAX_TOLD + 1))
    if len(lines) > MAX_TOLD:
        lines[MAX_TOLD:] = ["... and more"]
    if lines:
        raise CasesError(lines)


async def run_cases(
    loaded: LoadedPolicy,
    cases: Sequence[Case],
    concurrency: int,
    threads: int,
    done: Callable[[Came], None] = lambda _: None,
) -> tuple[Came, ...]:
    """What came of each, in their order; `done` hears of each as it comes.

    At most `concurrency` requests are held in memory and judged at once. Raises CasesError for cases that cannot be
    sent, SetupError for a policy that cannot be served.
    """
    check_names(loaded, cases)
    patient = replace(loaded, limits=loaded.limits.model_copy(update={"decision_ms": LIFTED_MS}))
    asking_all = replace(patient, policy=replace(patient.policy, evaluation="full"))
    async with build_house(patient, threads) as house:
        # Needs the same machinery, so that only signals are built again.
        other = await move_in(asking_all, threads, before=house)
        slots = asyncio.Semaphore(concurrency)

        async def one(case: Case) -> Came:
            async with slots:
                came = await _judge(
                    case, await asyncio.to_thread(request_of, case, loaded.policy.apis), house.pipeline, other.pipeline
                )
                done(came)
                return came

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(case)) for case in cases]
        except* CasesError as errors:
            lines = [line for error in errors.exceptions for line in getattr(error, "lines", ())]
            raise CasesError(lines) from None
    return tuple(task.result() for task in tasks)


async def _judge(case: Case, request: CaseRequest, pipeline: Pipeline, asking_all: Pipeline) -> Came:
    try:
        judgement = await pipeline.judge_body(request.api, request.body, request.headers)
        record = judgement.record
        status = judgement.answer.status if isinstance(judgement.answer, Reply) else None
        if not case.file.expect.asked:
            return Came(case, record, status, {}, record.duration)
        full = (await asking_all.judge_body(request.api, request.body, request.headers)).record
    except RequestError as error:
        where = f" at {error.pointer}" if error.pointer else ""
        return Came(case, None, error.status, {}, None, f"{error.code}{where}: {error.message}")
    seen = {str(name): observation for name, observation in full.verdict.observations.items()}
    trouble = "" if full.decision == record.decision else f"asking every signal decides {full.decision} instead"
    asked = {name: seen[name] for name in case.file.expect.asked if name in seen}
    return Came(case, record, status, asked, record.duration, trouble)
