"""Machine readable zones as ICAO Doc 9303 sets them: TD3 for passports, TD1 for cards, with true check digits."""

from __future__ import annotations

import unicodedata

WEIGHTS = (7, 3, 1)
_SPECIAL = {"Ä": "AE", "Ö": "OE", "Ü": "UE", "ß": "SS", "Ø": "OE", "Å": "AA", "Æ": "AE", "Ñ": "N"}


def plain(text: str, length: int) -> str:
    """Letters A to Z and digits, everything else a filler, cut or filled to the length."""
    upper = "".join(_SPECIAL.get(letter, letter) for letter in text.upper())
    bare = unicodedata.normalize("NFKD", upper)
    kept = "".join(c if c.isascii() and c.isalnum() else "<" for c in bare if not unicodedata.combining(c))
    return kept[:length].ljust(length, "<")


def check_digit(text: str) -> str:
    """Weights 7, 3, 1; letters count from 10, fillers are 0."""
    total = 0
    for index, letter in enumerate(text):
        if letter.isdigit():
            value = int(letter)
        elif letter == "<":
            value = 0
        else:
            value = ord(letter) - ord("A") + 10
        total += value * WEIGHTS[index % 3]
    return str(total % 10)


def _dated(date: tuple[int, int, int]) -> str:
    year, month, day = date
    return f"{year % 100:02d}{month:02d}{day:02d}"


def names(surname: str, given: str, length: int) -> str:
    """Surname, two fillers, given names."""
    return plain(f"{plain(surname, len(surname)).rstrip('<')}<<{given.replace(' ', '<')}", length)


def td3(
    country: str,
    surname: str,
    given: str,
    number: str,
    born: tuple[int, int, int],
    sex: str,
    expires: tuple[int, int, int],
) -> tuple[str, str]:
    """The two lines of 44 of a passport."""
    first = "P<" + plain(country, 3) + names(surname, given, 39)
    document = plain(number, 9)
    personal = "<" * 14
    document += check_digit(document)
    birth = _dated(born) + check_digit(_dated(born))
    expiry = _dated(expires) + check_digit(_dated(expires))
    second = document + plain(country, 3) + birth + sex + expiry + personal + "0"
    return first, second + check_digit(document + birth + expiry + personal + "0")


def td1(
    code: str,
    country: str,
    surname: str,
    given: str,
    number: str,
    born: tuple[int, int, int],
    sex: str,
    expires: tuple[int, int, int],
) -> tuple[str, str, str]:
    """The three lines of 30 of a card."""
    document = plain(number, 9)
    first = plain(code, 2) + plain(country, 3) + document + check_digit(document) + "<" * 15
    birth = _dated(born) + check_digit(_dated(born))
    expiry = _dated(expires) + check_digit(_dated(expires))
    second = birth + sex + expiry + plain(country, 3) + "<" * 11
    second += check_digit(first[5:30] + birth + expiry + "<" * 11)
    return first, second, names(surname, given, 30)
