"""docs/traces.md names every span, attribute and mark that there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from router.extproc.telling import attributes, spans
from router.telemetry import span_names

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/traces.md").read_text()
CODE = "".join(Path(str(module.__file__)).read_text() for module in (spans, attributes))
NAMES = {name: value for name, value in vars(span_names).items() if name.isupper()}
ATTRIBUTES = {value for value in NAMES.values() if "." in value}
MARKS = {
    "FAILURE",
    "UNREADABLE",
    "WON_BY_GUARD",
    "SHED",
    "TIMED_OUT",
    "SIGNAL_FAILED",
    "NOT_JUDGED",
    "NO_MODEL",
    "RESPONSE_FAILED",
    "PARITY",
}


def words(heading: str) -> set[str]:
    """What the tables of this section have in their first column."""
    section = TEXT.split(f"\n## {heading}\n", 1)[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row.split(" | ")[0])}


def test_every_attribute_is_explained_and_each_that_is_explained_is_there() -> None:
    assert words("Attributes") == ATTRIBUTES


def test_every_span_is_explained_and_each_that_is_explained_is_there() -> None:
    events = {span_names.EVIDENCE}
    named = {value for name, value in NAMES.items() if "." not in value and name not in MARKS} - events
    told = {word.removesuffix(" family/name") for word in words("Spans")}
    # The span of a request has the name of its operation and its model.
    assert told - {"chat med-vlm"} == named - {span_names.UNKNOWN_REQUEST}
    assert f"`{span_names.UNKNOWN_REQUEST}` where the API is not known" in TEXT
    assert f"events named `{span_names.EVIDENCE}`" in TEXT


def test_every_mark_is_explained_and_each_that_is_explained_is_there() -> None:
    assert words("What to keep") == {NAMES[mark] for mark in MARKS}


def test_every_name_is_used() -> None:
    assert [name for name in NAMES if f"names.{name}" not in CODE] == []


def test_how_many_events_there_are_is_as_the_page_says() -> None:
    assert f"A signal's first {spans.MOST_EVENTS} pieces of evidence" in TEXT
