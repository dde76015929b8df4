"""One worker's life, from start to drain: what it serves with is built in `house.py`."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from router.config.load import LoadedPolicy, load_policy, parse_policy
from router.config.problems import PolicyError
from router.extproc.exchange import Judge
from router.extproc.feeding import Feed, ResponseLog
from router.extproc.heartbeat import beat
from router.extproc.house import House, SetupError, move_in
from router.extproc.memory import WORTHWHILE_BYTES, Trimmer
from router.extproc.onlooker import TellResponse
from router.extproc.options import WorkerOptions
from router.extproc.readiness import Door, Readiness, tell_of_start
from router.extproc.reload import PolicyFile, Tenure, changed
from router.extproc.room import Room
from router.extproc.service import Service, build_service
from router.extproc.stuck import until_stuck
from router.inference.canary import Canary
from router.inference.gate import GoldenError, Miss
from router.records.writer import RecordWriter
from router.selection.snapshot import no_state
from router.selection.watch import StateWatch
from router.telemetry.instruments import Instruments, create_instruments
from router.telemetry.worker_state import state_file

logger = logging.getLogger(__name__)

EXCHANGE_SLACK = 0.5
"""Seconds that an exchange may take beyond the policy's decision time: parsing, edits and a busy loop."""

DRAIN_NOTICE = 1.5
"""Seconds of NOT_SERVING before the end; Envoy's bootstrap asks for health once a second."""

DRAIN_GRACE = 10.0
"""Seconds that running exchanges have to end."""


async def serve(options: WorkerOptions) -> bool:
    """Start, serve until SIGTERM, drain; True when it was a model that hangs that ended it.

    Raises PolicyError or SocketUnavailableError when it cannot even refuse.
    """
    stop, reload = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, reload.set)
    beating = asyncio.create_task(beat())
    stuck = await run(options, stop, create_instruments(), reload)
    beating.cancel()
    return stuck


async def run(
    options: WorkerOptions, stop: asyncio.Event, instruments: Instruments, reload: asyncio.Event | None = None
) -> bool:
    """A worker's life until `stop`, or until a model hangs, which True says; `reload` asks it to read its policy again.

    One that cannot be made ready stays, NOT_SERVING, and says why: to start it again and again would change nothing and
    hide the reason. Another policy is tried when there is one. Raises PolicyError or SocketUnavailableError.
    """
    reload = reload or asyncio.Event()
    learnt = StateWatch(options.state) if options.state else None
    if learnt is not None:
        learnt.start()
    records = RecordWriter(instruments.records_dropped)
    stuck = False
    while not stop.is_set() and not stuck:
        started = time.monotonic()
        tell_of_start(options.index, state_file(options.socket))
        loaded = load_policy(options.config)
        try:
            state = learnt.snapshot if learnt else no_state
            houses = [await move_in(loaded, options.threads, snapshot=state, records=records)]
            canaries = [canary_of(houses[0])]
        except SetupError as error:
            await _refuse(options, loaded, error, stop, reload, instruments)
        else:
            # Handed over, not kept: the models of the first policy have to go when one with others follows.
            stuck = await _serve_with(houses.pop(), canaries.pop(), options, started, stop, reload, instruments)
    if learnt is not None:
        learnt.close()
    await asyncio.to_thread(records.close)
    logger.info("ended", extra={"fields": {"worker": options.index}})
    return stuck


async def _serve_with(
    house: House,
    canary: Canary | None,
    options: WorkerOptions,
    started: float,
    stop: asyncio.Event,
    reload: asyncio.Event,
    instruments: Instruments,
) -> bool:
    """Whether it ended because a model hangs."""
    door = Door(house.loaded.policy, house.pipeline)
    feed = Feed(*options.feedback) if options.feedback is not None else None
    # Of the policy that serves at the time.
    responses = ResponseLog(lambda: {upstream.model for upstream in tenure.house.loaded.policy.upstreams}, feed)
    trimmer = Trimmer()
    room = Room(house.loaded.limits.held_bytes, trimmer.after)
    service = _service_of(options, house.loaded, door, instruments, responses.tell, room)
    readiness = Readiness(service, instruments, options.index, state_file(options.socket))
    tenure = Tenure(house, door, readiness, instruments, options.threads)
    watch = Watch(readiness, door, house, canary)
    policy = house.loaded.policy.digest
    del house, canary
    # What was built lives as long as the worker: the collector need not look at it again with every request.
    gc.collect()
    gc.freeze()
    await service.start()
    await readiness.gained(time.monotonic() - started, policy)

    def moved(house: House) -> None:
        watch.follow(house)
        room.limit = house.loaded.limits.held_bytes
        # What the models of the former policy took.
        trimmer.after(WORTHWHILE_BYTES)

    beside = [asyncio.create_task(tenure.watch(reload, moved))]
    if feed is not None:
        beside.append(asyncio.create_task(feed.run()))
    stuck = asyncio.create_task(until_stuck(lambda: tenure.house.machinery.executor))
    beside += [stuck, ending := asyncio.create_task(_told(stop))]
    await asyncio.wait((stuck, ending), return_when=asyncio.FIRST_COMPLETED)
    hangs = stuck.done()
    for task in beside:
        task.cancel()
    watch.end()
    logger.info("draining", extra={"fields": {"worker": options.index}})
    readiness.draining()
    await service.drain(DRAIN_NOTICE, DRAIN_GRACE)
    readiness.ended()
    trimmer.close()
    tenure.close()
    return hangs


