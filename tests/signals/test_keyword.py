from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from signal_fakes import ask, in_tool_result, said, turns_given, view

from router.request.view import TextPart, TextSpan, ToolCallPart
from router.signals.base import Evidence
from router.signals.keyword import KeywordSettings
from router.signals.keyword_phrases import PhraseSearch
from router.signals.keyword_tally import MAX_EVIDENCE, Tally
from router.signals.pieces import SPACES, legible
from router.signals.texts import composed, stretches


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("cat", "a cat.", "cat"),
        ("cat", "cat", "cat"),
        ("cat", "A CAT!", "CAT"),
        ("cat", "category", None),
        ("cat", "concat", None),
        ("cat", "cat_food", None),
        ("cat", "cat2", None),
        ("cat", "cat's", "cat"),
        ("cat", "(cat)", "cat"),
        ("cat", "dog\ncat\ndog", "cat"),
        ("side effect", "known side  effect of", "side  effect"),
        ("side effect", "side\n\teffect", "side\n\teffect"),
        ("side effect", "side\u00a0effect", "side\u00a0effect"),
        ("side effect", "sideeffect", None),
        ("side effect", "side effects", None),
        ("C++", "we use C++17", "C++"),
        ("C++", "ABC++", None),
        (".env", "the .env file", ".env"),
        ("a.b", "axb", None),
        ("naïve", "a naïve idea", "naïve"),
        ("naïve", "NAÏVE", "NAÏVE"),
        ("ïve", "naïve", None),
        ("straße", "STRAẞE", "STRAẞE"),
        ("οδος", "ΟΔΟΣ", "ΟΔΟΣ"),
        ("паспорт", "Мой ПАСПОРТ.", "ПАСПОРТ"),
        ("паспорт", "паспорта", None),
        # Scripts without spaces, or with particles: anywhere.
        ("诊断", "请看诊断书", "诊断"),
        ("パスポート", "私のパスポートです", "パスポート"),
        ("여권", "여권을 보여 주세요", "여권"),
        ("หนังสือเดินทาง", "ขอหนังสือเดินทางด้วย", "หนังสือเดินทาง"),
        # Their letters are an edge for a Latin word beside them.
        ("AI", "使用AI模型", "AI"),
        ("AI", "使用AIR模型", None),
        ("GPT模型", "用GPT模型吗", "GPT模型"),
        ("GPT模型", "用xGPT模型吗", None),
        ("हिन्दी", "हिन्दी में", "हिन्दी"),
        ("جواز سفر", "هذا جواز سفر", "جواز سفر"),
        ("👍", "ok👍ok", "👍"),
    ],
)
async def test_exact_finds_whole_words_in_every_script(phrase: str, text: str, found: str | None) -> None:
    observation = await ask("keyword", {"any": [phrase]}, said(text))
    assert observation.matched is (found is not None)
    if found is not None:
        (evidence,) = observation.evidence
        assert evidence.span is not None
        assert text[slice(*evidence.span)] == found
        assert evidence.label == phrase


async def test_evidence_names_part_place_and_the_policys_word() -> None:
    observation = await ask("keyword", {"any": ["dosage", "Radiograph"]}, said("nothing", "one RADIOGRAPH, one dosage"))
    assert observation.evidence == (
        Evidence("/messages/1/content/0", label="Radiograph", span=(4, 14)),
        Evidence("/messages/1/content/0", label="dosage", span=(20, 26)),
    )
    assert observation.label == "Radiograph"
    assert (observation.score, observation.value) == (1.0, 2)


async def test_words_that_share_one_blank_are_both_found() -> None:
    observation = await ask("keyword", {"any": ["cat"]}, said("cat cat cat"))
    assert [e.span for e in observation.evidence] == [(0, 3), (4, 7), (8, 11)]


async def test_a_phrase_within_another_or_over_its_end_is_found_too_behind_the_longer_one() -> None:
    phrases = ["identity", "identity card", "card number", "number"]
    observation = await ask("keyword", {"any": phrases}, said("my identity card number"))
    assert [e.label for e in observation.evidence] == ["identity card", "identity", "card number", "number"]
    assert observation.label == "identity card"
    assert observation.value == 4


async def test_case_counts_only_when_asked() -> None:
    settings = {"any": ["Apple"], "case_sensitive": True}
    assert (await ask("keyword", settings, said("an Apple"))).matched is True
    assert (await ask("keyword", settings, said("an apple"))).matched is False


async def test_a_decomposed_text_matches_but_its_places_are_not_claimed() -> None:
    observation = await ask("keyword", {"any": ["café"]}, said("cafe\u0301"))
    assert observation.evidence == (Evidence("/messages/0/content/0", label="café"),)


