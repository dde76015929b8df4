from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError
from signal_fakes import FakeText, ask, built, encoders, in_tool_result, said, turns_given, view

from router.inference.text_model import TextModel
from router.request.view import ImagePart, TextPart, ToolCallPart, ToolResultPart
from router.signals.base import Cost, Evidence
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


async def test_the_value_is_the_number_wherever_the_bounds_are() -> None:
    for settings in ({"min_tokens": 100}, {"max_tokens": 2}, {"min_tokens": 0}):
        assert (await ask("context", settings, said(FIVE, FIVE), encoders(FakeText()))).value == 10


@pytest.mark.parametrize("text", ["a" * 9, "é" * 9, "漢" * 9, "🙂" * 9, "\ud800" * 9])
async def test_a_busy_tokenizer_is_not_needed_where_the_size_of_the_text_encoded_settles_it(text: str) -> None:
    size = len(encodable(text).encode())
    busy = FakeText()
    busy.overloaded = True
    observation = await ask("context", {"max_tokens": size}, said(text), encoders(busy))
    assert (observation.matched, observation.value) == (True, None)
    assert (await ask("context", {"min_tokens": size + 1}, said(text), encoders(busy))).matched is False
    assert (await ask("context", {"min_tokens": size}, said(text), encoders(busy))).status == "shed"
    assert (await ask("context", {"max_tokens": size - 1}, said(text), encoders(busy))).status == "shed"


async def test_others_get_their_turn_while_a_long_text_is_measured() -> None:
    request = said("é" * 5 * MEASURED_AT_ONCE)
    assert await turns_given(ask("context", {"min_tokens": 100_000_000}, request)) >= 5


def picture(width: int, height: int, pointer: str = "/image") -> ImagePart:
    stream = io.BytesIO()
    Image.new("1", (width, height)).save(stream, "PNG")
    return ImagePart(pointer, "inline", stream.getvalue())


TILES = {"image_tokens": "openai_tiles"}
NOWHERE = ImagePart("/nowhere", "not_fetched", url="http://x/y.png")
BROKEN = ImagePart("/broken", "inline", b"hello")


async def test_every_image_counts_by_the_upstreams_rule_and_none_without_one() -> None:
    request = view(
        ("user", FIVE, picture(1024, 1024)), ("tool", ToolResultPart("/r", "1", (picture(512, 512), picture(512, 512))))
    )
    for settings, tokens in (
        ({"min_tokens": 0}, 5),
        ({"min_tokens": 0, **TILES}, 5 + 765 + 255 + 255),
        ({"min_tokens": 0, "image_tokens": "fixed:100"}, 305),
    ):
        assert (await ask("context", settings, request, encoders(FakeText()))).value == tokens


@pytest.mark.parametrize(("image", "reason"), [(NOWHERE, "not fetched"), (BROKEN, "unknown format")])
async def test_an_image_without_a_size_leaves_open_what_it_could_change(image: ImagePart, reason: str) -> None:
    request = view(("user", FIVE, picture(512, 512)), ("user", image))
    for bounds, matched in (
        ({"min_tokens": 261}, None),
        ({"min_tokens": 260}, True),
        ({"max_tokens": 259}, False),
        ({"max_tokens": 260}, None),
        ({"min_tokens": 260, "max_tokens": 9999}, None),
    ):
        observation = await ask("context", {**bounds, **TILES}, request, encoders(FakeText()))
        assert (observation.matched, observation.value) == (matched, None)
        if matched is None:
            assert observation.status == "failed"
            assert observation.evidence == (Evidence(image.pointer, image=1, detail=reason),)


async def test_an_image_without_a_size_counts_where_its_size_does_not_matter() -> None:
    request = view(("user", NOWHERE, BROKEN))
    assert (await ask("context", {"min_tokens": 0, "image_tokens": "fixed:7"}, request)).value == 14
    assert (await ask("context", {"min_tokens": 0}, request)).value == 0


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
async def test_estimate(text: str, tokens: int) -> None:
    assert await estimate(text) == tokens


@given(st.text())
async def test_estimate_is_never_more_than_bytes(text: str) -> None:
    assert await estimate(text) <= len(text.encode())


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_no_text_has_more_tokens_than_bytes(starter_text_model: TextModel, text: str) -> None:
    assert len(starter_text_model.tokenise(text).ids) <= len(text.encode())


@pytest.mark.parametrize("text", ["각" * 50, "ﷺ" * 50, "ΐ" * 50, "ệ" * 50, "🏴" * 50, "\u1f82" * 50, "\u0958" * 50])
def test_not_even_one_whose_characters_are_taken_apart(starter_text_model: TextModel, text: str) -> None:
    assert len(starter_text_model.tokenise(text).ids) <= len(text.encode())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"min_tokens": 5, "max_tokens": 4},
        {"min_tokens": -1},
        {"tokens": 5},
        {"min_tokens": 1, "image_tokens": "tiles"},
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ContextSettings.model_validate(settings)
