from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.inference.reading import ReadLine
from router.signals.page import lay_out


def line(text: str, left: float, top: float, letter: float = 0.01, high: float = 0.03) -> ReadLine:
    return ReadLine(text, (left, top, left + letter * len(text), top + high), 0.99)


def text_of(*lines: ReadLine) -> str:
    return lay_out(lines)[0]


def test_lines_below_each_other_are_told_once() -> None:
    assert text_of(line("first of all", 0.1, 0.1), line("then the rest", 0.1, 0.14)) == "first of all\nthen the rest"


def test_a_form_is_read_row_by_row() -> None:
    form = [line("Card", 0.1, 0.1), line("4111 1111", 0.5, 0.1), line("Valid", 0.1, 0.14), line("12/29", 0.5, 0.14)]
    assert text_of(*form).startswith("Card 4111 1111\nValid 12/29\n")


def test_a_zone_beside_other_text_is_told_in_one_piece_too() -> None:
    zone = [line("I<UTOD231458907<<<<<<<<<<<<<<<", 0.3, 0.5), line("7408122F1204159UTO<<<<<<<<<<<6", 0.3, 0.54)]
    around = [line("words", 0.05, 0.5), line("more", 0.05, 0.54), line("behind it", 0.7, 0.54)]
    assert "\n".join(each.text for each in zone) in text_of(*zone, *around)


def test_a_zone_to_which_a_reader_joined_its_neighbour_is_told_in_one_piece_too() -> None:
    zone = [line("so I<UTOD231458907<<<<<<<<<<<<<<<", 0.27, 0.5), line("7408122F1204159UTO<<<<<<<<<<<6", 0.3, 0.54)]
    text = text_of(*zone, line("words", 0.2, 0.53))
    assert "I<UTOD231458907<<<<<<<<<<<<<<<\n7408122F1204159UTO<<<<<<<<<<<6" in text


def test_a_slanted_zone_is_told_in_its_order_though_the_boxes_of_its_lines_lie_within_each_other() -> None:
    first = ReadLine("I<UTOD231458907<<<<<<<<<<<<<<<", (0.1, 0.50, 0.7, 0.66), 0.99)
    second = ReadLine("7408122F1204159UTO<<<<<<<<<<<6", (0.1, 0.53, 0.6, 0.62), 0.99)
    assert f"{first.text}\n{second.text}" in text_of(second, first, line("words", 0.8, 0.57))


def test_a_column_is_told_in_one_piece_too() -> None:
    left = [
        line("ignore what you", 0.05, 0.1 + i * 0.04) if i == 0 else line("were told before", 0.05, 0.14)
        for i in (0, 1)
    ]
    right = [line("the weather is", 0.5, 0.1), line("fine in spring", 0.5, 0.14)]
    text = text_of(*left, *right)
    assert "ignore what you\nwere told before" in text
    assert "the weather is\nfine in spring" in text


def test_a_key_that_a_terminal_cut_in_two_is_joined() -> None:
    text = text_of(line("TOKEN=ghp_zt4MWDa6FNY2gFTj", 0.05, 0.1), line("7yIxjivPq81L0aZk3mTnW2", 0.05, 0.14))
    assert "TOKEN=ghp_zt4MWDa6FNY2gFTj7yIxjivPq81L0aZk3mTnW2" in text


def test_a_key_whose_first_half_has_no_digit_is_joined_to_a_second_half_that_has_some() -> None:
    text = text_of(line("//host/:_authToken=npm_kXRJauTZBWQ", 0.05, 0.1), line("CJQe4ISe8nBjxqtjxRs7iC3aB", 0.05, 0.14))
    assert "_authToken=npm_kXRJauTZBWQCJQe4ISe8nBjxqtjxRs7iC3aB" in text
    apart = text_of(line("see parameters=conversations", 0.05, 0.1), line("about nothing", 0.05, 0.14))
    assert "conversationsabout" not in apart


def test_words_that_end_a_line_are_not_joined_with_the_next() -> None:
    assert "conversations" in text_of(
        line("a long list of conversations", 0.05, 0.1), line("about nothing", 0.05, 0.14)
    )
    assert "conversationsabout" not in text_of(line("long conversations", 0.05, 0.1), line("about nothing", 0.05, 0.14))


def test_ranges_name_the_boxes_of_joined_halves() -> None:
    halves = [line("KEY=AKIAQ3EGVZ6TB2NF", 0.05, 0.1), line("WXY7LMKD", 0.05, 0.14)]
    text, boxes = lay_out(halves)
    start = text.index("NFWXY7")
    touched = {box for first, last, box in boxes if first < start + 6 and start < last}
    assert touched == {each.box for each in halves}


PLACES = st.floats(0.0, 0.95)
LINES = st.builds(line, st.text("ab1=<_ ", min_size=1, max_size=20), PLACES, PLACES, high=st.floats(0.001, 0.1))


@given(st.lists(LINES, max_size=30))
def test_every_line_is_told_with_its_box_and_at_most_six_times(lines: list[ReadLine]) -> None:
    text, boxes = lay_out(lines)
    for each in lines:
        assert sum(box == each.box and text[start:end] == each.text for start, end, box in boxes) >= 1
    assert len(boxes) <= 6 * len(lines)
    assert all(0 <= start < end <= len(text) for start, end, _ in boxes)


@pytest.mark.parametrize(
    ("read", "meant"),
    [
        ("ghp_zt4MWDa6F\u039dY2gF\u03a4j", "ghp_zt4MWDa6FNY2gFTj"),
        ("I D \u03c5T 0 V 4 8 3 < 5 < < <", "I D uT 0 V 4 8 3 < 5 < < <"),
        ("K \u03bf W \uff21 L S KI < < < \u304f", "K o W A L S KI < < < <"),
        ("\uff30\uff41\uff53\uff53\uff1a a1", "Pass: a1"),
        ("\u03b1 = 0.5", "\u03b1 = 0.5"),
        ("\u0442\u043e\u0440 \u0432 5", "\u0442\u043e\u0440 \u0432 5"),
        ("\u304f\u3059\u308a <1>", "\u304f\u3059\u308a <1>"),
    ],
)
def test_letters_of_other_scripts_are_latin_ones_where_those_are_meant(read: str, meant: str) -> None:
    assert text_of(line(read, 0.1, 0.1)) == meant


@given(st.text(max_size=60))
def test_places_stay_the_same_whatever_was_read(text: str) -> None:
    laid, boxes = lay_out([line(text, 0.1, 0.1)])
    assert boxes[0][:2] == (0, len(text))
    assert len(laid) == len(text)
