"""`language`: what language the request's text is written in.

    language:
      german_or_french: {any: [de, fr]}
      european: {any: [de, fr, es, it, pl, nl], min_share: 0.8, over: latest}

Languages are ISO 639-1 codes. The text is cut into passages of some 300 letters; each is told by lingua, where it is
sure enough, and counts by its letters. The score is the share of all letters that are in one of the languages, and the
signal matches from `min_share` on. The label is the one language of all that has the most letters, whether or not the
signal names it, so that one signal serves every condition that asks for a label. A text of fewer than `min_letters`
letters has no language that can be told, nor has one without letters: no match, score 0, no label.

Needs the extra `language` (100 MB on disk), and about 45 MB of memory in a worker. Costs about a millisecond for a
sentence; of a long text 16 passages are read, evenly spread, in steps of about a millisecond: lingua holds the
interpreter's lock, so that a thread of its own would not spare the others. It can't see a language that is neither
named nor in `COMMON`, takes close relatives for each other in few words, and takes code, names and addresses for some
language or other.
"""

from __future__ import annotations

import asyncio
import bisect
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, field_validator

from router.request.view import RequestView, TextSpan
from router.signals.base import Cost, Evidence, Observation, SignalName, observed
from router.signals.language_codes import Code
from router.signals.pieces import UNSPACED_BLOCKS
from router.signals.resources import SignalSetupError
from router.signals.settings import SignalSettings
from router.signals.texts import WHICH_TEXTS, Over, encodable, texts_over, visible

if TYPE_CHECKING:
    from lingua import LanguageDetector

COMMON: Final[tuple[Code, ...]] = (
    "ar", "bn", "ca", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "he", "hi", "hu", "id", "it", "ja", "ko",
    "nb", "nl", "pl", "pt", "ro", "ru", "sv", "th", "tr", "uk", "vi", "zh",
)  # fmt: skip
"""Languages that are told apart besides those a signal names, so that a text in another is not taken for those."""

PASSAGE: Final = 400
"""Characters of a passage, about a half of a millisecond's work; smaller ones are told less surely."""

MOST_PASSAGES: Final = 16
"""Passages of one request that are read."""

SURE: Final = 0.5
"""Probability, among the languages that are told apart, from which on a passage is taken to be in a language."""

_FIRST_QUESTIONS: Final = ("Every week has seven days.", "Qxzwvjk kqäßw xñøžq wüxz jqk", "Щъыжфц эщф", "ظغثخذ ضظغ")
"""A sentence, and letters in a row as no language has them, for which lingua loads what it falls back to."""

_LETTER: Final = re.compile(r"[^\W\d_]")


class LanguageSettings(SignalSettings):
    """Settings of a `language` signal."""

    any: Annotated[tuple[Code, ...], Field(min_length=1)] = Field(description="ISO 639-1 codes of the languages.")
    min_share: float = Field(
        0.5, gt=0, le=1, description="Share of the letters, from which on the signal matches, in any of the languages."
    )
    min_letters: int = Field(
        12,
        ge=1,
        description="Letters that the texts must have for their language to be told; in scripts without spaces each "
        "counts three times.",
    )
    over: Over = Field(
        "user",
        description=WHICH_TEXTS,
    )

    @field_validator("any")
    @classmethod
    def _each_once(cls, codes: tuple[Code, ...]) -> tuple[Code, ...]:
        return tuple(dict.fromkeys(codes))

    @property
    def possible_labels(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return self.any


class LanguageSignal:
    """Whether enough of the text is in one of the languages."""

    cost = Cost.HEURISTIC

    def __init__(self, name: SignalName, settings: LanguageSettings) -> None:
        """Raises SignalSetupError where lingua is not installed."""
        self.name = name
        self._settings = settings
        self._detector = _detector(name, settings.any)

    async def prepare(self) -> None:
        """Have lingua build what it builds at its first questions, which takes it some hundred milliseconds."""
        for text in _FIRST_QUESTIONS:
            self._told(text)

    async def observe(self, view: RequestView) -> Observation:
        """Tell the language of each passage and weigh them by their letters."""
        letters: dict[str, int] = {}
        place: dict[str, str] = {}
        for index, (pointer, text) in enumerate(_passages(texts_over(view, self._settings.over))):
            if index:
                await asyncio.sleep(0)
            shown = visible(encodable(text))
            count = len(_LETTER.findall(shown)) + 2 * len(UNSPACED_BLOCKS.findall(shown))
            code = self._told(shown) if count else ""
            letters[code] = letters.get(code, 0) + count
            place.setdefault(code, pointer)
        total = sum(letters.values())
        if total < self._settings.min_letters:
            return observed(False, 0.0)
        named = {code: count for code, count in letters.items() if code in self._settings.any}
        share = sum(named.values()) / total
        told = {code: count for code, count in letters.items() if code}
        # Of as many letters, the first in the alphabet.
        label = min(told, key=lambda code: (-told[code], code), default="")
        evidence = tuple(
            Evidence(place[code], label=code, score=count / total) for code, count in sorted(named.items()) if count
        )
        return observed(share >= self._settings.min_share, share, label=label, evidence=evidence)

    def _told(self, text: str) -> str:
        """The language of a passage, "" where none is sure enough."""
        best = next(iter(self._detector.compute_language_confidence_values(text)), None)
        if best is None or best.value < SURE:
            return ""
        return best.language.iso_code_639_1.name.lower()


def _passages(texts: Sequence[TextSpan]) -> list[tuple[str, str]]:
    """Pointers and passages, at most `MOST_PASSAGES`, which are spread evenly over all texts."""
    counts = [-(-len(text.text) // PASSAGE) for text in texts]
    every = sum(counts)
    wanted: Iterable[int] = range(every)
    if every > MOST_PASSAGES:
        # The first and the last are among them.
        wanted = (i * (every - 1) // (MOST_PASSAGES - 1) for i in range(MOST_PASSAGES))
    ends = list(itertools.accumulate(counts))
    passages = []
    for number in wanted:
        index = bisect.bisect_right(ends, number)
        start = (number - ends[index] + counts[index]) * PASSAGE
        passages.append((texts[index].pointer, texts[index].text[start : start + PASSAGE]))
    return passages


def _detector(name: SignalName, codes: tuple[Code, ...]) -> LanguageDetector:
    try:
        from lingua import IsoCode639_1, Language, LanguageDetectorBuilder  # noqa: PLC0415 - an extra
    except ImportError:
        raise SignalSetupError(
            f"{name}: needs lingua to tell languages; install the extra: pip install 'pointsman[language]'"
        ) from None
    told_apart = sorted({*codes, *COMMON})
    languages = [Language.from_iso_code_639_1(IsoCode639_1.from_str(code)) for code in told_apart]
    # The accurate mode takes hundreds of megabytes and many seconds to load for as many languages.
    return (
        LanguageDetectorBuilder.from_languages(*languages)
        .with_low_accuracy_mode()
        .with_preloaded_language_models()
        .build()
    )
