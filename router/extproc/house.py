"""The composition root: builds everything that judges under a policy; nothing else constructs what it uses.

A house is what one policy needs. The machinery below it, threads and models, outlives a policy whose successor needs
the same, so that a change of words in a policy opens no model again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from router.config.load import LoadedPolicy
from router.extproc.answers.build import checks_of
from router.extproc.answers.checks import AnswerChecks
from router.extproc.asking import signals_of
from router.extproc.beside import Beside, capturer_of
from router.extproc.bodies import Bodies
from router.extproc.choosing import Chooser
from router.extproc.machinery import (
    REMOTE_TROUBLE,
    Machinery,
    Needs,
    SetupError,
    needs_of,
    not_yet,
    open_machinery,
    open_packs,
)
from router.extproc.pipeline import Pipeline
from router.extproc.shadowing import shadow_of
from router.extproc.telling.desk import Desk, Telling
from router.extproc.telling.handled import Handled
from router.inference.fetching import FetchingUnavailableError
from router.inference.reading import ReaderUnavailableError
from router.packs.files import PackError
from router.policy.engine import Engine
from router.policy.resolve import reads_cards
from router.records.basis import Basis, basis_of
from router.records.opening import check_place
from router.records.sealing import SealError
from router.records.store import BesideRow, StoreError
from router.records.writer import RecordWriter
from router.selection.similarity import Cards
from router.selection.snapshot import Snapshot, no_state
from router.signals.base import Signal, SignalName
from router.signals.resources import SignalSetupError
from router.telemetry.instruments import Instruments

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class House:
    """What judges under one policy. `snapshot` gives the newest state of what selections learn from.

    `records` keeps records where the policy wants it; None keeps none. `desk` is what requests are told by; with None
    they are told in the log, at once.
    """

    loaded: LoadedPolicy
    pipeline: Pipeline
    machinery: Machinery
    snapshot: Callable[[], Snapshot] = no_state
    records: RecordWriter | None = None
    desk: Desk | None = None
    instruments: Instruments | None = None
    """What a shadow policy is counted with; None: there is none."""
    beside: Beside = field(default_factory=Beside)
    answers: AnswerChecks | None = None
    """The checks of what models answer; None: there are none."""

    def close(self) -> None:
        """Do nothing more beside requests, and let go of the machinery."""
        self.beside.close()
        self.machinery.close()


async def move_in(
    loaded: LoadedPolicy,
    threads: int,
    before: House | None = None,
    snapshot: Callable[[], Snapshot] = no_state,
    records: RecordWriter | None = None,
    desk: Desk | None = None,
    instruments: Instruments | None = None,
) -> House:
    """A house for this policy, warm; raises SetupError.

    Takes over the snapshot, the records, the desk and the instruments of `before`, and its machinery where that is what
    the policy needs; whoever moves out of `before` closes it otherwise. What blocks runs in a thread, so that a worker
    can go on serving.
    """
    try:
        packs = await asyncio.to_thread(open_packs, loaded)
        needs = needs_of(loaded, packs, threads)
        kept = before.machinery if before is not None and before.machinery.needs == needs else None
        loop = asyncio.get_running_loop()
        machinery = kept if kept is not None else await asyncio.to_thread(open_machinery, needs, packs, loop)
    except (PackError, ReaderUnavailableError, FetchingUnavailableError) as error:
        raise SetupError([str(error)]) from error
    except REMOTE_TROUBLE as error:
        raise not_yet(error, needs) from error
    try:
        if before is not None:
            snapshot, records, desk = before.snapshot, before.records, before.desk
            instruments = before.instruments
        house = await _furnish(loaded, machinery, snapshot, records, desk, instruments)
    except BaseException as error:
        if machinery is not kept:
            machinery.close()
        if isinstance(error, SignalSetupError | StoreError | SealError):
            raise SetupError([str(error)]) from error
        if isinstance(error, REMOTE_TROUBLE) and needs.servers:
            raise not_yet(error, needs) from error
        raise
    if before is not None:
        # Requests that the former policy goes on judging are done with when they are answered.
        before.beside.close()
    return house


@contextlib.asynccontextmanager
async def build_house(loaded: LoadedPolicy, threads: int) -> AsyncIterator[House]:
    """A house for as long as it is entered; raises SetupError."""
    house = await move_in(loaded, threads)
    try:
        yield house
    finally:
        house.close()


async def _furnish(
    loaded: LoadedPolicy,
    machinery: Machinery,
    snapshot: Callable[[], Snapshot],
    records: RecordWriter | None,
    desk: Desk | None,
    instruments: Instruments | None,
) -> House:
    """Signals, engine and pipeline; raises SignalSetupError, StoreError and SealError."""
    signals = await signals_of(loaded, machinery)
    engine = Engine(loaded.policy, signals)
    budget = loaded.limits.decision_ms / 1000
    chooser = Chooser(loaded.policy, machinery.parsing, snapshot, await _cards(loaded, machinery))
    bodies = bodies_of(loaded, machinery)
    basis = await asyncio.to_thread(_basis, loaded, machinery.needs) if records is not None else None
    telling = _telling(basis, records, desk)
    put = partial(records.put_beside, basis) if records is not None and basis is not None else None
    beside = await _beside(loaded, machinery, signals, put, instruments)
    pipeline = Pipeline(loaded.policy, engine, budget, machinery.parsing, telling, chooser, bodies, beside.take)
    answers = checks_of(loaded, signals, put)
    return House(loaded, pipeline, machinery, snapshot, records, desk, instruments, beside, answers)


def bodies_of(loaded: LoadedPolicy, machinery: Machinery) -> Bodies:
    """What reads and writes bodies as the policy says."""
    encodings = loaded.encodings
    return Bodies(machinery.parsing, loaded.limits.of_requests, encodings.unknown, encodings.rewrite)


async def _cards(loaded: LoadedPolicy, machinery: Machinery) -> Cards | None:
    """The models' cards, where a route compares them with requests."""
    if machinery.encoders.text is None or not reads_cards(loaded.policy):
        return None
    cards = Cards(machinery.encoders.text.embed)
    await cards.prepare(loaded.policy.upstreams)
    return cards


def _basis(loaded: LoadedPolicy, needs: Needs) -> Basis | None:
    """What records under this policy rest on; None where it keeps none. StoreError for a store that nobody can open."""
    if loaded.records is None:
        return None
    basis = basis_of(loaded, dict(needs.packs), loaded.records)
    check_place(basis.settings)
    return basis


def _telling(basis: Basis | None, records: RecordWriter | None, desk: Desk | None) -> Telling:
    """How requests are told, and their records kept where the policy says so."""
    if desk is None:
        return Telling()
    if records is None or basis is None:
        return desk.telling()
    records.start()

    def keep(handled: Handled) -> None:
        if handled.record is not None:
            records.put(basis, handled.record)

    return desk.telling(keep)


async def _beside(
    loaded: LoadedPolicy,
    machinery: Machinery,
    signals: Mapping[SignalName, Signal],
    put: Callable[[BesideRow], None] | None,
    instruments: Instruments | None,
) -> Beside:
    """What is done beside requests; raises StoreError and SealError for keys that are not there."""
    capturer = None
    if put is not None:
        capturer = await asyncio.to_thread(capturer_of, loaded, signals, machinery.executor, put)
    shadow = await shadow_of(loaded, machinery, instruments, put) if instruments is not None else None
    return Beside(capturer, shadow)
