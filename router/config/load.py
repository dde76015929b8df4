"""From a policy file to a loaded policy: shape, settings, references. Every problem is reported, not just the first.

Nothing is opened here but the policy file: packs are opened where a worker is built (`router.extproc.worker`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from router.config.conditions import read_condition
from router.config.problems import Location, PolicyError, Problem, did_you_mean
from router.config.schema import (
    DecisionSettings,
    EncoderSettings,
    LimitSettings,
    ParitySettings,
    PolicyFile,
    RespondSettings,
)
from router.config.yaml_source import YamlSource, parse_yaml, read_yaml
from router.policy.model import Clarify, Condition, Decision, Outcome, Policy, Refuse, Route, Upstream
from router.signals.base import SignalName
from router.signals.registry import FAMILIES

RESERVED_CLUSTERS = ("pointsman_again", "pointsman_workers")
"""Names that the bootstrap uses."""
SIGNAL_NAME_RULE = "letters, digits, _ and -"
RESERVED_DECISIONS = ("default", "failure")
"""What headers and records say when no decision won, and when none could be made."""


@dataclass(frozen=True, slots=True)
class SignalSpec:
    """A signal that conditions may name, with its family's settings."""

    name: SignalName
    settings: BaseModel


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A policy file that holds together. `base` is the folder that its relative paths start from."""

    path: Path
    policy: Policy
    signals: tuple[SignalSpec, ...]
    encoders: EncoderSettings
    limits: LimitSettings
    parity: ParitySettings

    @property
    def base(self) -> Path:
        """The policy file's folder."""
        return self.path.parent


def load_policy(path: Path) -> LoadedPolicy:
    """Read and check a policy file; raises PolicyError with every problem found."""
    return _load(read_yaml(path))


def parse_policy(text: bytes, path: Path) -> LoadedPolicy:
    """As `load_policy`, for text in memory; `path` is for messages and relative paths."""
    return _load(parse_yaml(path, text))


def _load(source: YamlSource) -> LoadedPolicy:
    try:
        file = PolicyFile.model_validate(source.data)
    except ValidationError as error:
        problems = [_translate(details, (), PolicyFile, source) for details in error.errors()]
        raise PolicyError(source.path, [*problems, *_problems_of_signals(source)]) from None
    checker = _Checker(source)
    specs = checker.signals(file.signals)
    upstreams = checker.upstreams(file)
    decisions = checker.decisions(file, specs)
    checker.encoders(file, specs)
    if checker.problems:
        raise PolicyError(source.path, checker.problems)
    policy = Policy(
        digest=hashlib.sha256(source.text).hexdigest(),
        on_failure=file.on_failure,
        respect_requested_model=file.respect_requested_model,
        upstreams=upstreams,
        default_model=file.default_model,
        decisions=decisions,
    )
    return LoadedPolicy(source.path, policy, specs, file.encoders, file.limits, file.parity)


def _problems_of_signals(source: YamlSource) -> list[Problem]:
    """What is wrong with the signals' settings, for a file whose own shape is broken elsewhere."""
    signals = source.data.get("signals") if isinstance(source.data, dict) else None
    if not isinstance(signals, dict) or not all(isinstance(entries, dict) for entries in signals.values()):
        return []
    checker = _Checker(source)
    checker.signals(signals)
    return checker.problems


