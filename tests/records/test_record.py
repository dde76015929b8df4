from __future__ import annotations

import json
import uuid
from dataclasses import replace

from router.policy.model import Decision, Not, Route
from router.policy.predicate import Leaf
from router.policy.resolve import Resolution
from router.policy.verdict import Verdict
from router.records.record import MAX_EVIDENCE, DecisionRecord
from router.records.record_id import new_record_id
from router.selection.choice import Choice
from router.selection.model import Static
from router.selection.needs import Needs, Unmet
from router.selection.upstream import Upstream
from router.signals.base import Evidence, Observation, SignalName, failed, observed

IMAGE = SignalName("image", "passport")
WORDS = SignalName("keyword", "words")


def record_with(observations: dict[SignalName, Observation]) -> DecisionRecord:
    decision = Decision("d", 3, True, True, Not(Leaf(IMAGE)), Route(("m",), Static()), 3)
    verdict = Verdict(
        "d", decision.outcome, "priority", 0.5, False, True, observations, (WORDS,), (), 0.001, (decision,), {}
    )
    return DecisionRecord(
        record="r",
        policy="p",
        api="openai.chat",
        requested_model=None,
        decision="d",
        outcome="route",
        model="m",
        cluster="c",
        verdict=verdict,
        body_bytes=10,
        turns=1,
        images=2,
        stream=False,
        parse=0.0001,
        decide=0.0012344,
        duration=0.002,
    )


def test_a_record_holds_observations_with_their_evidence() -> None:
    evidence = (Evidence("/messages/0/content/1", "a passport", 0.91, image=1), Evidence("/m", span=(1, 4)))
    row = record_with({IMAGE: observed(True, 0.91, evidence=evidence, pack="abc").took(0.004)}).summary()
    assert row["signals"] == {
        "image/passport": {
            "status": "observed",
            "matched": True,
            "score": 0.91,
            "pack": "abc",
            "evidence": [
                {"pointer": "/messages/0/content/1", "label": "a passport", "score": 0.91, "image": 1},
                {"pointer": "/m", "span": [1, 4]},
            ],
            "ms": 4.0,
        }
    }
    assert row["skipped"] == ["keyword/words"]
    assert row["decide_ms"] == 1.234


def test_an_answer_that_is_missing_says_why_and_is_neither_match_nor_miss() -> None:
    row = record_with({IMAGE: failed("truncated")}).summary()
    assert row["signals"]["image/passport"] == {"status": "failed", "matched": None, "reason": "truncated", "ms": 0.0}


def test_evidence_is_bounded_and_what_was_left_out_is_counted() -> None:
    many = tuple(Evidence(f"/{n}") for n in range(MAX_EVIDENCE + 5))
    row = record_with({IMAGE: observed(True, 1.0, evidence=many)}).summary()["signals"]["image/passport"]
    assert len(row["evidence"]) == MAX_EVIDENCE
    assert row["evidence_left_out"] == 5


def test_the_whole_record_has_every_tree_and_is_json() -> None:
    whole = record_with({IMAGE: observed(False, float("nan"))}).whole()
    [tree] = json.loads(json.dumps(whole, allow_nan=False))["decisions"]
    assert tree["tree"]["kind"] == "not"
    assert tree["tree"]["children"][0]["signal"] == "image/passport"


def test_a_record_says_how_its_upstream_was_found() -> None:
    choice = Choice("m", "drawn", {"m": 0.25, "n": 0.75}, {"m": 0.5})
    resolution = Resolution(
        upstream=Upstream("m", "c", None, "m", ("text",)),
        choice=choice,
        source="route",
        select="bandit",
        seed=2**63 + 5,
        state_version=7,
        state_digest="ab",
        filtered={"p": (Unmet("input", "image"), Unmet("context", "context", 9, 5))},
        needs=Needs(frozenset(), frozenset(), frozenset(), 11, None),
    )
    assert replace(record_with({}), resolution=resolution).summary()["selection"] == {
        "by": "bandit",
        "from": "route",
        "reason": "drawn",
        "propensity": 0.25,
        "candidates": [{"model": "m", "propensity": 0.25, "score": 0.5}, {"model": "n", "propensity": 0.75}],
        "filtered": {"p": ["input:image", "context"]},
        "seed": "8000000000000005",
        "state": {"version": 7, "digest": "ab"},
        "text_tokens": 11,
    }
    assert record_with({}).summary()["selection"] is None


def test_record_ids_are_uuids_of_version_7_that_sort_by_time_and_differ() -> None:
    ids = [new_record_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert {uuid.UUID(i).version for i in ids} == {7}
    assert {uuid.UUID(i).variant for i in ids} == {uuid.RFC_4122}
    assert [i[:13] for i in ids] == sorted(i[:13] for i in ids)
