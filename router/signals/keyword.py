"""`keyword`: words, phrases or regular expressions that occur in the request's text.

    keyword:
      medical_words: {any: [radiograph, side effect], method: exact}
      order_number: {any: ['ORD-\\d{6}'], method: regex, over: all}
      competitor: {any: [acme router], method: fuzzy, similarity: 0.8}
      billing: {any: [refund my invoice, cancel the subscription, payment failed], method: bm25, at_least: 2}

`exact` and `regex` search a text as it was written and as it is read: without invisible and control characters, and
with compatibility forms, such as full-width letters, replaced. The words of an exact phrase may also be joined by one
underscore or hyphen, or as camelCase joins them, unless case counts: `passport_number`, `passport-number` and
`passportNumber` are `passport number`, but `passportnumber` is not. `fuzzy` allows for misspellings, see
keyword_fuzzy.py; `bm25` for other words between and around, in any order, see keyword_bm25.py. The value is the number
of distinct phrases found, each counted once, also where one is part of another. The score is in 0-1: for `exact` and
`regex` the share of `at_least` that was found; for `fuzzy` and `bm25` the score of the phrase that decides, the
`at_least`-th best, and 0 where fewer are near.

`exact` and `regex` cost microseconds a kilobyte: RE2 runs in linear time, whatever a policy or a client writes. `fuzzy`
and `bm25` cost from ten microseconds a kilobyte upwards; they stop after a second or so of work, and the answer is then
unknown unless what was found is enough. With `read_images` it costs what reading text in an image costs. It sees words,
not meaning: synonyms and other languages pass it by, inflected forms too but for `fuzzy`, and text inside images unless
`read_images` is set. A pattern's match of more than 4,096 characters may be missed in a long text. Places are cited by
character for `exact` and `regex`, by part for the others.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final, Literal

from pydantic import Field, model_validator

from router.inference.reading import ImageReader
from router.request.view import RequestView, TextSpan
from router.signals.base import Cost, Evidence, Observation, SignalName, failed, observed, shed
from router.signals.keyword_bm25 import Bm25Search
from router.signals.keyword_fuzzy import FuzzySearch
from router.signals.keyword_phrases import PhraseSearch
from router.signals.keyword_tally import Search, Tally
from router.signals.places import ALL_ROLES, OVERLOADED, ImageText, read_images
from router.signals.settings import Phrases, SignalSettings, Threshold
from router.signals.texts import WHICH_TEXTS, Over, texts_over

LONG_TEXT: Final = 65_536
"""Characters after which other requests get their turn before the next text is read."""

NOTHING_FOUND: Final = observed(False, 0.0, value=0.0)
"""The answer to most requests, whatever the method."""

_TUNING: Final = {"similarity": ("fuzzy",), "threshold": ("bm25",), "case_sensitive": ("exact", "regex")}


class KeywordSettings(SignalSettings):
    """Settings of a `keyword` signal."""

    any: Phrases = Field(description="Words, phrases or patterns; `at_least` says how many of them have to occur.")
    method: Literal["exact", "regex", "fuzzy", "bm25"] = Field(
        "exact",
        description="exact: whole words and phrases, however many blanks stand between their words; in scripts written "
        "without spaces, anywhere. regex: patterns in RE2 syntax, found anywhere. fuzzy: runs of whole words that "
        "are like a phrase. bm25: passages that have much of a phrase's words, in any order.",
    )
    at_least: int = Field(1, ge=1, description="How many different phrases have to be found.")
    case_sensitive: bool = Field(False, description="Whether upper and lower case differ; for exact and regex.")
    similarity: float = Field(
        0.85,
        ge=0.5,
        le=1,
        description="For fuzzy: how alike a run of words and a phrase have to be: 1 - edits / length of the longer. "
        "At 0.85, one wrong character in seven letters or more.",
    )
    threshold: Threshold = Field(
        0.55,
        description="For bm25: the score from which on a phrase is found. All its words, once each, score 0.67 in a "
        "passage of 128 words and 0.87 in a message of ten; words that are half of its weight, 0.5 at most.",
    )
    over: Over = Field(
        "user",
        description=WHICH_TEXTS,
    )

    read_images: bool = Field(False, description="Read the text inside images, too.")

    @property
    def reads_images(self) -> bool:
        """See `SignalSettings`."""
        return self.read_images

    @model_validator(mode="after")
    def _can_be_searched(self) -> KeywordSettings:
        for key, methods in _TUNING.items():
            if key in self.model_fields_set and self.method not in methods:
                raise ValueError(f"{key} has no meaning for method {self.method}")
        if self.at_least > len(distinct(self)):
            raise ValueError(f"at_least is {self.at_least}, but there are only {len(distinct(self))} different phrases")
        search_for(self.any, self)
        return self


def distinct(settings: KeywordSettings) -> tuple[str, ...]:
    """The phrases without those that only say again, in other blanks or letters' case, what an earlier one says."""
    kept: dict[str, str] = {}
    for phrase in settings.any:
        plain = phrase if settings.method == "regex" else " ".join(phrase.split())
        kept.setdefault(plain if settings.case_sensitive or settings.method == "regex" else plain.lower(), phrase)
    return tuple(kept.values())