@pytest.mark.parametrize(
    "text",
    [
        "my pass\u200bport number",
        "my pass\u00adport number",
        "my passport\u200b number",
        "my ｐａｓｓｐｏｒｔ　ｎｕｍｂｅｒ",
        "my p\u3164a\u3164ssport number",
        "my pa\ufe0fssport number",
        "my pass" + "\u2060" * 20_000 + "port number",
        "hi " + "".join(chr(0xE0000 + ord(c)) for c in "passport number"),
    ],
)
async def test_what_a_reader_sees_matches_but_its_places_are_not_claimed(text: str) -> None:
    observation = await ask("keyword", {"any": ["passport number"]}, said(text))
    assert observation.evidence == (Evidence("/messages/0/content/0", label="passport number"),)


async def test_a_pattern_sees_a_text_as_it_was_written_and_as_it_is_read() -> None:
    text = said("ORD-\u200b123")
    assert (await ask("keyword", {"any": ["\u200b"], "method": "regex"}, text)).evidence[0].span == (4, 5)
    assert (await ask("keyword", {"any": [r"ORD-\d+"], "method": "regex"}, text)).evidence[0].span is None


async def test_piled_up_marks_hide_no_word() -> None:
    marks = "a" + "\u0301" * 500 + "\u0316" * 500
    assert (await ask("keyword", {"any": ["secret"]}, said(f"{marks} secret {marks}"))).matched is True


@pytest.mark.parametrize("shift", [*range(0, 40), 8_150, 8_191, 8_192])
async def test_a_phrase_is_found_once_wherever_a_long_text_is_cut(shift: int) -> None:
    before = "hay " * 2_040 + "-" * shift + " "
    text = f"{before}side{' ' * SPACES}effect{' hay' * 3_000}"
    end = len(before) + 10 + SPACES
    found = await ask("keyword", {"any": ["side effect"]}, said(text))
    assert [e.span for e in found.evidence] == [(len(before), end)]
    found = await ask("keyword", {"any": [r"side\s+effect\b"], "method": "regex"}, said(text))
    assert [e.span for e in found.evidence] == [(len(before), end)]


@pytest.mark.parametrize("shift", range(2_020, 2_060, 3))
@pytest.mark.parametrize(
    ("filler", "phrase"), [("é", "été passé"), ("漢", "été passé"), ("漢", "ｅ\u0301\u200bｔé passé")]
)
async def test_a_phrase_is_found_wherever_a_long_text_of_other_scripts_is_cut(
    shift: int, filler: str, phrase: str
) -> None:
    text = f"{filler * shift} {phrase} {filler * 5_000}"
    observation = await ask("keyword", {"any": ["été passé"]}, said(text))
    assert [e.label for e in observation.evidence] == ["été passé"]


@pytest.mark.parametrize("shift", range(8_180, 8_200))
async def test_a_cut_is_neither_a_words_edge_nor_an_end_of_the_text(shift: int) -> None:
    text = "x" * shift + "cat" + "x" * 20_000
    assert (await ask("keyword", {"any": ["cat", "x"]}, said(text))).matched is False
    assert (await ask("keyword", {"any": [r"\bx{9}\b", r"x\z", r"\Acat"], "method": "regex"}, said(text))).evidence == (
        Evidence("/messages/0/content/0", label=r"x\z", span=(len(text) - 1, len(text))),
    )


async def test_a_long_blank_parts_no_phrase() -> None:
    observation = await ask("keyword", {"any": ["side effect"]}, said("side" + " " * 50_000 + "effect"))
    assert observation.evidence == (Evidence("/messages/0/content/0", label="side effect"),)


@pytest.mark.parametrize("text", ["\ufdfa" * 100_000, "a" * 100_000, "漢" * 100_000, "\u200b" * 100_000])
@pytest.mark.parametrize("settings", [{"any": ["secret"]}, {"any": ["se.*cret", "x+y"], "method": "regex"}])
async def test_others_get_their_turn_while_a_long_text_is_read(text: str, settings: dict[str, object]) -> None:
    assert await turns_given(ask("keyword", settings, said(text))) >= 12


async def test_a_lone_surrogate_in_the_text_hides_nothing() -> None:
    observation = await ask("keyword", {"any": ["cat"]}, said("\ud800 cat \udfff"))
    assert observation.matched is True


@pytest.mark.parametrize(
    ("over", "found"),
    [("latest", ["/messages/4/content/0"]), ("user", ["/messages/1/content/0", "/messages/4/content/0"])],
)
async def test_over_chooses_the_texts(over: str, found: list[str]) -> None:
    request = view(
        ("system", "x"), ("user", "x"), ("assistant", "x"), ("tool", in_tool_result(TextPart("/t", "x"))), ("user", "x")
    )
    observation = await ask("keyword", {"any": ["x"], "over": over}, request)
    assert [e.pointer for e in observation.evidence] == found


async def test_over_all_reads_tool_calls_and_tool_results() -> None:
    request = view(
        ("assistant", ToolCallPart("/call", "1", "run", '{"path": "secret"}')),
        ("tool", in_tool_result(TextPart("/result", "a secret"))),
    )
    observation = await ask("keyword", {"any": ["secret"], "over": "all"}, request)
    assert [e.pointer for e in observation.evidence] == ["/call", "/result"]


