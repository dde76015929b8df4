"""`keyword`: words, phrases or regular expressions that occur in the request's text.

    keyword:
      medical_words: {any: [radiograph, side effect], method: exact}
      order_number: {any: ['ORD-\\d{6}'], method: regex, over: all}

A text is searched as it was written and, where that finds nothing, as it is read: without invisible characters and with
compatibility forms, such as full-width letters, replaced. Costs microseconds a kilobyte: RE2 runs in linear time,
whatever a policy or a client writes. It sees words, not meaning: synonyms, other languages, misspellings and text
inside images pass it by. A pattern's match of more than 4,096 characters may be missed in a long text.
"""

from __future__ import annotations

import asyncio
import sys
import unicodedata
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Final, Literal, NamedTuple

import re2
from pydantic import Field, model_validator

from router.request.view import RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, observed
from router.signals.settings import Phrases, SignalSettings
from router.signals.texts import PIECE_CHARACTERS, Over, Stretch, composed, encodable, stretches, texts_over, visible

MAX_EVIDENCE: Final = 8
"""Occurrences that are cited; whether there is one is what matters, not how many."""

LONG_TEXT: Final = 65_536
"""Characters after which other requests get their turn before the next text is read."""

LONGEST_MATCH: Final = 4_096
"""Characters of a pattern's match that are found in any case; a longer one only in a text of one piece."""

SPACES: Final = 64
"""White space between two words that is kept; what is more is dropped, so that a phrase has a greatest length."""

# Scripts that are written without spaces between words, or, like Hangul, with particles attached: a word's edge is not
# to be seen there, so that a phrase in them matches anywhere.
_UNSPACED: Final = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}\x{30FC}\x{3005}"
)
_NO_WORD: Final = rf"(?:[^\p{{L}}\p{{M}}\p{{N}}_]|[{_UNSPACED}])"
_LEFT_EDGE: Final = rf"(?:\A|{_NO_WORD})"
_RIGHT_EDGE: Final = rf"(?:\z|{_NO_WORD})"
_SPACE: Final = r"[\s\p{Z}]+"
_LONG_SPACE: Final = re2.compile(rf"[\s\p{{Z}}]{{{SPACES + 1},}}")


class KeywordSettings(SignalSettings):
    """Settings of a `keyword` signal."""

    any: Phrases = Field(description="Words, phrases or patterns; one that occurs is enough.")
    method: Literal["exact", "regex"] = Field(
        "exact",
        description="exact: whole words and phrases, however many blanks stand between their words; in scripts written "
        "without spaces, anywhere. regex: patterns in RE2 syntax, found anywhere.",
    )
    case_sensitive: bool = Field(False, description="Whether upper and lower case differ.")
    over: Over = Field(
        "user",
        description="Texts that are read. latest: the last user turn; user: every user turn; all: every turn and role, "
        "tool calls and tool results included.",
    )

    @model_validator(mode="after")
    def _patterns_compile(self) -> KeywordSettings:
        patterns(self)
        return self


def patterns(settings: KeywordSettings) -> tuple[Any, ...]:
    """Compiled RE2 patterns: one for all phrases, whose groups are the phrases without their edges, or one a pattern.

    ValueError that names the index of a bad one, with RE2's reason.
    """
    if settings.method == "exact":
        return (_compile(_whole_words(settings.any), settings, "any"),)
    compiled = []
    for index, pattern in enumerate(settings.any):
        program = _compile(pattern, settings, f"any[{index}]")
        if program.search("") is not None:
            raise ValueError(f"any[{index}]: the pattern matches the empty text, and so every request")
        compiled.append(program)
    return tuple(compiled)


def _compile(pattern: str, settings: KeywordSettings, where: str) -> Any:
    options = re2.Options()
    options.case_sensitive = settings.case_sensitive
    options.log_errors = False
    options.max_mem = 64 << 20
    try:
        return re2.compile(unicodedata.normalize("NFC", encodable(pattern)), options)
    except re2.error as error:
        reason = error.args[0]
        raise ValueError(f"{where}: {reason.decode() if isinstance(reason, bytes) else reason}") from None


def _whole_words(phrases: tuple[str, ...]) -> str:
    by_edges: dict[tuple[bool, bool], list[str]] = {}
    for phrase in phrases:
        by_edges.setdefault((_has_edge(phrase[0]), _has_edge(phrase[-1])), []).append(phrase)
    groups = []
    for (left, right), members in by_edges.items():
        # Longest first: RE2 takes the first alternative that fits, and the longest is the better evidence.
        words = "|".join(_words(phrase) for phrase in sorted(members, key=len, reverse=True))
        groups.append(f"{_LEFT_EDGE if left else ''}({words}){_RIGHT_EDGE if right else ''}")
    return "|".join(groups)


def _words(phrase: str) -> str:
    return _SPACE.join(re2.escape(word) for word in phrase.split())


def _longest(phrase: str) -> int:
    """Characters of the longest text that the phrase matches, with its edges."""
    return len(unicodedata.normalize("NFC", encodable(phrase))) + SPACES * len(phrase.split()) + 2


