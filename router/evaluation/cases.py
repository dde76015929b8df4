"""Labelled requests as a file writes them: JSON Lines or YAML, each case with its place for messages.

A case is a request, as a body or in shorthand, and what is expected of it. Nothing is judged here; `requests.py` makes
bodies of cases.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from router.config.messages import translate
from router.config.problems import PolicyError, Problem, did_you_mean, dotted
from router.config.yaml_source import Position, YamlSource, parse_yaml

MAX_BYTES: Final = 512 * 2**20
"""Larger than any set that a person labels; past this it is some other file."""

MAX_TOLD: Final = 20
"""Problems of one file that are told; a wrong file has one on every line."""

Expected = Literal[True, False, "true", "false", "unknown"]
CHAT_PATH: Final = "/v1/chat/completions"


class CasesError(Exception):
    """Cases that cannot be run; `lines` are `file:line: key: what`."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Turn(_Section):
    """One message in shorthand: exactly one of the roles, and images if it is a user's."""

    user: str | None = Field(default=None, description="What the user says.")
    assistant: str | None = Field(default=None, description="What the assistant said.")
    system: str | None = Field(default=None, description="The application's instructions.")
    images: tuple[str, ...] = Field(default=(), description="Image files, beside the cases; with `user`.")

    @model_validator(mode="after")
    def _one_role(self) -> Turn:
        if sum(each is not None for each in (self.user, self.assistant, self.system)) != 1:
            raise ValueError("needs exactly one of user, assistant and system")
        if self.images and self.user is None:
            raise ValueError("images belong to a user's turn")
        return self


class Expectation(_Section):
    """What must come of a case; what is left out may be anything."""

    decision: str | None = Field(default=None, description="The decision's name; default: none matched.")
    outcome: Literal["route", "refuse", "clarify", "unreadable"] | None = Field(
        default=None, description="What is done; unreadable: the request itself is at fault."
    )
    model: str | None = Field(default=None, description="The model that takes it.")
    status: int | None = Field(default=None, description="HTTP status of an answer that no model gives.")
    profile: str | None = Field(default=None, description="The profile that the request has.")
    signals: dict[str, Expected] = Field(
        default_factory=dict, description="family/name of a signal or projection -> true, false or unknown."
    )
    labels: dict[str, str] = Field(default_factory=dict, description="family/name -> the observation's label.")
    evidence: dict[str, int] = Field(
        default_factory=dict, description="family/name -> index of the image, from 0, that its best evidence names."
    )

    @model_validator(mode="after")
    def _something(self) -> Expectation:
        if not self.model_fields_set:
            raise ValueError("expects nothing; name a decision, an outcome, a model, or signals")
        return self

    @property
    def asked(self) -> tuple[str, ...]:
        """Every signal or projection that is named."""
        return tuple(dict.fromkeys((*self.signals, *self.labels, *self.evidence)))


class CaseFile(_Section):
    """One case: a request as a body, or in shorthand as `text` with `images`, or as `turns`."""

    name: str = Field(default="", description="How reports call it; omitted: its line.")
    text: str | None = Field(default=None, description="Shorthand: what the user says.")
    images: tuple[str, ...] = Field(default=(), description="Shorthand: image files, relative to the cases' folder.")
    turns: tuple[Turn, ...] = Field(default=(), description="Shorthand for a conversation.")
    body: dict[str, Any] | None = Field(
        default=None, description="The whole body; an image's url may be file:images/x.png."
    )
    path: str = Field(default=CHAT_PATH, description="HTTP path.")
    headers: dict[str, str] = Field(default_factory=dict, description="Request headers.")
    model: str = Field(default="auto", description="Shorthand: the model that the client names.")
    more: dict[str, Any] = Field(default_factory=dict, description="Shorthand: other keys of the body, such as tools.")
    label: str = Field(default="", description="A word by which accuracy is broken down.")
    expect: Expectation = Field(description="What must come of it.")

    @model_validator(mode="after")
    def _one_request(self) -> CaseFile:
        shorthand = {"text", "images", "turns", "model", "more"} & self.model_fields_set
        if self.body is not None and shorthand:
            raise ValueError(f"body goes without {', '.join(sorted(shorthand))}")
        if self.body is None and not {"text", "images", "turns"} & shorthand:
            raise ValueError("needs a request: body, text, images or turns")
        if "turns" in shorthand and {"text", "images"} & shorthand:
            raise ValueError("turns go without text and images")
        if {"messages", "model"} & self.more.keys():
            raise ValueError("more is for keys beside messages and model")
        return self


