"""The composition root: builds everything that judges under a policy; nothing else constructs what it uses.

A house is what one policy needs. The machinery below it, threads and models, outlives a policy whose successor needs
the same, so that a change of words in a policy opens no model again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from router.config.load import LoadedPolicy, SignalSpec
from router.config.schema import EncoderSettings
from router.extproc.bodies import Bodies
from router.extproc.choosing import Chooser
from router.extproc.pipeline import Pipeline, Recorder
from router.inference.cache import EmbeddingCache
from router.inference.encoders import Encoders
from router.inference.executor import InferenceExecutor
from router.inference.fetching import FetchingUnavailableError, ImageFetcher, open_fetcher
from router.inference.gate import Miss, check_encoders
from router.inference.open import open_encoders
from router.inference.reading import ImageReader, ReaderUnavailableError, open_reader
from router.packs.files import PackError, towers_of
from router.packs.store import Pack, open_pack
from router.policy.agenda import signals_below
from router.policy.engine import Engine
from router.policy.resolve import reads_cards
from router.records.basis import basis_of
from router.records.record import DecisionRecord
from router.records.writer import RecordWriter
from router.request.images import ImageLimits
from router.request.remote_url import RemoteImages
from router.selection.similarity import Cards
from router.selection.snapshot import Snapshot, no_state
from router.signals.base import Signal, SignalName
from router.signals.registry import FAMILIES
from router.signals.resources import Resources, SignalSetupError

logger = logging.getLogger(__name__)


class SetupError(Exception):
    """A policy that cannot be served; `reasons` say what is wrong, for the operator, `misses` what the gate saw."""

    def __init__(self, reasons: Sequence[str], misses: Sequence[Miss] = ()) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)
        self.misses = tuple(misses)


@dataclass(frozen=True, slots=True)
class OpenPacks:
    """The packs that the policy's encoders name, and those that its signals name, by their references."""

    text: Pack | None
    vision: Pack | None
    classifiers: Mapping[str, Pack] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Needs:
    """All that makes one machinery differ from another: packs by their digests, and bounds."""

    encoders: EncoderSettings
    packs: tuple[tuple[str, str], ...]
    reads_images: bool
    threads: int
    queue: int
    cache_bytes: int
    images: ImageLimits
    remote: RemoteImages | None = None


@dataclass(frozen=True, slots=True)
class Machinery:
    """Threads and models, proven by the parity gate."""

    needs: Needs
    executor: InferenceExecutor
    parsing: ThreadPoolExecutor
    encoders: Encoders
    reader: ImageReader | None
    fetcher: ImageFetcher | None = None

    def close(self) -> None:
        """Take no more work; what runs in a thread ends there."""
        if self.fetcher is not None:
            self.fetcher.close()
        self.executor.close()
        self.parsing.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class House:
    """What judges under one policy. `snapshot` gives the newest state of what selections learn from.

    `records` keeps records where the policy wants it; None keeps none.
    """

    loaded: LoadedPolicy
    pipeline: Pipeline
    machinery: Machinery
    snapshot: Callable[[], Snapshot] = no_state
    records: RecordWriter | None = None


def open_packs(loaded: LoadedPolicy) -> OpenPacks:
    """Find the packs and check the files they carry; raises PackError."""
    text, vision = loaded.encoders.text, loaded.encoders.vision
    return OpenPacks(
        text=open_pack(text, "text", loaded.base) if text else None,
        vision=open_pack(vision, "vision", loaded.base) if vision else None,
        classifiers={
            reference: open_pack(reference, "classifier", loaded.base)
            for spec in _asked(loaded)
            for reference in spec.settings.classifier_packs
        },
    )


async def move_in(
    loaded: LoadedPolicy,
    threads: int,
    before: House | None = None,
    snapshot: Callable[[], Snapshot] = no_state,
    records: RecordWriter | None = None,
) -> House:
    """A house for this policy, warm; raises SetupError.

    Takes over the snapshot and the records of `before`, and its machinery where that is what the policy needs; whoever
    moves out of `before` closes it otherwise. What blocks runs in a thread, so that a worker can go on serving.
    """
    try:
        packs = await asyncio.to_thread(open_packs, loaded)
        needs = _needs(loaded, packs, threads)
        kept = before.machinery if before is not None and before.machinery.needs == needs else None
        machinery = kept if kept is not None else await asyncio.to_thread(_open_machinery, needs, packs)
    except (PackError, ReaderUnavailableError, FetchingUnavailableError) as error:
        raise SetupError([str(error)]) from error
    try:
        if before is not None:
            snapshot, records = before.snapshot, before.records
        return await _furnish(loaded, machinery, snapshot, records)
    except BaseException as error:
        if machinery is not kept:
            machinery.close()
        if isinstance(error, SignalSetupError):
            raise SetupError([str(error)]) from error
        raise


@contextlib.asynccontextmanager
async def build_house(loaded: LoadedPolicy, threads: int) -> AsyncIterator[House]:
    """A house for as long as it is entered; raises SetupError."""
    house = await move_in(loaded, threads)
    try:
        yield house
    finally:
        house.machinery.close()