def _service_of(
    options: WorkerOptions,
    loaded: LoadedPolicy,
    judge: Judge,
    instruments: Instruments,
    tell_response: TellResponse | None = None,
    room: Room | None = None,
) -> Service:
    return build_service(
        judge,
        address=options.address,
        body_bytes=loaded.limits.wire_bytes,
        deadline=loaded.limits.decision_ms / 1000 + EXCHANGE_SLACK,
        instruments=instruments,
        socket_mode=options.socket_mode,
        tell_response=tell_response,
        tls=options.tls,
        room=room,
    )


def canary_of(house: House) -> Canary | None:
    """The canary over the packs of this house, None where its policy wants none; raises SetupError."""
    if not house.loaded.parity.interval:
        return None
    try:
        return Canary(house.machinery.encoders, house.machinery.executor, house.loaded.parity.interval)
    except GoldenError as error:
        raise SetupError([str(error)]) from error


class Watch:
    """The canary at work over the house that serves; a miss shuts the door."""

    def __init__(self, readiness: Readiness, door: Door, house: House, canary: Canary | None) -> None:
        self._readiness = readiness
        self._door = door
        self._house = house
        self._task = asyncio.create_task(self._watch(canary)) if canary else None

    def follow(self, house: House) -> None:
        """Watch over this house instead; one with the same packs and the same interval is watched already."""
        before, self._house = self._house, house
        if (before.machinery, before.loaded.parity) == (house.machinery, house.loaded.parity):
            return
        self.end()
        try:
            canary = canary_of(house)
        except SetupError as error:
            self._task = asyncio.create_task(self._shut(error.reasons, ()))
        else:
            self._task = asyncio.create_task(self._watch(canary)) if canary else None

    def end(self) -> None:
        """Watch no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self, canary: Canary) -> None:
        misses = await canary.watch()
        await self._shut([f"the canary found that a pack has drifted while serving: {miss}" for miss in misses], misses)

    async def _shut(self, reasons: Sequence[str], misses: Sequence[Miss]) -> None:
        """Tell of it first: Envoy gets the time to send its requests to workers that can judge them."""
        await self._readiness.refused(reasons, misses)
        await asyncio.sleep(DRAIN_NOTICE)
        self._door.shut()


async def _refuse(
    options: WorkerOptions,
    loaded: LoadedPolicy,
    error: SetupError,
    stop: asyncio.Event,
    reload: asyncio.Event,
    instruments: Instruments,
) -> None:
    """Be there without being ready, until `stop`, or until there is another policy to try."""
    service = _service_of(options, loaded, Door(loaded.policy, None), instruments)
    readiness = Readiness(service, instruments, options.index, state_file(options.socket))
    await service.start()
    await readiness.refused(error.reasons, error.misses)
    ending = asyncio.create_task(stop.wait())
    looking = asyncio.create_task(_another_policy(options.config, loaded, reload))
    await asyncio.wait((ending, looking), return_when=asyncio.FIRST_COMPLETED)
    for task in (ending, looking):
        task.cancel()
    await service.drain(0, DRAIN_GRACE)
    readiness.ended()


async def _told(stop: asyncio.Event) -> None:
    await stop.wait()


async def _another_policy(path: Path, loaded: LoadedPolicy, reload: asyncio.Event) -> None:
    """Return once there is a policy worth trying: one that holds."""
    file = PolicyFile(path, loaded.policy.digest)
    while True:
        text = await changed(file, reload)
        try:
            await asyncio.to_thread(parse_policy, text, path)
        except PolicyError as error:
            logger.error("policy refused", extra={"fields": {"why": str(error)}})
        else:
            return
