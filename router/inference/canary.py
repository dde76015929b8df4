"""The canary: while a worker serves, one golden vector of each pack is checked again now and then.

The gate proves a pack before the first request. Memory that fails, a library that is replaced under a running process
or a file that changes while it is mapped show up later; the canary runs through the very objects that serve, at low
priority, and reports what it finds. What follows from a miss is the worker's business.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from router.inference.encoders import Encoders
from router.inference.executor import InferenceExecutor, Overloaded
from router.inference.gate import (
    Miss,
    check_golden_class,
    check_golden_heads,
    check_golden_image,
    check_golden_text,
)
from router.inference.golden import read_golden_classes, read_golden_heads, read_golden_images, read_golden_texts
from router.inference.ledger import Ledger, Saw, Tower
from router.inference.remote.errors import RemoteNoAnswerError

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.05
"""How often a canary that waits for an idle moment looks for one."""


@dataclass(frozen=True, slots=True)
class Check:
    """One tower's, its heads' or a classifier's: `misses(i, saw)` are those over golden vector i, of `count`.

    `remote`: another server runs it.
    """

    pack: str
    tower: Tower
    count: int
    misses: Callable[[int, Saw], list[Miss]]
    remote: bool = False


class Canary:
    """Checks each tower's golden vectors in turn, one a round. Belongs to one event loop."""

    def __init__(
        self, encoders: Encoders, executor: InferenceExecutor, interval: float, ledger: Ledger | None = None
    ) -> None:
        """`interval` is in seconds. Reads the golden vectors into memory; raises GoldenError where they don't hold.

        What each check saw is entered into the `ledger`.
        """
        self._executor = executor
        self._interval = interval
        self._checks = checks_of(encoders)
        self._ledger = ledger or Ledger()

    async def watch(self) -> list[Miss]:
        """Run a round every `interval` until one misses, and give the misses. Ends only so, or by being cancelled."""
        turn = 0
        while True:
            await asyncio.sleep(self._interval)
            if misses := await self.round(turn):
                return misses
            turn += 1

    async def round(self, turn: int) -> list[Miss]:
        """The misses over golden vector number `turn` of every tower; a tower that cannot be asked now is left out."""
        misses: list[Miss] = []
        for check in self._checks:
            await self._quiet()
            seen: list[float] = []
            try:
                if check.remote:
                    # In a thread that runs no models: it only waits.
                    misses += await asyncio.to_thread(check.misses, turn % check.count, seen.append)
                else:
                    misses += await self._executor.run(check.misses, turn % check.count, seen.append)
                self._ledger.enter(check.pack, check.tower, seen)
            except (Overloaded, RemoteNoAnswerError):
                # Signals fail as the policy says while a server does not answer; that is no drift.
                logger.info("canary left out", extra={"fields": {"pack": check.pack}})
            except Exception as error:
                # Golden inputs ran at the start; that one of them fails now is drift as well.
                misses.append(Miss(check.pack, "embeddings", f"a golden input raised {type(error).__name__}"))
        return misses

    async def _quiet(self) -> None:
        """Wait for an idle moment; a worker that has none for a whole interval is checked nevertheless."""
        loop = asyncio.get_running_loop()
        limit = loop.time() + self._interval
        # An event would be set and cleared with every request, for a reader that comes every ten minutes.
        while not self._executor.idle and loop.time() < limit:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)


def checks_of(encoders: Encoders) -> tuple[Check, ...]:
    """What there is to check, one a tower; raises GoldenError."""
    checks: list[Check] = []
    if (text := encoders.text) is not None:
        name = text.source.manifest.name
        texts = read_golden_texts(text.source, text.model.tower)
        of_text = partial(check_golden_text, name, text.model, texts)
        checks.append(Check(name, "text", len(texts.texts), of_text, text.remote is not None))
        if (heads := text.model.heads) is not None:
            judged = read_golden_heads(text.source, heads.part, text.model.tower.max_tokens)
            of_heads = partial(check_golden_heads, name, text.model, heads, judged)
            checks.append(Check(name, "heads", len(judged.texts), of_heads))
    if (vision := encoders.vision) is not None:
        name = vision.source.manifest.name
        images = read_golden_images(vision.source, vision.model.tower)
        of_image = partial(check_golden_image, name, vision.model, images)
        checks.append(Check(name, "vision", len(images.files), of_image, vision.remote is not None))
    for classifier in encoders.distinct_classifiers:
        name = classifier.source.manifest.name
        classes = read_golden_classes(classifier.source, classifier.model.tower)
        of_class = partial(check_golden_class, name, classifier.model, classes)
        checks.append(Check(name, "classifier", len(classes.texts), of_class))
    return tuple(checks)
