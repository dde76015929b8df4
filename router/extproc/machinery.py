"""Threads and models, opened once and proven by the parity gate; and what makes one policy need others than another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from router.config.load import LoadedPolicy, SignalSpec
from router.config.remote_encoder import EncoderPackSettings
from router.config.schema import EncoderSettings
from router.extproc.answers.build import read_by_checks
from router.extproc.beside import redacts
from router.inference.cache import EmbeddingCache
from router.inference.encoders import Encoders
from router.inference.executor import InferenceExecutor, Overloaded
from router.inference.fetching import ImageFetcher, open_fetcher
from router.inference.gate import Miss, check_encoders
from router.inference.ledger import Ledger
from router.inference.open import open_encoders, open_remote
from router.inference.reading import ImageReader, open_reader
from router.inference.remote.errors import RemoteError, RemoteSetupError
from router.inference.remote.readiness import until_ready
from router.inference.remote.server import RemoteServer
from router.inference.remote.session import RemoteSession
from router.packs.files import TowerKind, towers_of
from router.packs.store import Pack, open_pack
from router.policy.agenda import signals_below
from router.request.images import ImageLimits
from router.request.remote_url import RemoteImages

logger = logging.getLogger(__name__)


REMOTE_TROUBLE = (RemoteError, RemoteSetupError, Overloaded)
"""What a server that runs an encoder may bring about."""


class SetupError(Exception):
    """A policy that cannot be served; `reasons` say what is wrong, for the operator, `misses` what the gate saw.

    Where it may be served later, `mended` returns once it is worth another try.
    """

    def __init__(
        self,
        reasons: Sequence[str],
        misses: Sequence[Miss] = (),
        mended: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)
        self.misses = tuple(misses)
        self.mended = mended


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
    heads: frozenset[str] = frozenset()
    """Heads of the text pack that are asked."""
    remote: RemoteImages | None = None
    servers: tuple[tuple[TowerKind, RemoteServer], ...] = ()

    def covers(self, other: Needs) -> bool:
        """Whether what was opened for this gives another policy the same answers as what it would open itself."""
        return (
            set(other.packs) <= set(self.packs)
            and (other.encoders.dimension, other.images, other.remote)
            == (self.encoders.dimension, self.images, self.remote)
            and self.reads_images >= other.reads_images
            and self.heads >= other.heads
        )


@dataclass(frozen=True, slots=True)
class Machinery:
    """Threads and models, proven by the parity gate."""

    needs: Needs
    executor: InferenceExecutor
    parsing: ThreadPoolExecutor
    encoders: Encoders
    reader: ImageReader | None
    cache: EmbeddingCache
    ledger: Ledger
    fetcher: ImageFetcher | None = None

    def close(self) -> None:
        """Take no more work; what runs in a thread ends there."""
        if self.fetcher is not None:
            self.fetcher.close()
        for remote in self.encoders.remotes:
            remote.close()
        self.executor.close()
        self.parsing.shutdown(wait=False, cancel_futures=True)


def open_packs(loaded: LoadedPolicy) -> OpenPacks:
    """Find the packs and check the files they carry; raises PackError."""
    text, vision = loaded.encoders.text, loaded.encoders.vision
    elsewhere = loaded.encoders.elsewhere
    return OpenPacks(
        text=open_pack(text.pack, "text", loaded.base, elsewhere) if text else None,
        vision=open_pack(vision.pack, "vision", loaded.base, elsewhere) if vision else None,
        classifiers={
            reference: open_pack(reference, "classifier", loaded.base)
            for spec in asked(loaded)
            for reference in spec.settings.classifier_packs
        },
    )


def asked(loaded: LoadedPolicy) -> tuple[SignalSpec, ...]:
    """The signals that a decision or a check rests on, and those that redact what is kept; no other matters."""
    named = signals_below(loaded.policy) | read_by_checks(loaded)
    return tuple(spec for spec in loaded.signals if spec.name in named or redacts(loaded, spec.name))


def needs_of(loaded: LoadedPolicy, packs: OpenPacks, threads: int) -> Needs:
    """What this policy needs, with `threads` model calls at a time."""
    limits = loaded.limits
    return Needs(
        encoders=loaded.encoders,
        packs=tuple(pack_digests(packs).items()),
        reads_images=any(spec.settings.reads_images for spec in asked(loaded)),
        threads=threads,
        queue=limits.queue,
        cache_bytes=limits.cache_bytes,
        images=ImageLimits(bytes=limits.image_bytes, pixels=limits.image_pixels),
        heads=heads_of(loaded, packs),
        remote=loaded.remote_images.made(limits.queue) if loaded.remote_images else None,
        servers=servers_of(loaded),
    )


def heads_of(loaded: LoadedPolicy, packs: OpenPacks) -> frozenset[str]:
    """The heads that the policy's signals ask for and the text pack has; none where another server runs its tower."""
    if packs.text is None or packs.text.manifest.heads is None or "text" in loaded.encoders.elsewhere:
        return frozenset()
    asked_for = {head for spec in asked(loaded) for head in spec.settings.heads}
    return frozenset(head.name for head in packs.text.manifest.heads.heads if head.name in asked_for)


