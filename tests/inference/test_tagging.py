"""Windows of tokens merged, tokens joined to words, words to spans: the laws, without a model."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from router.inference.tagging import merge_windows, scheme_of, spans_of
from router.inference.tokens import Tokens


@given(count=st.integers(1, 60), body=st.integers(2, 12), stride=st.integers(1, 12))
def test_a_token_is_told_by_the_window_that_shows_most_around_it(count: int, body: int, stride: int) -> None:
    stride = min(stride, body)
    windows = 1 + -(-max(count - body, 0) // stride)
    starts = tuple(index * stride for index in range(windows))
    ends = tuple(min(start + body, count) for start in starts)
    places = np.stack([np.arange(count), np.arange(1, count + 1)], axis=1).astype(np.int32)
    tokens = Tokens(np.zeros(count, np.int32), starts, ends, tuple(zip(starts, ends, strict=True)), places)
    bodies = [np.full((end - start, 1), i, np.float32) for i, (start, end) in enumerate(zip(starts, ends, strict=True))]
    told = merge_windows(tokens, bodies)[:, 0].astype(int).tolist()

    def shown(window: int, token: int) -> int:
        before = token - starts[window] if starts[window] else count
        after = ends[window] - 1 - token if ends[window] < count else count
        return min(before, after)

    for token, window in enumerate(told):
        covering = [i for i in range(windows) if starts[i] <= token < ends[i]]
        assert window in covering
        assert shown(window, token) == max(shown(i, token) for i in covering)


def test_labels_with_chunks_of_every_scheme_are_told_apart() -> None:
    scheme = scheme_of(["O", "B-PER", "I-PER", "S-LOC", "U-ORG", "L-ORG", "E_MAIL", "plain", "I-in-law"])
    assert scheme.names == ("LOC", "MAIL", "ORG", "PER", "in-law", "plain")
    assert scheme.starts.tolist() == [False, True, False, True, True, False, False, False, False]


labels = ["O", "B-A", "I-A", "B-C", "I-C"]


tagged_words = st.lists(
    st.tuples(st.sampled_from(["word", "ab", "-", "é", "漢", "🙂"]), st.integers(0, len(labels) - 1)), max_size=30
)


@given(tagged_words, st.text(" \n\t", min_size=1, max_size=2))
def test_spans_are_in_order_apart_trimmed_and_of_a_kind(words: list[tuple[str, int]], gap: str) -> None:
    text, ranges = "", []
    for word, _ in words:
        ranges.append((len(text), len(text) + len(word)))
        text += word + gap
    rows = np.full((len(words), len(labels)), 0.05, np.float32)
    for row, (_, label) in zip(rows, words, strict=True):
        row[label] = 0.8
    spans = spans_of(text, np.array(ranges, np.int32).reshape(-1, 2), rows, scheme_of(labels))
    place = 0
    for span in spans:
        assert place <= span.start < span.end <= len(text)
        assert text[span.start : span.end] == text[span.start : span.end].strip()
        assert span.label in ("A", "C")
        assert 0.5 < span.score <= 1
        place = span.end
    tagged = [labels[label][-1] for _, label in words]
    begun = [label in (1, 3) for _, label in words]
    runs = sum(
        kind != "O" and (index == 0 or tagged[index - 1] != kind or begun[index]) for index, kind in enumerate(tagged)
    )
    assert len(spans) == runs
