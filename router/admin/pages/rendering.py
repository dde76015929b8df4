"""How values become text on the page: one environment, everything escaped, nothing that a name could hide in.

Knows no view; each view is a template and the plain data that it is given.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

HERE: Final = Path(__file__).parent
STATIC: Final = HERE / "static"

_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_KEPT: Final = frozenset("\n\t")
_LONGEST: Final = 400
"""Characters of a label or a name that are shown; the whole is in the record's JSON."""


def visible(value: object) -> object:
    """Texts with what would steer the rest of a line, or not be seen, written as its code point; others as they are."""
    if type(value) is not str or (value.isascii() and value.isprintable()):
        return value
    return "".join(
        f"\u2039U+{ord(char):04X}\u203a" if char not in _KEPT and unicodedata.category(char) in _HIDDEN else char
        for char in value
    )


def cut(text: str, most: int = _LONGEST) -> str:
    """At most that many characters; what is left out is told by an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def breaks(name: str, most: int = _LONGEST) -> Markup:
    """A name that may be broken after its slashes and underscores, rather than anywhere."""
    text = str(escape(visible(cut(name, most))))
    return Markup(text.replace("/", "/<wbr>").replace("_", "_<wbr>"))  # noqa: S704  # what the name says is escaped


def quoted(text: str) -> str:
    """For a part of an address."""
    return quote(text, safe="", errors="replace")


def milliseconds(value: float | None) -> str:
    """`0.06 ms`, `24.5 ms`, `1.20 s`."""
    if value is None:
        return "–"
    if value >= 1000:
        return f"{value / 1000:.2f} s"
    return f"{value:.1f} ms" if value >= 1 else f"{value:.2f} ms"


def size(value: int | None) -> str:
    """`812 B`, `244 kB`, `3.1 MB`."""
    if value is None:
        return "–"
    if value < 1000:
        return f"{value} B"
    return f"{value / 1000:.0f} kB" if value < 1_000_000 else f"{value / 1_000_000:.1f} MB"


def score(value: float | None) -> str:
    """Two digits; of what would be rounded to 0 or 1 without being it, the side it is on."""
    if value is None:
        return "–"
    if 0 < value < 0.005:
        return "<0.01"
    return ">0.99" if 0.995 <= value < 1 else f"{value:.2f}"


def figure(value: float) -> str:
    """A number in whatever unit, short."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"


def count(number: int, noun: str) -> str:
    """`1 image`, `2 images`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """A length for SVG, 0-1 clamped."""
    return f"{min(max(share, 0.0), 1.0) * 100:.2f}%"


def clock(at: str | None, now: datetime) -> str:
    """The time of day in UTC; with its day where that is another than today."""
    when = moment(at)
    if when is None:
        return "–"
    return when.strftime("%H:%M:%S") if when.date() == now.date() else when.strftime("%d %b %H:%M")


def moment(at: str | None) -> datetime | None:
    """The moment that RFC 3339 names; None for nothing, or for what names none."""
    try:
        return datetime.fromisoformat(at) if at else None
    except ValueError:
        return None


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    given = (breaks, quoted, cut, milliseconds, size, score, figure, count, percent)
    made.filters.update({each.__name__: each for each in given})
    return made


_ENVIRONMENT: Final = _environment()


def render(template: str, values: Mapping[str, Any]) -> str:
    """The template's text with these values."""
    return _ENVIRONMENT.get_template(template).render(values)
