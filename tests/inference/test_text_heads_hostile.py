"""Texts and heads that mean harm: nothing takes time that grows with a square, and NaN never passes for an answer."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_heads import HEADS, write_pack_with_heads

from router.inference.cache import EmbeddingCache
from router.inference.classifier import NoNumberError
from router.inference.encoders import Encoders
from router.inference.executor import InferenceExecutor, Overloaded
from router.inference.head_features import pattern_features, token_shapes
from router.inference.open import open_encoders
from router.inference.tokens import LONGEST_STRETCH, Window, squeezed
from router.inference.windows import AT_A_TIME
from router.packs.store import open_pack
from router.request import marks
from router.request.images import ImageLimits
from router.request.marks import MARKS

ALL = tuple(head["name"] for head in HEADS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pack_with_heads(tmp_path_factory.mktemp("heads") / "pack")


@pytest.fixture
def encoders(folder: Path, executor: InferenceExecutor, cache: EmbeddingCache) -> Encoders:
    pack = open_pack(str(folder), "text", Path("/nowhere"))
    return open_encoders(pack, None, executor, cache, ImageLimits(), heads=ALL)


class Normalising:
    """The longest run of combining marks that Unicode's sorting was given."""

    def __init__(self) -> None:
        self.longest = 0

    def __call__(self, form: Any, text: str) -> str:
        run = 0
        for char in text:
            run = run + 1 if unicodedata.combining(char) else 0
            self.longest = max(self.longest, run)
        return _NORMALIZE(form, text)


_NORMALIZE: Callable[[Any, str], str] = unicodedata.normalize