def servers_of(loaded: LoadedPolicy) -> tuple[tuple[TowerKind, RemoteServer], ...]:
    """The servers that run the policy's encoders, where it is not done here."""
    given: tuple[tuple[TowerKind, EncoderPackSettings | None], ...] = (
        ("text", loaded.encoders.text),
        ("vision", loaded.encoders.vision),
    )
    made = ((kind, each.made(loaded.base, loaded.limits.queue)) for kind, each in given if each is not None)
    return tuple((kind, server) for kind, server in made if server is not None)


def not_yet(error: Exception, needs: Needs) -> SetupError:
    """A server that is not ready, or is not what the policy says, may be mended without us."""
    servers = [server for _, server in needs.servers]
    return SetupError([f"a remote encoder cannot be used: {error}"], mended=partial(until_ready, servers))


def open_machinery(needs: Needs, packs: OpenPacks, loop: asyncio.AbstractEventLoop) -> Machinery:
    """Open the models and hold them against their golden vectors; `loop` is the one that serves.

    Raises PackError, ReaderUnavailableError, FetchingUnavailableError, SetupError and what is REMOTE_TROUBLE.
    """
    fetcher = open_fetcher(needs.remote) if needs.remote else None
    remotes: dict[TowerKind, RemoteSession] = {}
    executor = InferenceExecutor(needs.threads, needs.queue)
    parsing = ThreadPoolExecutor(1, thread_name_prefix="parsing")
    try:
        cache, ledger = EmbeddingCache(needs.cache_bytes), Ledger()
        for kind, server in needs.servers:
            pack = packs.text if kind == "text" else packs.vision
            if pack is not None:
                remotes[kind] = open_remote(pack, kind, server, loop)
        encoders = open_encoders(
            packs.text,
            packs.vision,
            executor,
            cache,
            needs.images,
            classifiers=packs.classifiers,
            heads=needs.heads,
            dimension=needs.encoders.dimension,
            fetcher=fetcher,
            remotes=remotes,
        )
        _warn_of_drift(packs)
        misses = check_encoders(encoders, ledger)
        if misses:
            raise SetupError([f"a pack has drifted from its reference: {miss}" for miss in misses], misses)
        reader = open_reader(executor, cache, needs.images, fetcher) if needs.reads_images else None
    except BaseException:
        executor.close()
        parsing.shutdown(wait=False, cancel_futures=True)
        if fetcher is not None:
            fetcher.close()
        for remote in remotes.values():
            remote.close()
        raise
    return Machinery(needs, executor, parsing, encoders, reader, cache, ledger, fetcher)


def _warn_of_drift(packs: OpenPacks) -> None:
    """Whoever exported a pack may have accepted that it misses its bound; serving says so."""
    for pack in filter(None, (packs.text, packs.vision, *packs.classifiers.values())):
        for tower in towers_of(pack.manifest):
            if tower.parity is not None and tower.parity.drift_allowed:
                fields = {"pack": pack.manifest.name, "worst": tower.parity.worst, "gate": tower.parity.gate}
                logger.warning("pack with drift that was allowed", extra={"fields": fields})


def pack_digests(packs: OpenPacks) -> dict[str, str]:
    """The packs' own digests, by `text` and `vision` and by the references of signals."""
    given = {"text": packs.text, "vision": packs.vision, **packs.classifiers}
    return {reference: pack.digest for reference, pack in given.items() if pack is not None}