def _has_edge(char: str) -> bool:
    """Whether a phrase that begins or ends with this character must do so at a word's edge."""
    return re2.fullmatch(_NO_WORD, encodable(char)) is None


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


class _Window(NamedTuple):
    """A stretch of text to search from `begin` to `end`; matches from `until` on are the next window's.

    Its first character is the one at `place` of the whole, and places up to `exact_to` of the whole are the client's.
    """

    text: str
    place: int
    begin: int
    end: int
    until: int
    exact_to: int


class KeywordSignal:
    """Whether one of the phrases occurs; has no score."""

    cost = Cost.HEURISTIC

    def __init__(self, name: SignalName, settings: KeywordSettings) -> None:
        self.name = name
        self._settings = settings
        self._exact = settings.method == "exact"
        self._reach = max(map(_longest, settings.any)) if self._exact else LONGEST_MATCH
        self._patterns = patterns(settings)
        self._spaced = self._exact and any(len(phrase.split()) > 1 for phrase in settings.any)
        self._by_folded = {_folded(unicodedata.normalize("NFC", phrase)): phrase for phrase in reversed(settings.any)}

    async def prepare(self) -> None:
        """Nothing to do: the patterns are compiled."""

    async def observe(self, view: RequestView) -> Observation:
        """Matched if any text has any of the phrases."""
        evidence: list[Evidence] = []
        read = 0
        for text in texts_over(view, self._settings.over):
            evidence += await self._occurrences(text.pointer, text.text, MAX_EVIDENCE - len(evidence))
            if len(evidence) >= MAX_EVIDENCE:
                break
            read += len(text.text)
            if read > LONG_TEXT:
                read = 0
                await asyncio.sleep(0)
        return observed(bool(evidence), label=evidence[0].label if evidence else "", evidence=tuple(evidence))

    async def _occurrences(self, pointer: str, text: str, limit: int) -> list[Evidence]:
        """Occurrences in the text as it was written; where there are none, in the text as it is read."""
        if self._surely_without(text):
            return []
        found = await self._search(pointer, stretches(text, composed), limit)
        if found or text.isascii():
            return found
        return await self._search(pointer, stretches(text, visible), limit)

    def _surely_without(self, text: str) -> bool:
        """Whether one plain look settles it, as it does for most requests: short, in ASCII, with no occurrence."""
        if len(text) > PIECE_CHARACTERS or not text.isascii():
            return False
        data = text.encode()
        if self._spaced and _LONG_SPACE.search(data) is not None:
            return False
        return not any(pattern.search(data) for pattern in self._patterns)

    async def _search(self, pointer: str, pieces: AsyncIterable[Stretch], limit: int) -> list[Evidence]:
        found: list[Evidence] = []
        reached = [0] * len(self._patterns)
        async for window in self._windows(pieces):
            for index, pattern in enumerate(self._patterns):
                place = max(reached[index] - window.place, window.begin)
                while (
                    place <= window.end
                    and (hit := pattern.search(window.text, place, window.end)) is not None
                    and hit.start() < window.until
                ):
                    group = next((g for g in range(1, pattern.groups + 1) if hit.start(g) >= 0), 0)
                    start, end = hit.span(group if self._exact else 0)
                    label = self._settings.any[index]
                    if self._exact:
                        label = self._by_folded.get(_folded(hit.group(group)), "")
                    span = (window.place + start, window.place + end)
                    found.append(Evidence(pointer, label=label, span=span if span[1] <= window.exact_to else None))
                    if len(found) >= limit:
                        return found
                    # Not behind the whole match: its last character may be the left edge of the next one.
                    place = end
                    reached[index] = window.place + end if end > start else sys.maxsize
                    if end == start:
                        break
                if len(window.text) >= PIECE_CHARACTERS:
                    await asyncio.sleep(0)
        return found

    async def _windows(self, pieces: AsyncIterable[Stretch]) -> AsyncIterator[_Window]:
        """One window a piece; it begins so far in the one before that every match stands whole in one of them."""
        text = ""
        place = read = exact_to = 0
        async for piece in pieces:
            if piece.exact and exact_to == read:
                exact_to += len(piece.text)
            read += len(piece.text)
            text += piece.text
            if self._exact and (run := _LONG_SPACE.search(text)) is not None:
                exact_to = min(exact_to, place + run.start())
                text = _LONG_SPACE.sub(lambda run: run[0][:SPACES], text)
            # The first character of a later window and the last of all but the last one are there to be looked at:
            # whether a word's edge is there, and that the text neither begins nor ends.
            begin = 1 if place > 0 else 0
            if piece.last:
                yield _Window(text, place, begin, len(text), len(text) + 1, exact_to)
                return
            until = max(len(text) - 1 - self._reach, begin)
            yield _Window(text, place, begin, len(text) - 1, until, exact_to)
            done = max(until - 1, 0)
            text = text[done:]
            place += done
