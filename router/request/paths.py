"""A path as the most forgiving upstream would understand it, so that no spelling of it passes for another one.

Knows nothing of APIs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

# Double decoding happens where a proxy stands before a server; nobody has eight in a row.
_MAX_UNQUOTING = 8
_CUT = re.compile(r"[?#]")
_INVISIBLE = frozenset("CMZ")


def normal_forms(path: str) -> Iterator[str]:
    """The path as forgiving upstreams understand it: the escaped question mark or hash, if any, cut at or kept.

    Escapes are undone until none is left, backslashes are slashes, white space, control and combining characters are
    gone and compatibility forms replaced; of segments, parameters (`;x=1`) and final dots go; doubled slashes and dot
    segments are resolved; case is folded.
    """
    path = path.partition("?")[0]
    for _ in range(_MAX_UNQUOTING):
        path, before = unquote(path), path
        if path == before:
            break
    path = _plain(path)
    yield _resolved(path)
    cut = _CUT.search(path)
    if cut is not None:
        yield _resolved(path[: cut.start()])


def _plain(path: str) -> str:
    # Marks go before the normalisation, whose time grows with the square of a run of them.
    shown = "".join(char for char in path if unicodedata.category(char)[0] not in _INVISIBLE)
    return unicodedata.normalize("NFKC", shown).replace("\\", "/").casefold()


def _resolved(path: str) -> str:
    segments: list[str] = []
    for segment in path.split("/"):
        name = segment.partition(";")[0]
        if name == "..":
            del segments[-1:]
        elif name := name.rstrip("."):
            segments.append(name)
    return "/" + "/".join(segments)
