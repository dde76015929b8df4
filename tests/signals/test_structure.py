from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from signal_fakes import ask, in_tool_result, said, turns_given, view

from router.request.view import TextPart
from router.signals.base import Evidence
from router.signals.structure import Counted, StructureSettings
from router.signals.structure_scan import COUNTERS, LINE_CHARACTERS
from router.signals.texts import visible

FENCED = "Look:\n```python\n- no\n1. no\n| a | b |\n|---|---|\n```\n- yes\n"


@pytest.mark.parametrize(
    ("what", "text", "count"),
    [
        ("questions", "What? And why?! Really???", 3),
        ("questions", "これは何？そして？", 2),
        ("questions", "你好吗？你呢？", 2),
        ("questions", "ما هذا؟ لماذا؟", 2),
        ("questions", "Τι είναι αυτό; Γιατί\u037e", 2),
        ("questions", "¿Qué es? Ինչ՞ է", 2),
        ("questions", 'He said "why?" and (who?)', 2),
        ("questions", "see https://x.org/?q=1&r=a; done; and a?b:c", 0),
        ("questions", "no; none", 0),
        ("steps", "1. a\n2) b\n (3) c\n10. d", 4),
        ("steps", "1、打开\n第二步 关上\n步骤3：完成\n② 好", 4),
        ("steps", "Step 1: a\nSchritt 2: b\nШаг 3\nخطوة ٤\n١. أ", 5),
        ("steps", "3.14 is pi\n2024. a year\nin 1. place\n1.", 0),
        ("bullets", "- a\n* b\n  + c\n• d\n・e", 5),
        ("bullets", "-a\n--\n---\nwell - no\n-5", 0),
        ("code_blocks", "```\na\n```\n~~~py\nb\n~~~\n> ```\n> c\n> ```", 3),
        ("code_blocks", "````\n```\n````\n", 1),
        ("code_blocks", "```\nnever closed", 1),
        ("code_blocks", "say ``` here and `` there", 0),
        ("tables", "| a | b |\n|---|:-:|\n| 1 | 2 |\n\na | b\n--|--\n<table>", 3),
        ("tables", "---\na | b\n--", 0),
        ("json_blocks", 'x {"a": {"b": [1, "}"]}} y [{"c": 1}, {"d": 2}] {"e":\n 1}', 3),
        ("json_blocks", r'{"a": "\"}{"} {"b": "\\"}', 2),
        ("json_blocks", "{a} [1] {} f(x) { return 1; } [link](u)", 0),
        ("json_blocks", '{"open": [1, 2\n\nand then {"a": 1}', 1),
        ("math", r"$x^2$ and $$\int f$$ and \[a\] and \(b\) and \begin{align}c\end{align}", 5),
        ("math", "it costs $5 and $6, or $7-$8", 0),
        ("urls", "http://a.b/c?d=1, https://x www.y.de ftp://z/w", 4),
        ("urls", "http:// nothttps://a.b", 0),
        ("lines", "a\r\n\n  \nb\u2028c\rd", 4),
        ("words", "it's a state-of-the-art 漢字 हिन्दी", 10),
        ("steps", FENCED, 0),
        ("bullets", FENCED, 1),
        ("tables", FENCED, 0),
        ("code_blocks", FENCED, 1),
    ],
)
async def test_counts(what: str, text: str, count: int) -> None:
    observation = await ask("structure", {"count": what}, said(text))
    assert observation.value == count
    assert observation.matched is (count > 0)
    assert observation.evidence == (
        (Evidence("/messages/0/content/0", label=what, detail=str(count)),) if count else ()
    )


def test_every_name_has_a_counter() -> None:
    assert set(COUNTERS) == set(get_args(Counted))


@pytest.mark.parametrize(
    ("settings", "text", "value", "matched"),
    [
        ({"count": "lines", "min": 2}, "a\nb", 2, True),
        ({"count": "lines", "min": 3}, "a\nb", 2, False),
        ({"count": "lines", "max": 2}, "a\nb", 2, True),
        ({"count": "lines", "max": 1}, "a\nb", 2, False),
        ({"count": "lines", "max": 0}, "", 0, True),
        ({"count": "lines", "min": 0}, "", 0, True),
        ({"count": "lines"}, "", 0, False),
        ({"pattern": r"\p{Nd}+"}, "1 22 ٣٣", 3, True),
        ({"pattern": "(?i)ab"}, "abABab", 3, True),
        ({"pattern": "aa"}, "aaaaa", 2, True),
        ({"pattern": "é"}, "éé e\u0301", 3, True),
        ({"pattern": "x", "min_per_1000_chars": 100}, "x" + "-" * 9, 1, True),
        ({"pattern": "x", "min_per_1000_chars": 100}, "x" + "-" * 10, 1, False),
        ({"pattern": "x", "max_per_1000_chars": 100}, "x" + "-" * 9, 1, True),
        ({"pattern": "x", "max_per_1000_chars": 100}, "x" + "-" * 8, 1, False),
        ({"pattern": "x", "min_per_1000_chars": 0}, "", 0, False),
        ({"pattern": "x", "max_per_1000_chars": 0}, "", 0, True),
        ({"sequence": ["first", "then", "last"]}, "first a then b last c", 1, True),
        ({"sequence": ["first", "then", "last"]}, "then first last then", 0, False),
        ({"sequence": ["a", "a"]}, "aaaaa", 2, True),
        ({"sequence": ["先", "再"]}, "先打开，再关上，先这样，再那样", 2, True),
    ],
)
async def test_patterns_sequences_and_bounds(settings: dict[str, Any], text: str, value: int, matched: bool) -> None:
    observation = await ask("structure", settings, said(text))
    assert (observation.value, observation.matched, observation.score) == (value, matched, None)


