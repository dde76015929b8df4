"""From a vLLM Semantic Router configuration, format v0.3, to a policy, with an account of what was not carried.

It reads that public format and writes a policy file's text; nothing of theirs is run or opened.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from router.config.imports.decisions import ALWAYS, Decisions
from router.config.imports.derived import Projections
from router.config.imports.ledger import Finding, Ledger, changed, lost
from router.config.imports.models import Models
from router.config.imports.node import Node
from router.config.imports.reasons import REASONS, reason_of, splits
from router.config.imports.rules import Rules
from router.config.imports.signals import Condition, Signals
from router.config.imports.signals_of_meaning import (
    read_complexities,
    read_domains,
    read_embeddings,
    read_fact_checks,
    read_feedback,
    read_jailbreaks,
    read_pii,
    read_preferences,
    read_reasks,
    subject_condition,
)
from router.config.imports.signals_of_shape import (
    read_conversations,
    read_input_modalities,
    read_modalities,
    read_roles,
)
from router.config.imports.signals_of_wording import (
    read_contexts,
    read_events,
    read_keywords,
    read_languages,
    read_structures,
)
from router.config.imports.writing import Entry, to_yaml
from router.config.load import parse_policy
from router.config.problems import Location, PolicyError, Problem
from router.config.yaml_source import YamlSource, parse_yaml

VERSION: Final = "v0.3"
SECTIONS: Final = ("listeners", "providers", "routing", "global")
FLAT: Final = frozenset(
    {
        "signals", "decisions", "categories", "keyword_rules", "embedding_rules", "model_config", "vllm_endpoints",
        "provider_profiles", "default_model", "semantic_cache", "prompt_guard", "classifier", "bert_model",
        "reasoning_families",
    }
)  # fmt: skip
"""Keys at the top of their older formats."""

MIGRATE: Final = "bring it to v0.3 first, with their `vllm-sr config migrate --config FILE`"
_NOT_CARRIED: Final = {"kb": "kb", "classifiers": "classifier", "safety": "safety", "metadata": "metadata"}


@dataclass(frozen=True, slots=True)
class Imported:
    """A policy's text, what is to be said about the import, and the places of the values that the policy carries."""

    text: str
    findings: tuple[Finding, ...]
    carried: frozenset[Location]

    @property
    def complete(self) -> bool:
        """Whether nothing was lost."""
        return all(finding.reason.kind != "lost" for finding in self.findings)


def import_vsr(path: Path, text: bytes) -> Imported:
    """Translate a configuration; `path` is for messages.

    Raises PolicyError for what is no such configuration, with line and column of everything that is wrong with it.
    """
    if all(not line.strip() or line.lstrip().startswith(b"#") for line in text.splitlines()):
        raise PolicyError(path, [Problem(1, 1, (), "is empty; a configuration has providers and routing")])
    source = parse_yaml(path, text)
    imported = translate(source)
    parse_policy(imported.text.encode(), Path("policy.yaml"))
    return imported


def translate(source: YamlSource) -> Imported:
    """As `import_vsr`, for a file that was read already; whether the policy loads is not tried."""
    _recognise(source)
    ledger = Ledger(source, reason_of, splits)
    policy = _policy(ledger)
    if ledger.problems:
        raise PolicyError(source.path, ledger.problems)
    findings, carried = ledger.close()
    return Imported(to_yaml(policy, _heading(source.path, findings)), findings, carried)


def _recognise(source: YamlSource) -> None:
    """Raises PolicyError for other formats, and says what to do about it."""
    data = source.data
    if not isinstance(data, dict):
        raise PolicyError(source.path, [source.problem((), "is no configuration: the top must be a mapping")])
    here: Location = ()
    message = ""
    if "routing" not in data and FLAT & data.keys():
        here = (next(key for key in data if key in FLAT),)
        message = f"is of a format before v0.3, with `{here[0]}` at the top; {MIGRATE}"
    elif "routing" not in data and isinstance(data.get("config"), dict):
        here, message = ("config",), "is a file of values for Helm; import what stands under `config` by itself"
    elif "routing" not in data and {"apiVersion", "kind"} & data.keys():
        here = (next(key for key in ("apiVersion", "kind") if key in data),)
        message = "is a Kubernetes resource; import the configuration that its `spec.config` holds by itself"
    elif "upstreams" in data:
        here, message = ("upstreams",), "is a policy of Pointsman already"
    elif not isinstance(data.get("routing"), dict):
        here, message = ("routing",), "a configuration has a mapping `routing`"
    elif str(data.get("version", VERSION)).lower().removeprefix("v") not in ("0.3", "0.3.0"):
        here = ("version",)
        message = f"only {VERSION} can be imported; for an older one, {MIGRATE}"
    if message:
        raise PolicyError(source.path, [source.problem(here, message, at_key=True)])


