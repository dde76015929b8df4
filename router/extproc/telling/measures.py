"""Counts what is told of requests and of responses.

Labels are kinds of ours and names of the policy: `admit` says which names those are, and whatever else turns up is
counted as `other`. Called by the teller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, get_args

from router.actions import headers
from router.config.load import LoadedPolicy
from router.extproc.exchange import FailureKind
from router.extproc.reading import ResponseFacts, Unread
from router.extproc.telling.handled import Handled
from router.records.record import OutcomeKind
from router.request.view import Api
from router.selection.upstream import Price
from router.signals.base import SignalName, Status
from router.signals.registry import FAMILIES
from router.telemetry.instruments import Instruments
from router.telemetry.names import OTHER

FAILURE: Final = "failure"
"""The decision of requests that were not judged, as headers have it."""

APIS: Final = frozenset(get_args(Api))
OUTCOMES: Final = frozenset(get_args(OutcomeKind))
STATUSES: Final = frozenset(get_args(Status))
MATCHED: Final = {True: "true", False: "false", None: "unknown"}
UNREAD: Final = frozenset(get_args(Unread))

COUNTED_BEFORE: Final = frozenset(get_args(FailureKind)) - {"unsupported_api"}
"""Failures that the exchange has counted itself."""

PASSED: Final = frozenset(("unsupported_api", "unknown_encoding", "unreadable_prompt"))
"""Failures that are counted here."""

CODES: Final = frozenset(
    (
        *("ambiguous_key", "duplicate_key", "empty_array", "invalid_content_encoding", "invalid_json", "invalid_type"),
        *("invalid_value", "missing_required_parameter", "request_too_large", "too_many_images", "too_many_parts"),
        *("too_many_values", "unreadable_prompt", "unsupported_charset", "unsupported_content_encoding"),
    )
)
"""Of requests that cannot be read; test_measures.py holds them against the code that gives them."""

OPERATIONS: Final[Mapping[Api, tuple[str, str]]] = {
    "openai.chat": ("chat", "openai"),
    "openai.responses": ("chat", "openai"),
    "openai.completions": ("text_completion", "openai"),
    "openai.embeddings": ("embeddings", "openai"),
    "anthropic.messages": ("chat", "anthropic"),
    "anthropic.count_tokens": ("count_tokens", "anthropic"),
}
"""What the GenAI conventions call an API's operation, and whose API it is."""

_UNEXPECTED: Final = ("request_trailers", "response_headers", "response_body", "response_trailers")
_DROPPED: Final[Mapping[str, Sequence[str]]] = {
    "record": ("queue_full", "store", "unreadable"),
    "content": ("queue_full", "store"),
    "shadow": ("queue_full", "store"),
}


class Prices:
    """What the models of the policy cost, where it says so."""

    def __init__(self) -> None:
        self._prices: Mapping[str, Price | None] = {}

    def take(self, loaded: LoadedPolicy) -> None:
        """Go by this policy from now on."""
        self._prices = {upstream.model: upstream.price for upstream in loaded.policy.upstreams}

    def of(self, model: str) -> Price | None:
        """A model's price, None where it is not known."""
        return self._prices.get(model)


def admit(instruments: Instruments, loaded: LoadedPolicy) -> None:
    """Let the names of this policy be labels, and say 0 of what alerts look at (see `begin`)."""
    policy, names = loaded.policy, instruments.names
    names.admit("model", ("", *(upstream.model for upstream in policy.upstreams)))
    names.admit("decision", (FAILURE, headers.NO_DECISION, *(decision.name for decision in policy.all_decisions)))
    asked = (*(spec.name for spec in loaded.signals), *(projection.name for projection in policy.projections))
    names.admit("signal", map(str, asked))
    for name in asked:
        for status in ("timed_out", "shed"):
            instruments.observations.begin(*_known(instruments, name), status, "unknown")


