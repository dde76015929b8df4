from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError
from signal_fakes import FakeText, ask, built, encoders, in_tool_result, said, unit, view

from router.inference.text import TextEncoder
from router.request.view import TextPart
from router.signals.base import Cost, Evidence
from router.signals.embedding import EmbeddingSettings
from router.signals.resources import SignalSetupError

TABLE = {
    "anchor x": unit(1),
    "anchor y": unit(0, 1),
    "like x.": unit(0.8, 0, 0.6),
    "like both.": unit(1, 1),
    "against x.": unit(-1),
    "other.": unit(0, 0, 1),
}
BOTH = {"texts": ["anchor x", "anchor y"]}


async def test_the_nearest_anchor_decides_and_is_the_label() -> None:
    observation = await ask("embedding", BOTH, said("like x."), encoders(FakeText(TABLE)))
    assert observation.matched is True
    assert observation.score == pytest.approx(0.8)
    assert observation.label == "anchor x"
    assert observation.pack == "text-pack"
    (evidence,) = observation.evidence
    assert (evidence.pointer, evidence.span) == ("/messages/0/content/0", (0, 7))


async def test_mean_asks_for_likeness_to_all_anchors() -> None:
    given = encoders(FakeText(TABLE))
    mean = {**BOTH, "aggregate": "mean"}
    assert (await ask("embedding", mean, said("like x."), given)).score == pytest.approx(0.4)
    assert (await ask("embedding", mean, said("like both."), given)).score == pytest.approx(np.sqrt(0.5))


async def test_the_best_window_of_a_long_text_decides_and_is_named() -> None:
    observation = await ask("embedding", BOTH, said("other. like x. other."), encoders(FakeText(TABLE)))
    assert observation.score == pytest.approx(0.8)
    assert observation.evidence[0].span == (6, 14)


@pytest.mark.parametrize(("threshold", "matched"), [(0.79, True), (0.81, False)])
async def test_threshold(threshold: float, matched: bool) -> None:
    settings = {**BOTH, "threshold": threshold}
    observation = await ask("embedding", settings, said("like x."), encoders(FakeText(TABLE)))
    assert observation.matched is matched
    assert observation.score == pytest.approx(0.8)


async def test_a_score_equal_to_the_threshold_matches() -> None:
    settings = {"texts": ["anchor x"], "threshold": 1.0}
    assert (await ask("embedding", settings, said("anchor x"), encoders(FakeText(TABLE)))).matched is True


async def test_a_negative_cosine_is_a_score_of_nought() -> None:
    settings = {"texts": ["anchor x"]}
    observation = await ask("embedding", settings, said("against x."), encoders(FakeText(TABLE)))
    assert (observation.matched, observation.score) == (False, 0.0)


@pytest.mark.parametrize(
    ("over", "pointer"), [("latest", "/messages/2/content/0"), ("user", "/messages/0/content/0"), ("all", "/result")]
)
async def test_over_chooses_the_texts(over: str, pointer: str) -> None:
    request = view(
        ("user", "like both."),
        ("tool", in_tool_result(TextPart("/result", "anchor x"))),
        ("user", "other."),
    )
    settings = {"texts": ["anchor x"], "over": over, "threshold": 0.0}
    observation = await ask("embedding", settings, request, encoders(FakeText(TABLE)))
    assert observation.evidence[0].pointer == pointer


@pytest.mark.parametrize("request_view", [view(), said(""), view(("assistant", "like x."))])
async def test_nothing_to_read_is_no_match(request_view: object) -> None:
    observation = await ask("embedding", BOTH, request_view, encoders(FakeText(TABLE)))  # type: ignore[arg-type]
    assert (observation.matched, observation.score, observation.evidence) == (False, 0.0, ())


async def test_an_overloaded_encoder_sheds() -> None:
    text = FakeText(TABLE)
    signal = await built("embedding", BOTH, encoders(text))
    text.overloaded = True
    observation = await signal.observe(said("like x."))
    assert (observation.status, observation.matched, observation.pack) == ("shed", None, "text-pack")


async def test_anchors_are_embedded_once() -> None:
    text = FakeText(TABLE)
    signal = await built("embedding", BOTH, encoders(text))
    for _ in range(3):
        await signal.observe(said("like x."))
    assert text.embedded == ["anchor x", "anchor y", *["like x."] * 3]
    assert signal.cost is Cost.TEXT_MODEL


async def test_evidence_quotes_the_policy_and_never_the_client() -> None:
    observation = await ask("embedding", BOTH, said("like x."), encoders(FakeText(TABLE)))
    assert "like x" not in repr(observation)
    assert isinstance(observation.evidence[0], Evidence)


async def test_without_a_text_encoder_it_cannot_be_built() -> None:
    with pytest.raises(SignalSetupError, match="embedding/it: needs a text encoder"):
        await built("embedding", BOTH)


async def test_with_the_starter_encoder_it_knows_a_clinical_question(starter_text: TextEncoder) -> None:
    settings = {"texts": ["interpret a test result", "symptoms of a patient"]}
    given = encoders(starter_text)
    clinical = await ask("embedding", settings, said("What could these lab results and symptoms mean?"), given)
    other = await ask("embedding", settings, said("Write a haiku about the sea."), given)
    assert clinical.matched is True
    assert other.matched is False
    assert clinical.evidence[0].span == (0, 47)


@pytest.mark.parametrize(
    "settings",
    [{}, {"texts": []}, {"texts": [""]}, {"texts": ["a"], "threshold": 1.1}, {"texts": ["a"], "threshold": -0.1},
     {"texts": ["a"], "aggregate": "median"}, {"texts": ["a"], "anchors": ["b"]}],
)  # fmt: skip
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EmbeddingSettings.model_validate(settings)
