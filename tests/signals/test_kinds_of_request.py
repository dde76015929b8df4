"""`domain`, `fact_check` and `feedback`: what each reads, and that its labels are as documented."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from signal_fakes import FakeText, ask, built, encoders, said, unit, view

from router.inference.text import TextEncoder
from router.request.view import RequestView
from router.signals import fact_check_anchors, feedback_anchors
from router.signals.base import Cost
from router.signals.domain_anchors import SUBJECTS, TOPICS
from router.signals.registry import FAMILIES

FAMILY_NAMES = ("domain", "fact_check", "feedback")

RIGHT = {
    "domain": {
        "May my landlord keep the deposit although I paid the rent?": "law",
        "Solve x^2 - 5x + 6 = 0": "math",
        "My python function raises a TypeError": "computer science",
    },
    "fact_check": {
        "Which year did the Berlin Wall fall?": "facts",
        "Write a haiku about the rain on a tin roof": "no_facts",
    },
    "feedback": {
        "thanks a lot, that solved it!": "satisfied",
        "no, that result is wrong, check again": "wrong_answer",
        "I don't get it, can you explain that in simpler words?": "needs_clarification",
        "And now add a column with the dates.": "none",
    },
}


def after_an_answer(text: str) -> RequestView:
    return view(("user", "How do I do it?"), ("assistant", "Like this."), ("user", text))


def test_topics_are_given_for_every_field_and_none_twice() -> None:
    assert tuple(TOPICS) == SUBJECTS
    assert len(SUBJECTS) == 14
    every = [topic for topics in TOPICS.values() for topic in topics]
    assert len(every) == len(set(every)) == 308


@pytest.mark.parametrize("examples", [TOPICS, fact_check_anchors.EXAMPLES, feedback_anchors.EXAMPLES])
def test_no_example_stands_for_two_labels(examples: dict[str, tuple[str, ...]]) -> None:
    every = [text.casefold() for texts in examples.values() for text in texts]
    assert len(every) == len(set(every))
    assert all(len(texts) >= 10 for texts in examples.values())


@pytest.mark.parametrize(("family", "labels"), RIGHT.items())
async def test_with_the_starter_encoder_the_label_is_right(
    starter_text: TextEncoder, family: str, labels: dict[str, str]
) -> None:
    signal = await built(family, {}, encoders(starter_text))
    for text, label in labels.items():
        assert (await signal.observe(after_an_answer(text))).label == label


@pytest.mark.parametrize("family", FAMILY_NAMES)
async def test_nothing_to_read_is_no_match(family: str) -> None:
    for request in (view(), said(""), view(("assistant", "I am here."))):
        answer = await ask(family, {}, request, encoders(FakeText()))
        assert (answer.matched, answer.score, answer.evidence) == (False, 0.0, ())


@pytest.mark.parametrize("family", FAMILY_NAMES)
async def test_an_overloaded_encoder_sheds(family: str) -> None:
    text = FakeText()
    signal = await built(family, {}, encoders(text))
    text.overloaded = True
    assert (await signal.observe(after_an_answer("anything at all"))).status == "shed"
    assert signal.cost is Cost.TEXT_MODEL


@pytest.mark.parametrize("family", FAMILY_NAMES)
async def test_evidence_never_quotes_the_client(family: str) -> None:
    answer = await ask(family, {}, after_an_answer("sesame"), encoders(FakeText()))
    assert answer.label
    assert "sesame" not in repr(answer)


@pytest.mark.parametrize("family", FAMILY_NAMES)
async def test_examples_are_embedded_once(family: str) -> None:
    text = FakeText()
    signal = await built(family, {}, encoders(text))
    before = len(text.embedded)
    await signal.observe(after_an_answer("one"))
    await signal.observe(after_an_answer("two"))
    assert text.embedded[before:] == ["one", "two"]


@pytest.mark.parametrize("text", ["", "שלום", "数学の問題", "👩‍👩‍👧‍👦" * 9, "a" * 100_000, "\ud800", "é" * 500])
async def test_any_script_and_any_length_is_judged(text: str) -> None:
    for family in FAMILY_NAMES:
        answer = await ask(family, {}, after_an_answer(text), encoders(FakeText()))
        assert answer.status == "observed"


async def test_only_fields_asked_for_match() -> None:
    text = FakeText({"it": unit(1)} | {topic: unit(1) for topic in TOPICS["law"]})
    given = encoders(text)
    law = await ask("domain", {"any": ["law"]}, said("it"), given)
    health = await ask("domain", {"any": ["health"], "threshold": 0}, said("it"), given)
    assert (law.matched, law.label) == (True, "law")
    assert (health.matched, health.label) == (False, "law")
    assert (health.score or 0.0) < (law.score or 0.0)


async def test_domain_reads_older_turns_only_where_told() -> None:
    text = FakeText({"old": unit(1)} | {topic: unit(1) for topic in TOPICS["law"]})
    request = view(("user", "old"), ("assistant", "Yes."), ("user", ""))
    assert (await ask("domain", {}, request, encoders(text))).label == ""
    assert (await ask("domain", {"over": "user"}, request, encoders(text))).label == "law"


async def test_feedback_is_judged_only_behind_an_answer() -> None:
    text = FakeText({"thanks": unit(1)} | {each: unit(1) for each in feedback_anchors.EXAMPLES["satisfied"]})
    given = encoders(text)
    assert (await ask("feedback", {}, after_an_answer("thanks"), given)).label == "satisfied"
    assert (await ask("feedback", {}, said("thanks"), given)).label == ""
    assert (await ask("feedback", {}, said("hello", "thanks"), given)).label == ""
    tool = view(("user", "a"), ("assistant", "b"), ("user", "thanks"), ("assistant", "c"))
    assert (await ask("feedback", {}, tool, given)).label == "satisfied"


async def test_going_on_never_matches_as_feedback() -> None:
    text = FakeText({"next": unit(1)} | {each: unit(1) for each in feedback_anchors.EXAMPLES["none"]})
    answer = await ask("feedback", {"threshold": 0}, after_an_answer("next"), encoders(text))
    assert (answer.matched, answer.label) == (False, "none")


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("domain", {"any": []}),
        ("domain", {"any": ["medicine"]}),
        ("domain", {"threshold": 1.5}),
        ("domain", {"over": "last"}),
        ("fact_check", {"any": ["maybe"]}),
        ("fact_check", {"any": []}),
        ("feedback", {"any": ["none"]}),
        ("feedback", {"threshold": -1}),
        ("feedback", {"over": "all"}),
    ],
)
def test_bad_settings_are_refused(family: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FAMILIES[family].settings.model_validate(settings)
