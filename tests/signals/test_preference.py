from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from signal_fakes import DIMENSION, FakeText, ask, built, encoders, said, unit, view

from router.inference.text import TextEncoder
from router.signals.base import Cost, Observation
from router.signals.preference import PreferenceSettings

TEXTS = {
    "source code": unit(1),
    "a Python script": unit(0.6, 0.8),
    "small talk": unit(0, 0, 1),
    "script.": unit(0.6, 0.8),
    "chat.": unit(0, 0, 1),
    "both.": unit(0.8, 0, 0.6),
}
KINDS = {"code": ["source code", "a Python script"], "chat": "small talk"}


async def judge(*texts: str, **settings: Any) -> Observation:
    return await ask("preference", {"of": KINDS, **settings}, said(*texts), encoders(FakeText(TEXTS)))


async def test_the_kind_with_the_nearest_text_is_the_label() -> None:
    answer = await judge("script.")
    assert (answer.matched, answer.label, answer.pack) == (True, "code", "text-pack")
    assert answer.score == pytest.approx(1.0)
    assert (answer.evidence[0].span, answer.evidence[0].detail) == ((0, 7), "leads chat by 1.000")
    assert (await judge("chat.")).label == "chat"


@pytest.mark.parametrize(("margin", "matched"), [(0.19, True), (0.21, False)])
async def test_it_has_to_lead_by_the_margin(margin: float, matched: bool) -> None:
    assert (await judge("both.", margin=margin)).matched is matched


@pytest.mark.parametrize(("threshold", "matched"), [(0.79, True), (0.81, False)])
async def test_threshold(threshold: float, matched: bool) -> None:
    assert (await judge("both.", threshold=threshold)).matched is matched


async def test_only_kinds_asked_for_match_and_the_label_says_which_it_was() -> None:
    answer = await judge("chat.", any=["code"])
    assert (answer.matched, answer.label) == (False, "chat")
    assert (await judge("chat.", any=["code", "chat"])).matched is True


async def test_windows_count_together() -> None:
    answer = await judge("script. script. chat.", margin=0)
    assert answer.label == "code"
    assert answer.score == pytest.approx(2 / 3)


@pytest.mark.parametrize("request_view", [view(), said(""), view(("assistant", "chat."))])
async def test_nothing_to_read_is_no_match(request_view: Any) -> None:
    answer = await ask("preference", {"of": KINDS, "threshold": 0}, request_view, encoders(FakeText(TEXTS)))
    assert (answer.matched, answer.score, answer.evidence) == (False, 0.0, ())


async def test_overload_sheds_and_no_number_is_unknown() -> None:
    text = FakeText({**TEXTS, "odd": np.full(DIMENSION, np.nan, np.float32)})
    signal = await built("preference", {"of": KINDS}, encoders(text))
    assert (await signal.observe(said("odd"))).reason == "no number"
    text.overloaded = True
    assert (await signal.observe(said("chat."))).status == "shed"
    assert signal.cost is Cost.TEXT_MODEL


async def test_with_the_starter_encoder_it_tells_code_from_chat(starter_text: TextEncoder) -> None:
    kinds = {
        "code": "write, fix or explain source code",
        "chat": "casual small talk",
        "translation": "translate a text",
    }
    signal = await built("preference", {"of": kinds}, encoders(starter_text))
    assert (await signal.observe(said("Debug this Java function for me"))).label == "code"
    assert (await signal.observe(said("Hey, how was your weekend?"))).label == "chat"
    assert (await signal.observe(said("How do you say this sentence in Italian?"))).label == "translation"


@pytest.mark.parametrize(
    "settings",
    [{}, {"of": {}}, {"of": {"code": "a"}}, {"of": {"code": [], "chat": "a"}}, {"of": {"code": "", "chat": "a"}},
     {"of": KINDS, "any": []}, {"of": KINDS, "any": ["cod"]},
     {"of": KINDS, "margin": -1}, {"of": KINDS, "threshold": 2}],
)  # fmt: skip
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PreferenceSettings.model_validate(settings)
