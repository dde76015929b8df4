"""Writes a policy as YAML with comments. It writes plain data and `Entry`s, and reads nothing."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

WIDTH: Final = 112

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_NOT_TEXT: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A value with comments above it."""

    value: Any
    comments: tuple[str, ...] = ()


def to_yaml(top: Mapping[str, Any], heading: Sequence[str]) -> str:
    """The document; a blank line stands before each section that is a block."""
    lines = [line for each in heading for line in _comment(each, "")]
    for key, value in top.items():
        block = list(_pair(key, value, ""))
        if len(block) > 1 or isinstance(value, Entry):
            lines.append("")
        lines += block
    return "\n".join(lines) + "\n"


def _pair(key: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Entry):
        for comment in value.comments:
            yield from _comment(comment, indent)
        value = value.value
    flat = _flow(value)
    if flat is not None and len(indent) + len(key) + len(flat) + 2 <= WIDTH:
        yield f"{indent}{_scalar(key)}: {flat}"
        return
    if not isinstance(value, dict | list | tuple):
        yield f"{indent}{_scalar(key)}: {_scalar(value)}"
        return
    yield f"{indent}{_scalar(key)}:"
    yield from _block(value, indent + "  ")


def _block(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _pair(key, inner, indent)
        return
    for each in value:
        for comment in each.comments if isinstance(each, Entry) else ():
            yield from _comment(comment, indent)
        item = each.value if isinstance(each, Entry) else each
        flat = _flow(item)
        if flat is not None and len(indent) + len(flat) + 2 <= WIDTH:
            yield f"{indent}- {flat}"
        elif isinstance(item, dict | list | tuple):
            first, *rest = _block(item, indent + "  ")
            yield f"{indent}- {first.strip()}"
            yield from rest
        else:
            yield f"{indent}- {_scalar(item)}"


def _flow(value: Any) -> str | None:
    """On one line, or None where a comment stands inside or where it is sure to be too long for one."""
    if isinstance(value, Entry):
        return None
    if isinstance(value, dict | list | tuple):
        # Not joined before it is known to fit, so that long lists cost no more than short ones.
        parts: list[str] = []
        room = WIDTH
        pairs = value.items() if isinstance(value, dict) else ((None, each) for each in value)
        for key, inner in pairs:
            flat = _flow(inner)
            if flat is None:
                return None
            parts.append(flat if key is None else f"{_scalar(key)}: {flat}")
            room -= len(parts[-1]) + 2
            if room < 0:
                return None
        left, right = ("{", "}") if isinstance(value, dict) else ("[", "]")
        return left + ", ".join(parts) + right
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return str(value)
    return '"' + "".join(_character(each) for each in value) + '"'


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("a policy has no place for a number that is not finite")
    text = repr(value)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if e and "." not in mantissa else text


def _character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _comment(text: str, indent: str) -> Iterator[str]:
    """On one line or several; whatever might end a line or hide is a blank."""
    clean = "".join(each if each.isprintable() else " " for each in text)
    for line in textwrap.wrap(clean, max(40, WIDTH - len(indent)), break_on_hyphens=False):
        yield f"{indent}# {line}"