def begin(instruments: Instruments) -> None:
    """Say 0 of what alerts look at: the first of a series that was not there before is no increase to Prometheus."""
    for kind in (*get_args(FailureKind), *sorted(PASSED)):
        instruments.failures.add(0, {"kind": kind})
    for kind in _UNEXPECTED:
        instruments.unexpected_messages.add(0, {"kind": kind})
    for outcome in ("taken_over", "refused"):
        instruments.policy_reloads.add(0, {"outcome": outcome})
    for kind, reasons in _DROPPED.items():
        for reason in reasons:
            instruments.records_dropped.add(0, {"kind": kind, "reason": reason})
    for api in ("", *sorted(APIS)):
        instruments.requests.begin(FAILURE, "route", "", api, "true")
    instruments.parity_misses.add(0, {"stage": "setup"})
    instruments.ready.add(0)
    instruments.abandoned.add(0)


def measure(instruments: Instruments, handled: Handled) -> None:
    """Count a request."""
    names, record = instruments.names, handled.record
    decision = names.of("decision", record.decision if record is not None else FAILURE)
    outcome = _one_of(OUTCOMES, handled.outcome)
    model = names.of("model", (record.model or "") if record is not None else "")
    api = _one_of(APIS, handled.api) if handled.api is not None else ""
    enforced = "true" if handled.enforced else "false"
    instruments.requests.add(decision, outcome, model, api, enforced)
    instruments.decision_duration.record(handled.seconds, decision, outcome)
    if handled.kind == "unreadable":
        instruments.unreadable.add(1, {"code": _one_of(CODES, handled.failure), "api": api})
    elif handled.kind == "failure" and handled.failure not in COUNTED_BEFORE:
        instruments.failures.add(1, {"kind": _one_of(PASSED, handled.failure)})
    if handled.body_bytes:
        instruments.body_size.record(handled.body_bytes, api)
    if record is None:
        return
    instruments.images.record(record.images, api)
    for size in filter(None, handled.image_bytes):
        instruments.image_size.record(size, api)
    timed = instruments.pace.allows()
    for name, observation in record.verdict.observations.items():
        family, signal = _known(instruments, name)
        status = _one_of(STATUSES, observation.status)
        instruments.observations.add(family, signal, status, MATCHED[observation.matched])
        if timed and family in FAMILIES:
            instruments.signal_duration.record(observation.duration, family, signal, status)


def measure_response(instruments: Instruments, prices: Prices, facts: ResponseFacts) -> None:
    """Count a response."""
    names = instruments.names
    model, decision = names.of("model", facts.model), names.of("decision", facts.decision)
    unread = _one_of(UNREAD, facts.unread)
    status = f"{facts.status // 100}xx" if 100 <= facts.status < 600 else OTHER
    labels = {"model": model, "decision": decision, "status": status, "unread": unread}
    instruments.responses.add(1, labels)
    name, provider = OPERATIONS[facts.api] if facts.api is not None else (OTHER, OTHER)
    operation = (name, provider, model)
    if facts.whole is not None:
        instruments.operation_duration.record(facts.whole, *operation, status if facts.status >= 400 else "")
    if facts.first is not None:
        instruments.first_chunk.record(facts.first, *operation)
    usage = facts.usage
    for kind, count in (("input", usage.tokens_in), ("output", usage.tokens_out)):
        if count is not None:
            instruments.token_usage.record(count, *operation, kind)
    if facts.tokens_per_second is not None:
        instruments.token_speed.record(facts.tokens_per_second, model)
    price = prices.of(facts.model)
    if price is not None and (usage.tokens_in is not None or usage.tokens_out is not None):
        cost = (usage.tokens_in or 0) * price.input_per_million + (usage.tokens_out or 0) * price.output_per_million
        instruments.cost.add(cost / 1e6, {"model": model, "decision": decision})


def _known(instruments: Instruments, name: SignalName) -> tuple[str, str]:
    """Family and name as labels."""
    return name if instruments.names.of("signal", str(name)) != OTHER else (OTHER, OTHER)


def _one_of(words: frozenset[str], word: str) -> str:
    return word if word in words else OTHER