@dataclass(frozen=True, slots=True)
class Case:
    """A case and where it stands. `base` is the folder that its image files are relative to."""

    name: str
    path: Path
    line: int
    base: Path
    file: CaseFile

    @property
    def place(self) -> str:
        """`file:line`, as terminals link it."""
        return f"{self.path}:{self.line}"


def read_cases(path: Path) -> tuple[Case, ...]:
    """The cases of a .jsonl, .yaml or .yml file, in its order; raises CasesError, with every problem up to a limit."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise CasesError([f"{path}: is no file"])
        if size > MAX_BYTES:
            raise CasesError([f"{path}: is {size} bytes long; cases have at most {MAX_BYTES}"])
        data = path.read_bytes()
    except OSError as error:
        raise CasesError([f"{path}: {error.strerror}"]) from None
    if path.suffix not in (".jsonl", ".yaml", ".yml"):
        raise CasesError([f"{path}: cases are .jsonl, .yaml or .yml"])
    entries = list(_of_lines(path, data) if path.suffix == ".jsonl" else _of_yaml(path, data))
    problems = [f"{path}:{each.line}: {each.told}" for each in entries if isinstance(each, _Bad)]
    cases = [each for each in entries if isinstance(each, Case)]
    first: dict[str, Case] = {}
    for case in cases:
        if case.name in first:
            problems.append(f'{case.place}: name: "{case.name}" is the case at line {first[case.name].line} already')
        first.setdefault(case.name, case)
    if problems:
        left = len(problems) - MAX_TOLD
        raise CasesError([*problems[:MAX_TOLD], *([f"... and {left} more"] if left > 0 else [])])
    if not cases:
        raise CasesError([f"{path}: holds no case"])
    return tuple(cases)


@dataclass(frozen=True, slots=True)
class _Bad:
    line: int
    told: str


def _of_lines(path: Path, data: bytes) -> Iterator[Case | _Bad]:
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode(), object_pairs_hook=_each_once, parse_constant=_no_constant)
        except UnicodeDecodeError:
            yield _Bad(number, "is not UTF-8")
        except RecursionError:
            yield _Bad(number, "nests too deep")
        except ValueError as error:
            yield _Bad(number, f"is not JSON: {getattr(error, 'msg', error)}")
        else:
            # One line is one place, whatever is wrong in it.
            source = YamlSource(path, b"", value, {}, {(): Position(number, 1)})
            yield from _read(value, (), path, source)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f'key "{key}" twice')
        found[key] = value
    return found


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON number")


def _of_yaml(path: Path, data: bytes) -> Iterator[Case | _Bad]:
    try:
        source = parse_yaml(path, data)
    except PolicyError as error:
        yield from (_Bad(each.line, _told(each)) for each in error.problems)
        return
    if not isinstance(source.data, list):
        yield _Bad(1, "must be a list of cases")
        return
    for index, value in enumerate(source.data):
        yield from _read(value, (index,), path, source)


def _read(value: Any, prefix: tuple[str | int, ...], path: Path, source: YamlSource) -> Iterator[Case | _Bad]:
    line = source.problem(prefix, "").line
    if not isinstance(value, dict):
        yield _Bad(line, "a case must be a mapping")
        return
    try:
        file = CaseFile.model_validate(value)
    except ValidationError as error:
        told = [translate(each, prefix, CaseFile, source) for each in error.errors()]
        yield from (_Bad(each.line, _told(each, len(prefix))) for each in told)
        return
    yield Case(file.name or f"line {line}", path, line, path.parent, file)


def _told(problem: Problem, skip: int = 0) -> str:
    where = dotted(problem.location[skip:])
    return f"{where}: {problem.message}" if where else problem.message


def unknown_names(case: Case, names: Mapping[str, str], decisions: Mapping[str, str]) -> Iterator[str]:
    """What a case expects of things that the policy does not have, as lines; keys are what it has."""
    expect = case.file.expect
    for name in expect.asked:
        if name not in names:
            yield f'{case.place}: expect: no decision reads "{name}"{did_you_mean(name, names)}'
    if expect.decision is not None and expect.decision not in decisions:
        hint = did_you_mean(expect.decision, decisions)
        yield f'{case.place}: expect.decision: no decision "{expect.decision}"{hint}'
