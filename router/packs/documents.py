"""Reads the YAML and JSON files of packs, so that whatever stands in them is an answer and never a traceback.

It knows nothing about what the files mean.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from pydantic import ValidationError

from router.packs.files import PackError, open_regular

# A manifest has a few kilobytes; one of a classifier with a thousand labels has fifty.
MANIFEST_BYTES = 4 << 20
_SHOWN_PROBLEMS = 8

T = TypeVar("T")


def read_small(path: Path, what: str) -> bytes:
    """The bytes of a file written by hand or by an exporter, at most `MANIFEST_BYTES`; raises PackError.

    `what` ends the message for a file that is not there.
    """
    try:
        with open_regular(path) as file:
            data = file.read(MANIFEST_BYTES + 1)
    except OSError as error:
        raise PackError(f"{path} cannot be read: {error.strerror}{what}") from error
    if len(data) > MANIFEST_BYTES:
        raise PackError(f"{path} has more than {MANIFEST_BYTES >> 20} MiB{what}")
    return data


def yaml_tree(data: bytes, path: Path) -> Any:
    """What the YAML says, in plain values; raises PackError."""
    try:
        return yaml.safe_load(data)
    except RecursionError as error:
        raise PackError(f"{path} is not YAML that can be read: it is nested too deep") from error
    except yaml.MarkedYAMLError as error:
        raise PackError(f"{path} is not YAML: {_place(error)}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PackError(f"{path} is not YAML: it cannot be decoded") from error
    except Exception as error:
        # Constructors of numbers and dates raise what Python's own do, and say neither line nor column.
        raise PackError(
            f"{path} is not YAML that can be read: a number, date or tagged value in it has no value "
            f"({type(error).__name__}); a number may have up to 4300 digits"
        ) from error


def json_value(data: bytes, path: Path, kind: type[T]) -> T:
    """What the JSON says, checked against this type; raises PackError, which names the place."""
    try:
        return msgspec.json.decode(data, type=kind)
    except RecursionError as error:
        raise PackError(f"{path} is nested too deep") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise PackError(f"{path} does not hold what it should: {error}") from error


def problems_of(error: ValidationError) -> str:
    """Every key that does not hold and why, the first few of them; never what stands there."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    shown = []
    for each in found[:_SHOWN_PROBLEMS]:
        key = ".".join(str(part)[:80] for part in each["loc"])
        message = each["msg"].removeprefix("Value error, ")
        shown.append(f"{key}: {message}" if key else message)
    more = len(found) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}" if mark else "it cannot be parsed"
