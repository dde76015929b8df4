"""Whether a worker may be sent requests, and if not, why: told in one place to all who ask.

Health (`grpc.health.v1`) tells Envoy, the log and the metrics tell operators, and a file beside the worker's socket
tells whoever looks from outside the process. What makes a worker unready is found elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from router.actions.edits import Edits
from router.extproc.exchange import FailureKind, Judge
from router.extproc.head import RequestHead
from router.extproc.service import Service
from router.extproc.telling.desk import Telling, TellMisses
from router.extproc.unjudged import Unjudged
from router.inference.gate import Miss
from router.policy.model import Policy
from router.request.reply import Reply
from router.telemetry.instruments import Instruments
from router.telemetry.worker_state import (
    Stage,
    StateFileError,
    WorkerState,
    read_state,
    state_of_this_process,
    write_state,
)

logger = logging.getLogger(__name__)


def tell_of_start(worker: int, file: Path) -> None:
    """Overwrite what a worker that was killed has left behind; there is no health to tell yet."""
    _write(file, state_of_this_process(worker, "starting"))


class NotReadyError(Exception):
    """A judge was asked although its worker is not to be believed."""


class _Tenant:
    """A judge and how many requests are before it; `gone` is set when it was followed and the last of them is done."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.followed = False
        self.requests = 0
        self.gone = asyncio.Event()

    @contextlib.contextmanager
    def judging(self) -> Iterator[Judge]:
        self.requests += 1
        try:
            yield self.judge
        finally:
            self.requests -= 1
            self.look_around()

    def look_around(self) -> None:
        if self.followed and not self.requests:
            self.gone.set()


class Door:
    """The judge, while its worker may be believed; once shut, every request gets the policy's outcome of failure.

    Health alone does not keep requests away: when too few workers are healthy, Envoy sends to the others as well. One
    judge may follow another; each request is judged by one of them from beginning to end.
    """

    def __init__(self, policy: Policy, judge: Judge | None, telling: Telling | None = None) -> None:
        """With no judge it is shut from the start. By `telling` those are told of that are not judged."""
        self._telling = telling or Telling()
        self._unjudged = Unjudged(policy, self._telling)
        self._tenant = _Tenant(judge) if judge is not None else None
        self._requests = 0
        self._quiet_since = -math.inf

    @property
    def open(self) -> bool:
        """Whether requests are judged."""
        return self._tenant is not None

    def shut(self) -> None:
        """Judge no more; what is being judged goes on."""
        self._tenant = None

    def hand_over(self, policy: Policy, judge: Judge) -> asyncio.Event:
        """Judge by this one from now on; the event is set when the former one has nobody before it any more."""
        former, self._tenant = self._believed(), _Tenant(judge)
        self._unjudged = Unjudged(policy, self._telling)
        former.followed = True
        former.look_around()
        return former.gone

    def reads_body(self, head: RequestHead) -> bool:
        """See `Judge`; once shut, the judging itself says so."""
        return self._tenant is None or self._tenant.judge.reads_body(head)

    async def judge_headers(self, head: RequestHead) -> Edits | Reply:
        """See `Judge`; raises NotReadyError once shut."""
        with self._attended(), self._believed().judging() as judge:
            return await judge.judge_headers(head)

    async def judge(self, head: RequestHead, body: bytes) -> Edits | Reply:
        """See `Judge`; raises NotReadyError once shut."""
        with self._attended(), self._believed().judging() as judge:
            return await judge.judge(head, body)

    def judging(self) -> contextlib.AbstractContextManager[Judge]:
        """The judge, for as long as this is entered; raises NotReadyError once shut."""
        return self._believed().judging()

    def quiet_for(self) -> float:
        """Seconds since the last request was judged, 0 while any is."""
        return 0.0 if self._requests else time.monotonic() - self._quiet_since

    @contextlib.contextmanager
    def _attended(self) -> Iterator[None]:
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            self._quiet_since = time.monotonic()

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Edits | Reply:
        """The outcome for a request that could not be judged, by the policy that serves now."""
        return self._unjudged.failed(head, kind)

    def _believed(self) -> _Tenant:
        if self._tenant is None:
            raise NotReadyError
        return self._tenant


class Readiness:
    """The state of one worker: not ready, then ready, and not ready again when something is found. Never back."""

    def __init__(
        self,
        service: Service,
        instruments: Instruments,
        worker: int,
        file: Path,
        tell_misses: TellMisses | None = None,
    ) -> None:
        """`tell_misses` is told of what was missed, beside the counter."""
        self._service = service
        self._instruments = instruments
        self._worker = worker
        self._file = file
        self._tell_misses = tell_misses
        self._ready = False
        self._policy = ""
        self.misses: Sequence[Miss] = ()

    async def gained(self, seconds: float, policy: str) -> None:
        """Take requests from now on; `seconds` is how long the start took, `policy` the digest that is served."""
        self._ready = True
        self._policy = policy
        self._instruments.ready.add(1)
        await self._service.set_ready(True)
        logger.info("ready", extra={"fields": {"worker": self._worker, "policy": policy, "seconds": round(seconds, 3)}})
        self._tell("ready")

    async def refused(self, why: Sequence[str], misses: Sequence[Miss] = ()) -> None:
        """Take no requests: say why, count what was missed. Running exchanges go on."""
        if self._ready:
            self._ready = False
            self._instruments.ready.add(-1)
        self.misses = tuple(misses)
        await self._service.set_ready(False)
        for miss in misses:
            self._instruments.parity_misses.add(1, {"pack": miss.pack, "stage": miss.stage})
        if self._tell_misses is not None:
            self._tell_misses(misses)
        if not misses:
            # Files that are not the manifest's, providers that fell back, signals that cannot be built.
            self._instruments.parity_misses.add(1, {"stage": "setup"})
        for reason in why:
            logger.error("not ready", extra={"fields": {"worker": self._worker, "why": reason}})
        self._tell("not_ready", why)

    def moved(self, policy: str) -> None:
        """Another policy is served from now on; `policy` is its digest."""
        self._policy = policy
        if self._ready:
            self._tell("ready")

    def stayed(self, why: Sequence[str]) -> None:
        """The policy file has changed and what it says cannot be served: the former policy goes on."""
        if self._ready:
            self._tell("ready", refused_policy=why)

    def draining(self) -> None:
        """The worker is about to end; health is told by the service's own drain."""
        self._tell("not_ready", ("it is draining",))

    def ended(self) -> None:
        """The worker ends as it should: what it wrote is removed."""
        if self._ready:
            self._ready = False
            self._instruments.ready.add(-1)
        # A worker that a new supervisor started may have taken the file over.
        with contextlib.suppress(OSError, StateFileError):
            said = read_state(self._file)
            if said is not None and said.pid == os.getpid():
                self._file.unlink(missing_ok=True)

    def _tell(self, state: Stage, why: Sequence[str] = (), refused_policy: Sequence[str] = ()) -> None:
        _write(self._file, state_of_this_process(self._worker, state, why, self._policy, refused_policy))


def _write(file: Path, state: WorkerState) -> None:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_state(file, state)
    except OSError as error:
        # Health has been told already; a full disk must not end a worker that serves.
        logger.warning("state not written", extra={"fields": {"worker": state.worker, "why": error.strerror}})
        # No word is better than the last one, which may have been that it is ready.
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)
