"""Words that nobody else writes, planted where clients can write something, and the search for them everywhere else.

All begin alike, so that a few searches find any of them, also one that was cut short. They are of lower-case letters:
quoting for JSON or URLs does not change them, and what changes them all the same is searched for as well.
"""

from __future__ import annotations

import base64
import contextlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

START = "zqvxkjwbqhzx"
LETTERS = "bcdfghjklmnpqrstvwxz"


@dataclass
class Canaries:
    """`plant(place)` gives the word for that place, always the same; `words` has them all."""

    words: dict[str, str] = field(default_factory=dict)

    def plant(self, place: str) -> str:
        if place not in self.words:
            random = Random(place)
            self.words[place] = START + "".join(random.choice(LETTERS) for _ in range(8))
        return self.words[place]

    def found_in(self, haystack: bytes) -> list[str]:
        """`form: place` of each canary that occurs, in the order of the forms; `?` where it was cut short."""
        lower = haystack.lower()
        leaks = []
        for name, form in forms(START):
            text = haystack if name.startswith("base64") else lower
            if form in text:
                whole = [place for place, word in self.words.items() if dict(forms(word))[name] in text]
                leaks += [f"{name}: {place}" for place in whole or ["?"]]
        return leaks


def forms(word: str) -> Iterator[tuple[str, bytes]]:
    """The ways in which the word may be written, each with its name; in base64 alone the case of letters matters."""
    yield "plain", word.encode()
    for case, cased in (("", word), ("upper ", word.upper()), ("capital ", word.capitalize())):
        raw = cased.encode()
        for shift in range(3):
            # What stands before the word in the same base64 moves it; what neighbours have a part in is left out.
            coded = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
            first, last = (0, 2, 3)[shift], len(coded) - (1 if (shift + len(raw)) % 3 else 0)
            yield f"base64 {case}{shift}", coded[first:last]
        yield f"{case}hex", raw.hex().encode()
        yield f"{case}percent", "".join(f"%{byte:02x}" for byte in raw).encode()
        yield f"{case}escapes", "".join(f"\\u{byte:04x}" for byte in raw).encode()
    yield "UTF-16", word.encode("utf-16-le")
    yield "backwards", word[::-1].encode()


def opened(blob: bytes) -> Iterator[bytes]:
    """The bytes, and whatever they hold that is compressed."""
    yield blob
    for start in (b"\x1f\x8b\x08", b"\x78\x9c", b"\x78\xda"):
        at = blob.find(start)
        while at >= 0:
            with contextlib.suppress(zlib.error):
                yield zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(blob[at : at + (1 << 20)], 1 << 24)
            at = blob.find(start, at + 1)
