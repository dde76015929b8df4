"""What a model says in an answer, piece by piece: texts, calls of tools, and that nothing more of one comes.

Pieces of a stream have a key, which says what they go on with; all have a pointer for evidence. They are read from what
APIs send by `wholes.py` and `events.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Key = tuple[str | int, ...]
"""What a piece of a stream belongs to; what belongs to a part of it begins with the same."""


@dataclass(frozen=True, slots=True)
class Said:
    """More of the text with this key."""

    key: Key
    pointer: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Called:
    """More of the call with this key."""

    key: Key
    pointer: str
    call_id: str = field(repr=False)
    name: str = field(repr=False)
    arguments: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing more comes for what has this key, or begins with it."""

    key: Key


@dataclass(frozen=True, slots=True)
class WholeText:
    """A text that is complete."""

    pointer: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class WholeCall:
    """A call that is complete."""

    pointer: str
    call_id: str = field(repr=False)
    name: str = field(repr=False)
    arguments: str = field(repr=False)


Piece = Said | Called | Ended | WholeText | WholeCall
