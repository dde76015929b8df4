from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from signal_fakes import FakeText, ask, built, encoders, in_tool_result, said, turns_given, view

from router.inference.text_model import TextModel
from router.request.view import TextPart, ToolCallPart
from router.signals.base import Cost
from router.signals.context import MEASURED_AT_ONCE, ContextSettings, estimate
from router.signals.texts import encodable

FIVE = "one two three four five"


@pytest.mark.parametrize(
    ("settings", "matched"),
    [
        ({"min_tokens": 5}, True),
        ({"min_tokens": 6}, False),
        ({"max_tokens": 5}, True),
        ({"max_tokens": 4}, False),
        ({"min_tokens": 5, "max_tokens": 5}, True),
        ({"min_tokens": 1, "max_tokens": 4}, False),
        ({"min_tokens": 0}, True),
    ],
)
async def test_bounds_are_inclusive(settings: dict[str, int], matched: bool) -> None:
    assert (await ask("context", settings, said(FIVE), encoders(FakeText()))).matched is matched


async def test_texts_of_every_role_count() -> None:
    request = view(
        ("system", FIVE),
        ("user", FIVE),
        ("assistant", ToolCallPart("/call", "1", "run", FIVE)),
        ("tool", in_tool_result(TextPart("/result", FIVE))),
    )
    observation = await ask("context", {"min_tokens": 20, "max_tokens": 20}, request, encoders(FakeText()))
    assert observation.matched is True
    assert observation.evidence[0].detail == "20 tokens"


@pytest.mark.parametrize(("settings", "matched"), [({"min_tokens": 100}, False), ({"max_tokens": 23}, True)])
async def test_size_in_bytes_spares_the_tokenizer(settings: dict[str, int], matched: bool) -> None:
    text = FakeText()
    observation = await ask("context", settings, said(FIVE), encoders(text))
    assert observation.matched is matched
    assert text.counted == 0


@pytest.mark.parametrize("text", ["a" * 9, "é" * 9, "漢" * 9, "🙂" * 9, "\ud800" * 9])
async def test_size_is_that_of_the_text_encoded(text: str) -> None:
    size = len(encodable(text).encode())
    request = said(text)
    assert (await ask("context", {"max_tokens": size}, request, encoders(FakeText()))).evidence[0].detail == (
        f"at most {size} tokens"
    )
    assert (await ask("context", {"min_tokens": size + 1}, request, encoders(FakeText()))).evidence[0].detail == (
        f"at most {size} tokens"
    )


async def test_others_get_their_turn_while_a_long_text_is_measured() -> None:
    request = said("é" * 5 * MEASURED_AT_ONCE)
    assert await turns_given(ask("context", {"min_tokens": 100_000_000}, request)) >= 5


async def test_counting_stops_at_the_greatest_number() -> None:
    text = FakeText()
    await ask("context", {"max_tokens": 4}, said(FIVE, FIVE, FIVE), encoders(text))
    assert text.counted == 1


async def test_an_overloaded_tokenizer_sheds() -> None:
    text = FakeText()
    text.overloaded = True
    assert (await ask("context", {"min_tokens": 2}, said(FIVE), encoders(text))).status == "shed"


async def test_without_an_encoder_an_estimate_stands_in() -> None:
    signal = await built("context", {"min_tokens": 6})
    assert signal.cost is Cost.HEURISTIC
    observation = await signal.observe(said(FIVE))
    assert observation.matched is True
    assert observation.evidence[0].detail == "about 6 tokens"


async def test_with_an_encoder_it_is_asked_only_when_needed() -> None:
    assert (await built("context", {"min_tokens": 6}, encoders(FakeText()))).cost is Cost.TEXT_MODEL


async def test_no_text_has_no_tokens() -> None:
    assert (await ask("context", {"max_tokens": 0}, view())).matched is True
    assert (await ask("context", {"min_tokens": 1}, view())).matched is False


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("漢字", 2), ("ab漢", 2)])
def test_estimate(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


@given(st.text())
def test_estimate_is_never_more_than_bytes(text: str) -> None:
    assert estimate(text) <= len(text.encode())


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_no_text_has_more_tokens_than_bytes(starter_text_model: TextModel, text: str) -> None:
    assert len(starter_text_model.tokenise(text).ids) <= len(text.encode())


@pytest.mark.parametrize("text", ["각" * 50, "ﷺ" * 50, "ΐ" * 50, "ệ" * 50, "🏴" * 50, "\u1f82" * 50, "\u0958" * 50])
def test_not_even_one_whose_characters_are_taken_apart(starter_text_model: TextModel, text: str) -> None:
    assert len(starter_text_model.tokenise(text).ids) <= len(text.encode())


@pytest.mark.parametrize("settings", [{}, {"min_tokens": 5, "max_tokens": 4}, {"min_tokens": -1}, {"tokens": 5}])
def test_bad_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        ContextSettings.model_validate(settings)
