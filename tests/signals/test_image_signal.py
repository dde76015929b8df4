from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from signal_fakes import DIMENSION, FakeText, FakeVision, ask, built, encoders, image, in_tool_result, unit, view

from router.inference.executor import Overloaded
from router.request.view import ImagePart, RequestView
from router.signals.base import Cost, Observation
from router.signals.image import ImageSettings
from router.signals.pictures import IMAGES_AT_ONCE
from router.signals.resources import SignalSetupError

CAPTIONS = {"a passport": unit(1), "an identity card": unit(0.8, 0.6), "a car": unit(0, 0, 1)}
IMAGES: dict[str, object] = {
    "passport": unit(1),
    "card": unit(0.8, 0.6),
    "car": unit(0, 0, 1),
    "between": unit(1, 0, 1.2),
    "fog": unit(0, 0, 0, 1),
    "cut": "truncated",
    "bomb": "too many pixels",
    "busy": Overloaded(),
}
SETTINGS = {"concepts": ["a passport", "an identity card"], "against": ["a car"]}


async def judge(settings: dict[str, object], *names: str, request: RequestView | None = None) -> Observation:
    asked = request or view(*(("user", "What is this?", image(name)) for name in names))
    return await ask("image", settings, asked, encoders(FakeText(CAPTIONS), FakeVision(IMAGES)))  # type: ignore[arg-type]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


async def test_score_without_contrast_is_the_sigmoid_of_the_best_concept() -> None:
    observation = await judge({"concepts": ["a passport", "an identity card"]}, "card")
    assert observation.score == pytest.approx(sigmoid(10 * 1.0 - 5))
    assert observation.label == "an identity card"
    assert observation.pack == "vision-pack"


async def test_score_is_the_lesser_of_probability_and_share() -> None:
    observation = await judge({"concepts": ["a passport"], "against": ["a car"]}, "between")
    passport, car = 10 / math.sqrt(2.44), 12 / math.sqrt(2.44)
    share = math.exp(passport) / (math.exp(passport) + math.exp(car))
    assert share < sigmoid(passport - 5)
    assert observation.score == pytest.approx(share, rel=1e-5)
    assert observation.matched is False
    assert observation.evidence[0].detail == "nearer to: a car"


async def test_what_looks_like_nothing_is_no_match_however_little_it_resembles_the_contrast() -> None:
    observation = await judge({"concepts": ["a passport"], "against": ["a car"]}, "fog")
    assert observation.score == pytest.approx(sigmoid(-5))
    assert observation.matched is False


async def test_the_second_image_matches_and_the_evidence_names_it_first() -> None:
    observation = await judge(SETTINGS, "car", "passport")
    assert observation.matched is True
    assert [(e.image, e.pointer) for e in observation.evidence] == [(1, "/images/passport"), (0, "/images/car")]
    assert observation.label == "a passport"
    assert observation.score == observation.evidence[0].score


async def test_every_image_is_cited_with_its_score() -> None:
    observation = await judge(SETTINGS, "car", "passport", "fog", "card")
    assert [e.image for e in observation.evidence] == [1, 3, 0, 2]
    assert all(e.score is not None for e in observation.evidence)


async def test_an_image_of_an_older_turn_and_one_in_a_tool_result_count() -> None:
    older = view(("user", image("passport")), ("assistant", "Nice."), ("user", "And now?"))
    result = view(("user", "Look."), ("tool", in_tool_result(image("passport", "/messages/1/content/0"))))
    for request in (older, result):
        assert (await judge(SETTINGS, request=request)).matched is True


async def test_no_images_is_no_match() -> None:
    observation = await judge(SETTINGS)
    assert (observation.status, observation.matched, observation.score) == ("observed", False, 0.0)


@pytest.mark.parametrize("names", [("cut",), ("car", "cut"), ("cut", "car")])
async def test_an_image_that_cannot_be_judged_is_never_no_match(names: tuple[str, ...]) -> None:
    observation = await judge(SETTINGS, *names)
    assert (observation.status, observation.matched, observation.reason) == ("failed", None, "truncated")
    broken = next(e for e in observation.evidence if e.detail == "truncated")
    assert (broken.image, broken.pointer, broken.score) == (names.index("cut"), "/images/cut", None)


async def test_a_match_outweighs_an_image_that_cannot_be_judged() -> None:
    observation = await judge(SETTINGS, "cut", "passport", "busy")
    assert observation.matched is True
    assert [(e.image, e.detail) for e in observation.evidence] == [(1, ""), (0, "truncated"), (2, "overloaded")]


async def test_overload_sheds() -> None:
    observation = await judge(SETTINGS, "car", "busy")
    assert (observation.status, observation.reason) == ("shed", "overloaded")


async def test_a_broken_image_beside_overload_is_failed_with_its_reason() -> None:
    observation = await judge(SETTINGS, "busy", "bomb")
    assert (observation.status, observation.reason) == ("failed", "too many pixels")