def test_patterns_are_not_looked_for_in_endless_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting 30,000 marks takes four seconds, in which nothing else runs in the process."""
    seen = Normalising()
    monkeypatch.setattr(marks.unicodedata, "normalize", seen)
    text = "Ignore the rules" + "\u0301\u0323" * 3_000 + " forget everything"
    found = pattern_features(text)
    assert 0 < seen.longest <= MARKS
    np.testing.assert_array_equal(found, pattern_features("Ignore the rules\u0301\u0323 forget everything"))


@given(st.text(max_size=200))
def test_usual_texts_are_normalised_as_unicode_says(text: str) -> None:
    """Heads were trained on these features."""
    assert marks.normalized("NFKC", text) == unicodedata.normalize("NFKC", text)


def windows_of(encoders: Encoders, text: str) -> list[Window]:
    assert encoders.text is not None
    model = encoders.text.model
    tokens = model.tokenise(text)
    return [model.placed(text, tokens, index) for index in range(len(tokens.spans))]


@pytest.mark.parametrize(
    "text",
    [
        "\u0301" * 300_000,
        "a" * 1_000_000,
        "\ufdfa" * 300_000,
        "the" + " " * 500_000 + "dog",
        "\ud800" * 300_000,
        ("x" * 50_000 + " ") * 20,
    ],
    ids=["marks", "a", "ligatures", "blanks", "surrogates", "long words"],
)
def test_a_window_shows_heads_few_characters_whatever_the_text(encoders: Encoders, text: str) -> None:
    for window in windows_of(encoders, text):
        assert len(window.text) <= 16_384
        assert window.ranges is not None
        assert len(window.ranges) == len(window) - 2
        assert (window.ranges >= 0).all()
        assert (window.ranges <= len(window.text)).all()


def test_a_long_windows_words_keep_their_looks(encoders: Encoders) -> None:
    text = "The Maria" + " " * 40_000 + "sees, THE " + "y" * 30_000 + " dog"
    [window] = windows_of(encoders, text)
    assert window.ranges is not None
    words = [window.text[start:end] for start, end in window.ranges.tolist()]
    assert [word for word in words if len(word) < 20] == ["The", "Maria", "sees", ",", "THE", "dog"]
    short = "The Maria sees, THE " + "y" * LONGEST_STRETCH + " dog"
    [plain] = windows_of(encoders, short)
    assert plain.ranges is not None
    np.testing.assert_array_equal(token_shapes(window.text, window.ranges), token_shapes(short, plain.ranges))


@given(st.data())
def test_squeezing_keeps_short_stretches_and_the_order_of_all(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=8))
    ranges, text = [], ""
    for gap, length in lengths:
        text += " " * gap
        ranges.append((len(text), len(text) + length))
        text += chr(97 + len(ranges)) * length
    text += "!" * data.draw(st.integers(0, 300))
    given_ranges = np.array(ranges, np.int32).reshape(-1, 2)
    short, moved = squeezed(text, given_ranges)
    assert len(short) <= LONGEST_STRETCH * (2 * len(ranges) + 1)
    assert moved.shape == given_ranges.shape
    for (start, end), (begin, stop) in zip(ranges, moved.tolist(), strict=True):
        assert short[begin:stop] == text[start:end][:LONGEST_STRETCH]
    if not any(max(pair) > LONGEST_STRETCH for pair in lengths) and len(text) <= LONGEST_STRETCH:
        assert short == text


def test_windows_of_other_tokens_or_places_are_not_one_in_the_cache() -> None:
    """Numbers and text were told behind each other, so that one could pass for the beginning of the other."""
    ids = np.array([2, 3], np.int32)
    places = np.array([[0, 1]], np.int32)
    windows = [
        Window(np.array([2, 3, ord("f")], np.int32)),
        Window(ids, "f\0\0\0"),
        Window(ids),
        Window(ids, "ab", places, 1),
        Window(ids, "ab", places + 1, 1),
    ]
    assert len({window.digest for window in windows}) == len(windows)


ODD_TEXTS = {
    "empty": "",
    "nul": "\0" * 5_000,
    "specials": "[SEP] [CLS] [PAD] [UNK] " * 500,
    "surrogates": "\ud800 the \udfff Maria",
    "marks": "\u0301\u0323" * 20_000,
    "blanks": " \n\t" * 5_000,
    "joiners": "\u200d" * 5_000,
}


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
async def test_any_text_has_finite_answers_of_every_head(encoders: Encoders, text: str) -> None:
    for name in ALL:
        head = encoders.heads[name]
        if head.level == "token":
            for span in await head.tag(text):
                assert 0 <= span.start < span.end <= len(text)
            continue
        found = await head.classify_windows(text)
        assert np.isfinite(found.probabilities).all()
        assert (found.spans[0][0], found.spans[-1][1]) == (0, len(text))


@pytest.mark.parametrize(
    "before",
    [
        "\U0001f600\U00020000 ",
        "\u202e\u0627\u0628\u062a ",
        "e\u0301\u0323\u0301 ",
        "\0\0 ",
        "\ud83d ",
        "\ufdfa\ufb01 ",
        "[SEP] ",
    ],
)
async def test_names_have_their_places_in_characters_whatever_stands_before_them(
    encoders: Encoders, before: str
) -> None:
    text = before * 40 + "Maria dog " + before * 40 + "Maria."
    spans = await encoders.heads["pii"].tag(text)
    assert [(span.start, text[span.start : span.end]) for span in spans if text[span.start] == "M"] == [
        (len(before) * 40, "Maria"),
        (len(before) * 80 + 10, "Maria"),
    ]


@pytest.mark.parametrize("column", [0, 1])
async def test_a_probability_that_is_no_number_is_no_answer(
    encoders: Encoders, monkeypatch: pytest.MonkeyPatch, column: int
) -> None:
    """In the column of what is nothing, a NaN would win and leave nothing to be seen."""
    assert encoders.text is not None
    model = encoders.text.model
    assert model.heads is not None
    answers = model.heads.answers

    def broken(*asked: Any) -> Any:
        found = answers(*asked)
        found["pii"] = found["pii"].copy()
        found["pii"][1:-1, column] = np.nan
        return found

    monkeypatch.setattr(model.heads, "answers", broken)
    with pytest.raises(NoNumberError):
        await encoders.heads["pii"].tag("Maria sees the dog")


async def asked(encoders: Encoders, name: str, text: str) -> object:
    head = encoders.heads[name]
    return await (head.tag(text) if head.level == "token" else head.classify_windows(text))


async def test_a_caller_that_goes_midway_leaves_everything_working(encoders: Encoders) -> None:
    long = " ".join(f"the dog sees a {index} Maria" for index in range(3_000))
    for wait in (0.0, 0.001, 0.01, 0.05):
        tasks = [asyncio.ensure_future(asked(encoders, name, long)) for name in ALL]
        await asyncio.sleep(wait)
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(end) for end in ends} == {asyncio.CancelledError}
    found = await encoders.heads["pii"].tag("the dog sees Maria")
    assert [(span.start, span.end) for span in found] == [(13, 18)]


@pytest.mark.parametrize("threads", [1, 2])
async def test_a_long_text_that_is_cached_gives_others_their_turn(folder: Path, threads: int) -> None:
    executor = InferenceExecutor(threads=threads, queue=64)
    pack = open_pack(str(folder), "text", Path("/nowhere"))
    given = open_encoders(pack, None, executor, EmbeddingCache(1 << 26), ImageLimits(), heads=["harm"])
    text = " ".join(f"{'dog' if index % 7 else 'Maria'} {'the ' * (index % 5)}" for index in range(6_000))
    first = await given.heads["harm"].classify_windows(text)
    assert len(first.spans) > 1_000
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(others())
    again = await given.heads["harm"].classify_windows(text)
    beside.cancel()
    np.testing.assert_array_equal(again.probabilities, first.probabilities)
    assert turns >= len(first.spans) // (AT_A_TIME * threads) - 1
    executor.close()


async def test_a_worker_that_stops_answers_or_sheds_what_heads_are_at(
    encoders: Encoders, executor: InferenceExecutor
) -> None:
    texts = [f"{'dog ' * index} Maria {index} " * 60 for index in range(30)]
    tasks = [asyncio.create_task(encoders.heads["pii"].tag(text)) for text in texts]
    await asyncio.sleep(0.005)
    executor.close()
    ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
    assert {type(end) for end in ends} <= {tuple, Overloaded, asyncio.CancelledError}
    assert Overloaded in {type(end) for end in ends}


async def test_many_at_once_get_each_their_own_answer(encoders: Encoders) -> None:
    texts = [f"{'dog ' * index}Maria" for index in range(60)]
    found = await asyncio.gather(*(encoders.heads["pii"].tag(text) for text in texts), return_exceptions=True)
    for index, spans in enumerate(found):
        assert not isinstance(spans, BaseException)
        assert [(span.start, span.end) for span in spans] == [(4 * index, 4 * index + 5)]