async def test_no_text_is_no_match() -> None:
    assert (await ask("keyword", {"any": ["x"]}, view())).matched is False
    assert (await ask("keyword", {"any": ["x"]}, said(""))).matched is False


async def test_evidence_is_bounded() -> None:
    observation = await ask("keyword", {"any": ["x"]}, said(*["x " * 50] * 3))
    assert len(observation.evidence) == MAX_EVIDENCE


async def test_a_megabyte_is_read_to_its_end() -> None:
    observation = await ask("keyword", {"any": ["needle"]}, said("hay " * 250_000 + "needle", "more"))
    assert [e.span for e in observation.evidence] == [(1_000_000, 1_000_006)]


async def test_regex_is_found_anywhere_and_labelled_with_the_pattern() -> None:
    settings = {"any": [r"\d{3}-\d{2}", "(foo|bar)baz"], "method": "regex"}
    observation = await ask("keyword", settings, said("x123-45y BARBAZ"))
    assert [(e.label, e.span) for e in observation.evidence] == [(r"\d{3}-\d{2}", (1, 7)), ("(foo|bar)baz", (9, 15))]


async def test_a_pattern_that_explodes_elsewhere_is_linear_here() -> None:
    observation = await ask("keyword", {"any": ["(a+)+b"], "method": "regex"}, said("a" * 20_000))
    assert observation.matched is False


async def test_a_pattern_that_matches_between_characters_matches_once() -> None:
    observation = await ask("keyword", {"any": [r"x*\b"], "method": "regex"}, said("aaa xx"))
    assert [e.span for e in observation.evidence] == [(0, 0)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"any": ["ok", "(b"], "method": "regex"}, r"any\[1\]: missing \)"),
        ({"any": ["(?=a)b"], "method": "regex"}, r"any\[0\]: .*\(\?="),
        ({"any": ["a*"], "method": "regex"}, r"any\[0\]: .*empty text"),
        ({"any": []}, "at least 1 item"),
        ({"any": ["  "]}, "at least 1 character"),
        ({}, "Field required"),
        ({"any": ["a"], "method": "fuzy"}, "method"),
        ({"any": ["a"], "case": True}, "Extra inputs"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        KeywordSettings.model_validate(settings)


word = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)


@given(
    word,
    st.text(st.characters(categories=["P", "Z"]), max_size=3),
    st.text(st.characters(categories=["P", "Z"]), max_size=3),
)
async def test_a_word_between_blanks_or_punctuation_is_always_found(phrase: str, before: str, after: str) -> None:
    observation = await ask(
        "keyword",
        {"any": [phrase], "case_sensitive": True},
        said(before.replace("_", "-") + phrase + after.replace("_", "-")),
    )
    assert observation.matched is True


@given(st.lists(st.text(min_size=1, max_size=6).filter(str.strip), min_size=1, max_size=4), st.text(max_size=40))
async def test_any_phrase_and_any_text_are_answered(phrases: list[str], text: str) -> None:
    observation = await ask("keyword", {"any": phrases}, said(text))
    assert observation.status == "observed"
    for evidence in observation.evidence:
        if evidence.span is not None:
            assert 0 <= evidence.span[0] < evidence.span[1] <= len(text)


SHORT_LOOKS = [
    PhraseSearch(("side effect", "x1"), case_sensitive=False, regex=False),
    PhraseSearch(("side effect", "X1"), case_sensitive=True, regex=False),
    PhraseSearch(("\u017fide effect", "1"), case_sensitive=False, regex=False),
    PhraseSearch((*(f"word{number}" for number in range(40)), "side effect"), case_sensitive=False, regex=False),
    PhraseSearch(("side +effect", "x1$"), case_sensitive=False, regex=True),
    PhraseSearch(("x?1", "Side{0,2}effect", r"\bword7", "side|x1"), case_sensitive=False, regex=True),
    PhraseSearch(("SideEffect+", "x{0}1"), case_sensitive=True, regex=True),
    PhraseSearch(("xe\u0301?1", "side=\u0338?effect"), case_sensitive=False, regex=True),
    PhraseSearch((r"x(?i)?1", r"side1\Q\E*effect", r"word7(?s){0}"), case_sensitive=False, regex=True),
]


@given(
    st.sampled_from(SHORT_LOOKS),
    st.lists(
        st.sampled_from(
            [
                *("side", "effect", "sideEffect", "Side", "EFFECT", "x", "1", "side effect", "side_effect", "word7"),
                *(" ", " " * 64, " " * 65, "\n", "\x0b", "\x0c", "\x1c", "\0", "\x7f", "\u00ad", "\u017f"),
            ]
        ),
        max_size=12,
    ).map("".join),
)
async def test_the_short_look_never_hides_what_the_long_one_finds(search: PhraseSearch, text: str) -> None:
    written, read = Tally(), Tally()
    await search._search("/p", stretches(text, composed), written, set())
    await search._search("/p", legible(text), read, set())
    assert not (search._surely_without(TextSpan("/p", "user", text)) and (written.found or read.found))
