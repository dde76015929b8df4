"""Normal forms of Unicode in time that is linear in the text: runs of combining marks are cut short.

Normalising sorts a run of marks in time that grows with its square, and holds the interpreter's lock while it does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final, Literal

MARKS: Final = 30
"""Combining marks on one letter that count; the others are dropped. No language stacks as many, and normalising takes
time that grows with the square of a run of them. The number is that of Unicode's Stream-Safe Text Format, UAX #15
definition D3; a grapheme joiner after every 30, as it is put there, would keep marks that nobody can read."""

# All characters that are combining marks only once they have been decomposed: half-width kana's voicing marks.
_LATE_MARKS: Final = "\uff9e\uff9f"


def normalized(form: Literal["NFC", "NFKC"], text: str, characters: Iterable[str] | None = None) -> str:
    """Normalised without more than `MARKS` marks in a row; `characters`, where they are known, are those of the text,
    and may be more."""
    if not any(map(_is_mark, set(text) if characters is None else characters)):
        return unicodedata.normalize(form, text)
    # Once more behind it, because some marks come apart into two.
    return _with_few_marks(unicodedata.normalize(form, _with_few_marks(text)))


def _with_few_marks(text: str) -> str:
    marks = "".join(sorted(filter(_is_mark, set(text))))
    return re.sub(f"[{marks}]{{{MARKS},}}", lambda run: run[0][:MARKS], text) if marks else text


def _is_mark(char: str) -> bool:
    return unicodedata.combining(char) > 0 or char in _LATE_MARKS
