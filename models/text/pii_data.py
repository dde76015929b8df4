"""Texts with labelled stretches for the `pii` head; presidio-research's are parted by template.

The head tells what no pattern finds: people, places and addresses, organisations. Numbers, mails and dates are `O`:
patterns find those that matter.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from models.text import prose
from models.text.sources import Row, calibrates, may_train, own_lines, own_sections, rows, sample

LABELS = ("O", "LOCATION", "ORGANIZATION", "PERSON")
KINDS = {
    "PERSON": "PERSON",
    "ORGANIZATION": "ORGANIZATION",
    **dict.fromkeys(("ADDRESS", "STREET_ADDRESS", "LOCATION", "GPE", "ZIP_CODE"), "LOCATION"),
}
SLOT = re.compile(r"\{([PLO])\}")

Span = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Marked:
    """A text and the stretches in it, in order."""

    text: str = field(repr=False)
    spans: tuple[Span, ...]
    people_only: bool = False
    """Whether nothing but people was looked for: the rest may be a place or an organisation."""
    unsure: tuple[tuple[int, int], ...] = ()
    """Stretches of which nobody said what they are."""


def part_of(template: str) -> str:
    """`test` for a quarter of the templates, `calibrate` for an eighth, else `train`; by a hash, and so for good."""
    number = hashlib.sha256(template.encode()).digest()[0]
    return "test" if number < 64 else "calibrate" if number < 96 else "train"


def presidio(data: Path, part: str) -> list[Marked]:
    """The texts of a part."""
    return [_marked(row) for row in rows(data, "presidio_pii") if part_of(row.more["template"]) == part]


def _marked(row: Row) -> Marked:
    spans = [(span["start"], span["end"], KINDS[span["type"]]) for span in row.more["spans"] if span["type"] in KINDS]
    return Marked(row.text, joined(row.text, sorted(spans)))


def joined(text: str, spans: Sequence[Span]) -> tuple[Span, ...]:
    """Neighbours of one kind with nothing but blanks between them are one stretch, as they are when served."""
    found: list[Span] = []
    for start, end, kind in spans:
        if found and found[-1][2] == kind and not text[found[-1][1] : start].strip():
            found[-1] = (found[-1][0], end, kind)
        else:
            found.append((start, end, kind))
    return tuple(found)


def own(data: Path, count: int, seed: int) -> list[Marked]:
    """Our own sentences, filled with values of the training part's and with names of our own."""
    random_ = random.Random(seed)
    values: dict[str, list[str]] = {"P": [], "L": [], "O": []}
    for marked in presidio(data, "train"):
        for start, end, kind in marked.spans:
            value = marked.text[start:end]
            if 2 < len(value) < 60 and "\n" not in value:
                values[kind[0]].append(value)
    names = own_sections("names")
    given, family = (" ".join(names[kind]).split() for kind in ("given", "family"))
    places, firms = (
        [value.strip() for value in " ".join(names[kind]).split("|")] for kind in ("places", "organisations")
    )

    def person() -> str:
        first, last = random_.choice(given), random_.choice(family)
        return random_.choice((first, first, f"{first} {last}", f"{first} {last}", last, f"{first[0]}. {last}"))

    def value(slot: str) -> str:
        if random_.random() < 0.4:
            return random_.choice(values[slot])
        return person() if slot == "P" else random_.choice(places if slot == "L" else firms)

    kinds = {label[0]: label for label in LABELS[1:]}
    found = []
    templates = own_lines("pii_templates")
    for _ in range(count):
        template = random_.choice(templates).replace("\\n", "\n")
        text, spans, at = "", [], 0
        for slot in SLOT.finditer(template):
            text += template[at : slot.start()]
            filled = value(slot[1])
            spans.append((len(text), len(text) + len(filled), kinds[slot[1]]))
            text, at = text + filled, slot.end()
        text += template[at:]
        found.append(_as_typed(Marked(text, tuple(spans)), random_))
    return found


def _as_typed(marked: Marked, random_: random.Random) -> Marked:
    """Some people type no capitals, a few nothing else; never where that changes a length."""
    chance = random_.random()
    text = marked.text.lower() if chance < 0.15 else marked.text.upper() if chance < 0.2 else marked.text
    return Marked(text, marked.spans) if len(text) == len(marked.text) else marked


SEEN: Final = {"gpteacher": 500, "benign_instructions": 700, "mmlu_redux_subjects": 400, "clinc150": 300}
"""Sets and how many of their texts an earlier head was shown; what it took for people there was judged by hand."""

_CAPITAL: Final = re.compile(r"\b[A-Z]\w*")


def digest(text: str) -> str:
    """What `pii_seen.txt` calls a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def seen(data: Path, wanted: Callable[[Row], bool] = may_train) -> list[Marked]:
    """Real texts with people, and many without, those of collections that set thresholds left out."""
    judged = {line.split("\t")[0]: line.split("\t")[1:] for line in own_lines("pii_seen")}
    shown = [row for name, count in SEEN.items() for row in sample(rows(data, name), count, 77)]
    return [told_apart(row.text, judged.get(digest(row.text), [])) for row in shown if wanted(row)]


def seen_aside(data: Path) -> list[Marked]:
    """Those of the collections that set thresholds."""
    return seen(data, calibrates)


def told_apart(text: str, judged: Sequence[str]) -> Marked:
    """The text with what was judged: + a person, - none, ? unsure. Beside people, other capitals are unsure."""
    spans = sorted((*place, "PERSON") for word in judged if word[0] == "+" for place in _places(text, word[1:]))
    told = {place for word in judged for place in _places(text, word[1:])}
    unsure = [place for word in judged if word[0] == "?" for place in _places(text, word[1:])]
    if any(word[0] != "-" for word in judged):
        capitals = (hit.span() for hit in _CAPITAL.finditer(text))
        unsure += [place for place in capitals if not any(a < place[1] and place[0] < b for a, b in told)]
    return Marked(text, joined(text, spans), True, tuple(unsure))


def _places(text: str, word: str) -> list[tuple[int, int]]:
    pattern = rf"(?<!\w){re.escape(word)}(?!\w)" if word[0].isalnum() and word[-1].isalnum() else re.escape(word)
    return [hit.span() for hit in re.finditer(pattern, text)]


def plain(data: Path, seed: int) -> list[Marked]:
    """Harmless texts without names in them, all `O`."""
    coding = sample(rows(data, "gpteacher"), 200, seed, lambda row: row.label == "benign_coding")
    tasks = sample(
        rows(data, "math_code_reasoning"),
        120,
        seed,
        lambda row: row.label in {"code_task", "reasoning_boolean_expressions"},
    )
    banking = sample(rows(data, "banking77"), 150, seed)
    lines = own_lines("pii_plain") * 3 + own_lines("security") + own_lines("near_misses") + own_lines("personas")
    pages = [page[:900] for page in prose.python_pages()[::3]]
    return [Marked(text, ()) for text in [row.text for row in (*coding, *tasks, *banking)] + lines + pages]


def unseen_plain(data: Path) -> list[Marked]:
    """Other harmless texts than those of `seen` and of `plain` with its first three seeds."""
    coding = [row for row in rows(data, "gpteacher") if row.label == "benign_coding"][::6]
    used = {marked.text for seed in range(3) for marked in plain(data, seed)} | {each.text for each in seen(data)}
    texts = [row.text for row in (*coding, *sample(rows(data, "banking77"), 300, 1000))]
    texts += [page[:900] for page in prose.python_pages()[1::6]]
    return [Marked(text, ()) for text in texts if text not in used]
