"""A decision record as it is stored: JSON with every number whole, from which the record can be made again.

What logs show is rounded, which may move a score over a threshold; what is stored is not. Condition trees are not in
it: they follow from the observations and the policy, which is stored once (`basis.py`). No content of the request.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from router.policy.agenda import bases_of
from router.policy.model import Policy
from router.policy.resolve import Resolution, Source
from router.policy.verdict import Reason, Stage, Verdict
from router.records.record import MAX_EVIDENCE, DecisionRecord, OutcomeKind
from router.selection.choice import Choice
from router.selection.needs import NeedKind, Needs, Unmet
from router.selection.upstream import Upstream
from router.signals.base import Evidence, Observation, SignalName, Status

FORMAT: Final = 1

Number = float | str | None
"""A float as it was; JSON has no nan, inf and -inf, which are written as these words."""

Count = Annotated[int, msgspec.Meta(ge=0)]


class RecordFormatError(Exception):
    """Bytes that are no stored record of this version. The text is for the operator."""


class StoredEvidence(msgspec.Struct, omit_defaults=True, frozen=True):
    """One piece of evidence."""

    pointer: str
    label: str = ""
    score: Number = None
    span: tuple[int, int] | None = None
    image: int | None = None
    detail: str = ""


class StoredObservation(msgspec.Struct, omit_defaults=True, frozen=True):
    """One observation; at most MAX_EVIDENCE pieces of evidence, and how many were left out. Times in seconds."""

    status: Status
    matched: bool | None = None
    score: Number = None
    value: Number = None
    label: str = ""
    reason: str = ""
    pack: str = ""
    duration: float = 0.0
    waited: float = 0.0
    at: float = 0.0
    evidence: tuple[StoredEvidence, ...] = ()
    evidence_left_out: Count = 0


class StoredUnmet(msgspec.Struct, omit_defaults=True, frozen=True):
    """A need that a model did not meet."""

    kind: NeedKind
    name: str
    asked: Count = 0
    held: Count = 0


class StoredNeeds(msgspec.Struct, omit_defaults=True, frozen=True):
    """What the request needs of a model; `sizes` are width and height of each image, None where not looked up."""

    text_tokens: Count
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    abilities: tuple[str, ...] = ()
    output_tokens: int | None = None
    sizes: tuple[tuple[int, int] | None, ...] = ()


class StoredChoice(msgspec.Struct, omit_defaults=True, frozen=True):
    """Who was chosen of whom; `seed` is 64 bits in hex, `state` version and digest where a state was read."""

    model: str
    reason: str
    propensities: dict[str, float]
    seed: str
    scores: dict[str, Number] = {}
    state: tuple[int, str] | None = None


class StoredSelection(msgspec.Struct, omit_defaults=True, frozen=True):
    """How the upstream was found; `choice` is None where nobody could take the request."""

    needs: StoredNeeds
    choice: StoredChoice | None = None
    source: Source | None = None
    select: str = ""
    filtered: dict[str, tuple[StoredUnmet, ...]] = {}


class StoredStage(msgspec.Struct, frozen=True):
    """Signals that were asked together, the seconds that took, and how many had passed since the request was read."""

    name: str
    asked: tuple[str, ...]
    seconds: float
    at: float = 0.0


class StoredShadow(msgspec.Struct, omit_defaults=True, frozen=True):
    """What a shadow policy would have done. `models` are those that may have had the request, one where that is known.

    `policy` is its digest. `exact`: it follows from the record alone; else signals were asked after the answer.
    """

    policy: str
    decision: str
    outcome: str
    models: tuple[str, ...] = ()
    exact: bool = True
    differs: bool = False


class StoredFinding(msgspec.Struct, omit_defaults=True, frozen=True):
    """A place in an answer that a signal found, or a signal that could not answer. It points and never quotes."""

    signal: str
    pointer: str = ""
    label: str = ""
    status: str = ""
    reason: str = ""


class StoredAnswer(msgspec.Struct, omit_defaults=True, frozen=True):
    """An answer that did not pass the checks: which one, empty where it could not be checked, and why.

    `enforced` is False where it went on all the same.
    """

    check: str
    why: str
    stream: bool = False
    enforced: bool = True
    evidence: tuple[StoredFinding, ...] = ()


class StoredRecord(msgspec.Struct, omit_defaults=True, frozen=True):
    """The record. Durations are in seconds; what is missing is at its default."""

    format: int
    record: str
    policy: str
    api: str
    decision: str
    outcome: OutcomeKind
    reason: Reason
    observations: dict[str, StoredObservation]
    body_bytes: Count
    turns: Count
    images: Count
    parse: float
    decide: float
    duration: float
    select: float = 0.0
    version: str = ""
    """Of Pointsman, which made the observations."""
    matched: str | None = None
    """The decision that won; None for `default`."""
    requested_model: str | None = None
    model: str | None = None
    cluster: str | None = None
    profile: str | None = None
    confidence: Number = None
    unknown_root: bool = False
    routes_considered: bool = True
    enforced: bool = True
    stream: bool = False
    skipped: tuple[str, ...] = ()
    stages: tuple[StoredStage, ...] = ()
    selection: StoredSelection | None = None
    shadow: StoredShadow | None = None
    """Kept beside the record, as is what follows; all are put in when it is read."""
    content: str | None = None
    """`kept`, or why the content of the request is not; None where it was not to be."""
    answer: StoredAnswer | None = None
    """None where the answer passed, or was not checked."""


CONTENT_KEPT: Final = "kept"
"""What `StoredRecord.content` says where there is content."""

_decoder: Final = msgspec.json.Decoder(StoredRecord)
_shadows: Final = msgspec.json.Decoder(StoredShadow)
_answers: Final = msgspec.json.Decoder(StoredAnswer)


def encode(stored: StoredRecord) -> bytes:
    """JSON; raises UnicodeEncodeError for half a surrogate pair, which no text of ours holds."""
    return msgspec.json.encode(stored)


def decode(data: bytes) -> StoredRecord:
    """The stored record; raises RecordFormatError, also for what a file of SQLite may hold in place of bytes."""
    try:
        stored = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise RecordFormatError("is no decision record") from error
    if stored.format != FORMAT:
        raise RecordFormatError(f"is a record of format {stored.format}; this version reads {FORMAT}")
    return stored


def decode_with(data: bytes, why: str | None, shadow: bytes | None, answer: bytes | None) -> StoredRecord:
    """The stored record with what lies beside it: why there is no content ("": there is), a shadow's outcome, and an
    answer's."""
    stored = decode(data)
    if why is None and shadow is None and answer is None:
        return stored
    try:
        other = None if shadow is None else _shadows.decode(shadow)
        unpassed = None if answer is None else _answers.decode(answer)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        raise RecordFormatError("has an outcome of a shadow or an answer that cannot be read") from error
    if not isinstance(why, str | None):
        raise RecordFormatError("has a reason without content that is no text")
    content = None if why is None else why or CONTENT_KEPT
    return msgspec.structs.replace(stored, content=content, shadow=other, answer=unpassed)


