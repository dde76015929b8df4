"""What the judging of requests is given to tell by: where to say what was handled, how to find a request's trace."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from router.extproc.head import RequestHead
from router.extproc.telling.handled import Handled, Kind, Tell
from router.extproc.telling.lines import write_line
from router.extproc.telling.teller import Teller
from router.inference.gate import Miss
from router.records.record import DecisionRecord, OutcomeKind
from router.request.view import Api
from router.telemetry.context import Joiner, Trace

TellMisses = Callable[[Sequence[Miss]], None]
"""Takes misses; must not block."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that is there to be judged: since when, by two clocks, and its trace.

    `copy` says that it goes on whatever is decided.
    """

    api: Api | None
    began: int
    started: float
    body_bytes: int
    trace: Trace | None
    copy: bool = False

    def handled(
        self,
        kind: Kind,
        identifier: str,
        policy: str,
        outcome: OutcomeKind,
        *,
        record: DecisionRecord | None = None,
        image_bytes: tuple[int, ...] = (),
        failure: str = "",
        status: int | None = None,
        pointer: str = "",
        enforced: bool = True,
    ) -> Handled:
        """What is to be told of it, now that it is answered."""
        return Handled(
            kind=kind,
            api=self.api,
            identifier=identifier,
            record=record,
            policy=policy,
            outcome=outcome,
            began=self.began,
            seconds=time.perf_counter() - self.started,
            body_bytes=self.body_bytes,
            image_bytes=image_bytes,
            failure=failure,
            status=status,
            pointer=pointer,
            enforced=enforced,
            trace=self.trace,
        )


@dataclass(frozen=True, slots=True)
class Telling:
    """How requests under one policy are told; by default in the log, at once, and nothing is traced."""

    tell: Tell = write_line
    joiner: Joiner | None = None

    def arrival(self, api: Api | None, head: RequestHead | None, body_bytes: int) -> Arrival:
        """The request, from now on; from when its head says, where that says so."""
        began, started = time.time_ns(), time.perf_counter()
        trace = None
        if head is not None:
            if head.began:
                started -= max(0, began - head.began) / 1e9
                began = min(began, head.began)
            if self.joiner is not None:
                trace = self.joiner.join(head.headers, head.carried)
        elif self.joiner is not None:
            trace = self.joiner.join({}, {})
        return Arrival(api, began, started, body_bytes, trace, head is not None and head.copy)


@dataclass(frozen=True, slots=True)
class Desk:
    """What a worker tells by, whatever its policy is. `tell_misses` takes what parity checks find."""

    teller: Teller
    joiner: Joiner | None = None
    tell_misses: TellMisses | None = None

    def telling(self, keep: Tell | None = None) -> Telling:
        """For a policy whose requests are given to `keep` too, by the teller."""
        return Telling(self.teller.also(keep) if keep is not None else self.teller.tell, self.joiner)
