"""From a policy file to a loaded policy: shape, settings, references. Every problem is reported, not just the first.

Nothing is opened here but the policy file: packs are opened where a worker is built (`router.extproc.house`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from router.config.answers import read_checks
from router.config.conditions import Askable, Known, read_condition
from router.config.handling import (
    EncodingSettings,
    LimitSettings,
    ParitySettings,
    RecordSettings,
    RemoteImageSettings,
    ResponseSettings,
    ShadowSettings,
)
from router.config.messages import translate
from router.config.problems import Location, PolicyError, Problem, did_you_mean, dotted
from router.config.projections import read_projections
from router.config.schema import (
    ApiRuleSettings,
    DecisionSettings,
    EncoderSettings,
    PolicyFile,
    RespondSettings,
)
from router.config.selecting import Selectable, check_select, read_select
from router.config.yaml_source import YamlSource, parse_yaml, read_yaml
from router.policy.model import Clarify, Condition, Decision, Outcome, Policy, Profile, Refuse, Route
from router.request.api_rules import ApiRule, ApiRules, read_rules
from router.selection.upstream import Price, Upstream
from router.signals.base import SignalName
from router.signals.registry import FAMILIES
from router.signals.settings import SignalSettings

RESERVED_CLUSTERS = ("pointsman_again", "pointsman_workers")
"""Names that the bootstrap uses."""
SIGNAL_NAME_RULE = "letters, digits, _ and -"
DEFAULT_DECISION = "default"
RESERVED_DECISIONS = (DEFAULT_DECISION, "failure")
"""What headers and records say when no decision won, and when none could be made."""


REDACTING_FAMILIES = ("pii", "secret")
"""Signals of these families say what must not be kept of a request."""


@dataclass(frozen=True, slots=True)
class SignalSpec:
    """A signal that conditions may name, with its family's settings."""

    name: SignalName
    settings: SignalSettings


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A policy file that holds together. `base` is the folder that its relative paths start from.

    `checks` are those of answers, as decisions that refuse.
    """

    path: Path
    policy: Policy
    signals: tuple[SignalSpec, ...]
    encoders: EncoderSettings
    limits: LimitSettings
    parity: ParitySettings
    encodings: EncodingSettings
    remote_images: RemoteImageSettings | None
    responses: ResponseSettings
    checks: tuple[Decision, ...]
    records: RecordSettings | None
    shadow: ShadowSettings | None
    source: YamlSource = field(repr=False)
    places: Mapping[str, Location] = field(repr=False)
    """Where each decision stands in the file, by name."""

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
        problems = [translate(details, (), PolicyFile, source) for details in error.errors()]
        raise PolicyError(source.path, [*problems, *_problems_of_signals(source)]) from None
    checker = _Checker(source)
    specs = checker.signals(file.signals)
    upstreams = checker.upstreams(file)
    projections, known = read_projections(file.projections, checker.known(file, specs), checker.report)
    decisions = checker.decisions(file.decisions, ("decisions",), known, file.strategy)
    profiles = checker.profiles(file, known, decisions)
    settings = {spec.name: spec.settings for spec in specs}
    checks = read_checks(file.responses.checks, settings, projections, known, file.on_failure, checker.report)
    checker.encoders(file, specs)
    checker.headers(file, specs)
    checker.selections(file)
    checker.captures(file)
    apis = checker.apis(file.apis)
    if checker.problems:
        raise PolicyError(source.path, checker.problems)
    policy = Policy(
        digest=hashlib.sha256(source.text).hexdigest(),
        on_failure=file.on_failure,
        respect_requested_model=file.respect_requested_model,
        upstreams=upstreams,
        default_model=file.default_model,
        decisions=decisions,
        projections=projections,
        profiles=profiles,
        fallback=file.fallback,
        apis=apis,
        trusted_headers=file.all_trusted,
        strip_from_clients=file.strip_from_clients,
        evaluation=file.evaluation,
        observe_only=file.observe_only,
        gateway_api_inference=file.gateway_api_inference,
        trusted_metadata=file.trusted_metadata,
        trusted_attributes=file.trusted_attributes,
    )
    return LoadedPolicy(
        source.path,
        policy,
        specs,
        file.encoders,
        file.limits,
        file.parity,
        file.encodings,
        file.remote_images,
        file.responses,
        checks,
        file.records,
        file.shadow,
        source,
        checker.places,
    )


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
        self._models: dict[str, int] = {}
        self.places: dict[str, Location] = {}

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

    def _settings(self, family: str, name: str, data: Any) -> SignalSettings | None:
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
            self.problems += [translate(details, location, model, self.source) for details in error.errors()]
            return None

    def upstreams(self, file: PolicyFile) -> tuple[Upstream, ...]:
        endpoints: dict[str, str | None] = {}
        for index, row in enumerate(file.upstreams):
            here: Location = ("upstreams", index)
            if row.model in self._models:
                first = self._models[row.model]
                self.report((*here, "model"), f'model "{row.model}" stands at upstreams[{first}] already')
            self._models.setdefault(row.model, index)
            if row.cluster in RESERVED_CLUSTERS:
                self.report(
                    (*here, "cluster"), f'"{row.cluster}" is a cluster of Pointsman itself; choose another name'
                )
            if row.cluster in endpoints and endpoints[row.cluster] != row.endpoint:
                self.report((*here, "endpoint"), f'cluster "{row.cluster}" has another endpoint above')
            endpoints.setdefault(row.cluster, row.endpoint)
        self._model(file.default_model, ("default_model",))
        self._every_model(file.fallback, ("fallback",))
        return tuple(
            Upstream(
                model=row.model,
                cluster=row.cluster,
                endpoint=row.endpoint,
                rewrite_model=row.rewrite_model or row.model,
                modalities=row.modalities,
                context_tokens=row.context_tokens,
                capabilities=None if row.capabilities is None else frozenset(row.capabilities),
                price=Price(row.price.input_per_million, row.price.output_per_million) if row.price else None,
                quality=row.quality,
                image_tokens=row.image_tokens,
                card=row.card,
                outputs=row.outputs,
            )
            for row in file.upstreams
        )

    def _every_model(self, models: Sequence[str], location: Location) -> None:
        for index, model in enumerate(models):
            self._model(model, (*location, index))

    def _model(self, model: str, location: Location) -> None:
        if model not in self._models:
            self.report(location, f'no upstream has the model "{model}"{did_you_mean(model, self._models)}')

    def known(self, file: PolicyFile, specs: Sequence[SignalSpec]) -> Known:
        """What conditions may ask of signals."""
        known: dict[str, dict[str, Askable]] = {family: {} for family in FAMILIES}
        for spec in specs:
            row = FAMILIES[spec.name.family]
            labels = spec.settings.possible_labels if row.labels else ()
            known[spec.name.family][spec.name.name] = Askable(
                measures=(row.counts or row.scores != "none") and spec.settings.has_number,
                labels=None if labels is None else frozenset(labels),
            )
        # A name whose settings are broken is known all the same: one mistake, one message.
        for family, entries in file.signals.items():
            for name in entries if family in known else ():
                known[family].setdefault(name, Askable(labels=None))
        return known

    def decisions(
        self,
        rows: Sequence[DecisionSettings],
        location: Location,
        known: Known,
        strategy: Literal["priority", "confidence"],
    ) -> tuple[Decision, ...]:
        result = []
        for index, row in enumerate(rows):
            here: Location = (*location, index)
            if row.name in self.places:
                self.report((*here, "name"), f'{dotted(self.places[row.name])} is named "{row.name}" too')
            if row.name in RESERVED_DECISIONS:
                self.report((*here, "name"), f'"{row.name}" is reserved; choose another')
            self.places.setdefault(row.name, here)
            if row.route is not None:
                self._every_model(row.route.models, (*here, "route", "models"))
                self._every_model(row.route.fallback, (*here, "route", "fallback"))
            when = read_condition(row.when, (*here, "when"), known, self.report)
            if when is not None:
                result.append(_decision(row, when, strategy))
        return tuple(result)

    def profiles(self, file: PolicyFile, known: Known, decisions: Sequence[Decision]) -> tuple[Profile, ...]:
        names: dict[str, int] = {}
        asked: dict[str, int] = {}
        borne: dict[tuple[str, str], int] = {}
        guards = tuple(decision for decision in decisions if decision.guard)
        result = []
        for index, row in enumerate(file.profiles):
            here: Location = ("profiles", index)
            if row.name in names:
                self.report((*here, "name"), f'profiles[{names[row.name]}] is named "{row.name}" too')
            names.setdefault(row.name, index)
            for i, model in enumerate(row.models):
                if model in self._models:
                    self.report((*here, "models", i), f'"{model}" is an upstream; a profile needs a name of its own')
                if model in asked:
                    self.report((*here, "models", i), f'"{model}" leads to profiles[{asked[model]}] already')
                asked.setdefault(model, index)
            if row.header is not None and row.header.name not in file.all_trusted:
                self.report((*here, "header", "name"), _untrusted(row.header.name))
            header, values = (row.header.name, row.header.any) if row.header else ("", ())
            for i, value in enumerate(values):
                first = borne.setdefault((header, value.casefold()), index)
                if first != index:
                    self.report((*here, "header", "any", i), f'"{value}" leads to profiles[{first}] already')
            if row.default_model is not None:
                self._model(row.default_model, (*here, "default_model"))
            own = self.decisions(row.decisions, (*here, "decisions"), known, file.strategy)
            result.append(
                Profile(
                    row.name,
                    frozenset(row.models),
                    header,
                    frozenset(value.casefold() for value in values),
                    (*guards, *own),
                    row.default_model or file.default_model,
                )
            )
        return tuple(result)

    def apis(self, rows: Sequence[ApiRuleSettings]) -> ApiRules:
        rules: list[ApiRule] = []
        for index, row in enumerate(rows):
            try:
                rules += read_rules([(row.path, row.api)])
            except ValueError as error:
                self.report(("apis", index, "path"), str(error))
        return tuple(rules)

    def headers(self, file: PolicyFile, specs: Sequence[SignalSpec]) -> None:
        metadata, attributes = file.trusted_metadata, file.trusted_attributes
        for key, names in (("trusted_metadata", metadata), ("trusted_attributes", attributes)):
            for name in names:
                if file.all_trusted.count(name) > 1:
                    self.report((key, name), f'"{name}" has another source as well; one name has one', True)
        for index, name in enumerate(file.strip_from_clients):
            if name not in file.trusted_headers:
                near = did_you_mean(name, file.trusted_headers)
                self.report(("strip_from_clients", index), f'"{name}" is not among trusted_headers{near}')
        for spec in specs:
            for name in spec.settings.trusted_headers:
                if name not in file.all_trusted:
                    self.report(("signals", spec.name.family, spec.name.name), _untrusted(name))

    def selections(self, file: PolicyFile) -> None:
        have = Selectable(
            priced={row.model for row in file.upstreams if row.price},
            rated={row.model for row in file.upstreams if row.quality is not None},
            carded={row.model for row in file.upstreams if row.card},
            trusted_headers=file.all_trusted,
            text_encoder=file.encoders.text is not None,
        )
        profiles = ((("profiles", i, "decisions"), row.decisions) for i, row in enumerate(file.profiles))
        for location, rows in ((("decisions",), file.decisions), *profiles):
            for index, row in enumerate(rows):
                if row.route is not None:
                    here = (*location, index, "route", "select")
                    check_select(row.route.select, row.route.models, here, have, self.report)

    def captures(self, file: PolicyFile) -> None:
        capture = file.records.capture if file.records else None
        if capture is None:
            return
        known = {*self.places, DEFAULT_DECISION}
        for index, name in enumerate(() if capture.decisions == "all" else capture.decisions):
            if name not in known:
                self.report(
                    ("records", "capture", "decisions", index),
                    f'no decision is named "{name}"{did_you_mean(name, known)}',
                )
        if capture.redact and not any(file.signals.get(family) for family in REDACTING_FAMILIES):
            self.report(
                ("records", "capture"),
                "is to redact what pii and secret signals find, and the policy has none; add one, or `redact: false`",
                True,
            )

    def encoders(self, file: PolicyFile, specs: Sequence[SignalSpec]) -> None:
        given = {tower for tower in ("text", "vision") if getattr(file.encoders, tower)}
        for spec in specs:
            location = ("signals", spec.name.family, spec.name.name)
            for tower in sorted(FAMILIES[spec.name.family].needs - given):
                self.report(
                    location, f"{spec.name.family} signals need encoders.{tower}; for example `{tower}: starter`", True
                )
            if spec.settings.heads and "text" not in given | FAMILIES[spec.name.family].needs:
                heads = ", ".join(spec.settings.heads)
                self.report(
                    location, f"{heads}: a head of encoders.text, which is not there; for example `text: starter`", True
                )


def _untrusted(header: str) -> str:
    return f'"{header}" is not among trusted_headers, so that any client could set it; list it there if none can'


def _decision(row: DecisionSettings, when: Condition, strategy: Literal["priority", "confidence"]) -> Decision:
    unknown_matches = row.guard if row.on_unknown is None else row.on_unknown == "match"
    tier = row.priority if row.guard or strategy == "priority" else 0
    return Decision(row.name, row.priority, row.guard, unknown_matches, when, _outcome(row), tier)


def _outcome(row: DecisionSettings) -> Outcome:
    if row.route is not None:
        return Route(row.route.models, read_select(row.route.select), row.route.fallback)
    respond: RespondSettings = row.respond  # type: ignore[assignment]  # the schema wants one of the two
    if respond.clarify is not None:
        return Clarify(respond.clarify)
    return Refuse(respond.status or 403, respond.code or "policy_violation", respond.message or "")
