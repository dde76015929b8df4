"""YAML with positions: plain data, and where each key and value of it stands in the file.

A plain loader forgets positions and stops at the first problem; both matter in a policy. YAML is read as version 1.2,
where `on` and `no` are words and a question mark may end a text inside brackets.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from router.config.problems import Location, PolicyError, Problem

MAX_BYTES = 4 * 1024 * 1024
"""A policy of 200 decisions is about 60 kB; past this it is some other file."""

MAX_NODES = 200_000
MAX_DEPTH = 200
TOO_LARGE = f"has more than {MAX_NODES} values or nests deeper than {MAX_DEPTH}, aliases unfolded"
"""Aliases count each time they are used, so that a short file cannot unfold into an endless one."""


@dataclass(frozen=True, slots=True)
class Position:
    """Line and column, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class YamlSource:
    """`data` as YAML's safe types. `keys` locates the key that leads to a value, `values` the value itself."""

    path: Path
    text: bytes
    data: Any
    keys: Mapping[Location, Position]
    values: Mapping[Location, Position]

    def problem(self, location: Location, message: str, *, at_key: bool = False) -> Problem:
        """A problem at the location, or at its nearest ancestor that stands in the file."""
        places = self.keys if at_key else self.values
        here = location
        while here and here not in places:
            here = here[:-1]
        position = places.get(here) or self.values.get((), Position(1, 1))
        return Problem(position.line, position.column, location, message)


def read_yaml(path: Path) -> YamlSource:
    """Read one YAML document; raises PolicyError for what is no file, no UTF-8, no YAML, or has a key twice."""
    try:
        text = read_file(path)
    except OSError as error:
        raise PolicyError(path, [Problem(1, 1, (), f"cannot be read: {error.strerror}")]) from None
    return parse_yaml(path, text)


def read_file(path: Path) -> bytes:
    """The file's bytes, one more than MAX_BYTES at most. Raises OSError, also for a pipe or a device.

    It does not wait: opening a pipe would, for whoever writes to it.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return opened.read(MAX_BYTES + 1)


def parse_yaml(path: Path, text: bytes) -> YamlSource:
    """As `read_yaml`, for text that was read already; `path` is for messages."""
    if len(text) > MAX_BYTES:
        raise PolicyError(path, [Problem(1, 1, (), f"is too long; a policy has at most {MAX_BYTES} bytes")])
    try:
        root = _parser().compose(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise PolicyError(path, [Problem(line, 1, (), "is not UTF-8")]) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise PolicyError(path, [Problem(line, column, (), f"is not YAML: {error.problem}")]) from None
    except (YAMLError, RecursionError) as error:
        raise PolicyError(path, [Problem(1, 1, (), f"is not YAML: {type(error).__name__}")]) from None
    if root is None:
        raise PolicyError(
            path, [Problem(1, 1, (), "is empty; the smallest policy has version, upstreams and default_model")]
        )
    reader = _Reader()
    try:
        data = reader.read(root, ())
    except _TooLargeError as error:
        raise PolicyError(path, [error.problem]) from None
    if reader.problems:
        raise PolicyError(path, reader.problems)
    return YamlSource(path, text, data, reader.keys, reader.values)


def _parser() -> YAML:
    return YAML(typ="safe", pure=True)


class _TooLargeError(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Reader:
    """Walks the node graph once; scalars are built by the library's safe constructor, so that types are YAML's own."""

    def __init__(self) -> None:
        self.keys: dict[Location, Position] = {}
        self.values: dict[Location, Position] = {}
        self.problems: list[Problem] = []
        self._constructor = _parser().constructor
        self._open: set[int] = set()
        self._nodes = 0

    def read(self, node: Node, location: Location) -> Any:
        position = _position(node)
        self._nodes += 1
        if self._nodes > MAX_NODES or len(location) > MAX_DEPTH:
            raise _TooLargeError(Problem(position.line, position.column, location[:3], TOO_LARGE))
        self.values[location] = position
        if id(node) in self._open:
            self.problems.append(Problem(position.line, position.column, location, "an alias may not contain itself"))
            return None
        self._open.add(id(node))
        try:
            return self._built(node, location)
        finally:
            self._open.discard(id(node))

    def _built(self, node: Node, location: Location) -> Any:
        if isinstance(node, MappingNode):
            return self._mapping(node, location)
        if isinstance(node, SequenceNode):
            return [self.read(child, (*location, index)) for index, child in enumerate(node.value)]
        try:
            return self._constructor.construct_object(node)
        except (YAMLError, ValueError) as error:
            self.problems.append(Problem(*_pair(node), location, f"is no plain YAML value: {type(error).__name__}"))
            return None

    def _mapping(self, node: MappingNode, location: Location) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self.problems.append(Problem(*_pair(key_node), location, "a key must be a word"))
                continue
            # The word as written: a bare `on` or `404` is a name here, not a boolean or a number.
            key = key_node.value
            here = (*location, key)
            if key in result:
                first = self.keys[here]
                message = f'key "{key}" stands here again; it is at line {first.line} already'
                self.problems.append(Problem(*_pair(key_node), here, message))
                continue
            self.keys[here] = _position(key_node)
            result[key] = self.read(value_node, here)
        return result


def _position(node: Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _pair(node: Node) -> tuple[int, int]:
    position = _position(node)
    return position.line, position.column