def encode_beside(one: StoredShadow | StoredAnswer) -> bytes:
    """JSON."""
    return msgspec.json.encode(one)


def to_stored(record: DecisionRecord, version: str = "") -> StoredRecord:
    """What is stored of a record; `version` is that of the program."""
    verdict = record.verdict
    return StoredRecord(
        format=FORMAT,
        version=version,
        record=record.record,
        policy=record.policy,
        api=record.api,
        decision=record.decision,
        matched=verdict.decision,
        outcome=record.outcome,
        reason=verdict.reason,
        observations={str(name): _stored_observation(one) for name, one in verdict.observations.items()},
        body_bytes=record.body_bytes,
        turns=record.turns,
        images=record.images,
        stream=record.stream,
        parse=record.parse,
        decide=record.decide,
        select=record.select,
        duration=record.duration,
        requested_model=record.requested_model,
        model=record.model,
        cluster=record.cluster,
        profile=verdict.profile,
        confidence=_number(verdict.confidence),
        unknown_root=verdict.unknown_root,
        routes_considered=verdict.routes_considered,
        enforced=record.enforced,
        skipped=tuple(map(str, verdict.skipped)),
        stages=tuple(StoredStage(one.name, tuple(map(str, one.asked)), one.seconds, one.at) for one in verdict.stages),
        selection=None if record.resolution is None else _stored_selection(record.resolution),
    )


def to_record(stored: StoredRecord, policy: Policy | None) -> DecisionRecord:
    """The record again, with the trees of the policy that it was decided by; None: without any.

    Raises RecordFormatError for one that no request can have left.
    """
    with _told():
        return _record(stored, policy)


def _record(stored: StoredRecord, policy: Policy | None) -> DecisionRecord:
    return DecisionRecord(
        record=stored.record,
        policy=stored.policy,
        api=stored.api,
        requested_model=stored.requested_model,
        decision=stored.decision,
        outcome=stored.outcome,
        model=stored.model,
        cluster=stored.cluster,
        verdict=_verdict(stored, policy),
        body_bytes=stored.body_bytes,
        turns=stored.turns,
        images=stored.images,
        stream=stored.stream,
        parse=stored.parse,
        decide=stored.decide,
        select=stored.select,
        duration=stored.duration,
        resolution=_resolution(stored),
        enforced=stored.enforced,
    )


def observations_of(stored: StoredRecord) -> dict[SignalName, Observation]:
    """Observations of signals and projections; evidence that was left out stays so. Raises RecordFormatError."""
    with _told():
        return _observations(stored)


