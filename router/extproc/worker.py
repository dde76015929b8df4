"""One worker: the place where its objects are made, and its life from start to drain.

Run by the supervisor as `python -m router.extproc.worker`. `build_house` is the composition root: nothing else
constructs what it uses, and `pointsman explain` decides in the same house.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import uvloop

from router.config.load import LoadedPolicy, load_policy
from router.config.problems import PolicyError
from router.extproc.exchange import Judge
from router.extproc.heartbeat import beat
from router.extproc.lifeline import end_with_supervisor
from router.extproc.pipeline import Pipeline
from router.extproc.readiness import Door, Readiness, tell_of_start
from router.extproc.service import Service, build_service
from router.extproc.sockets import SocketUnavailableError
from router.inference.cache import EmbeddingCache
from router.inference.canary import Canary
from router.inference.encoders import Encoders
from router.inference.executor import InferenceExecutor
from router.inference.gate import GoldenError, Miss, check_encoders
from router.inference.open import open_encoders
from router.packs.files import PackError, towers_of
from router.packs.store import Pack, open_pack
from router.policy.engine import Engine
from router.policy.logic import signals_of
from router.records.record import DecisionRecord
from router.request.images import ImageLimits
from router.signals.base import Signal, SignalName
from router.signals.registry import FAMILIES, SignalSetupError
from router.telemetry.instruments import Instruments, create_instruments
from router.telemetry.log import configure_logging
from router.telemetry.worker_state import state_file

logger = logging.getLogger(__name__)

EXCHANGE_SLACK = 0.5
"""Seconds that an exchange may take beyond the policy's decision time: parsing, edits and a busy loop."""

DRAIN_NOTICE = 1.5
"""Seconds of NOT_SERVING before the end; Envoy's bootstrap asks for health once a second."""

DRAIN_GRACE = 10.0
"""Seconds that running exchanges have to end."""


class SetupError(Exception):
    """A worker that cannot be made ready; `reasons` say what is wrong, for the operator, `misses` what the gate saw."""

    def __init__(self, reasons: Sequence[str], misses: Sequence[Miss] = ()) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)
        self.misses = tuple(misses)


@dataclass(frozen=True, slots=True)
class OpenPacks:
    """The packs that the policy's encoders name."""

    text: Pack | None
    vision: Pack | None


@dataclass(frozen=True, slots=True)
class House:
    """What a worker serves with, and where its models run."""

    pipeline: Pipeline
    encoders: Encoders
    executor: InferenceExecutor


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How one worker runs. `threads` is how many model calls run at a time, `socket_mode` the socket's permissions."""

    config: Path
    socket: Path
    index: int
    threads: int
    socket_mode: int = 0o600


def open_packs(loaded: LoadedPolicy) -> OpenPacks:
    """Find the packs and check the files they carry; raises PackError."""
    text, vision = loaded.encoders.text, loaded.encoders.vision
    return OpenPacks(
        text=open_pack(text, "text", loaded.base) if text else None,
        vision=open_pack(vision, "vision", loaded.base) if vision else None,
    )


@contextlib.asynccontextmanager
async def build_house(loaded: LoadedPolicy, threads: int) -> AsyncIterator[House]:
    """Everything that judges under this policy, proven by the parity gate and warm; raises SetupError.

    Only signals that a decision names are built: no other can change what is decided.
    """
    limits = loaded.limits
    executor = InferenceExecutor(threads, limits.queue)
    parsing = ThreadPoolExecutor(1, thread_name_prefix="parsing")
    try:
        packs = open_packs(loaded)
        image_limits = ImageLimits(bytes=limits.image_bytes, pixels=limits.image_pixels)
        cache = EmbeddingCache(limits.cache_bytes)
        encoders = open_encoders(
            packs.text, packs.vision, executor, cache, image_limits, dimension=loaded.encoders.dimension
        )
        _warn_of_drift(packs)
        misses = check_encoders(encoders)
        if misses:
            raise SetupError([f"a pack has drifted from its reference: {miss}" for miss in misses], misses)
        signals = _build_signals(loaded, encoders)
        for built in signals.values():
            await built.prepare()
        engine = Engine(loaded.policy, signals)
        pipeline = Pipeline(loaded.policy, engine, limits.decision_ms / 1000, parsing, log_decision)
        yield House(pipeline, encoders, executor)
    except (PackError, SignalSetupError) as error:
        raise SetupError([str(error)]) from error
    finally:
        executor.close()
        parsing.shutdown(wait=False, cancel_futures=True)


def _warn_of_drift(packs: OpenPacks) -> None:
    """Whoever exported a pack may have accepted that it misses its bound; serving says so."""
    for pack in filter(None, (packs.text, packs.vision)):
        for tower in towers_of(pack.manifest):
            if tower.parity is not None and tower.parity.drift_allowed:
                fields = {"pack": pack.manifest.name, "worst": tower.parity.worst, "gate": tower.parity.gate}
                logger.warning("pack with drift that was allowed", extra={"fields": fields})


