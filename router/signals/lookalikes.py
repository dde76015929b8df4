"""Letters of other alphabets that most fonts draw like a Latin one.

Whoever wants words to be read by people and not by programs uses them; readers of images take them for Latin ones.
"""

from __future__ import annotations

from typing import Final

# Of Cyrillic and Greek: a choice from Unicode's confusables (UTS #39).
_DRAWN_ALIKE: Final = {
    "a": "\u0430\u03b1",
    "b": "\u0432\u044c",
    "c": "\u0441",
    "d": "\u0501",
    "e": "\u0435\u0454",
    "g": "\u0261",
    "h": "\u04bb\u043d",
    "i": "\u0456\u03b9\u0131",
    "j": "\u0458\u03f3",
    "k": "\u043a\u03ba",
    "l": "\u04cf",
    "m": "\u043c",
    "n": "\u043f\u03b7",
    "o": "\u043e\u03bf\u03c3",
    "p": "\u0440\u03c1",
    "q": "\u051b",
    "r": "\u0433",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u03c5",
    "v": "\u0475\u03bd",
    "w": "\u051d\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3",
    "A": "\u0410\u0391",
    "B": "\u0412\u0392",
    "C": "\u0421",
    "E": "\u0415\u0395",
    "H": "\u041d\u0397",
    "I": "\u0406\u0399\u04c0",
    "J": "\u0408",
    "K": "\u041a\u039a",
    "M": "\u041c\u039c",
    "N": "\u039d",
    "O": "\u041e\u039f",
    "P": "\u0420\u03a1",
    "S": "\u0405",
    "T": "\u0422\u03a4",
    "V": "\u0474",
    "W": "\u051c",
    "X": "\u0425\u03a7",
    "Y": "\u0423\u03a5",
    "Z": "\u0396",
}

LATIN: Final = {ord(alike): letter for letter, several in _DRAWN_ALIKE.items() for alike in several}
"""Code points and the Latin letter that each looks like, for `str.translate`."""

LOOKALIKES: Final = "".join(map(chr, LATIN))
"""All of them."""
