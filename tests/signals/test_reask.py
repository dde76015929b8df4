from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from signal_fakes import FakeText, ask, built, encoders, image, unit, view

from router.inference.text import TextEncoder
from router.request.view import RequestView
from router.signals.base import Observation
from router.signals.reask import SENTENCES, ReaskSettings, in_common, questions, sequences

TABLE = {
    "Why is my invoice wrong?": unit(1),
    "Explain the error on the bill.": unit(0.9, 0.436),
    "Where is the parcel I ordered?": unit(0, 0, 1),
    "You did not help me.": unit(0, 0, 0, 1),
}
FIRST, PARAPHRASE, OTHER, COMPLAINT = TABLE


def chat(*user: str) -> RequestView:
    turns: list[Any] = []
    for text in user:
        turns += [("user", text), ("assistant", "I see.")]
    return view(*turns[:-1])


async def judge(request: RequestView, **settings: Any) -> Observation:
    return await ask("reask", settings, request, encoders(FakeText(TABLE)))


async def test_a_paraphrase_of_an_earlier_turn_matches_and_the_evidence_names_both() -> None:
    answer = await judge(chat(FIRST, PARAPHRASE))
    assert answer.matched is True
    assert answer.score == pytest.approx(0.9, abs=1e-3)
    (evidence,) = answer.evidence
    assert evidence.pointer == "/messages/2/content/0"
    assert evidence.detail == "as in /messages/0"


async def test_another_question_does_not_match() -> None:
    answer = await judge(chat(FIRST, OTHER))
    assert answer.matched is False
    assert (answer.score or 0.0) < 0.3


async def test_the_likest_of_several_earlier_turns_decides() -> None:
    answer = await judge(chat(OTHER, FIRST, COMPLAINT, PARAPHRASE))
    assert answer.matched is True
    assert answer.evidence[0].detail == "as in /messages/2"


async def test_only_so_many_turns_back_are_compared() -> None:
    request = chat(FIRST, OTHER, COMPLAINT, PARAPHRASE)
    assert (await judge(request, turns=2)).matched is False
    assert (await judge(request, turns=3)).matched is True


async def test_a_question_repeated_behind_a_complaint_is_found() -> None:
    answer = await judge(chat(FIRST, f"{COMPLAINT} {PARAPHRASE}"))
    assert answer.matched is True
    assert answer.evidence[0].span == (21, 51)


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ("怎么快速判断一个数能不能被7整除?", "怎么快速判断一个数能不能被7整除"),
        ("Как мне обновить паспорт за границей?", "как мне обновить паспорт за границей???"),
        ("كيف أجدد جواز سفري في الخارج؟", "كيف أجدد جواز سفري في الخارج"),
        ("RENAME ALL THE FILES PLEASE", "rename all the files, please!"),
    ],
)
async def test_a_near_verbatim_repeat_is_found_in_any_language(first: str, again: str) -> None:
    answer = await judge(chat(first, again))
    assert answer.matched is True
    assert answer.score == pytest.approx(1.0)


@pytest.mark.parametrize("short", ["yes", "go on", "ok, thanks", "好的", "👍👍👍👍👍", ""])
async def test_a_word_or_two_said_twice_is_no_repeat(short: str) -> None:
    answer = await judge(chat(short, short))
    assert (answer.matched, answer.score) == (False, 0.0)


async def test_a_word_or_two_repeats_no_question_however_like_it_is() -> None:
    text = FakeText({**TABLE, "invoice?": TABLE[FIRST]})
    answer = await ask("reask", {}, chat(FIRST, "invoice?"), encoders(text))
    assert (answer.matched, answer.score) == (False, 0.0)


async def test_turns_without_an_answer_between_are_one_question() -> None:
    answer = await judge(view(("user", FIRST), ("user", PARAPHRASE)))
    assert (answer.matched, answer.score) == (False, 0.0)


async def test_what_the_assistant_or_a_tool_said_is_not_compared() -> None:
    answer = await judge(view(("system", FIRST), ("assistant", FIRST), ("tool", FIRST), ("user", FIRST)))
    assert (answer.matched, answer.score) == (False, 0.0)


async def test_a_first_turn_and_an_empty_request_do_not_match() -> None:
    for request in (view(), view(("user", FIRST)), view(("assistant", FIRST)), view(("user", image("x")))):
        assert (await judge(request)).matched is False


async def test_an_image_without_text_is_no_question() -> None:
    request = view(("user", image("a")), ("assistant", "Nice."), ("user", "What about this picture, then?", image("b")))
    assert (await judge(request)).matched is False


@pytest.mark.parametrize(
    "text", ["̂" * 100_000, "ﷺ" * 20_000, ". " * 50_000, "问" * 20_000, "x" * 100_000, "\ud800" * 99]
)
async def test_hostile_texts_are_compared_like_any_other(text: str) -> None:
    answer = await judge(chat(f"Why is that? {text}", f"Why is that? {text}"))
    assert answer.status == "observed"


async def test_overload_sheds() -> None:
    text = FakeText(TABLE)
    signal = await built("reask", {}, encoders(text))
    text.overloaded = True
    assert (await signal.observe(chat(FIRST, PARAPHRASE))).status == "shed"


async def test_few_sentences_are_looked_at_by_themselves() -> None:
    text = FakeText(TABLE)
    signal = await built("reask", {}, encoders(text))
    await signal.observe(chat(FIRST, " ".join(f"This is sentence number {i}." for i in range(100))))
    # Once as windows, which are sentences with this encoder, and a few once more.
    assert len(text.embedded) == 1 + 100 + SENTENCES


async def test_evidence_never_quotes_the_client() -> None:
    assert "invoice" not in repr(await judge(chat(FIRST, FIRST)))


async def test_with_the_starter_encoder_a_question_asked_again_is_known(starter_text: TextEncoder) -> None:
    again = chat("How do I reset my router password?", "But how can I reset the password of my router?")
    other = chat("How do I reset my router password?", "Which cable do I need for the printer?")
    assert (await ask("reask", {}, again, encoders(starter_text))).matched is True
    assert (await ask("reask", {}, other, encoders(starter_text))).matched is False


def test_questions_come_latest_first() -> None:
    latest, earlier = questions(chat(FIRST, OTHER, PARAPHRASE), 5)
    assert latest is not None
    assert latest.pointer == "/messages/4"
    assert [turn.pointer for turn in earlier] == ["/messages/2", "/messages/0"]


@given(st.text(max_size=60), st.text(max_size=60))
def test_likeness_of_letters_is_symmetric_within_0_and_1_and_full_with_itself(left: str, right: str) -> None:
    one, two = sequences(left), sequences(right)
    assert in_common(one, two) == in_common(two, one)
    assert 0.0 <= in_common(one, two) <= 1.0
    assert in_common(one, one) == (1.0 if one else 0.0)


@pytest.mark.parametrize("settings", [{"threshold": 2}, {"turns": 0}, {"turns": 51}, {"over": "all"}])
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ReaskSettings.model_validate(settings)
