"""Passwords where some tools keep or take them: `.netrc`, `.pgpass`, Docker's logins, options of commands.

No name with a sign of assignment stands before them. What only stands for a password is told by `secret_words.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pybase64
import re2

from router.signals.secret_words import is_mixed, is_placeholder

_WORD: Final = r"[\"']?([^\s\"'`]{4,128})"

_PLACES: Final = (
    # machine HOST login NAME password WORD
    rf"(?i)\blogin\s{{1,8}}\S{{1,64}}\s{{1,8}}password\s{{1,8}}{_WORD}",
    # HOST:5432:DATABASE:USER:WORD
    r"(?:^|\s)[A-Za-z*][A-Za-z0-9.*-]{0,64}:(?:54\d\d|64\d\d|\*):[\w*-]{1,64}:[\w*.-]{1,64}:([^\s:\"'`]{4,128})(?:\s|$)",
    rf"\bsshpass\s{{1,4}}-p[ =]{{0,2}}{_WORD}",
    rf"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]{{0,120}}\s-p{_WORD}",
    rf"\bredis-cli\b[^\n|;]{{0,120}}\s-a {_WORD}",
    rf"\bdocker login\b[^\n|;]{{0,120}}\s-p {_WORD}",
    rf"(?i)(?:^|\s)--(?:[a-z]{{1,12}}-)?(?:password|passwd|pass|token|secret|api-?key)[ =]{{1,2}}{_WORD}",
)
_LOGIN: Final = r"\"auth\"\s{0,4}:\s{0,4}\"([A-Za-z0-9+/]{8,400}={0,2})\""


class ToolFinder:
    """Finds them; made once, because patterns are compiled."""

    def __init__(self) -> None:
        self._places = tuple(map(re2.compile, _PLACES))
        self._login = re2.compile(_LOGIN)

    def find(self, data: bytes) -> Iterator[tuple[int, int, str, float]]:
        """Half-open ranges with label and score."""
        for pattern in self._places:
            for hit in pattern.finditer(data):
                word = hit.group(1).decode()
                if is_mixed(word) and not is_placeholder(word):
                    yield *hit.span(1), "Password", 0.8
        for hit in self._login.finditer(data):
            if _is_login(hit.group(1)):
                yield *hit.span(1), "Password", 0.85


def _is_login(encoded: bytes) -> bool:
    """Whether it is a name, a colon and a password in base64."""
    try:
        name, colon, password = pybase64.b64decode(encoded + b"=" * (-len(encoded) % 4), validate=True).partition(b":")
    except ValueError:
        return False
    text = (name + password).decode("ascii", "replace")
    return bool(colon and name and len(password) >= 4 and text.isprintable() and text.isascii()) and not is_placeholder(
        password.decode("ascii", "replace")
    )
