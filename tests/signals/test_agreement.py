from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from signal_fakes import DIMENSION, FakeText, FakeVision, ask, built, encoders, image, in_tool_result, said, unit, view

from router.inference.executor import Overloaded
from router.request.view import RequestView
from router.signals.agreement import AgreementSettings
from router.signals.base import Cost, Observation
from router.signals.pointing import LONGEST, POINTING, has_no_topic
from router.signals.resources import SignalSetupError

TEXTS = {"like pointing.": unit(0, 0, 0, 0, 1), "about dogs.": unit(1), "about contracts.": unit(0, 1)} | {
    text: unit(0, 0, 0, 0, 1) for text in POINTING
}
IMAGES: dict[str, Any] = {
    "dog": unit(0.8, 0, 0.6),
    "paper": unit(0, 0.8, 0.6),
    "opposite": unit(-1),
    "cut": "truncated",
    "busy": Overloaded(),
    "odd": np.full(DIMENSION, np.nan, np.float32),
}


async def judge(request: RequestView, **settings: Any) -> Observation:
    return await ask("agreement", settings, request, encoders(FakeText(TEXTS), FakeVision(IMAGES)))


async def test_text_and_image_that_belong_together_do_not_match() -> None:
    answer = await judge(view(("user", "about dogs.", image("dog"))))
    assert (answer.matched, answer.pack) == (False, "vision-pack")
    assert answer.value == pytest.approx(0.8)
    assert answer.score == pytest.approx(0.2)


async def test_an_image_of_something_else_matches_and_is_cited_with_what_is_missing() -> None:
    answer = await judge(view(("user", "about dogs.", image("dog"), image("paper"))))
    assert answer.matched is True
    assert answer.value == pytest.approx(0.0)
    assert [(e.image, e.detail) for e in answer.evidence] == [(1, "agreement 0.000"), (0, "agreement 0.800")]


@pytest.mark.parametrize(("below", "matched"), [(0.75, False), (0.85, True)])
async def test_threshold(below: float, matched: bool) -> None:
    assert (await judge(view(("user", "about dogs.", image("dog"))), below=below)).matched is matched


async def test_an_agreement_equal_to_the_threshold_is_not_below_it() -> None:
    request = view(("user", "about dogs.", image("dog")))
    exactly = (await judge(request)).value
    assert (await judge(request, below=exactly)).matched is False


async def test_an_opposite_direction_is_no_agreement_and_no_less_than_none() -> None:
    answer = await judge(view(("user", "about dogs.", image("opposite"))))
    assert (answer.matched, answer.value, answer.score) == (True, 0.0, 1.0)


async def test_the_nearest_window_of_the_text_counts() -> None:
    answer = await judge(view(("user", "about contracts. about dogs.", image("dog"))))
    assert answer.matched is False


async def test_sigmoid_measures_by_the_packs_scale_and_bias() -> None:
    answer = await judge(view(("user", "about dogs.", image("dog"))), measure="sigmoid")
    assert answer.value == pytest.approx(1 / (1 + math.exp(-(10 * 0.8 - 5))), rel=1e-5)


@pytest.mark.parametrize(
    "request_view",
    [view(), said("about dogs."), view(("user", image("dog"))), view(("user", "", image("dog")))],
)
async def test_without_image_or_text_it_does_not_match(request_view: RequestView) -> None:
    answer = await judge(request_view)
    assert (answer.status, answer.matched, answer.score, answer.value) == ("observed", False, 0.0, 1.0)


@pytest.mark.parametrize("text", ["What's this?!", "can you check it for me please", "???", "like pointing."])
async def test_a_text_that_merely_points_agrees_with_every_image(text: str) -> None:
    answer = await judge(view(("user", text, image("paper"))))
    assert (answer.matched, answer.value) == (False, 1.0)
    assert answer.evidence[0].detail == "the text merely points"


@pytest.mark.parametrize("text", ["What breed is this dog?", "translate the menu", "狗", "this is a " * LONGEST])
def test_a_word_with_a_topic_or_many_words_say_something(text: str) -> None:
    assert not has_no_topic(text)


async def test_the_latest_text_is_what_images_have_to_go_with() -> None:
    chat = view(("user", "about dogs.", image("dog")), ("assistant", "Fine."), ("user", "about contracts."))
    assert (await judge(chat)).matched is True
    assert (await judge(chat, images="latest")).matched is False


async def test_latest_images_are_those_of_the_last_user_turn_and_behind_it() -> None:
    result = in_tool_result(image("paper", "/messages/3/content/0"))
    chat = view(("user", image("dog")), ("assistant", "Hm."), ("user", "about dogs.", image("dog")), ("tool", result))
    answer = await judge(chat, images="latest")
    assert answer.matched is True
    assert [e.image for e in answer.evidence] == [2, 1]


@pytest.mark.parametrize(
    ("names", "matched", "status", "reason"),
    [
        (("cut", "dog"), None, "failed", "truncated"),
        (("cut", "paper"), True, "observed", ""),
        (("busy", "dog"), None, "shed", "overloaded"),
        (("odd",), None, "failed", "no number"),
    ],
)
async def test_an_image_that_cannot_be_judged(
    names: tuple[str, ...], matched: bool | None, status: str, reason: str
) -> None:
    answer = await judge(view(*(("user", "about dogs.", image(name)) for name in names)))
    assert (answer.matched, answer.status, answer.reason) == (matched, status, reason)


async def test_an_overloaded_text_encoder_sheds() -> None:
    text = FakeText(TEXTS)
    signal = await built("agreement", {}, encoders(text, FakeVision(IMAGES)))
    text.overloaded = True
    assert (await signal.observe(view(("user", "about dogs.", image("dog"))))).status == "shed"
    assert signal.cost is Cost.VISION_MODEL


async def test_it_needs_one_space_and_for_sigmoid_a_bias() -> None:
    vision = FakeVision(IMAGES)
    vision.logit_bias = 0.0
    with pytest.raises(SignalSetupError, match="agreement/it: measure: sigmoid needs"):
        await built("agreement", {"measure": "sigmoid"}, encoders(FakeText(), vision))
    vision.space = "two"
    with pytest.raises(SignalSetupError, match="one space"):
        await built("agreement", {}, encoders(FakeText(), vision))


@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=3).filter(lambda axes: np.linalg.norm(axes) > 0.1),
    st.floats(0.01, 1),
)
async def test_it_matches_exactly_below_the_threshold(axes: list[float], below: float) -> None:
    vision = FakeVision({"it": unit(*axes)})
    request = view(("user", "about dogs.", image("it")))
    answer = await ask("agreement", {"below": below}, request, encoders(FakeText(TEXTS), vision))
    assert answer.value is not None
    assert answer.score is not None
    assert answer.matched is (answer.value < below)
    assert answer.value == 1.0 - answer.score
    assert 0 <= answer.value <= 1


@pytest.mark.parametrize(
    "settings", [{"below": 0}, {"below": 1.1}, {"measure": "dot"}, {"images": "first"}, {"over": "all"}]
)
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AgreementSettings.model_validate(settings)