async def test_an_encoders_own_fault_is_the_callers_and_leaves_no_image_in_work() -> None:
    vision = FakeVision({"first": RuntimeError("boom"), "second": unit(1)})
    signal = await built("image", SETTINGS, encoders(FakeText(CAPTIONS), vision))
    with pytest.raises(RuntimeError):
        await signal.observe(view(("user", image("first"), image("second"))))
    assert vision.now == 0


async def test_few_images_are_in_work_at_once() -> None:
    vision = FakeVision({str(i): unit(1) for i in range(9)})
    signal = await built("image", SETTINGS, encoders(FakeText(CAPTIONS), vision))
    await signal.observe(view(*(("user", image(str(i))) for i in range(9))))
    assert vision.most == IMAGES_AT_ONCE
    assert signal.cost is Cost.VISION_MODEL


async def test_captions_are_embedded_once() -> None:
    text = FakeText(CAPTIONS)
    signal = await built("image", SETTINGS, encoders(text, FakeVision(IMAGES)))  # type: ignore[arg-type]
    for _ in range(3):
        await signal.observe(view(("user", image("car"))))
    assert text.embedded == ["a passport", "an identity card", "a car"]


async def test_towers_of_different_spaces_are_refused() -> None:
    vision = FakeVision(IMAGES)  # type: ignore[arg-type]
    vision.space = "two"
    with pytest.raises(SignalSetupError, match=r"image/it: .*'one' .*'two'"):
        await built("image", SETTINGS, encoders(FakeText(CAPTIONS), vision))


async def test_towers_of_different_dimensions_are_refused() -> None:
    vision = FakeVision(IMAGES)  # type: ignore[arg-type]
    vision.dimension = DIMENSION + 1
    with pytest.raises(SignalSetupError, match="image/it"):
        await built("image", SETTINGS, encoders(FakeText(CAPTIONS), vision))


@pytest.mark.parametrize(
    ("given_encoders", "missing"),
    [(encoders(), "text"), (encoders(FakeText()), "vision"), (encoders(None, FakeVision({})), "text")],
)
async def test_missing_towers_are_named(given_encoders: object, missing: str) -> None:
    with pytest.raises(SignalSetupError, match=f"needs a {missing} encoder"):
        await built("image", SETTINGS, given_encoders)  # type: ignore[arg-type]


async def test_sigmoid_scoring_is_absolute() -> None:
    observation = await judge({"concepts": ["a passport"], "scoring": "sigmoid"}, "between")
    assert observation.score == pytest.approx(sigmoid(10 / math.sqrt(2.44) - 5), rel=1e-5)


async def test_softmax_scoring_is_relative_however_unlike_the_image_is() -> None:
    observation = await judge({"concepts": ["a passport"], "against": ["a car"], "scoring": "softmax"}, "fog")
    assert observation.score == pytest.approx(0.5)


@pytest.mark.parametrize("bias", [0.0, 1.0])
async def test_without_a_bias_no_cosine_is_a_probability(bias: float) -> None:
    vision = FakeVision(IMAGES)  # type: ignore[arg-type]
    vision.logit_bias = bias
    given = encoders(FakeText(CAPTIONS), vision)
    for scoring in ("auto", "sigmoid"):
        with pytest.raises(SignalSetupError, match="image/it: the vision pack has no bias"):
            await built("image", {"concepts": ["a passport"], "scoring": scoring}, given)
    relative = {"concepts": ["a passport"], "against": ["a car"]}
    assert (await ask("image", relative, view(("user", image("fog"))), given)).score == pytest.approx(0.5)


async def test_an_embedding_that_is_no_number_is_unknown() -> None:
    vision = FakeVision({"odd": np.full(DIMENSION, np.nan, np.float32)})
    observation = await ask("image", SETTINGS, view(("user", image("odd"))), encoders(FakeText(CAPTIONS), vision))
    assert (observation.status, observation.reason) == ("failed", "no number")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"concepts": []},
        {"concepts": ["a", ""]},
        {"concepts": ["a"], "threshold": 2},
        {"concepts": ["a"], "agains": []},
        {"concepts": ["a"], "scoring": "softmax"},
        {"concepts": ["a"], "against": ["b"], "scoring": "sigmoid"},
        {"concepts": ["a"], "scoring": "cosine"},
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ImageSettings.model_validate(settings)


vectors = st.lists(st.floats(-1, 1, width=32), min_size=DIMENSION, max_size=DIMENSION).filter(
    lambda values: float(np.linalg.norm(values)) > 0.1
)


@given(vectors)
async def test_a_contrast_never_raises_a_score(values: list[float]) -> None:
    vision = FakeVision({"it": unit(*values)})
    alone = await ask("image", {"concepts": ["a passport"]}, _it(), encoders(FakeText(CAPTIONS), vision))
    contrasted = await ask(
        "image", {"concepts": ["a passport"], "against": ["a car"]}, _it(), encoders(FakeText(CAPTIONS), vision)
    )
    assert alone.score is not None
    assert contrasted.score is not None
    assert 0 <= contrasted.score <= alone.score <= 1


def _it() -> RequestView:
    return view(("user", ImagePart("/it", "inline", b"it")))