async def test_counts_add_up_over_texts_but_a_sequence_is_within_one() -> None:
    request = said("first", "then")
    assert (await ask("structure", {"count": "words"}, request)).value == 2
    assert (await ask("structure", {"sequence": ["first", "then"]}, request)).matched is False


@pytest.mark.parametrize(("over", "value"), [("latest", 1), ("user", 2), ("all", 5)])
async def test_over_chooses_the_texts(over: str, value: int) -> None:
    request = view(
        ("system", "a?"),
        ("user", "b?"),
        ("assistant", "c?"),
        ("tool", in_tool_result(TextPart("/t", "d?"))),
        ("user", "e?"),
    )
    assert (await ask("structure", {"count": "questions", "over": over}, request)).value == value


@pytest.mark.parametrize("shift", [*range(0, 12), 2_040, 2_048, 8_185, 8_192])
@pytest.mark.parametrize("filler", ["-", "漢"])
async def test_nothing_is_lost_or_counted_twice_where_a_long_text_is_cut(shift: int, filler: str) -> None:
    unit = "\n1. what is it? 漢字 $x$ http://a.b/c \n```\nfenced\n```\n" + '{"k": [1, "\\"]}"]}\n\n'
    text = filler * shift + unit * 400
    for what in ("steps", "questions", "math", "urls", "code_blocks", "json_blocks"):
        assert (await ask("structure", {"count": what}, said(text))).value == 400, what
    found = await ask("structure", {"sequence": ["what", "漢", "fenced"]}, said(text))
    assert found.value == 400


HOSTILE = {
    "letters": "a" * 100_000,
    "questions": "?" * 100_000,
    "marks": "a" + "\u0301" * 100_000,
    "ideographs": "漢" * 50_000,
    "lines": "\n" * 100_000,
    "openings": '{"' * 50_000,
    "brackets": '[{"a":' + "[" * 100_000,
    "escapes": '{"' + "\\" * 100_000,
    "fences": "```\n" * 25_000,
    "dashes": "|-" * 50_000,
    "dollars": "$a" * 50_000,
    "ligatures": "\ufdfa" * 25_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
async def test_whatever_is_sent_is_counted_while_others_get_their_turn(text: str) -> None:
    for settings in (*({"count": what} for what in COUNTERS), {"pattern": "a|\\?"}, {"sequence": ["a", "a"]}):
        assert await turns_given(ask("structure", settings, said(text))) >= 10


async def test_a_line_is_told_by_its_beginning() -> None:
    assert (await ask("structure", {"count": "bullets"}, said("- " + "a" * 100_000 + "\n- b"))).value == 2
    assert (await ask("structure", {"count": "tables"}, said("|-" * LINE_CHARACTERS + "x"))).value == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "one of count, pattern and sequence"),
        ({"count": "lines", "pattern": "x"}, "one of count, pattern and sequence"),
        ({"count": "line"}, "count"),
        ({"pattern": "(x"}, r"pattern: missing \)"),
        ({"pattern": "x*"}, "empty text"),
        ({"sequence": ["x"]}, "at least 2"),
        ({"sequence": ["x", "(y"]}, r"sequence\[1\]: missing \)"),
        ({"count": "lines", "min": 2, "max": 1}, "min is greater than max"),
        ({"count": "lines", "min_per_1000_chars": 2, "max_per_1000_chars": 1}, "min_per_1000_chars is greater"),
        ({"count": "lines", "minimum": 1}, "Extra inputs"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        StructureSettings.model_validate(settings)


@given(st.text(max_size=60), st.sampled_from(sorted(COUNTERS)))
async def test_every_text_has_a_count(text: str, what: str) -> None:
    observation = await ask("structure", {"count": what}, said(text))
    assert observation.status == "observed"
    assert observation.value is not None
    # Compatibility characters are read as what they stand for: a vulgar fraction is two numbers.
    assert 0 <= observation.value <= max(len(text), len(visible(text)))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), values, min_size=1, max_size=4), st.integers(0, 2))
async def test_any_object_is_one_block(document: dict[str, Any], indent: int) -> None:
    text = f"before {json.dumps(document, indent=indent or None, ensure_ascii=indent == 1)} after"
    assert (await ask("structure", {"count": "json_blocks"}, said(text))).value == 1
