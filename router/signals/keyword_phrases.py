"""Search for phrases as whole words, and for patterns, in time linear in the text.

RE2 does the work. A text is searched as it was written and, where that does not find everything, as a reader sees it.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import sys
import unicodedata
from collections.abc import AsyncIterable, Iterator
from typing import Any, Final

import re2

from router.request.view import TextSpan
from router.signals.base import Evidence
from router.signals.keyword_tally import MAX_EVIDENCE, Tally
from router.signals.pieces import SPACES, UNSPACED, Window, has_controls, legible, windows
from router.signals.texts import PIECE_CHARACTERS, Stretch, composed, encodable, stretches

LONGEST_MATCH: Final = 4_096
"""Characters of a pattern's match that are found in any case; a longer one only in a text of one piece."""

PHRASES_CHARACTERS: Final = 200_000
"""Characters that all phrases of one signal may have, so that they can be searched for at once."""

_NO_WORD: Final = rf"(?:[^\p{{L}}\p{{M}}\p{{N}}_]|[{UNSPACED}])"
_LEFT_EDGE: Final = rf"(?:\A|{_NO_WORD})"
_RIGHT_EDGE: Final = rf"(?:\z|{_NO_WORD})"
# White space, or one joiner as programs and addresses have them: side_effect, side-effect (with any of three hyphens).
_BETWEEN: Final = r"(?:[\s\p{Z}]+|[_\x{2D}\x{2010}\x{2011}])"
# Long blanks have to be squeezed and control characters passed over before a phrase can be said to be absent. By this
# table all blanks (RE2's, which has no vertical tab) are one, and all control characters; the rest is neither.
_CONTROL, _BLANK, _OTHER = b"\0", b" ", b"x"
_KINDS: Final = b"".join(
    _BLANK if chr(code) in "\t\n\f\r " else _CONTROL if has_controls(chr(code)) else _OTHER for code in range(256)
)
_LONG_BLANK: Final = _BLANK * (SPACES + 1)

# Characters that mean themselves in a pattern, behind an edge of a word perhaps, and what follows them.
_PLAIN_BEGINNING: Final = re.compile(r"(?:\\b)?([A-Za-z0-9_ ,:;@#%&=<>/'\"~!-]+)(.?)", re.DOTALL)

FEW_PHRASES: Final = 16
"""So many are looked for one by one: that is faster than all at once, and keeps the interpreter. RE2 lets go of it, and
threads beside the requests take it then."""


class PhraseSearch:
    """Whole words and phrases, or patterns: which of them a text has, and where."""

    def __init__(self, written: tuple[str, ...], case_sensitive: bool, regex: bool) -> None:
        """ValueError that names the index of a bad pattern, with RE2's reason, or says that there is too much."""
        self._written = written
        self._regex = regex
        self._case_sensitive = case_sensitive
        self._patterns: dict[int, Any] = {}
        self._cores: tuple[str, ...] = ()
        self._reach = LONGEST_MATCH
        if regex:
            for index, pattern in enumerate(written):
                self._patterns[index] = _compiled_by_user(pattern, case_sensitive, f"any[{index}]")
            self._beginnings = tuple(_beginning(_normalized(pattern)) for pattern in written)
            return
        if sum(map(len, written)) > PHRASES_CHARACTERS:
            raise ValueError(f"any: more than {PHRASES_CHARACTERS:,} characters of phrases")
        self._cores = tuple(_core(_normalized(text), case_sensitive) for text in written)
        self._reach = max(map(_longest, written))
        # One pass over a text says which phrases may be there, and mostly none is.
        self._set = re2.Set.SearchSet(_options(case_sensitive))
        for core in self._cores:
            self._set.Add(core)
        self._set.Compile()
        self._words = _longest_words(written)

    def done(self, tally: Tally) -> bool:
        """Whether everything has been found and enough places are cited."""
        return len(tally.found) == len(self._written) and len(tally.evidence) >= MAX_EVIDENCE

    async def read(self, text: TextSpan, tally: Tally) -> None:
        """What occurs in the text as it was written, and what else in the text as it is read."""
        if self._surely_without(text):
            return
        here: set[int] = set()
        plain = await self._search(text.pointer, stretches(text.text, composed), tally, here)
        if len(here) == len(self._written) or (plain and text.text.isascii()):
            return
        await self._search(text.pointer, legible(text.text), tally, here)

    def _surely_without(self, text: TextSpan) -> bool:
        """Whether one plain look settles it, as it does for most requests: short, in ASCII, with no occurrence."""
        if len(text.text) > PIECE_CHARACTERS:
            return False
        lower = text.ascii_lower
        if lower is None:
            return False
        kinds = lower.translate(_KINDS)
        if _CONTROL in kinds or _LONG_BLANK in kinds:
            return False
        if self._regex:
            likely = [index for index, beginning in enumerate(self._beginnings) if beginning in lower]
            data = text.text.encode() if likely else b""
            return not any(self._patterns[index].search(data) for index in likely)
        for word in self._words:
            if word in lower:
                break
        else:
            if self._words:
                return True
        return self._set.Match(text.text.encode()) is None

    async def _search(self, pointer: str, pieces: AsyncIterable[Stretch], tally: Tally, here: set[int]) -> bool:
        """Adds to the tally, and to `here`, what is not there yet; whether the text has no control characters."""
        plain = True
        known = frozenset(here)
        reached = [0] * len(self._written)
        async for window in windows(pieces, self._reach, squeeze=not self._regex):
            plain = plain and not has_controls(window.text)
            hits: list[tuple[int, int, int]] = []
            for index in range(len(self._written)) if self._regex else self._set.Match(window.text) or ():
                if index in known or (index in tally.found and len(tally.evidence) >= MAX_EVIDENCE):
                    continue
                spans = self._spans(index, window, reached)
                hits += [(start, -end, index) for start, end in spans]
                if spans:
                    here.add(index)
            # By place; of two that begin together the longer one first, as the better evidence.
            for start, minus_end, index in sorted(hits):
                span = (window.place + start, window.place - minus_end)
                place = span if span[1] <= window.exact_to else None
                tally.add(index, 1.0, Evidence(pointer, label=self._written[index], span=place))
            if self.done(tally):
                return plain
            if len(window.text) >= PIECE_CHARACTERS:
                await asyncio.sleep(0)
        return plain

    def _spans(self, index: int, window: Window, reached: list[int]) -> list[tuple[int, int]]:
        """Where the phrase stands in the window, at most as often as can be cited; `reached` is for the next one."""
        pattern, group = self._pattern(index), int(not self._regex)
        spans: list[tuple[int, int]] = []
        place = max(reached[index] - window.place, window.begin)
        while (
            len(spans) < MAX_EVIDENCE
            and place <= window.end
            and (hit := pattern.search(window.text, place, window.end)) is not None
            and hit.start() < window.until
        ):
            start, end = hit.span(group)
            spans.append((start, end))
            # Not behind the whole match: its last character may be the left edge of the next one.
            place = end
            reached[index] = window.place + end if end > start else sys.maxsize
            if end == start:
                break
        return spans

    def _pattern(self, index: int) -> Any:
        """The compiled pattern; that of a phrase, with its edges, is made when it is first needed: mostly never."""
        if index not in self._patterns:
            phrase = self._written[index]
            left = _LEFT_EDGE if _has_edge(phrase[0]) else ""
            right = _RIGHT_EDGE if _has_edge(phrase[-1]) else ""
            whole = f"{left}({self._cores[index]}){right}"
            self._patterns[index] = re2.compile(whole, _options(self._case_sensitive))
        return self._patterns[index]


