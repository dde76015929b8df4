from __future__ import annotations

import sys
from typing import get_args

import pytest
from lingua import Language
from pydantic import ValidationError
from signal_fakes import ask, built, in_tool_result, said, turns_given, view

from router.request.view import TextPart
from router.signals.language import COMMON, MOST_PASSAGES, PASSAGE, LanguageSettings, _passages
from router.signals.language_codes import Code
from router.signals.resources import SignalSetupError

SENTENCES = {
    "de": "Wie kann ich meinen Reisepass verlängern, wenn er bald abläuft?",
    "fr": "Comment puis-je renouveler mon passeport avant son expiration ?",
    "en": "How do I renew my passport before it expires?",
    "nl": "Hoe kan ik mijn paspoort verlengen voordat het verloopt?",
    "es": "¿Cómo puedo renovar mi pasaporte antes de que caduque?",
    "ru": "Как продлить паспорт до истечения срока?",
    "zh": "请问护照到期前怎么更新？",
    "ja": "パスポートの更新はどうすればいいですか？",
    "ko": "여권을 어떻게 갱신하나요?",
    "ar": "كيف يمكنني تجديد جواز سفري قبل انتهاء صلاحيته؟",
    "hi": "मैं अपना पासपोर्ट समाप्त होने से पहले कैसे नवीनीकृत करूं?",
    "th": "ฉันจะต่ออายุหนังสือเดินทางก่อนหมดอายุได้อย่างไร",
    "el": "Πώς μπορώ να ανανεώσω το διαβατήριό μου;",
}


@pytest.mark.parametrize("code", SENTENCES)
async def test_a_sentence_is_told_and_matches_only_its_own_language(code: str) -> None:
    request = said(SENTENCES[code])
    observation = await ask("language", {"any": [code]}, request)
    assert (observation.matched, observation.score, observation.label) == (True, 1.0, code)
    assert [(e.pointer, e.label, e.score) for e in observation.evidence] == [("/messages/0/content/0", code, 1.0)]
    other = await ask("language", {"any": [next(c for c in SENTENCES if c != code)]}, request)
    assert (other.matched, other.score, other.label, other.evidence) == (False, 0.0, code, ())


@pytest.mark.parametrize(
    "text", ["", "ok", "12345 + 67890 = 80235 !!!", "😀" * 50, "\ud800" * 50, "\u0301" * 50, "hello wor"]
)
async def test_a_text_with_hardly_a_letter_has_no_language(text: str) -> None:
    observation = await ask("language", {"any": ["en"]}, said(text))
    assert (observation.status, observation.matched, observation.score) == ("observed", False, 0.0)
    assert (observation.label, observation.evidence) == ("", ())


async def test_letters_that_are_no_language_are_none() -> None:
    observation = await ask("language", {"any": list(COMMON)}, said("a" * 5_000))
    assert (observation.matched, observation.label) == (False, "")


async def test_the_share_is_of_letters_in_any_of_the_languages() -> None:
    request = said(SENTENCES["en"] * 30, SENTENCES["de"] * 10, SENTENCES["fr"] * 10)
    observation = await ask("language", {"any": ["de", "fr"], "min_share": 0.3}, request)
    assert observation.label == "en"
    assert observation.score is not None
    assert 0.3 < observation.score < 0.7
    assert observation.matched is True
    assert [(e.pointer, e.label) for e in observation.evidence] == [
        ("/messages/1/content/0", "de"),
        ("/messages/2/content/0", "fr"),
    ]
    assert (await ask("language", {"any": ["de", "fr"], "min_share": 0.7}, request)).matched is False


async def test_a_second_language_at_the_end_of_a_long_text_is_seen() -> None:
    text = SENTENCES["en"] * 2_000 + SENTENCES["ru"] * 200
    observation = await ask("language", {"any": ["ru"], "min_share": 0.05}, said(text))
    assert observation.matched is True


@pytest.mark.parametrize(("over", "label"), [("latest", "fr"), ("user", "de"), ("all", "ru")])
async def test_over_chooses_the_texts(over: str, label: str) -> None:
    request = view(
        ("user", SENTENCES["de"] * 3),
        ("assistant", SENTENCES["en"]),
        ("tool", in_tool_result(TextPart("/t", SENTENCES["ru"] * 6))),
        ("user", SENTENCES["fr"]),
    )
    assert (await ask("language", {"any": ["it"], "over": over}, request)).label == label


async def test_full_width_letters_and_invisible_ones_hide_no_language() -> None:
    wide = "".join(chr(ord(c) + 0xFEE0) if "a" <= c <= "z" else c for c in SENTENCES["nl"])
    assert (await ask("language", {"any": ["nl"]}, said("\u200b".join(wide)))).matched is True


@pytest.mark.parametrize("text", ["a" * 10_000_000, "漢" * 1_000_000, "a" + "\u0301" * 500_000, "\ufdfa" * 100_000])
async def test_a_huge_text_is_told_in_bounded_steps(text: str) -> None:
    signal = await built("language", {"any": ["de"]})
    assert MOST_PASSAGES <= await turns_given(signal.observe(said(text))) <= 2 * MOST_PASSAGES


def test_passages_are_spread_from_the_first_to_the_last() -> None:
    texts = said("", "a" * (PASSAGE * 50), "b" * (PASSAGE * 50 + 1), "c").texts
    passages = _passages(texts)
    assert len(passages) == MOST_PASSAGES
    assert passages[0] == ("/messages/1/content/0", "a" * PASSAGE)
    assert passages[-1] == ("/messages/3/content/0", "c")
    assert {pointer for pointer, _ in passages} == {f"/messages/{i}/content/0" for i in (1, 2, 3)}
    assert "".join(text for _, text in _passages(said("xyz" * 400, "w").texts)) == "xyz" * 400 + "w"


def test_the_codes_are_those_that_can_be_told() -> None:
    assert set(get_args(Code)) == {language.iso_code_639_1.name.lower() for language in Language.all()}


async def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lingua", None)
    with pytest.raises(SignalSetupError, match=r"pointsman\[language\]"):
        await built("language", {"any": ["de"]})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "Field required"),
        ({"any": []}, "at least 1 item"),
        ({"any": ["xx"]}, "Input should be"),
        ({"any": ["DE"]}, "Input should be"),
        ({"any": ["de"], "min_share": 0}, "greater than 0"),
        ({"any": ["de"], "min_letters": 0}, "greater than or equal to 1"),
        ({"any": ["de"], "share": 1}, "Extra inputs"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        LanguageSettings.model_validate(settings)