def search_for(phrases: tuple[str, ...], settings: KeywordSettings) -> Search:
    """The search that the settings ask for. ValueError, for the policy's author, where there can be none."""
    if settings.method == "fuzzy":
        return FuzzySearch(phrases, settings.similarity)
    if settings.method == "bm25":
        return Bm25Search(phrases, settings.threshold)
    return PhraseSearch(phrases, settings.case_sensitive, regex=settings.method == "regex")


class KeywordSignal:
    """Whether enough of the phrases occur. The label is the first phrase that is cited."""

    def __init__(self, name: SignalName, settings: KeywordSettings, reader: ImageReader | None = None) -> None:
        self.name = name
        self.cost = Cost.HEURISTIC if reader is None else Cost.READING
        self._settings = settings
        self._reader = reader
        self._search = search_for(distinct(settings), settings)

    async def prepare(self) -> None:
        """Nothing to do: the phrases are compiled."""

    async def observe(self, view: RequestView) -> Observation:
        """Matched if the texts together have enough of the phrases."""
        tally = Tally()
        read = 0
        for text in texts_over(view, self._settings.over):
            await self._search.read(text, tally)
            if self._search.done(tally):
                break
            read += len(text.text)
            if read > LONG_TEXT:
                read = 0
                await asyncio.sleep(0)
        missing = await self._read_images(view, tally) if self._reader is not None else ()
        if not (missing or tally.best or tally.cut_short):
            return NOTHING_FOUND
        matched = len(tally.found) >= self._settings.at_least
        if missing and not matched:
            reason = missing[0].detail
            return shed(evidence=missing) if reason == OVERLOADED else failed(reason, missing)
        if tally.cut_short and not matched:
            return failed("too much text for this method", tuple(tally.evidence))
        return observed(
            matched,
            self._score(tally),
            label=tally.evidence[0].label if tally.evidence else "",
            evidence=tuple(tally.evidence),
            value=float(len(tally.found)),
        )

    async def _read_images(self, view: RequestView, tally: Tally) -> tuple[Evidence, ...]:
        """Search what is written in images, where there is a reader, and tell which of them could not be read."""
        if self._reader is None or self._search.done(tally):
            return ()
        missing = []
        for image in await read_images(view, ALL_ROLES, self._reader):
            if image.missing:
                missing.append(Evidence(image.pointer, image=image.index, detail=image.missing))
                continue
            await self._search.read(TextSpan(image.pointer, "user", image.text), tally)
            tally.evidence = [
                _in_image(image, each) if each.pointer == image.pointer else each for each in tally.evidence
            ]
        return tuple(missing)

    def _score(self, tally: Tally) -> float:
        if self._settings.method in ("exact", "regex"):
            return min(len(tally.found) / self._settings.at_least, 1.0)
        return tally.score(self._settings.at_least)


def _in_image(image: ImageText, evidence: Evidence) -> Evidence:
    """Evidence that names the image and where in it the words stand; characters of it are nobody's."""
    box = image.place(*evidence.span) if evidence.span else ""
    return replace(evidence, image=image.index, span=None, detail=box)
