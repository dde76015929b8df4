"""Patterns in RE2 syntax: compiled with errors for the policy's author, and searched for in texts of any length.

Shared by families that ask whether a pattern occurs at all; counting and citing many occurrences is `keyword`'s
business. RE2 runs in time linear in the text, whatever a policy or a client writes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterable, Sequence
from typing import Any, Final, NamedTuple

import re2

from router.signals.pieces import has_controls, legible, windows
from router.signals.texts import Stretch, composed, encodable, stretches

LONGEST_MATCH: Final = 4_096
"""Characters of a match that are found in any case; a longer one may be missed in a text of several pieces."""

_MEMORY: Final = 64 << 20


class Hit(NamedTuple):
    """An occurrence: which pattern, which of its groups took part (0: it has none), and where.

    `span` is a half-open character range in the text, None where invisible or compatibility characters before it were
    rewritten.
    """

    pattern: int
    group: int
    span: tuple[int, int] | None


def compile_pattern(pattern: str, where: str, case_sensitive: bool = False, may_be_empty: bool = False) -> Any:
    """A compiled RE2 pattern. ValueError that begins with `where` for one that RE2 refuses.

    The same for one that matches the empty text, and so any, unless it `may_be_empty`.
    """
    options = re2.Options()
    options.case_sensitive = case_sensitive
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        program = re2.compile(unicodedata.normalize("NFC", encodable(pattern)), options)
    except re2.error as error:
        reason = error.args[0]
        raise ValueError(f"{where}: {reason.decode() if isinstance(reason, bytes) else reason}") from None
    if not may_be_empty and program.search("") is not None:
        raise ValueError(f"{where}: the pattern matches the empty text, and so every text")
    return program


def compile_patterns(patterns: Sequence[str], where: str, case_sensitive: bool = False) -> tuple[Any, ...]:
    """Compiled patterns; a ValueError names the index of a bad one."""
    return tuple(compile_pattern(p, f"{where}[{index}]", case_sensitive) for index, p in enumerate(patterns))


async def first_match(programs: Sequence[Any], text: str) -> Hit | None:
    """An occurrence of one of the patterns in the text as it was written or, failing that, as it is read.

    The latter is without invisible and control characters and with compatibility forms replaced. Others get their turn
    on the event loop between the pieces of a long text.
    """
    if not text or not programs:
        return None
    found = await _search(programs, stretches(text, composed))
    if found is not None or (text.isascii() and not has_controls(text)):
        return found
    return await _search(programs, legible(text))


async def _search(programs: Sequence[Any], pieces: AsyncIterable[Stretch]) -> Hit | None:
    async for window in windows(pieces, LONGEST_MATCH):
        for index, program in enumerate(programs):
            hit = program.search(window.text, window.begin, window.end)
            if hit is not None:
                span = (window.place + hit.start(), window.place + hit.end())
                return Hit(index, hit.lastindex or 0, span if span[1] <= window.exact_to else None)
    return None
