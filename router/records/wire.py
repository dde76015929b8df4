"""The stored record as a message of `proto/pointsman/v1/decision_record.proto`, and back; nothing is lost either way.

The message has the trees beside it where a policy is at hand; a stored record has none. Numbers that JSON cannot
write, nan and the infinities, are words in a stored record and themselves in a message.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast, get_args

from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from router.policy.resolve import Source
from router.policy.verdict import DecisionTrace, NodeState, NodeTrace, Reason
from router.proto.pointsman.v1 import decision_record_pb2 as pb
from router.records.record import OutcomeKind
from router.records.stored import (
    Number,
    RecordFormatError,
    StoredAnswer,
    StoredChoice,
    StoredEvidence,
    StoredFinding,
    StoredNeeds,
    StoredObservation,
    StoredRecord,
    StoredSelection,
    StoredShadow,
    StoredStage,
    StoredUnmet,
)
from router.selection.needs import NeedKind
from router.signals.base import Status

NODE_KINDS: Final = ("signal", "all", "any", "at_least", "not")


class _Words:
    """An enum of the messages and the words that it stands for: `STATUS_TIMED_OUT` is `timed_out`."""

    def __init__(self, enum: Any, words: Iterable[str]) -> None:
        self.enum = kind = cast("EnumTypeWrapper", enum)
        prefix = kind.keys()[0].removesuffix("UNSPECIFIED")
        self.numbers: Mapping[str, Any] = {word: kind.Value(prefix + word.upper()) for word in words}
        self._words = {number: word for word, number in self.numbers.items()}
        self._unspecified = kind.Value(f"{prefix}UNSPECIFIED")

    def number(self, word: str | None) -> Any:
        return self._unspecified if word is None else self.numbers[word]

    def word(self, number: int) -> Any:
        """Raises RecordFormatError for a number that stands for none."""
        if number not in self._words:
            raise RecordFormatError("has a word that this version does not know")
        return self._words[number]

    def word_or_none(self, number: int) -> Any:
        return None if number == self._unspecified else self.word(number)


OUTCOMES: Final = _Words(pb.Outcome, get_args(OutcomeKind))
REASONS: Final = _Words(pb.Reason, get_args(Reason))
STATUSES: Final = _Words(pb.Status, get_args(Status))
SOURCES: Final = _Words(pb.Source, get_args(Source))
NEEDS: Final = _Words(pb.NeedKind, get_args(NeedKind))
KINDS: Final = _Words(pb.Node.Kind, NODE_KINDS)
STATES: Final = _Words(pb.Node.State, get_args(NodeState))


def to_message(stored: StoredRecord, traces: Iterable[DecisionTrace] = ()) -> pb.DecisionRecord:
    """The message, with these trees."""
    return pb.DecisionRecord(
        format=stored.format,
        record=stored.record,
        version=stored.version,
        policy=stored.policy,
        api=stored.api,
        requested_model=stored.requested_model,
        decision=stored.decision,
        matched=stored.matched,
        outcome=OUTCOMES.number(stored.outcome),
        reason=REASONS.number(stored.reason),
        profile=stored.profile,
        confidence=_double(stored.confidence),
        unknown_root=stored.unknown_root,
        routes_considered=stored.routes_considered,
        enforced=stored.enforced,
        model=stored.model,
        cluster=stored.cluster,
        selection=None if stored.selection is None else _selection(stored.selection),
        observations={name: _observation(one) for name, one in stored.observations.items()},
        skipped=stored.skipped,
        stages=[pb.Stage(name=one.name, asked=one.asked, seconds=one.seconds, at=one.at) for one in stored.stages],
        body_bytes=stored.body_bytes,
        turns=stored.turns,
        images=stored.images,
        stream=stored.stream,
        parse=stored.parse,
        decide=stored.decide,
        duration=stored.duration,
        select=stored.select,
        shadow=None if stored.shadow is None else _shadow(stored.shadow),
        content=stored.content,
        answer=None if stored.answer is None else _answer(stored.answer),
        trees=[_tree(trace) for trace in traces],
    )


def from_message(message: pb.DecisionRecord) -> StoredRecord:
    """The stored record; raises RecordFormatError for words of a later version."""
    return StoredRecord(
        format=message.format,
        record=message.record,
        version=message.version,
        policy=message.policy,
        api=message.api,
        requested_model=_given(message, "requested_model"),
        decision=message.decision,
        matched=_given(message, "matched"),
        outcome=OUTCOMES.word(message.outcome),
        reason=REASONS.word(message.reason),
        profile=_given(message, "profile"),
        confidence=_number(_given(message, "confidence")),
        unknown_root=message.unknown_root,
        routes_considered=message.routes_considered,
        enforced=message.enforced,
        model=_given(message, "model"),
        cluster=_given(message, "cluster"),
        selection=_stored_selection(message.selection) if message.HasField("selection") else None,
        observations={name: _stored_observation(one) for name, one in message.observations.items()},
        skipped=tuple(message.skipped),
        stages=tuple(StoredStage(one.name, tuple(one.asked), one.seconds, one.at) for one in message.stages),
        body_bytes=message.body_bytes,
        turns=message.turns,
        images=message.images,
        stream=message.stream,
        parse=message.parse,
        decide=message.decide,
        duration=message.duration,
        select=message.select,
        shadow=_stored_shadow(message.shadow) if message.HasField("shadow") else None,
        content=_given(message, "content"),
        answer=_stored_answer(message.answer) if message.HasField("answer") else None,
    )


def _observation(one: StoredObservation) -> pb.Observation:
    return pb.Observation(
        status=STATUSES.number(one.status),
        matched=one.matched,
        score=_double(one.score),
        value=_double(one.value),
        label=one.label,
        reason=one.reason,
        pack=one.pack,
        duration=one.duration,
        waited=one.waited,
        at=one.at,
        evidence=[
            pb.Evidence(
                pointer=piece.pointer,
                label=piece.label,
                score=_double(piece.score),
                span=None if piece.span is None else pb.Span(start=piece.span[0], end=piece.span[1]),
                image=piece.image,
                detail=piece.detail,
            )
            for piece in one.evidence
        ],
        evidence_left_out=one.evidence_left_out,
    )


def _stored_observation(one: pb.Observation) -> StoredObservation:
    return StoredObservation(
        status=STATUSES.word(one.status),
        matched=_given(one, "matched"),
        score=_number(_given(one, "score")),
        value=_number(_given(one, "value")),
        label=one.label,
        reason=one.reason,
        pack=one.pack,
        duration=one.duration,
        waited=one.waited,
        at=one.at,
        evidence=tuple(
            StoredEvidence(
                pointer=piece.pointer,
                label=piece.label,
                score=_number(_given(piece, "score")),
                span=(piece.span.start, piece.span.end) if piece.HasField("span") else None,
                image=_given(piece, "image"),
                detail=piece.detail,
            )
            for piece in one.evidence
        ),
        evidence_left_out=one.evidence_left_out,
    )


def _selection(one: StoredSelection) -> pb.Selection:
    needs, choice = one.needs, one.choice
    sizes = [pb.ImageSize() if size is None else pb.ImageSize(width=size[0], height=size[1]) for size in needs.sizes]
    return pb.Selection(
        needs=pb.Needs(
            text_tokens=needs.text_tokens,
            inputs=needs.inputs,
            outputs=needs.outputs,
            abilities=needs.abilities,
            output_tokens=needs.output_tokens,
            sizes=sizes,
        ),
        choice=None
        if choice is None
        else pb.Choice(
            model=choice.model,
            reason=choice.reason,
            propensities=choice.propensities,
            seed=choice.seed,
            scores={model: pb.Score(value=_double(score)) for model, score in choice.scores.items()},
            state=None if choice.state is None else pb.LearntState(version=choice.state[0], digest=choice.state[1]),
        ),
        source=SOURCES.number(one.source),
        select=one.select,
        filtered={
            model: pb.UnmetNeeds(
                unmet=[pb.Unmet(kind=NEEDS.number(n.kind), name=n.name, asked=n.asked, held=n.held) for n in unmet]
            )
            for model, unmet in one.filtered.items()
        },
    )


def _stored_selection(one: pb.Selection) -> StoredSelection:
    needs, choice = one.needs, one.choice
    return StoredSelection(
        needs=StoredNeeds(
            text_tokens=needs.text_tokens,
            inputs=tuple(needs.inputs),
            outputs=tuple(needs.outputs),
            abilities=tuple(needs.abilities),
            output_tokens=_given(needs, "output_tokens"),
            sizes=tuple((size.width, size.height) if size.HasField("width") else None for size in needs.sizes),
        ),
        choice=None
        if not one.HasField("choice")
        else StoredChoice(
            model=choice.model,
            reason=choice.reason,
            propensities=dict(choice.propensities),
            seed=choice.seed,
            scores={model: _number(_given(score, "value")) for model, score in choice.scores.items()},
            state=(choice.state.version, choice.state.digest) if choice.HasField("state") else None,
        ),
        source=SOURCES.word_or_none(one.source),
        select=one.select,
        filtered={
            model: tuple(StoredUnmet(NEEDS.word(n.kind), n.name, n.asked, n.held) for n in needs_of_it.unmet)
            for model, needs_of_it in one.filtered.items()
        },
    )


def _shadow(one: StoredShadow) -> pb.Shadow:
    return pb.Shadow(
        policy=one.policy,
        decision=one.decision,
        outcome=one.outcome,
        models=one.models,
        exact=one.exact,
        differs=one.differs,
    )


def _stored_shadow(one: pb.Shadow) -> StoredShadow:
    return StoredShadow(one.policy, one.decision, one.outcome, tuple(one.models), one.exact, one.differs)


def _answer(one: StoredAnswer) -> pb.Answer:
    return pb.Answer(
        check=one.check,
        why=one.why,
        stream=one.stream,
        enforced=one.enforced,
        evidence=[
            pb.Finding(
                signal=found.signal,
                pointer=found.pointer,
                label=found.label,
                status=found.status,
                reason=found.reason,
            )
            for found in one.evidence
        ],
    )


def _stored_answer(one: pb.Answer) -> StoredAnswer:
    evidence = (
        StoredFinding(found.signal, found.pointer, found.label, found.status, found.reason) for found in one.evidence
    )
    return StoredAnswer(one.check, one.why, one.stream, one.enforced, tuple(evidence))


def _tree(trace: DecisionTrace) -> pb.DecisionTree:
    return pb.DecisionTree(
        name=trace.name,
        guard=trace.guard,
        priority=trace.priority,
        considered=trace.considered,
        matched=trace.matched,
        tree=_node(trace.tree),
    )


def _node(node: NodeTrace) -> pb.Node:
    leaf = node.leaf
    return pb.Node(
        kind=KINDS.number(node.kind),
        state=STATES.number(node.state),
        confidence=node.confidence,
        signal="" if leaf is None else str(leaf.signal),
        within="" if leaf is None or leaf.within is None else str(leaf.within),
        labels=() if leaf is None else sorted(leaf.labels),
        least=node.least,
        children=[_node(child) for child in node.children],
    )


def _given(message: Any, field: str) -> Any:
    """An optional field's value, None where it is not set."""
    return getattr(message, field) if message.HasField(field) else None


def _double(value: Number) -> float | None:
    return None if value is None else float(value)


def _number(value: float | None) -> Number:
    return value if value is None or math.isfinite(value) else str(value)