def _observations(stored: StoredRecord) -> dict[SignalName, Observation]:
    return {signal_name(name): _observation(one) for name, one in stored.observations.items()}


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Whoever can write to a store can write nonsense that has the right form."""
    try:
        yield
    except ValueError as error:
        raise RecordFormatError("has values that do not go together") from error


def signal_name(text: str) -> SignalName:
    """The name that `family/name` stands for."""
    family, _, name = text.partition("/")
    return SignalName(family, name)


def needs_of(stored: StoredNeeds) -> Needs:
    """The needs as they were measured."""
    return Needs(
        inputs=frozenset(stored.inputs),
        outputs=frozenset(stored.outputs),
        abilities=frozenset(stored.abilities),
        text_tokens=stored.text_tokens,
        output_tokens=stored.output_tokens,
        sizes=stored.sizes,
    )


def _stored_observation(one: Observation) -> StoredObservation:
    return StoredObservation(
        status=one.status,
        matched=one.matched,
        score=_number(one.score),
        value=_number(one.value),
        label=one.label,
        reason=one.reason,
        pack=one.pack,
        duration=one.duration,
        waited=one.waited,
        at=one.at,
        evidence=tuple(
            StoredEvidence(e.pointer, e.label, _number(e.score), e.span, e.image, e.detail)
            for e in one.evidence[:MAX_EVIDENCE]
        ),
        evidence_left_out=max(0, len(one.evidence) - MAX_EVIDENCE),
    )


def _observation(one: StoredObservation) -> Observation:
    return Observation(
        status=one.status,
        matched=one.matched,
        score=_float(one.score),
        label=one.label,
        evidence=tuple(Evidence(e.pointer, e.label, _float(e.score), e.span, e.image, e.detail) for e in one.evidence),
        reason=one.reason,
        pack=one.pack,
        duration=one.duration,
        value=_float(one.value),
        waited=one.waited,
        at=one.at,
    )


def _stored_selection(resolution: Resolution) -> StoredSelection:
    needs, choice = resolution.needs, resolution.choice
    return StoredSelection(
        needs=StoredNeeds(
            text_tokens=needs.text_tokens,
            inputs=tuple(sorted(needs.inputs)),
            outputs=tuple(sorted(needs.outputs)),
            abilities=tuple(sorted(needs.abilities)),
            output_tokens=needs.output_tokens,
            sizes=needs.sizes,
        ),
        choice=None
        if choice is None
        else StoredChoice(
            model=choice.model,
            reason=choice.reason,
            propensities=dict(choice.propensities),
            seed=f"{resolution.seed:016x}",
            scores={model: _number(score) for model, score in choice.scores.items()},
            state=(resolution.state_version, resolution.state_digest) if resolution.state_version else None,
        ),
        source=resolution.source,
        select=resolution.select,
        filtered={
            model: tuple(StoredUnmet(one.kind, one.name, one.asked, one.held) for one in unmet)
            for model, unmet in resolution.filtered.items()
        },
    )


def _resolution(stored: StoredRecord) -> Resolution | None:
    selection = stored.selection
    if selection is None:
        return None
    choice = selection.choice
    version, digest = (choice.state if choice is not None else None) or (0, "")
    return Resolution(
        # Of the upstream a record keeps its names alone.
        upstream=None if stored.model is None else Upstream(stored.model, stored.cluster or "", None, "", ()),
        choice=None
        if choice is None
        else Choice(
            choice.model,
            choice.reason,
            choice.propensities,
            {model: _float(score) or 0.0 for model, score in choice.scores.items()},
        ),
        source=selection.source,
        select=selection.select,
        seed=int(choice.seed, 16) if choice is not None else 0,
        state_version=version,
        state_digest=digest,
        filtered={
            model: tuple(Unmet(one.kind, one.name, one.asked, one.held) for one in unmet)
            for model, unmet in selection.filtered.items()
        },
        needs=needs_of(selection.needs),
    )


def _verdict(stored: StoredRecord, policy: Policy | None) -> Verdict:
    own = () if policy is None else policy.decisions
    if policy is not None and stored.profile is not None:
        own = next((one.decisions for one in policy.profiles if one.name == stored.profile), ())
    return Verdict(
        decision=stored.matched,
        outcome=next((one.outcome for one in own if one.name == stored.matched), None),
        reason=stored.reason,
        confidence=_float(stored.confidence),
        unknown_root=stored.unknown_root,
        routes_considered=stored.routes_considered,
        observations=_observations(stored),
        skipped=tuple(map(signal_name, stored.skipped)),
        stages=tuple(
            Stage(
                "heuristic" if one.name == "heuristic" else "learned",
                tuple(map(signal_name, one.asked)),
                one.seconds,
                one.at,
            )
            for one in stored.stages
        ),
        seconds=stored.decide,
        decisions=own,
        reads={} if policy is None else bases_of(policy.projections),
        profile=stored.profile,
    )


def _number(value: float | None) -> Number:
    if value is None:
        return None
    # A float of NumPy is no float of JSON's.
    plain = float(value)
    return plain if math.isfinite(plain) else str(plain)


def _float(value: Number) -> float | None:
    return None if value is None else float(value)