def _asked(loaded: LoadedPolicy) -> tuple[SignalSpec, ...]:
    """The signals that a decision rests on; no other can change what is decided, and none is built."""
    named = signals_below(loaded.policy)
    return tuple(spec for spec in loaded.signals if spec.name in named)


def _needs(loaded: LoadedPolicy, packs: OpenPacks, threads: int) -> Needs:
    limits = loaded.limits
    return Needs(
        encoders=loaded.encoders,
        packs=tuple(pack_digests(packs).items()),
        reads_images=any(spec.settings.reads_images for spec in _asked(loaded)),
        threads=threads,
        queue=limits.queue,
        cache_bytes=limits.cache_bytes,
        images=ImageLimits(bytes=limits.image_bytes, pixels=limits.image_pixels),
        remote=loaded.remote_images.made(limits.queue) if loaded.remote_images else None,
    )


def _open_machinery(needs: Needs, packs: OpenPacks) -> Machinery:
    """Open the models and hold them against their golden vectors.

    Raises PackError, ReaderUnavailableError, FetchingUnavailableError and SetupError.
    """
    fetcher = open_fetcher(needs.remote) if needs.remote else None
    executor = InferenceExecutor(needs.threads, needs.queue)
    parsing = ThreadPoolExecutor(1, thread_name_prefix="parsing")
    try:
        cache = EmbeddingCache(needs.cache_bytes)
        encoders = open_encoders(
            packs.text,
            packs.vision,
            executor,
            cache,
            needs.images,
            classifiers=packs.classifiers,
            dimension=needs.encoders.dimension,
            fetcher=fetcher,
        )
        _warn_of_drift(packs)
        misses = check_encoders(encoders)
        if misses:
            raise SetupError([f"a pack has drifted from its reference: {miss}" for miss in misses], misses)
        reader = open_reader(executor, cache, needs.images, fetcher) if needs.reads_images else None
    except BaseException:
        executor.close()
        parsing.shutdown(wait=False, cancel_futures=True)
        if fetcher is not None:
            fetcher.close()
        raise
    return Machinery(needs, executor, parsing, encoders, reader, fetcher)


def _warn_of_drift(packs: OpenPacks) -> None:
    """Whoever exported a pack may have accepted that it misses its bound; serving says so."""
    for pack in filter(None, (packs.text, packs.vision, *packs.classifiers.values())):
        for tower in towers_of(pack.manifest):
            if tower.parity is not None and tower.parity.drift_allowed:
                fields = {"pack": pack.manifest.name, "worst": tower.parity.worst, "gate": tower.parity.gate}
                logger.warning("pack with drift that was allowed", extra={"fields": fields})


async def _furnish(
    loaded: LoadedPolicy, machinery: Machinery, snapshot: Callable[[], Snapshot], records: RecordWriter | None
) -> House:
    """Signals, engine and pipeline; raises SignalSetupError."""
    encoders = machinery.encoders
    resources = Resources(encoders.text, encoders.vision, encoders.classifiers, machinery.reader, loaded.base)
    # Files that signals name are read here, and long lists of patterns compiled.
    signals = await asyncio.to_thread(_build_signals, loaded, resources)
    for built in signals.values():
        await built.prepare()
    engine = Engine(loaded.policy, signals)
    budget = loaded.limits.decision_ms / 1000
    chooser = Chooser(loaded.policy, machinery.parsing, snapshot, await _cards(loaded, machinery))
    encodings = loaded.encodings
    bodies = Bodies(machinery.parsing, loaded.limits.of_requests, encodings.unknown, encodings.rewrite)
    recorder = await asyncio.to_thread(_recorder, loaded, machinery.needs, records)
    pipeline = Pipeline(loaded.policy, engine, budget, machinery.parsing, recorder, chooser, bodies)
    return House(loaded, pipeline, machinery, snapshot, records)


async def _cards(loaded: LoadedPolicy, machinery: Machinery) -> Cards | None:
    """The models' cards, where a route compares them with requests."""
    if machinery.encoders.text is None or not reads_cards(loaded.policy):
        return None
    cards = Cards(machinery.encoders.text.embed)
    await cards.prepare(loaded.policy.upstreams)
    return cards


def _build_signals(loaded: LoadedPolicy, resources: Resources) -> dict[SignalName, Signal]:
    return {spec.name: FAMILIES[spec.name.family].build(spec.name, spec.settings, resources) for spec in _asked(loaded)}


def _recorder(loaded: LoadedPolicy, needs: Needs, records: RecordWriter | None) -> Recorder:
    """What is done with records: each is logged, and kept where the policy says so."""
    if records is None or loaded.records is None:
        return log_decision
    basis = basis_of(loaded, dict(needs.packs), loaded.records)
    records.start()

    def record_decision(record: DecisionRecord) -> None:
        log_decision(record)
        records.put(basis, record)

    return record_decision


def pack_digests(packs: OpenPacks) -> dict[str, str]:
    """The packs' own digests, by `text` and `vision` and by the references of signals."""
    given = {"text": packs.text, "vision": packs.vision, **packs.classifiers}
    return {reference: pack.digest for reference, pack in given.items() if pack is not None}


def log_decision(record: DecisionRecord) -> None:
    """One line a decision."""
    logger.info("decision", extra={"fields": record.summary})