class _Checker:
    """Collects problems while the file's parts are turned into the policy's."""

    def __init__(self, source: YamlSource) -> None:
        self.source = source
        self.problems: list[Problem] = []

    def report(self, location: Location, message: str, at_key: bool = False) -> None:
        self.problems.append(self.source.problem(location, message, at_key=at_key))

    def signals(self, families: Mapping[str, Mapping[str, Any]]) -> tuple[SignalSpec, ...]:
        specs = []
        for family, entries in families.items():
            if family not in FAMILIES:
                self.report(
                    ("signals", family), f'unknown signal family "{family}"{did_you_mean(family, FAMILIES)}', True
                )
                continue
            for name, data in entries.items():
                settings = self._settings(family, name, data)
                if settings is not None:
                    specs.append(SignalSpec(SignalName(family, name), settings))
        builtins = [
            SignalSpec(SignalName(family, name), settings)
            for family, row in FAMILIES.items()
            for name, settings in row.builtins.items()
        ]
        return (*specs, *builtins)

    def _settings(self, family: str, name: str, data: Any) -> BaseModel | None:
        location = ("signals", family, name)
        if not name or not all(c.isascii() and (c.isalnum() or c in "_-") for c in name):
            self.report(location, f"a signal's name is made of {SIGNAL_NAME_RULE}", True)
            return None
        if name in FAMILIES[family].builtins:
            self.report(location, f'"{name}" is a built-in name of {family}; choose another', True)
            return None
        model = FAMILIES[family].settings
        try:
            return model.model_validate({} if data is None else data)
        except ValidationError as error:
            self.problems += [_translate(details, location, model, self.source) for details in error.errors()]
            return None

    def upstreams(self, file: PolicyFile) -> tuple[Upstream, ...]:
        models: dict[str, int] = {}
        endpoints: dict[str, str | None] = {}
        for index, row in enumerate(file.upstreams):
            here: Location = ("upstreams", index)
            if row.model in models:
                self.report((*here, "model"), f'model "{row.model}" stands at upstreams[{models[row.model]}] already')
            models.setdefault(row.model, index)
            if row.cluster in RESERVED_CLUSTERS:
                self.report(
                    (*here, "cluster"), f'"{row.cluster}" is a cluster of Pointsman itself; choose another name'
                )
            if row.cluster in endpoints and endpoints[row.cluster] != row.endpoint:
                self.report((*here, "endpoint"), f'cluster "{row.cluster}" has another endpoint above')
            endpoints.setdefault(row.cluster, row.endpoint)
        self._model(file.default_model, ("default_model",), models)
        for index, decision in enumerate(file.decisions):
            for i, model in enumerate(decision.route.models if decision.route else ()):
                self._model(model, ("decisions", index, "route", "models", i), models)
        return tuple(
            Upstream(row.model, row.cluster, row.endpoint, row.rewrite_model or row.model, row.modalities)
            for row in file.upstreams
        )

    def _model(self, model: str, location: Location, models: dict[str, int]) -> None:
        if model not in models:
            self.report(location, f'no upstream has the model "{model}"{did_you_mean(model, models)}')

    def decisions(self, file: PolicyFile, specs: Sequence[SignalSpec]) -> tuple[Decision, ...]:
        known = {family: frozenset(s.name.name for s in specs if s.name.family == family) for family in FAMILIES}
        # A name whose settings are broken is known all the same: one mistake, one message.
        for family, entries in file.signals.items():
            if family in known:
                known[family] |= entries.keys()
        first: dict[str, int] = {}
        result = []
        for index, row in enumerate(file.decisions):
            if row.name in first:
                self.report(("decisions", index, "name"), f'decisions[{first[row.name]}] is named "{row.name}" too')
            if row.name in RESERVED_DECISIONS:
                self.report(("decisions", index, "name"), f'"{row.name}" is reserved; choose another')
            first.setdefault(row.name, index)
            when = read_condition(row.when, ("decisions", index, "when"), known, self.report)
            if when is not None:
                result.append(_decision(row, when))
        return tuple(result)

    def encoders(self, file: PolicyFile, specs: Sequence[SignalSpec]) -> None:
        given = {tower for tower in ("text", "vision") if getattr(file.encoders, tower)}
        for spec in specs:
            location = ("signals", spec.name.family, spec.name.name)
            for tower in sorted(FAMILIES[spec.name.family].needs - given):
                self.report(
                    location, f"{spec.name.family} signals need encoders.{tower}; for example `{tower}: starter`", True
                )


def _decision(row: DecisionSettings, when: Condition) -> Decision:
    unknown_matches = row.guard if row.on_unknown is None else row.on_unknown == "match"
    return Decision(row.name, row.priority, row.guard, unknown_matches, when, _outcome(row))


def _outcome(row: DecisionSettings) -> Outcome:
    if row.route is not None:
        return Route(row.route.models, row.route.select)
    respond: RespondSettings = row.respond  # type: ignore[assignment]  # the schema wants one of the two
    if respond.clarify is not None:
        return Clarify(respond.clarify)
    return Refuse(respond.status or 403, respond.code or "policy_violation", respond.message or "")


def _translate(details: ErrorDetails, prefix: Location, model: type[BaseModel], source: YamlSource) -> Problem:
    inner: Location = tuple(details["loc"])
    location = (*prefix, *inner)
    kind = details["type"]
    if kind == "extra_forbidden":
        word = str(inner[-1])
        owner = _model_at(model, inner[:-1])
        known = list(owner.model_fields) if owner else []
        hint = did_you_mean(word, known) or f"; known are {', '.join(known)}"
        return source.problem(location, f'unknown key "{word}"{hint}', at_key=True)
    if kind == "missing":
        return source.problem(location, f'needs the key "{inner[-1]}"')
    return source.problem(location, _message(details))


def _message(details: ErrorDetails) -> str:
    """What is wrong, in the words of YAML rather than of the library that noticed it."""
    context = details.get("ctx", {})
    match details["type"]:
        case "literal_error":
            return f"must be {context['expected']}"
        case "model_type" | "dict_type":
            return "must be a mapping"
        case "tuple_type" | "list_type":
            return "must be a list"
        case "too_short":
            return f"needs at least {context['min_length']} entry"
        case "string_type":
            return "must be text; quote it if it looks like a number"
        case "string_too_short":
            return "must not be empty"
        case "string_pattern_mismatch":
            return f"must match {context['pattern']}"
        case "int_parsing" | "int_type" | "int_from_float":
            return "must be a whole number"
        case "float_parsing" | "float_type":
            return "must be a number"
        case "bool_parsing" | "bool_type":
            return "must be true or false"
        case _:
            message = str(details["msg"]).removeprefix("Value error, ")
            return message[:1].lower() + message[1:]


def _model_at(model: type[BaseModel], location: Location) -> type[BaseModel] | None:
    """The model class that describes the place, following fields, optionals and sequences."""
    here: type[BaseModel] | None = model
    for key in location:
        if isinstance(key, int):
            continue
        field = here.model_fields.get(key) if here else None
        here = _model_in(field.annotation) if field else None
    return here


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