def _build_signals(loaded: LoadedPolicy, encoders: Encoders) -> dict[SignalName, Signal]:
    named = {name for decision in loaded.policy.decisions for name in signals_of(decision.when)}
    return {
        spec.name: FAMILIES[spec.name.family].build(spec.name, spec.settings, encoders)
        for spec in loaded.signals
        if spec.name in named
    }


def log_decision(record: DecisionRecord) -> None:
    """One line a decision."""
    logger.info("decision", extra={"fields": record.summary})


async def serve(options: WorkerOptions) -> None:
    """Start, serve until SIGTERM, drain; raises PolicyError or SocketUnavailableError when it cannot even refuse."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    beating = asyncio.create_task(beat())
    await run(options, stop, create_instruments())
    beating.cancel()


async def run(options: WorkerOptions, stop: asyncio.Event, instruments: Instruments) -> None:
    """A worker's life until `stop`.

    One that cannot be made ready stays, NOT_SERVING, and says why: to start it again and again would change nothing and
    hide the reason. Raises PolicyError or SocketUnavailableError.
    """
    started = time.monotonic()
    tell_of_start(options.index, state_file(options.socket))
    loaded = load_policy(options.config)
    try:
        async with build_house(loaded, options.threads) as house:
            canary = _canary(house, loaded.parity.interval)
            door = Door(loaded.policy, house.pipeline)
            service = _service_of(options, loaded, door, instruments)
            readiness = Readiness(service, instruments, options.index, state_file(options.socket))
            # What was built lives as long as the worker: the collector need not look at it again with every request.
            gc.collect()
            gc.freeze()
            await service.start()
            await readiness.gained(time.monotonic() - started, loaded.policy.digest)
            await _until_stop(stop, canary, readiness, door)
            logger.info("draining", extra={"fields": {"worker": options.index}})
            readiness.draining()
            await service.drain(DRAIN_NOTICE, DRAIN_GRACE)
            readiness.ended()
    except SetupError as error:
        await _refuse(options, loaded, error, stop, instruments)
    logger.info("ended", extra={"fields": {"worker": options.index}})


def _service_of(options: WorkerOptions, loaded: LoadedPolicy, judge: Judge, instruments: Instruments) -> Service:
    return build_service(
        judge,
        address=f"unix:{options.socket}",
        body_bytes=loaded.limits.body_bytes,
        deadline=loaded.limits.decision_ms / 1000 + EXCHANGE_SLACK,
        instruments=instruments,
        socket_mode=options.socket_mode,
    )


def _canary(house: House, interval: float) -> Canary | None:
    """None where the policy wants none; raises SetupError."""
    if not interval:
        return None
    try:
        return Canary(house.encoders, house.executor, interval)
    except GoldenError as error:
        raise SetupError([str(error)]) from error


async def _until_stop(stop: asyncio.Event, canary: Canary | None, readiness: Readiness, door: Door) -> None:
    """Wait for the end; a miss of the canary on the way there shuts the door."""
    watching = asyncio.create_task(_watch(canary, readiness, door)) if canary is not None else None
    await stop.wait()
    if watching is not None:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(canary: Canary, readiness: Readiness, door: Door) -> None:
    """Tell of a miss first: Envoy gets the time to send its requests to workers that can judge them."""
    misses = await canary.watch()
    await readiness.refused(
        [f"the canary found that a pack has drifted while serving: {miss}" for miss in misses], misses
    )
    await asyncio.sleep(DRAIN_NOTICE)
    door.shut()


async def _refuse(
    options: WorkerOptions, loaded: LoadedPolicy, error: SetupError, stop: asyncio.Event, instruments: Instruments
) -> None:
    """Be there without being ready, until `stop`."""
    service = _service_of(options, loaded, Door(loaded.policy, None), instruments)
    readiness = Readiness(service, instruments, options.index, state_file(options.socket))
    await service.start()
    await readiness.refused(error.reasons, error.misses)
    await stop.wait()
    await service.drain(0, DRAIN_GRACE)
    readiness.ended()


def main() -> int:
    """0 after a drain, 1 when it could not even say that it is not ready."""
    options = _read_options()
    end_with_supervisor(DRAIN_NOTICE + DRAIN_GRACE + 1)
    try:
        uvloop.run(serve(options))
    except (PolicyError, SocketUnavailableError) as error:
        logger.error("not ready", extra={"fields": {"worker": options.index, "why": str(error)}})
        return 1
    return 0


def _read_options() -> WorkerOptions:
    parser = argparse.ArgumentParser(prog="python -m router.extproc.worker")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--socket-mode", type=lambda text: int(text, 8), default=0o600)
    parser.add_argument("--log-format", choices=("json", "console"), default="json")
    parser.add_argument("--log-level", default="INFO")
    options = parser.parse_args()
    configure_logging(options.log_format, options.log_level)
    return WorkerOptions(options.config, options.socket, options.index, options.threads, options.socket_mode)


if __name__ == "__main__":
    sys.exit(main())
