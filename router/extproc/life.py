"""One worker's life, from start to drain: what it serves with is built in `house.py`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from router.config.load import LoadedPolicy, load_policy, parse_policy
from router.config.problems import PolicyError
from router.config.runtime import inspect_socket
from router.extproc.answers.checks import AnswerChecks
from router.extproc.answers.exchange import Checking
from router.extproc.exchange import Judge
from router.extproc.feeding import Feed, ResponseLog
from router.extproc.heartbeat import beat
from router.extproc.house import House, move_in
from router.extproc.inspection.explaining import METHOD as EXPLAIN
from router.extproc.inspection.explaining import Explainer, nobody_explains
from router.extproc.inspection.ring import Ring
from router.extproc.inspection.server import InspectionServer, Sight
from router.extproc.machinery import SetupError
from router.extproc.memory import WORTHWHILE_BYTES, Trimmer
from router.extproc.onlooker import TellResponse
from router.extproc.options import WorkerOptions
from router.extproc.readiness import Door, Readiness, tell_of_start
from router.extproc.reading import ResponseFacts
from router.extproc.reload import PolicyFile, Tenure, changed
from router.extproc.room import Room
from router.extproc.service import Service, build_service
from router.extproc.stuck import until_stuck
from router.extproc.telling.desk import Desk
from router.extproc.telling.lines import write_line
from router.extproc.telling.measures import Prices, admit, begin, measure, measure_response
from router.extproc.telling.spans import spans_of
from router.extproc.telling.teller import Teller
from router.extproc.unary import Unary
from router.extproc.vitals import of_house, of_process
from router.extproc.watching import Watch, canary_of
from router.inference.canary import Canary
from router.records.writer import RecordWriter
from router.selection.snapshot import no_state
from router.selection.watch import StateWatch
from router.telemetry.histograms import Histograms
from router.telemetry.instruments import Instruments, create_instruments
from router.telemetry.otel import Exporting, set_up
from router.telemetry.prometheus import Exposition
from router.telemetry.views import views
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
    histograms = Histograms()
    exposition = Exposition(histograms)
    exporting = set_up(options.index, [exposition.reader], views(), histograms)
    instruments = create_instruments(exporting.meter, histograms)
    stuck = await run(options, stop, instruments, reload, exposition.text, exporting)
    await asyncio.to_thread(exporting.close)
    beating.cancel()
    return stuck


def no_metrics() -> bytes:
    """For a worker whose metrics nobody collects."""
    return b""


async def run(
    options: WorkerOptions,
    stop: asyncio.Event,
    instruments: Instruments,
    reload: asyncio.Event | None = None,
    metrics: Callable[[], bytes] = no_metrics,
    exporting: Exporting | None = None,
) -> bool:
    """A worker's life until `stop`, or until a model hangs, which True says; `reload` asks it to read its policy again.

    One that cannot be made ready stays, NOT_SERVING, and says why: to start it again and again would change nothing and
    hide the reason. Another policy is tried when there is one. `metrics` gives all of them as Prometheus reads them.
    Raises PolicyError or SocketUnavailableError.
    """
    reload = reload or asyncio.Event()
    learnt = StateWatch(options.state) if options.state else None
    if learnt is not None:
        learnt.start()
    records = RecordWriter(instruments.records_dropped)
    instruments.sources.update(of_process())
    begin(instruments)
    prices = Prices()
    ring = Ring()
    sight = Sight(ring, metrics)
    spans = spans_of(exporting, instruments.names)
    teller = Teller(
        (write_line, partial(measure, instruments), ring.take, *((spans.tell,) if spans else ())),
        instruments.telemetry_dropped,
        (partial(measure_response, instruments, prices), *((spans.tell_response,) if spans else ())),
    )
    teller.start()
    desk = Desk(teller, exporting.joiner if exporting else None, spans.tell_misses if spans else None)
    stuck = False
    while not stop.is_set() and not stuck:
        started = time.monotonic()
        tell_of_start(options.index, state_file(options.socket))
        loaded = load_policy(options.config)
        inspection = InspectionServer(sight, inspect_socket(options.socket), loaded.limits.wire_bytes)
        await inspection.start()
        try:
            state = learnt.snapshot if learnt else no_state
            houses = [
                await move_in(
                    loaded, options.threads, snapshot=state, records=records, desk=desk, instruments=instruments
                )
            ]
            canaries = [canary_of(houses[0])]
        except SetupError as error:
            await _refuse(options, loaded, error, stop, reload, instruments, desk)
        else:
            # Handed over, not kept: the models of the first policy have to go when one with others follows.
            stuck = await _serve_with(
                houses.pop(), canaries.pop(), options, started, stop, reload, instruments, desk, prices, sight
            )
        finally:
            await inspection.close()
    if learnt is not None:
        learnt.close()
    # In this order: what is told last may still be a record.
    teller.close()
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
    desk: Desk,
    prices: Prices,
    sight: Sight,
) -> bool:
    """Whether it ended because a model hangs."""
    door = Door(house.loaded.policy, house.pipeline, desk.telling())
    feed = Feed(options.feedback) if options.feedback is not None else None
    # Of the policy that serves at the time.
    responses = ResponseLog(lambda: {upstream.model for upstream in tenure.house.loaded.policy.upstreams}, feed)
    trimmer = Trimmer()
    room = Room(house.loaded.limits.held_bytes, trimmer.after)

    def tell_response(facts: ResponseFacts) -> None:
        responses.tell(facts)
        desk.teller.tell_response(facts)

    @contextlib.contextmanager
    def checking() -> Iterator[AnswerChecks | None]:
        with door.judging():
            yield tenure.house.answers

    explainer = Explainer(door, lambda: tenure.house, room)
    beside_it = {EXPLAIN: explainer.answer}
    service = _service_of(options, house.loaded, door, instruments, tell_response, room, checking, beside_it)
    readiness = Readiness(service, instruments, options.index, state_file(options.socket), desk.tell_misses)
    tenure = Tenure(house, door, readiness, instruments, options.threads)
    watch = Watch(readiness, door, house, canary, DRAIN_NOTICE)
    policy = house.loaded.policy.digest
    house.beside.attend(door.quiet_for)
    sight.serves(lambda: tenure.house, explainer, readiness)
    instruments.sources.update(of_house(lambda: tenure.house, room))
    admit(instruments, house.loaded)
    prices.take(house.loaded)
    del house, canary
    # What was built lives as long as the worker: the collector need not look at it again with every request.
    gc.collect()
    gc.freeze()
    # What opening models and checking them took, and the models do not keep.
    trimmer.after(WORTHWHILE_BYTES)
    await service.start()
    await readiness.gained(time.monotonic() - started, policy)

    def moved(house: House) -> None:
        watch.follow(house)
        house.beside.attend(door.quiet_for)
        admit(instruments, house.loaded)
        prices.take(house.loaded)
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
    sight.serves_no_more()
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
    checking: Checking | None = None,
    unary: Mapping[str, Unary] | None = None,
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
        checking=checking,
        unary=unary,
    )


async def _refuse(
    options: WorkerOptions,
    loaded: LoadedPolicy,
    error: SetupError,
    stop: asyncio.Event,
    reload: asyncio.Event,
    instruments: Instruments,
    desk: Desk,
) -> None:
    """Be there without being ready, until `stop`, or until there is another policy to try, or this one once more."""
    door = Door(loaded.policy, None, desk.telling())
    service = _service_of(options, loaded, door, instruments, unary={EXPLAIN: nobody_explains})
    readiness = Readiness(service, instruments, options.index, state_file(options.socket), desk.tell_misses)
    await service.start()
    await readiness.refused(error.reasons, error.misses)
    ending = asyncio.create_task(stop.wait())
    looking = asyncio.create_task(_another_policy(options.config, loaded, reload))
    waiting = [ending, looking]
    if error.mended is not None:
        waiting.append(asyncio.create_task(error.mended()))
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
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
