"""Writes one number into a policy file and leaves everything else as it is, comments and layout included."""

from __future__ import annotations

import copy
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from router.config.problems import Location, PolicyError, dotted
from router.config.yaml_source import Position, YamlSource, parse_yaml

_NUMBER: Final = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?=[\s,}\]#]|$)")


class EditError(Exception):
    """A place that cannot be edited without a person."""


def set_number(source: YamlSource, location: Location, number: float) -> bytes:
    """The file's text with this number at `location`, whose parent is a mapping that stands there.

    A key that is missing is put first. Raises EditError where the result would not be exactly that, as behind an alias.
    """
    text = source.text.decode("utf-8")
    try:
        edited = _replaced(text, source, location, number) if location in source.values else None
        edited = edited or _inserted(text, source, location, number)
        written = parse_yaml(source.path, edited.encode())
    except (PolicyError, LookupError, ValueError) as error:
        raise EditError(
            f"{dotted(location)} cannot be edited in place ({type(error).__name__}); set it by hand"
        ) from None
    if written.data != _with(source.data, location, number):
        raise EditError(f"{dotted(location)} cannot be edited in place, an alias may stand there; set it by hand")
    return written.text


def write_over(path: Path, text: bytes) -> None:
    """Replace a file at once, its permissions kept; a link's target is what is replaced. Raises OSError."""
    target = path.resolve()
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
        shutil.copymode(target, name)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _replaced(text: str, source: YamlSource, location: Location, number: float) -> str:
    at = _offset(text, source.values[location])
    found = _NUMBER.match(text, at)
    if found is None:
        raise ValueError("no plain number stands there")
    return text[:at] + _written(number) + text[found.end() :]


def _inserted(text: str, source: YamlSource, location: Location, number: float) -> str:
    position = source.values[location[:-1]]
    at = _offset(text, position)
    pair = f"{location[-1]}: {_written(number)}"
    if text[at] == "{":
        empty = re.match(r"\s*\}", text[at + 1 :]) is not None
        return text[: at + 1] + pair + ("" if empty else ", ") + text[at + 1 :]
    line = "\r\n" if "\r\n" in text else "\n"
    return text[:at] + pair + line + " " * (position.column - 1) + text[at:]


def _offset(text: str, position: Position) -> int:
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: position.line - 1]) + position.column - 1


def _written(number: float) -> str:
    return f"{number:.9f}".rstrip("0").rstrip(".") if number else "0"


def _with(data: Any, location: Location, number: float) -> Any:
    changed = copy.deepcopy(data)
    here = changed
    for key in location[:-1]:
        here = here[key]
    here[location[-1]] = float(_written(number))
    return changed
