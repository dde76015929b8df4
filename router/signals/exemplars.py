"""Labelled example texts from a file beside the policy: read and checked when a signal is built.

Two forms: JSON Lines, one object with `text` and `label` a line (`.jsonl`), and YAML, a list of such objects or labels
with lists of texts (`.yaml`, `.yml`). Values are taken as they are written: a label `no` is text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import yaml

MAX_FILE_BYTES: Final = 4 * 2**20
MAX_EXEMPLARS: Final = 5_000
"""Each costs an encoder's pass when a worker starts: about 4 ms for a short one on one core, so 20 s at most."""
MAX_TEXT_CHARACTERS: Final = 4_000
MAX_LABEL_CHARACTERS: Final = 100

_FORMS: Final = "a list of {text, label}, or labels with lists of texts"


class ExemplarError(Exception):
    """What is wrong with the file, with its line where there is one; for the policy's author."""


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A text with its label; `line` counts from 1."""

    text: str
    label: str
    line: int


@dataclass(frozen=True, slots=True)
class Exemplars:
    """What a file holds, in its order; `digest` is the file's SHA-256 in hex."""

    rows: tuple[Exemplar, ...]
    digest: str


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    label: str


def read_exemplars(path: Path) -> Exemplars:
    """Read and check a file; raises ExemplarError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ExemplarError(error.strerror or str(error)) from error
    if len(data) > MAX_FILE_BYTES:
        raise ExemplarError(f"more than {MAX_FILE_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ExemplarError(f"line {line}: not UTF-8") from error
    match path.suffix.lower():
        case ".jsonl":
            rows = _from_jsonl(text)
        case ".yaml" | ".yml":
            rows = _from_yaml(text)
        case _:
            raise ExemplarError("the name has to end in .jsonl, .yaml or .yml")
    return Exemplars(tuple(_checked(rows)), hashlib.sha256(data).hexdigest())


def _checked(rows: Iterator[Exemplar]) -> Iterator[Exemplar]:
    """The rows, stripped and within the limits."""
    seen: dict[str, Exemplar] = {}
    for row in rows:
        text, label = row.text.strip(), row.label.strip()
        if not text or not label:
            raise ExemplarError(f"line {row.line}: the {'label' if text else 'text'} is empty")
        if len(text) > MAX_TEXT_CHARACTERS:
            raise ExemplarError(f"line {row.line}: the text has more than {MAX_TEXT_CHARACTERS} characters")
        if len(label) > MAX_LABEL_CHARACTERS:
            raise ExemplarError(f"line {row.line}: the label has more than {MAX_LABEL_CHARACTERS} characters")
        if (other := seen.get(text)) is not None:
            raise ExemplarError(f"line {row.line}: the same text as in line {other.line}")
        if len(seen) == MAX_EXEMPLARS:
            raise ExemplarError(f"line {row.line}: more than {MAX_EXEMPLARS} exemplars")
        seen[text] = row
        yield Exemplar(text, label, row.line)
    if not seen:
        raise ExemplarError("no exemplars")


def _from_jsonl(text: str) -> Iterator[Exemplar]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line, type=_Line)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise ExemplarError(f"line {number}: {error}") from error
        yield Exemplar(row.text, row.label, number)


def _from_yaml(text: str) -> Iterator[Exemplar]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Nodes rather than values: they know their line, and `no` stays a word.
        root = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ExemplarError(f"line {line}: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ExemplarError(f"not YAML: {type(error).__name__}") from error
    if isinstance(root, yaml.SequenceNode):
        for entry in root.value:
            yield _from_entry(entry)
    elif isinstance(root, yaml.MappingNode):
        for key, texts in root.value:
            label = _word(key, "a label")
            if not isinstance(texts, yaml.SequenceNode):
                raise ExemplarError(f"line {_line(texts)}: {label} needs a list of texts")
            for node in texts.value:
                yield Exemplar(_word(node, "a text"), label, _line(node))
    elif root is not None:
        raise ExemplarError(f"line {_line(root)}: has to be {_FORMS}")


def _from_entry(entry: yaml.Node) -> Exemplar:
    if not isinstance(entry, yaml.MappingNode):
        raise ExemplarError(f"line {_line(entry)}: has to be {_FORMS}")
    found = {_word(key, "a key"): value for key, value in entry.value}
    if set(found) != {"text", "label"} or len(entry.value) != 2:
        raise ExemplarError(f"line {_line(entry)}: needs exactly the keys text and label")
    return Exemplar(_word(found["text"], "text"), _word(found["label"], "label"), _line(entry))


def _word(node: yaml.Node, what: str) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise ExemplarError(f"line {_line(node)}: {what} has to be text")
    return str(node.value)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
