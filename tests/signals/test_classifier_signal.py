from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from signal_fakes import ask, built, encoders, in_tool_result, said, view

from router.inference.classifier import WindowProbabilities
from router.inference.executor import Overloaded
from router.request.view import TextPart
from router.signals.base import Cost
from router.signals.classifier import MAX_EVIDENCE, ClassifierSettings
from router.signals.resources import Resources, SignalSetupError

PACK = "./packs/toxicity"
WINDOW = 10


class FakeClassifier:
    """Windows of ten characters; a window's probabilities come from the first letter in it that the table has."""

    pack = "toxicity-digest"

    def __init__(self, labels: Sequence[str], table: Mapping[str, Sequence[float]], level: str = "text") -> None:
        self.labels = tuple(labels)
        self.level = level
        self.table = table
        self.overloaded = False
        self.asked: list[str] = []

    async def classify_windows(self, text: str) -> WindowProbabilities:
        if self.overloaded:
            raise Overloaded
        self.asked.append(text)
        spans = tuple((start, min(start + WINDOW, len(text))) for start in range(0, max(len(text), 1), WINDOW))
        usual = [1.0] + [0.0] * (len(self.labels) - 1)
        rows = [next((self.table[c] for c in text[a:b] if c in self.table), usual) for a, b in spans]
        return WindowProbabilities(spans, np.array(rows))


def toxicity(**more: Any) -> FakeClassifier:
    table = {"x": [0.1, 0.9, 0.0], "r": [0.4, 0.1, 0.5], "n": [float("nan")] * 3, "h": [0.5, 0.5, 0.0]}
    return FakeClassifier(["fine", "toxic", "rude"], table, **more)


def with_pack(classifier: FakeClassifier) -> Resources:
    return encoders(classifiers={PACK: classifier})


SETTINGS = {"pack": PACK, "any": ["toxic", "rude"], "threshold": 0.6}


@pytest.mark.parametrize("place", [0, 1_234, 19_990])
async def test_a_long_harmless_text_around_a_bad_window_does_not_hide_it(place: int) -> None:
    text = "." * place + "x" + "." * (20_000 - place)
    observation = await ask("classifier", SETTINGS, said(text), with_pack(toxicity()))
    assert (observation.matched, observation.label, observation.score) == (True, "toxic", 0.9)
    (evidence,) = observation.evidence
    assert evidence.span == (place // 10 * 10, place // 10 * 10 + 10)
    assert observation.pack == "toxicity-digest"


async def test_the_best_of_the_labels_counts_and_no_other_label() -> None:
    rude = await ask("classifier", SETTINGS, said("r"), with_pack(toxicity()))
    assert (rude.matched, rude.label, rude.score) == (False, "rude", 0.5)
    assert rude.evidence[0].label == "rude"
    only_rude = await ask("classifier", SETTINGS | {"any": ["rude"]}, said("x"), with_pack(toxicity()))
    assert (only_rude.matched, only_rude.score) == (False, 0.0)


async def test_mean_asks_for_the_texts_as_a_whole_each_window_by_its_length() -> None:
    mean = SETTINGS | {"aggregate": "mean"}
    half = await ask("classifier", mean, said("x........." + "." * 10), with_pack(toxicity()))
    assert (half.matched, half.score) == (False, pytest.approx(0.45))
    mostly = await ask("classifier", mean, view(("user", "x" * 40, ".....")), with_pack(toxicity()))
    assert mostly.score == pytest.approx(0.9 * 40 / 45)
    assert mostly.matched is True


@given(st.lists(st.sampled_from("xrh. "), max_size=60).map("".join))
async def test_mean_is_never_above_max(text: str) -> None:
    scores = [
        (await ask("classifier", SETTINGS | {"aggregate": each}, said(text or "."), with_pack(toxicity()))).score
        for each in ("max", "mean")
    ]
    assert scores[0] is not None
    assert scores[1] is not None
    assert 0 <= scores[1] <= scores[0] + 1e-9 <= 1 + 1e-9


async def test_over_says_which_texts_are_read() -> None:
    request = view(("system", "a"), ("user", "b"), ("tool", in_tool_result(TextPart("/t", "c"))), ("user", "d"))
    for over, read in {"latest": ["d"], "user": ["b", "d"], "all": ["a", "b", "c", "d"]}.items():
        classifier = toxicity()
        await ask("classifier", SETTINGS | {"over": over}, request, with_pack(classifier))
        assert classifier.asked == read


async def test_evidence_is_bounded_and_starts_with_the_worst() -> None:
    text = "h.........".join([""] * 10) + "x"
    observation = await ask("classifier", SETTINGS | {"threshold": 0.4}, said(text), with_pack(toxicity()))
    assert len(observation.evidence) == MAX_EVIDENCE
    assert observation.evidence[0].score == 0.9


async def test_nothing_to_read_is_no_match() -> None:
    for request in (view(), said(""), said("\u200b"), said(" \n")):
        classifier = toxicity()
        observation = await ask("classifier", SETTINGS, request, with_pack(classifier))
        assert (observation.matched, observation.score, observation.evidence) == (False, 0.0, ())
        assert classifier.asked == []


async def test_text_is_judged_as_a_model_reads_it_and_no_false_place_is_claimed() -> None:
    classifier = toxicity()
    observation = await ask("classifier", SETTINGS, said("\u200bｘ \ud800"), with_pack(classifier))
    assert classifier.asked == ["x \ufffd"]
    assert observation.matched is True
    assert observation.evidence[0].span is None


async def test_an_overloaded_pack_sheds_and_no_number_fails() -> None:
    classifier = toxicity()
    signal = await built("classifier", SETTINGS, with_pack(classifier))
    assert (await signal.observe(said("n"))).status == "failed"
    classifier.overloaded = True
    assert (await signal.observe(said("x"))).status == "shed"
    assert signal.cost is Cost.TEXT_MODEL


async def test_labels_are_held_against_the_pack() -> None:
    with pytest.raises(SignalSetupError, match=r"no label 'toxc'; known are fine, toxic, rude"):
        await built("classifier", SETTINGS | {"any": ["toxic", "toxc"]}, with_pack(toxicity()))


async def test_a_pack_that_labels_tokens_is_refused_with_a_hint() -> None:
    with pytest.raises(SignalSetupError, match="such packs serve `pii`"):
        await built("classifier", SETTINGS, with_pack(toxicity(level="token")))


def test_settings_tell_which_pack_is_asked_and_what_it_can_say() -> None:
    settings = ClassifierSettings.model_validate(SETTINGS)
    assert (settings.classifier_packs, settings.heads) == ((PACK,), ())
    assert settings.possible_labels == ("toxic", "rude")


@pytest.mark.parametrize(
    "change",
    [
        {"any": []},
        {"pack": " "},
        {"pack": None},
        {"head": "harm"},
        {"threshold": 1.1},
        {"aggregate": "min"},
        {"labels": ["toxic"]},
    ],
)
def test_bad_settings_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ClassifierSettings.model_validate(SETTINGS | change)
