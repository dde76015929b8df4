"""Stored records and messages say the same, field for field and value for value."""

from __future__ import annotations

import string
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.proto.pointsman.v1 import decision_record_pb2 as pb
from router.records import stored as model
from router.records import wire
from router.records.stored import RecordFormatError, StoredRecord
from router.records.wire import from_message, to_message

PAIRS = [
    (model.StoredRecord, pb.DecisionRecord, {"trees"}),
    (model.StoredObservation, pb.Observation, set()),
    (model.StoredEvidence, pb.Evidence, set()),
    (model.StoredSelection, pb.Selection, set()),
    (model.StoredNeeds, pb.Needs, set()),
    (model.StoredChoice, pb.Choice, set()),
    (model.StoredUnmet, pb.Unmet, set()),
    (model.StoredStage, pb.Stage, set()),
    (model.StoredShadow, pb.Shadow, set()),
    (model.StoredAnswer, pb.Answer, set()),
    (model.StoredFinding, pb.Finding, set()),
]

names = st.text(string.ascii_letters + string.digits + "äß/_-", max_size=12)
counts = st.integers(0, 2**63 - 1)
seconds = st.floats(0, 1e6)
numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["nan", "inf", "-inf"])


def words(table: Any) -> st.SearchStrategy[str]:
    return st.sampled_from(sorted(table.numbers))


evidence = st.builds(
    model.StoredEvidence,
    pointer=names,
    label=names,
    score=numbers,
    span=st.none() | st.tuples(counts, counts),
    image=st.none() | counts,
    detail=names,
)
observations = st.builds(
    model.StoredObservation,
    status=words(wire.STATUSES),
    matched=st.none() | st.booleans(),
    score=numbers,
    value=numbers,
    label=names,
    reason=names,
    pack=names,
    duration=seconds,
    waited=seconds,
    at=seconds,
    evidence=st.lists(evidence, max_size=3).map(tuple),
    evidence_left_out=counts,
)
texts = st.lists(names, max_size=3).map(tuple)
unmet = st.builds(model.StoredUnmet, kind=words(wire.NEEDS), name=names, asked=counts, held=counts)
selections = st.builds(
    model.StoredSelection,
    needs=st.builds(
        model.StoredNeeds,
        text_tokens=counts,
        inputs=texts,
        outputs=texts,
        abilities=texts,
        output_tokens=st.none() | counts,
        sizes=st.lists(st.none() | st.tuples(counts, counts), max_size=3).map(tuple),
    ),
    choice=st.none()
    | st.builds(
        model.StoredChoice,
        model=names,
        reason=names,
        propensities=st.dictionaries(names, st.floats(0, 1), max_size=3),
        seed=st.integers(0, 2**64 - 1).map(lambda seed: f"{seed:016x}"),
        scores=st.dictionaries(names, numbers, max_size=3),
        state=st.none() | st.tuples(counts, names),
    ),
    source=st.none() | words(wire.SOURCES),
    select=names,
    filtered=st.dictionaries(names, st.lists(unmet, max_size=2).map(tuple), max_size=2),
)
optional_names = st.none() | names
shadows = st.builds(
    model.StoredShadow,
    policy=names,
    decision=names,
    outcome=names,
    models=texts,
    exact=st.booleans(),
    differs=st.booleans(),
)
answers = st.builds(
    model.StoredAnswer,
    check=names,
    why=names,
    stream=st.booleans(),
    enforced=st.booleans(),
    evidence=st.lists(
        st.builds(model.StoredFinding, signal=names, pointer=names, label=names, status=names, reason=names),
        max_size=2,
    ).map(tuple),
)
records = st.builds(
    StoredRecord,
    format=st.just(model.FORMAT),
    record=names,
    policy=names,
    api=names,
    decision=names,
    outcome=words(wire.OUTCOMES),
    reason=words(wire.REASONS),
    observations=st.dictionaries(names, observations, max_size=3),
    body_bytes=counts,
    turns=counts,
    images=counts,
    parse=seconds,
    decide=seconds,
    duration=seconds,
    select=seconds,
    version=names,
    matched=optional_names,
    requested_model=optional_names,
    model=optional_names,
    cluster=optional_names,
    profile=optional_names,
    confidence=numbers,
    unknown_root=st.booleans(),
    routes_considered=st.booleans(),
    enforced=st.booleans(),
    stream=st.booleans(),
    skipped=texts,
    stages=st.lists(st.builds(model.StoredStage, name=names, asked=texts, seconds=seconds, at=seconds), max_size=2).map(
        tuple
    ),
    selection=st.none() | selections,
    shadow=st.none() | shadows,
    content=optional_names,
    answer=st.none() | answers,
)


@given(records)
def test_a_record_is_the_same_after_it_was_a_message(stored: StoredRecord) -> None:
    sent = to_message(stored).SerializeToString()
    assert from_message(pb.DecisionRecord.FromString(sent)) == stored


@given(records)
def test_a_message_is_the_same_after_it_was_stored(stored: StoredRecord) -> None:
    message = to_message(stored)
    again = to_message(model.decode(model.encode(from_message(message))))
    assert again.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)


@pytest.mark.parametrize(("struct", "message", "beside"), PAIRS, ids=lambda each: getattr(each, "__name__", ""))
def test_no_field_of_either_is_missing_in_the_other(struct: Any, message: Any, beside: set[str]) -> None:
    assert {field.name for field in msgspec.structs.fields(struct)} | beside == set(message.DESCRIPTOR.fields_by_name)


def test_every_struct_of_a_stored_record_has_its_message() -> None:
    structs = {one for one in vars(model).values() if isinstance(one, type) and issubclass(one, msgspec.Struct)}
    assert structs == {struct for struct, *_ in PAIRS}


@pytest.mark.parametrize(
    "table", [wire.OUTCOMES, wire.REASONS, wire.STATUSES, wire.SOURCES, wire.NEEDS, wire.KINDS, wire.STATES]
)
def test_every_value_of_an_enum_is_a_word(table: Any) -> None:
    assert set(table.numbers.values()) | {0} == set(table.enum.values())


def test_a_word_of_a_later_version_is_told() -> None:
    with pytest.raises(RecordFormatError):
        from_message(pb.DecisionRecord(outcome=99))  # type: ignore[arg-type]
