from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.signals.mrz import MrzFinder, check_digit

# Doc 9303's own specimens.
TD3 = "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10"
TD2 = "I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<\nD231458907UTO7408122F1204159<<<<<<<6"
TD1 = "I<UTOD231458907<<<<<<<<<<<<<<<\n7408122F1204159UTO<<<<<<<<<<<6\nERIKSSON<<ANNA<MARIA<<<<<<<<<<"
MRV_A = "V<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL8988901C4XXX4009078F96121096ZE184226B<<<<<<"
MRV_B = "V<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<\nL8988901C4XXX4009078F9612109<<<<<<<<"
ALL = [TD3, TD2, TD1, MRV_A, MRV_B]


def scores(text: str) -> list[float]:
    return [zone.score for zone in MrzFinder().find(text.encode())]


@pytest.mark.parametrize("zone", ALL)
def test_every_layout_is_found_with_near_certainty(zone: str) -> None:
    assert max(scores(zone)) >= 0.95


@pytest.mark.parametrize("zone", ALL)
@pytest.mark.parametrize(
    "around", ["{}", "here: {} thanks", '{{"mrz": "{}"}}', "```\n{}\n```", "long text. " * 50 + "\n{}\n"]
)
def test_a_zone_is_found_inside_other_text(zone: str, around: str) -> None:
    assert scores(around.format(zone))


@pytest.mark.parametrize("zone", ALL)
@pytest.mark.parametrize("line_break", ["\r\n", " \n", "\\n", "\n\n"])
def test_lines_may_be_broken_in_any_way(zone: str, line_break: str) -> None:
    assert scores(zone.replace("\n", line_break))


def test_lower_case_is_a_zone_too() -> None:
    assert scores(TD3.lower())


def test_the_range_is_the_line_with_the_check_digits() -> None:
    text = f"x {TD3} y"
    assert {text[zone.start : zone.end] for zone in MrzFinder().find(text.encode())} == {TD3.split("\n")[1]}


@pytest.mark.parametrize(
    "misread",
    [
        "L898902C36UT07408122F1204159ZE184226B<<<<<10",
        "L898902C36UTO74O8122F1204159ZE184226B<<<<<10",
        "L898902C36UTO7408I22F1204159ZE184226B<<<<<10",
        "L898902C36UTO7408122F12041S9ZE184226B<<<<<10",
        "L8989O2C36UTO7408122F1204159ZE184226B<<<<<10",
        "LB98902C36UTO7408122F1204159ZE184226B<<<<<10",
        "L898902C36 UTO 7408122F 1204159ZE184226B <<<<<10",
        "L 898902C36UTO7408122F1204159ZE184226B<<<<<10",
        "L898902C3bUTO7408122F1204159ZE184226B<<<<<10",
        "L898902C36UTO7408122F1204159ZE184226B<<<<<lo",
    ],
)
def test_what_a_reader_confuses_is_put_right_where_check_digits_hold(misread: str) -> None:
    assert scores(misread)


@pytest.mark.parametrize(
    "misread",
    [
        TD1.replace("I<UTO", "|<UT0"),
        TD1.replace("I<UTO", "l<UTO"),
        TD1.replace("<<<\n", "<<\n", 1),
        TD1.replace("UTO<<<", "UTO<<"),
    ],
)
def test_fillers_may_be_miscounted_on_a_card(misread: str) -> None:
    assert scores(misread) == [0.99]


@pytest.mark.parametrize("before", ["370 Be", "words", "3"])
def test_a_card_is_found_where_a_reader_joined_it_to_what_stands_beside_it(before: str) -> None:
    assert set(scores(before + TD1)) == {0.99}


@pytest.mark.parametrize(
    ("between", "before"), [("\n", "74316 S "), ("\n", "of1994"), (" 1 file changed\n", ""), (" total\n", "2 ")]
)
def test_a_card_is_found_where_its_lines_were_joined_to_what_stands_beside_them(between: str, before: str) -> None:
    assert set(scores(TD1.replace("\n", between + before, 1))) == {0.99}


@pytest.mark.parametrize("before", ["useClo", "7", "<div>a"])
def test_a_passport_is_found_where_its_line_was_joined_to_what_stands_left_of_it(before: str) -> None:
    assert set(scores(before + TD3.split("\n")[1])) == {0.99}


def test_a_line_that_begins_in_the_middle_of_something_needs_all_check_digits() -> None:
    line = TD3.split("\n")[1]
    assert scores(f"a{line[:-1]}7") == []
    assert scores(f"a{MRV_A.split(chr(10))[1]}") == []


@pytest.mark.parametrize("place", [1, 3, 9, 14, 19, 22, 27])
def test_a_wrong_digit_is_no_zone(place: int) -> None:
    line = TD3.split("\n")[1]
    wrong = line[:place] + ("7" if line[place] != "7" else "4") + line[place + 1 :]
    assert scores(wrong) == []


def test_a_month_that_there_is_not_is_no_zone() -> None:
    birth = "741312"
    line = f"L898902C36UTO{birth}{check_digit(birth)}F1204159ZE184226B<<<<<10"
    assert scores(line) == []


def test_an_unknown_day_of_birth_is_allowed() -> None:
    birth = "7408<<"
    assert scores(f"L898902C36UTO{birth}{check_digit(birth)}F1204159ZE184226B<<<<<10")


def test_a_long_document_number_runs_on_into_optional_data() -> None:
    number = "D23145890734"
    head, tail = number[:9], number[9:]
    optional = f"{tail}{check_digit(head + '<' + tail)}".ljust(15, "<")
    composite = check_digit(f"{head}<{optional}74081221204159<<<<<<<<<<<")
    assert scores(f"I<UTO{head}<{optional}\n7408122F1204159UTO<<<<<<<<<<<{composite}") == [0.99]


@given(st.text("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ<", min_size=1, max_size=20), st.integers(0, 19))
def test_a_check_digit_tells_a_changed_digit(field: str, place: int) -> None:
    place %= len(field)
    if field[place].isdigit():
        changed = field[:place] + str((int(field[place]) + 1) % 10) + field[place + 1 :]
        assert check_digit(changed) != check_digit(field)


@given(st.text("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ< \n", max_size=200))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for zone in MrzFinder().find(text.encode()):
        assert 0 <= zone.start < zone.end <= len(text)
