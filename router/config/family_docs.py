"""What the module of a signal family says of it: the docstring, which is the only place where that is written.

Only the docstring's parts are told apart here; what becomes of them is `reference.py`'s and `json_schema.py`'s matter.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from textwrap import dedent
from typing import Final

from router.signals.registry import FAMILIES

_INDENTED: Final = re.compile(r"(?:^ {4}.*\n|^\n(?= {4}))+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FamilyDocs:
    """`opening` is a sentence, `snippet` YAML as it stands under `signals`, `text` the rest, in Markdown."""

    opening: str
    snippet: str
    text: str


def family_docs(family: str) -> FamilyDocs:
    """The docstring's parts; ValueError where it does not open with the family's name and a snippet."""
    said = sys.modules[FAMILIES[family].settings.__module__].__doc__ or ""
    opening, _, rest = said.strip().partition("\n\n")
    name = f"`{family}`: "
    snippet = _INDENTED.match(rest + "\n")
    if not opening.startswith(name) or snippet is None:
        raise ValueError(f"the module of {family} does not open with {name!r} and a snippet of a policy")
    told = opening.removeprefix(name).replace("\n", " ")
    return FamilyDocs(told[:1].upper() + told[1:], dedent(snippet[0]).strip(), rest[snippet.end() :].strip())