def _policy(ledger: Ledger) -> dict[str, Any]:
    root = Node(ledger, (), ledger.source.data)
    root.text("version")
    routing = root.node("routing")
    assert routing is not None
    providers = root.node("providers")
    router = _below(root, "global", "router")
    models = Models(ledger)
    models.read(providers, routing)
    default = _default_model(ledger, providers, models)
    signals = _signals(root, routing, ledger)
    projections = Projections(signals)
    projections.read(routing.node("projections"))
    made: dict[tuple[str, str], Condition | None] = {}

    def missing(kind: str, name: str) -> Condition | None:
        if kind != "domain" or signals.rules_of("domain"):
            return None
        if (kind, name) not in made:
            made[kind, name] = subject_condition(signals, name, routing)
        return made[kind, name]

    reader = Decisions(ledger, signals, Rules(signals, missing), models, default)
    decisions = reader.read(routing)
    strategy = _strategy(routing, router)
    if reader.always:
        always = Entry({"min_turns": 0}, ("For decisions without conditions: every request matches.",))
        signals.families.setdefault("conversation", {})[ALWAYS["conversation"]] = always
    encoders = signals.encoders()
    sections = {kind: entries for kind, entries in projections.sections.items() if entries}
    select_text = any("similarity" in json.dumps(entry.value.get("route", {}).get("select")) for entry in decisions)
    if select_text:
        encoders = {"text": "starter", **encoders}
    policy: dict[str, Any] = {
        "version": 1,
        "on_failure": Entry(
            "closed", ("A request that could not be judged is refused; open: it goes to default_model.",)
        ),
        "respect_requested_model": Entry(True, ("As there, a request that names a model keeps it; guards excepted.",)),
        "strategy": strategy,
        "trusted_headers": signals.trusted_headers
        and Entry(signals.trusted_headers, ("A filter in front must set these, and take away what a client sends.",)),
        "upstreams": models.upstreams(),
        "default_model": default,
        "encoders": encoders,
        "signals": signals.families,
        "projections": sections,
        "decisions": decisions,
    }
    return {key: value for key, value in policy.items() if value}


def _below(node: Node | None, *keys: str) -> Node | None:
    for key in keys:
        node = node.node(key) if node is not None else None
    return node


def _default_model(ledger: Ledger, providers: Node | None, models: Models) -> str:
    defaults = providers.node("defaults") if providers else None
    key = "default_model" if defaults and defaults.has("default_model") else "model"
    name = defaults.text(key) if defaults else None
    if defaults and name:
        if not models.knows(name):
            defaults.book(key, changed("nothing describes the model", "complete it under `upstreams`"))
        return models.word(name)
    first = models.first()
    if first is None:
        ledger.problem(("providers",), "names no model, so that there is nowhere to send a request")
        return ""
    place: Location = ("providers",) if providers else ("routing", "modelCards")
    ledger.book(place, changed("there is no default model; the first model is taken", "see `default_model`"))
    return first


def _signals(root: Node, routing: Node, ledger: Ledger) -> Signals:
    signals = Signals(ledger)
    signals.reserve("conversation", ALWAYS["conversation"])
    node = routing.node("signals")
    read_keywords(signals, node)
    read_contexts(signals, node)
    read_structures(signals, node)
    read_conversations(signals, node)
    read_languages(signals, node)
    read_events(signals, node)
    read_input_modalities(signals, node)
    read_modalities(signals, node)
    read_roles(signals, node, _below(root, "global", "services", "authz", "identity"))
    read_embeddings(signals, node)
    modules = _below(root, "global", "model_catalog", "modules")
    read_domains(signals, node, _below(modules, "classifier", "domain"))
    read_fact_checks(signals, node, _below(modules, "hallucination_mitigation", "fact_check"))
    read_feedback(signals, node, _below(modules, "feedback_detector"))
    read_reasks(signals, node)
    read_preferences(signals, node)
    read_complexities(signals, node)
    read_jailbreaks(signals, node)
    read_pii(signals, node)
    for key, kind in _NOT_CARRIED.items():
        for _, rule in signals.rules(node, key, kind):
            rule.book(None, REASONS[f"routing.signals.{key}"])
    return signals


def _strategy(routing: Node, router: Node | None) -> str | None:
    for node in (routing, router):
        word = node.text("strategy") if node else None
        if node and word is not None:
            if word.lower() in ("priority", "confidence"):
                if node is routing and router and router.has("strategy"):
                    router.book("strategy", lost("`routing.strategy` stands before it"))
                return word.lower()
            node.book("strategy", lost("this strategy is not known; priorities decide"))
    return None


def _heading(path: Path, findings: tuple[Finding, ...]) -> list[str]:
    kinds = [finding.reason.kind for finding in findings]
    lost_count, changed_count = kinds.count("lost"), kinds.count("changed")
    return [
        f"Imported from {path.name}, a vLLM Semantic Router configuration. Comments name its keys.",
        f"Not carried: {lost_count} places. Carried with a difference: {changed_count}. The import lists them.",
        "Next: pointsman check.",
    ]
