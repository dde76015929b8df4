"""Which numbers of cards, accounts, persons and networks there can be: checksums, and who gives out what.

Pure rules about strings of digits and letters that have already been cut out of a text.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

# First digits of card numbers and how long numbers with them are (ISO/IEC 7812-1; ranges as the schemes publish them).
_ISSUERS: Final[Sequence[tuple[range, int, frozenset[int]]]] = (
    (range(4, 5), 1, frozenset({13, 16, 19})),
    (range(51, 56), 2, frozenset({16})),
    (range(2221, 2721), 4, frozenset({16})),
    (range(34, 35), 2, frozenset({15})),
    (range(37, 38), 2, frozenset({15})),
    (range(6011, 6012), 4, frozenset({16, 17, 18, 19})),
    (range(644, 660), 3, frozenset({16, 17, 18, 19})),
    (range(300, 306), 3, frozenset({14, 16, 17, 18, 19})),
    (range(36, 37), 2, frozenset({14, 16, 17, 18, 19})),
    (range(38, 40), 2, frozenset({14, 16, 17, 18, 19})),
    (range(3528, 3590), 4, frozenset({16, 17, 18, 19})),
    (range(2131, 2132), 4, frozenset({15})),
    (range(1800, 1801), 4, frozenset({15})),
    (range(62, 63), 2, frozenset({16, 17, 18, 19})),
    (range(81, 82), 2, frozenset({16, 17, 18, 19})),
    (range(2200, 2205), 4, frozenset({16, 17, 18, 19})),
    (range(50, 51), 2, frozenset(range(12, 20))),
    (range(56, 70), 2, frozenset(range(12, 20))),
)

# Lengths of IBANs by country, from SWIFT's IBAN registry.
IBAN_LENGTHS: Final = {
    code: int(length)
    for length, codes in {
        "15": "NO", "16": "BE BI", "18": "DK FI FO GL NL SD FK", "19": "MK SI", "20": "AT BA EE KZ LT LU XK MN",
        "21": "CH HR LI LV", "22": "BG BH CR DE GB GE IE ME RS VA", "23": "AE GI IL IQ OM SO TL",
        "24": "AD CZ ES MD PK RO SA SE SK TN VG", "25": "LY PT ST", "26": "IS TR", "27": "FR GR IT MC MR SM DJ",
        "28": "AL AZ CY DO GT HU LB NI PL SV BY YE", "29": "BR EG PS QA UA", "30": "JO KW MU", "31": "MT SC",
        "32": "LC", "33": "RU",
    }.items()
    for code in codes.split()
}  # fmt: skip

# Numbers that were printed in advertisements or stand in every manual, and were never or are no longer anybody's.
SPECIMEN_SSNS: Final = frozenset({"078051120", "219099999", "123456789", "111111111", "123121234"})

# Luhn's doubling, with the digits of what becomes two summed up.
_DOUBLED: Final = dict(zip("0123456789", (0, 2, 4, 6, 8, 1, 3, 5, 7, 9), strict=True))

# RFC 5737: for documentation, and nobody's.
_DOCUMENTATION: Final = tuple(map(ipaddress.IPv4Network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")))


def holds_mod_97(iban: str) -> bool:
    """ISO 7064 mod 97-10, with the first four characters moved to the end and letters as 10 to 35."""
    return int("".join(str(int(char, 36)) for char in iban[4:] + iban[:4])) % 97 == 1


def holds_luhn(number: str) -> bool:
    """ISO/IEC 7812-1, annex B."""
    return (sum(map(int, number[-1::-2])) + sum(_DOUBLED[digit] for digit in number[-2::-2])) % 10 == 0


def issued(number: str) -> bool:
    """Whether an issuer has numbers that begin like this and are as long."""
    return any(len(number) in lengths and int(number[:digits]) in first for first, digits, lengths in _ISSUERS)


def never_given(ssn: str) -> bool:
    """Whether nobody has that social security number (20 CFR 422.103; SSA's randomisation of 2011)."""
    return ssn[:3] in {"000", "666"} or ssn[0] == "9" or ssn[3:5] == "00" or ssn[5:] == "0000"


def of_nobody(address: str) -> bool:
    """Whether an IPv4 or IPv6 address tells nobody from anybody else outside a network of one's own.

    Private ones (RFC 1918, 4193), of the machine itself, of a link, and of manuals (RFC 5737, 3849). Raises ValueError
    for what is no address.
    """
    return ipaddress.ip_address(address).is_private


def ipv4_score(address: str) -> float:
    """How likely such digits are the address of somebody's machine, 0-1; 0 where they are no address."""
    try:
        ip = ipaddress.IPv4Address(address)
    except ValueError:
        return 0.0
    if ip.is_loopback or ip.is_unspecified or ip.is_multicast or address.startswith("255.") or int(ip) % 256 == 0:
        return 0.05
    if any(ip in network for network in _DOCUMENTATION):
        return 0.15
    # Numbered sections and versions look like this.
    return 0.3 if all(len(octet) == 1 for octet in address.split(".")) else 0.8


def ipv6_score(address: str) -> float:
    """How likely such groups are the address of somebody's machine, 0-1; 0 where they are no address."""
    try:
        ip = ipaddress.IPv6Address(address)
    except ValueError:
        return 0.0
    if ip.is_loopback or ip.is_unspecified or ip.is_multicast:
        return 0.05
    # A name such as `a::b` in a program is a valid address too.
    return 0.8 if len([group for group in address.split(":") if group]) >= 4 else 0.3
