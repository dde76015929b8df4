"""Texts and calls of a streamed answer as far as they have come, and how much of each has been judged.

A text forgets its beginning once that has been judged; a call is kept until it is whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from router.extproc.answers.pieces import Called, WholeCall, WholeText

WORD: Final = 256
"""Characters without a blank after which a text is cut in the middle of a word."""


@dataclass(slots=True, eq=False)
class GatheredText:
    """A text as far as it has come. `kept` is its end, which begins at `start`; up to `judged` it has been judged."""

    pointer: str
    kept: str = field(default="", repr=False)
    start: int = 0
    judged: int = 0
    ended: bool = False
    digest: Any = field(default_factory=sha256, repr=False)

    @property
    def end(self) -> int:
        """How many characters have come."""
        return self.start + len(self.kept)

    def add(self, text: str) -> None:
        """More has come."""
        self.kept += text
        self.digest.update(text.encode(errors="surrogatepass"))

    def readable(self, step: int) -> int:
        """How far it can be judged without cutting a word in two, of which half may be what the whole is not."""
        if self.ended:
            return self.end
        new = self.judged - self.start
        blank = max(self.kept.rfind(" ", new), self.kept.rfind("\n", new))
        if blank < 0 and len(self.kept) - new > step + WORD:
            return self.end
        return self.judged if blank < 0 else self.start + blank + 1

    def window(self, end: int, overlap: int) -> str:
        """What is judged up to `end`: so much of what has been judged already as well, from a blank on."""
        begin = max(self.judged - self.start - overlap, 0)
        if begin:
            blank = self.kept.rfind(" ", max(begin - WORD, 0), begin)
            begin = begin if blank < 0 else blank + 1
        return self.kept[begin : end - self.start]

    def judged_to(self, end: int, overlap: int) -> None:
        """It has been judged up to `end`; so much in front of it is kept for the next time."""
        self.judged = end
        needless = end - self.start - overlap - WORD
        if needless > 0:
            self.kept = self.kept[needless:]
            self.start += needless


@dataclass(slots=True, eq=False)
class GatheredCall:
    """A call as far as it has come."""

    pointer: str
    call_id: str = field(default="", repr=False)
    name: list[str] = field(default_factory=list, repr=False)
    arguments: list[str] = field(default_factory=list, repr=False)
    ended: bool = False
    judged: bool = False

    def add(self, more: Called) -> None:
        """More has come."""
        self.call_id = self.call_id or more.call_id
        self.name.append(more.name)
        self.arguments.append(more.arguments)

    def whole(self) -> WholeCall:
        """The call as it stands now."""
        return WholeCall(self.pointer, self.call_id, "".join(self.name), "".join(self.arguments))


def digest_of(piece: WholeText | WholeCall) -> bytes:
    """What tells one from another, so that nothing is judged twice."""
    if isinstance(piece, WholeText):
        return sha256(piece.text.encode(errors="surrogatepass")).digest()
    return sha256(f"{piece.name}\0{piece.arguments}\0call".encode(errors="surrogatepass")).digest()
