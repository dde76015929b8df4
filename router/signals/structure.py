"""`structure`: how a text is built, in counts.

    structure:
      many_questions: {count: questions, min: 3}
      has_code: {count: code_blocks}
      dense_numbers: {pattern: '\\p{Nd}+', min_per_1000_chars: 20}
      staged_request: {sequence: ['(?i)\\bfirst\\b', '(?i)\\bthen\\b', '(?i)\\bfinally\\b']}

`count` names what is counted: questions (by their marks: ? ？ ؟ ; and others), steps (numbered lines in many scripts),
bullets, code_blocks (fenced), tables (Markdown's line of dashes, or HTML), json_blocks (objects, lists of objects),
math (LaTeX in dollars, brackets or environments), urls, lines (not blank ones), words (letters, in scripts without
spaces). Steps, bullets and tables in fenced code do not count. `pattern` counts matches of an RE2 pattern, `sequence`
how often its patterns follow each other within one text. The observation's value is the count, over all texts that are
read. Costs time linear in the text, 10 to 100 microseconds a kilobyte. It sees marks, not grammar: a question without a
question mark, as they are usual in Thai, is none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal

import re2
from pydantic import Field, model_validator

from router.request.view import RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, observed
from router.signals.keyword_tally import MAX_EVIDENCE
from router.signals.settings import Phrase, SignalSettings
from router.signals.structure_scan import COUNTERS, matches
from router.signals.texts import WHICH_TEXTS, Over, encodable, texts_over

Counted = Literal[
    "questions", "steps", "bullets", "code_blocks", "tables", "json_blocks", "math", "urls", "lines", "words"
]

_BOUNDS: Final = ("min", "max", "min_per_1000_chars", "max_per_1000_chars")


class StructureSettings(SignalSettings):
    """Settings of a `structure` signal: one thing to count, and bounds, all of which must hold, each inclusive."""

    count: Counted | None = Field(None, description="What is counted.")
    pattern: Phrase | None = Field(None, description="A pattern in RE2 syntax whose matches are counted.")
    sequence: Annotated[tuple[Phrase, ...], Field(min_length=2, max_length=32)] | None = Field(
        None, description="Patterns in RE2 syntax that have to match one behind the other within one text."
    )
    min: int | None = Field(None, ge=0, description="Least count; 1 where no bound is given.")
    max: int | None = Field(None, ge=0, description="Greatest count.")
    min_per_1000_chars: float | None = Field(
        None, ge=0, description="Least count for each 1,000 characters of the texts that are read."
    )
    max_per_1000_chars: float | None = Field(
        None, ge=0, description="Greatest count for each 1,000 characters of the texts that are read."
    )
    over: Over = Field(
        "user",
        description=WHICH_TEXTS,
    )

    @model_validator(mode="after")
    def _says_one_thing(self) -> StructureSettings:
        if sum(each is not None for each in (self.count, self.pattern, self.sequence)) != 1:
            raise ValueError("one of count, pattern and sequence is needed")
        for least, most in (_BOUNDS[:2], _BOUNDS[2:]):
            low, high = getattr(self, least), getattr(self, most)
            if low is not None and high is not None and low > high:
                raise ValueError(f"{least} is greater than {most}")
        counter_of(self)
        return self


def counter_of(settings: StructureSettings) -> Callable[[str], Awaitable[int]]:
    """What counts in one text. ValueError, for the policy's author, where a pattern is none."""
    if settings.count is not None:
        return COUNTERS[settings.count]
    if settings.pattern is not None:
        return matches(_compile(settings.pattern, "pattern"))
    return matches(*(_compile(text, f"sequence[{index}]") for index, text in enumerate(settings.sequence or ())))


def _compile(pattern: str, where: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20
    try:
        program = re2.compile(unicodedata.normalize("NFC", encodable(pattern)), options)
    except re2.error as error:
        reason = error.args[0]
        raise ValueError(f"{where}: {reason.decode() if isinstance(reason, bytes) else reason}") from None
    if program.search("") is not None:
        raise ValueError(f"{where}: the pattern matches the empty text, and so every request")
    return program


class StructureSignal:
    """Whether the count, and the count for its length, lie within the bounds; has no score."""

    cost = Cost.HEURISTIC

    def __init__(self, name: SignalName, settings: StructureSettings) -> None:
        self.name = name
        self._settings = settings
        self._count = counter_of(settings)
        self._label = settings.count or ("pattern" if settings.pattern else "sequence")
        unbounded = all(getattr(settings, bound) is None for bound in _BOUNDS)
        self._least = 1 if unbounded else settings.min or 0

    async def prepare(self) -> None:
        """Nothing to do: the patterns are compiled."""

    async def observe(self, view: RequestView) -> Observation:
        """Count in every text and compare the sum."""
        total = characters = 0
        evidence: list[Evidence] = []
        for text in texts_over(view, self._settings.over):
            count = await self._count(text.text)
            total += count
            characters += len(text.text)
            if count and len(evidence) < MAX_EVIDENCE:
                evidence.append(Evidence(text.pointer, label=self._label, detail=str(count)))
        return observed(self._within(total, characters), evidence=tuple(evidence), value=float(total))

    def _within(self, total: int, characters: int) -> bool:
        settings = self._settings
        if total < self._least or (settings.max is not None and total > settings.max):
            return False
        # Compared as products: without characters there is no density, and nothing to be dense.
        thousands = characters / 1_000
        low, high = settings.min_per_1000_chars, settings.max_per_1000_chars
        if low is not None and (characters == 0 or total < low * thousands):
            return False
        return high is None or total <= high * thousands
