from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from signal_fakes import DIMENSION, FakeText, FakeVision, ask, built, encoders, image, said, unit, view

from router.inference.text import TextEncoder
from router.request.view import RequestView
from router.signals.base import Cost, Observation
from router.signals.complexity import ComplexitySettings
from router.signals.complexity_anchors import EASY, HARD
from router.signals.resources import SignalSetupError

TEXTS = {
    "prove": unit(1),
    "greet": unit(0, 1),
    "hard one.": unit(0.8, 0.6),
    "easy one.": unit(0, 1),
    "neither.": unit(0, 0, 1),
    "x-ray": unit(0, 0, 0, 1),
    "cat": unit(0, 0, 0, 0, 1),
}
IMAGES: dict[str, Any] = {"scan": unit(0, 0, 0, 1), "kitten": unit(0, 0, 0, 0, 1), "cut": "truncated"}
SIDES = {"hard": ["prove"], "easy": ["greet"]}
WITH_IMAGES = {**SIDES, "hard_images": ["x-ray"], "easy_images": ["cat"]}


async def judge(request: RequestView, settings: dict[str, Any] = SIDES) -> Observation:
    return await ask("complexity", settings, request, encoders(FakeText(TEXTS), FakeVision(IMAGES)))


async def test_the_margin_is_the_value_and_the_side_the_label() -> None:
    answer = await judge(said("hard one."))
    assert (answer.matched, answer.label, answer.pack) == (True, "hard", "text-pack")
    assert answer.value == pytest.approx(0.2, abs=1e-6)
    assert answer.score == pytest.approx(1 / (1 + np.exp(-15 * 0.2)), rel=1e-4)


async def test_an_easy_request_has_a_negative_margin() -> None:
    answer = await judge(said("easy one."))
    assert (answer.matched, answer.label) == (False, "easy")
    assert answer.value == pytest.approx(-1.0)
    assert answer.score == pytest.approx(0.0, abs=1e-6)


async def test_the_hardest_window_decides() -> None:
    answer = await judge(said("easy one. hard one. easy one."))
    assert answer.matched is True
    assert answer.evidence[0].span == (9, 19)


@pytest.mark.parametrize(("threshold", "matched"), [(0.19, True), (0.21, False), (-1, True)])
async def test_threshold_is_a_margin(threshold: float, matched: bool) -> None:
    assert (await judge(said("hard one."), {**SIDES, "threshold": threshold})).matched is matched


@pytest.mark.parametrize("request_view", [view(), said(""), view(("assistant", "hard one."))])
async def test_nothing_to_read_is_no_match_and_neither_hard_nor_easy(request_view: RequestView) -> None:
    answer = await judge(request_view, {**SIDES, "threshold": -1})
    assert (answer.matched, answer.value, answer.score) == (False, 0.0, 0.5)


async def test_an_image_makes_a_request_hard() -> None:
    answer = await judge(view(("user", "easy one.", image("kitten"), image("scan"))), WITH_IMAGES)
    assert (answer.matched, answer.value, answer.pack) == (True, pytest.approx(1.0), "vision-pack")
    assert answer.evidence[0].image == 1


async def test_captions_alone_read_no_text() -> None:
    settings = {"hard_images": ["x-ray"], "easy_images": ["cat"]}
    answer = await judge(view(("user", "hard one.", image("kitten"))), settings)
    assert (answer.matched, answer.label) == (False, "easy")
    assert len(answer.evidence) == 1


async def test_an_image_that_cannot_be_judged_makes_no_match_unknown() -> None:
    answer = await judge(view(("user", "easy one.", image("cut"))), WITH_IMAGES)
    assert (answer.status, answer.matched, answer.value) == ("failed", None, None)
    assert (await judge(view(("user", "hard one.", image("cut"))), WITH_IMAGES)).matched is True


async def test_a_margin_that_is_no_number_is_unknown() -> None:
    text = FakeText({**TEXTS, "odd": np.full(DIMENSION, np.nan, np.float32)})
    answer = await ask("complexity", SIDES, said("odd"), encoders(text))
    assert (answer.status, answer.reason) == ("failed", "no number")


async def test_overload_sheds() -> None:
    text = FakeText(TEXTS)
    signal = await built("complexity", SIDES, encoders(text))
    text.overloaded = True
    assert (await signal.observe(said("hard one."))).status == "shed"
    assert signal.cost is Cost.TEXT_MODEL


async def test_without_examples_the_built_in_ones_are_used() -> None:
    text = FakeText()
    await built("complexity", {}, encoders(text))
    assert text.embedded == [*HARD, *EASY]


async def test_captions_need_a_vision_encoder_in_the_same_space() -> None:
    with pytest.raises(SignalSetupError, match="complexity/it: hard_images needs a vision encoder"):
        await built("complexity", WITH_IMAGES, encoders(FakeText()))
    vision = FakeVision({})
    vision.space = "two"
    with pytest.raises(SignalSetupError, match="one space"):
        await built("complexity", WITH_IMAGES, encoders(FakeText(), vision))
    assert (await built("complexity", WITH_IMAGES, encoders(FakeText(), FakeVision({})))).cost is Cost.VISION_MODEL


async def test_with_the_starter_encoder_a_proof_is_harder_than_a_greeting(starter_text: TextEncoder) -> None:
    signal = await built("complexity", {}, encoders(starter_text))
    proof = await signal.observe(said("Show that every bounded monotone sequence converges, with a full proof."))
    greeting = await signal.observe(said("Good morning!"))
    assert proof.matched is True
    assert greeting.matched is False


@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=3).filter(lambda axes: np.linalg.norm(axes) > 0.1), st.floats(-1, 1)
)
async def test_it_matches_exactly_from_the_threshold_on(axes: list[float], threshold: float) -> None:
    text = FakeText({**TEXTS, "it": unit(*axes)})
    answer = await ask("complexity", {**SIDES, "threshold": threshold}, said("it"), encoders(text))
    assert answer.value is not None
    assert abs(answer.value - threshold) < 1e-9 or answer.matched is (answer.value >= threshold)
    assert 0 <= (answer.score or 0.0) <= 1


@pytest.mark.parametrize(
    "settings",
    [{"hard": ["a"]}, {"easy": ["a"]}, {"hard_images": ["a"]}, {"easy_images": ["a"], "hard": ["b"], "easy": ["c"]},
     {"hard": ["a"], "easy": [" "]}, {"threshold": 2}, {"threshold": -1.1}],
)  # fmt: skip
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ComplexitySettings.model_validate(settings)
