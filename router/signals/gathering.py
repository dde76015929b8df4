"""Looks through every part of a request for things of some kinds, and sums up what was found: `pii` and `secret`.

The sources say what there is in one text; this module asks them about all texts and images, counts different values and
makes the observation. Nothing of the content is kept but hashes of what was found, and those only while it looks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from heapq import nlargest
from typing import Final

from router.inference.classifier import NoNumberError
from router.inference.executor import Overloaded
from router.inference.reading import ImageReader
from router.request.view import RequestView, Role
from router.signals.anchors import NOT_A_NUMBER
from router.signals.base import Evidence, Observation, failed, observed, shed
from router.signals.places import OVERLOADED, all_texts, read_images
from router.signals.scan import Found

MAX_EVIDENCE: Final = 8
"""Findings that are cited, those with the highest scores first."""

Source = Callable[[str], AsyncIterator[Found]]
"""What there is in one text. Raises Overloaded and NoNumberError."""


class Gathering:
    """What has been found so far. Matched if `min_count` different values have a score of at least `threshold`."""

    def __init__(self, threshold: float, min_count: int = 1, pack: str = "") -> None:
        self._threshold = threshold
        self._min_count = min_count
        self._kept = max(min_count, MAX_EVIDENCE)
        self._pack = pack
        self._found: dict[int, tuple[float, Evidence]] = {}
        self._over = 0
        self._missing: dict[str, Evidence] = {}

    @property
    def full(self) -> bool:
        """Whether there are as many values as count and as are cited."""
        return self._over >= self._kept

    def add(self, key: int, score: float, evidence: Evidence) -> None:
        """One finding; of the same value, the best one stays."""
        before = self._found[key][0] if key in self._found else -1.0
        if before >= score:
            return
        self._over += before < self._threshold <= score
        self._found[key] = (score, evidence)
        # Those that count are never dropped here: once there are as many as are kept, nothing more is read.
        if len(self._found) > 4 * self._kept:
            self._found = dict(nlargest(self._kept, self._found.items(), key=lambda item: item[1][0]))

    def miss(self, reason: str, evidence: Evidence) -> None:
        """Something that could not be read."""
        self._missing.setdefault(reason, evidence)

    def answer(self) -> Observation:
        """The observation. Its score is that of the value that settles it: the `min_count`-th best."""
        ranked = sorted(self._found.values(), key=lambda item: -item[0])
        score = ranked[self._min_count - 1][0] if len(ranked) >= self._min_count else 0.0
        matched = score >= self._threshold and len(ranked) >= self._min_count
        over = [evidence for found, evidence in ranked if found >= self._threshold]
        cited = tuple(over or [evidence for _, evidence in ranked[:1]])[:MAX_EVIDENCE]
        if matched or not self._missing:
            label = cited[0].label if cited else ""
            return observed(matched, score, label=label, evidence=cited, pack=self._pack)
        unread = (*cited, *self._missing.values())
        if set(self._missing) == {OVERLOADED}:
            return shed(self._pack, unread)
        return failed(next(reason for reason in self._missing if reason != OVERLOADED), unread, self._pack)


async def look_through(
    view: RequestView, roles: Collection[Role], sources: Sequence[Source], reader: ImageReader | None, found: Gathering
) -> Observation:
    """Ask every source about every text, and with a reader about every image; stop early where `found` is full."""
    for text in all_texts(view, roles):
        for source in sources:
            try:
                async for each in source(text.text):
                    found.add(each.key, each.score, Evidence(text.pointer, each.label, each.score, each.span))
                    if found.full:
                        return found.answer()
            except Overloaded:
                found.miss(OVERLOADED, Evidence(text.pointer, detail=OVERLOADED))
            except NoNumberError:
                found.miss(NOT_A_NUMBER, Evidence(text.pointer, detail=NOT_A_NUMBER))
    if reader is None:
        return found.answer()
    for image in await read_images(view, roles, reader):
        if image.missing:
            found.miss(image.missing, Evidence(image.pointer, image=image.index, detail=image.missing))
            continue
        for source in sources:
            try:
                async for each in source(image.text):
                    place = image.place(*each.span) if each.span is not None else ""
                    evidence = Evidence(image.pointer, each.label, each.score, image=image.index, detail=place)
                    found.add(each.key, each.score, evidence)
            except Overloaded:
                found.miss(OVERLOADED, Evidence(image.pointer, image=image.index, detail=OVERLOADED))
            except NoNumberError:
                found.miss(NOT_A_NUMBER, Evidence(image.pointer, image=image.index, detail=NOT_A_NUMBER))
    return found.answer()
