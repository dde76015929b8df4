"""Finds out why served token ids are not the reference's: by what would have to be undone to make them equal.

Needs numpy only.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from router.export.verify.reference import Ids

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)

Cause = tuple[str, str]
"""Cause and detail."""


def explain_tokens(
    cases: Sequence[tuple[str, Ids, Ids]], served: Callable[[str], Ids], pad_id: int
) -> tuple[Cause, float]:
    """What explains most of the texts whose ids differ, and the share of texts that it explains.

    A case is a text, its served ids and its reference ids; `served` tokenises again; `pad_id` is the served tower's.
    """
    found = Counter(_cause(text, ours, theirs, served, pad_id) for text, ours, theirs in cases)
    (cause, count), *_ = found.most_common()
    return cause, count / len(cases)


def _cause(text: str, ours: Ids, theirs: Ids, served: Callable[[str], Ids], pad_id: int) -> Cause:
    if len(ours) == len(theirs):
        start = int(np.flatnonzero(ours != theirs)[0])
        if (ours[start:] == pad_id).all() and (theirs[start:] == theirs[-1]).all():
            return "padding", f"padded with id {pad_id}, the reference pads with id {int(theirs[-1])}"
    mine, yours = _without_padding(ours, pad_id), _without_padding(theirs, pad_id)
    if np.array_equal(mine, yours):
        return "padding", f"padded to {len(ours)} instead of {len(theirs)}"
    shorter, longer = sorted((mine, yours), key=len)
    # What was cut may have got its closing special token back.
    if len(shorter) < len(longer) and len(shorter) > 2 and np.array_equal(shorter[:-1], longer[: len(shorter) - 1]):
        return "truncation", f"cut at {len(mine)} tokens, the reference at {len(yours)}"
    for change, cause in (
        (str.lower, "lower-casing is missing"),
        (lambda each: each.translate(_NO_PUNCTUATION), "punctuation is not stripped"),
        (lambda each: each.lower().translate(_NO_PUNCTUATION), "neither lower-casing nor stripping of punctuation"),
    ):
        if np.array_equal(_without_padding(served(change(text)), pad_id), yours):
            return "tokeniser", cause
    inner = [each for each in mine.tolist() if each in set(yours.tolist())]
    if len(mine) != len(yours) and inner and sorted(inner) in (sorted(mine.tolist()), sorted(yours.tolist())):
        return "tokeniser", "special tokens in front or behind differ"
    return "tokeniser", "another vocabulary, normaliser or pre-tokeniser"


def _without_padding(ids: Ids, pad_id: int) -> Ids:
    """The ids in front of the padding at the end."""
    real = len(ids)
    while real and ids[real - 1] == pad_id:
        real -= 1
    return ids[:real]