def _compiled_by_user(pattern: str, case_sensitive: bool, where: str) -> Any:
    try:
        program = re2.compile(_normalized(pattern), _options(case_sensitive))
    except re2.error as error:
        reason = error.args[0]
        raise ValueError(f"{where}: {reason.decode() if isinstance(reason, bytes) else reason}") from None
    if program.search("") is not None:
        raise ValueError(f"{where}: the pattern matches the empty text, and so every request")
    return program


def _normalized(written: str) -> str:
    """As texts are when they are searched: with a letter and its accent as one."""
    return unicodedata.normalize("NFC", encodable(written))


def _options(case_sensitive: bool) -> Any:
    options = re2.Options()
    options.case_sensitive = case_sensitive
    options.log_errors = False
    options.max_mem = 64 << 20
    return options


def _core(phrase: str, case_sensitive: bool) -> str:
    """The pattern of a phrase: its words in a row, and, unless case counts, as camelCase writes them."""
    words = phrase.split()
    spaced = _BETWEEN.join(map(re2.escape, words))
    inner = [*itertools.pairwise(words)]
    if case_sensitive or not inner or not all(_cased(left[-1]) and _cased(right[0]) for left, right in inner):
        return spaced
    return f"(?:{spaced}|{''.join(_humps(words))})"


def _humps(words: list[str]) -> Iterator[str]:
    """Words of camelCase: each after the first begins in upper case, each before the last ends in lower case."""
    for index, word in enumerate(words):
        body, head, tail = word, "", ""
        if index > 0:
            head, body = f"(?-i:{re2.escape(body[0].upper())})", body[1:]
        if index < len(words) - 1 and body:
            body, tail = body[:-1], f"(?-i:{re2.escape(body[-1].lower())})"
        yield f"{head}{re2.escape(body)}{tail}"


def _longest_words(phrases: tuple[str, ...]) -> tuple[bytes, ...]:
    """A word of each phrase, in lower case: a text in ASCII that has none of them has none of the phrases.

    Empty where that is not so, since letters of other scripts may be the same as some of ASCII but for their case, or
    where there are too many.
    """
    if len(phrases) > FEW_PHRASES or not all(phrase.isascii() and phrase.split() for phrase in phrases):
        return ()
    return tuple({max(phrase.lower().split(), key=len).encode(): None for phrase in phrases})


def _beginning(pattern: str) -> bytes:
    """What every match in a text of ASCII begins with, in lower case; nothing where that is not plain to see."""
    found = _PLAIN_BEGINNING.match(pattern)
    if found is None or "|" in pattern:
        return b""
    plain, then = found.groups()
    # What may occur no time at all is not part of it. To RE2, a repetition behind flags or an empty quotation is one of
    # the character before these: (?i)* and \Q\E*.
    return (plain[:-1] if then and then in "*?{(\\" else plain).lower().encode()


def _cased(char: str) -> bool:
    return len(char.upper()) == len(char.lower()) == 1 and char.upper() != char.lower()


def _longest(phrase: str) -> int:
    """Characters of the longest text that the phrase matches, with its edges."""
    return len(_normalized(phrase)) + SPACES * len(phrase.split()) + 2


def _has_edge(char: str) -> bool:
    """Whether a phrase that begins or ends with this character must do so at a word's edge."""
    return re2.fullmatch(_NO_WORD, encodable(char)) is None
