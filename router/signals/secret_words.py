"""Secrets without a shape of their own: what a password, key or token is set to; and what only stands for a secret.

A value counts where a name like `db_password` or `api_key`, or that of a vendor of keys, stands before it, with a sign
of assignment between, and where it looks as if nobody made it up: high entropy, letters and digits mixed. Passwords
that stand in the files and commands of some tools are in `secret_tools.py`. Names of variables, words, paths and
references to a secret that is elsewhere are no secrets.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import re2

from router.signals.secret_vendors import NAMES

# Readers of images take the letter O for the digit.
_WORDS_FOR_PASSWORDS: Final = (
    r"passw(?:[o0]r)?d|passw[o0]rt|passphrase|passc[o0]de|pwd|c[o0]ntrase(?:n|\?)a|m[o0]t de passe"
)
_KEY: Final = (
    r"(?:api|access|auth|secret|private|client|encrypti[o0]n|encrypt|signing|sign|service|acc[o0]unt|db|database|st[o0]rage"
    r"|master|app|applicati[o0]n|shared|license|licence|admin|depl[o0]y|sessi[o0]n|jwt|hmac)[_. -]?keys?"
    r"|t[o0]kens?|secrets?|credentials?|api[_-]?hash|auth[o0]rizati[o0]n|bearer|(?:access|devops|git[a-z]{3})[_-]pat|keys?"
)
_NAME: Final = rf"(?i:(?:{_WORDS_FOR_PASSWORDS}|[_.-]pass)|({_KEY}))[A-Za-z0-9_-]{{0,24}}(?:\[\d{{0,4}}\])?"
_SIGN: Final = r"(?:\s{0,8}(?::=|=>|={1,3}|:|<-)\s{0,8}| is | was |\s{0,2},\s{0,4}|\()(?:@|[A-Za-z_.]{1,24}\()?"
_OPENING: Final = r"(?:(?i:bearer|basic|token) )?\\?([\"'`]?)(?:(?i:bearer|basic|token) )?"
_VALUE: Final = r"([^\s\"'`\\,;<>(){}\[\]|]{1,256}(?:[(\[{<][^\s\"'`]{0,40})?)"
_ASSIGNED: Final = rf"{_NAME}\\?[\"'`\]]{{0,3}}{_SIGN}{_OPENING}{_VALUE}"
_OF_VENDOR: Final = (
    rf"(?i:(?:^|[^A-Za-z0-9])(?:{NAMES})(?:[_. -]?(?:api|rest|app|client|user|personal|service|account|auth|oauth"
    r"|access|secret|private|token|key|pat|admin|production|prod|dev|test|live|v\d)){0,5})"
    rf"\\?[\"'`\]]{{0,3}}{_SIGN}{_OPENING}([A-Za-z0-9_=-]{{20,256}})(?:[^A-Za-z0-9_=./:@-]|$)"
)
_CURL: Final = r"(?:-u|--user)[ =]{0,2}[\"']?(?:[^\s:\"']{0,128}[\"']?:[\"']?([^\s\"']{3,128})|([^\s:\"']{8,128}):)"
_LISTED: Final = (
    rf"(?i:(?:{_WORDS_FOR_PASSWORDS}|secret|t[o0]ken|credential)s?)[A-Za-z0-9_-]{{0,24}}[\"']?"
    r"[ \t]{0,4}[:=][ \t]*\r?\n"
    r"((?:[ \t]+(?:- +)?[^\s:]{6,64}[ \t\r]*(?:\n|$)){1,8})"
)
_QUOTED: Final = r"[\"'`=]([A-Za-z0-9+/_-]{32,256}={0,2})(?:[\"'`\s]|$)"

# Names that hold something public, or something about the secret.
_PUBLIC: Final = re.compile(
    r"(?i)public|csrf|xsrf|_type|type$|_?name$|_?id$|_?ids$|count|limit|length|len$|size|max|min_|num|hash|digest|checksum"
    r"|sha\d|md5|url|uri$|path|file|dir$|field|label|placeholder|hint|prompt|usage|expir|ttl|audience|scope|issuer|version"
    r"|format|policy|rule|pattern|regex|tokeniz|token_?at|combination|manager|provider|vault|store|ref$|arn$|index|ring"
)

# Fills the place of a secret.
_FILLER: Final = re.compile(
    r"(?i)x{4}|\*{3}|\.{3}|0{6}|1{6}|(?:^|[^a-z])(?:your|insert|replace|todo|fixme|redacted|removed|undefined)"
)

# Has a secret's form and says itself that it is none.
_SPECIMEN: Final = re.compile(
    r"(?i)example|placeholder|change.?me|not.?a?.?secret|foo.?bar|lorem|[_-]here|abcdef|abc123|qwerty|12345678|test.?test"
    r"|deadbeef.?dead|(?:^|[^a-z])(?:dummy|sample|fake)|(?:my|some|the)[_-]?(?:secret|token|key|password|pass)(?:$|[^a-z])"
)
_WORDS_FOR_IT: Final = frozenset({
    "pass", "passwd", "password", "passwords", "pwd", "secret", "token", "key", "apikey", "user", "username",
    "login", "none", "null", "nil", "true", "false", "string", "str", "text", "int", "bool", "required", "optional",
    "value", "bearer", "basic", "test", "admin", "root", "credentials", "credential", "auth", "empty", "hidden",
    "unknown", "os", "self", "this", "env", "process", "config", "settings", "getenv", "input", "prompt",
})  # fmt: skip
_REFERENCE: Final = re.compile(
    r"^[$%<{\[(&@#]|\$\{|\{\{|%\(|%s|<[^>]*>|\(\)|^(?:process|os|env|self|this|config|settings|secrets|vars?|data|var)\."
    r"|://|^/|^\.\.?/|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\(?|::|->"
)
_PASSWORD: Final = re.compile(rf"(?i){_WORDS_FOR_PASSWORDS}|[_.-]pass\d*$")
_SAYS_KEY: Final = re.compile(r"(?i)key|token|secret|pat$|auth")
_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_PIECES: Final = re.compile(r"[^A-Za-z0-9]+")
_TURNS: Final = re.compile(r"[A-Za-z](?=[0-9])|[0-9](?=[A-Za-z])")

_MERELY_KEYS: Final = ("key", "keys")
_MORE_THAN_KEYS: Final = re.compile(rf"(?i){_KEY.removesuffix('|keys?')}")

_RANDOM_LENGTH: Final = 16
_RANDOM_TURNS: Final = 3
"""Changes between letters and digits in one piece of a value from which on nobody thought it up as a name."""

_RANDOM_ENTROPY: Final = 3.0

_SMALL: Final = re.compile(r"[a-z]+")
_MIXED_LENGTH: Final = 20
_MIXED_RUNS: Final = 4
_MIXED_RUN: Final = 2.2
"""Small letters in a row, on average, at most: in random letters of either case there are two, in words some five."""

_KEY_ENTROPY: Final = 4.0
_BARE_ENTROPY: Final = 4.3
"""Bits a character: 40 random characters of 64 have about 4.8, hexadecimal digits at most 4, English about 4."""


def entropy(text: str) -> float:
    """Shannon's entropy of the characters, in bits a character."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values())


def is_filler(value: str) -> bool:
    """Whether the value only shows where a secret goes."""
    bare = value.strip("<>[]{}()*_-.:!?\"'")
    return bare.lower() in _WORDS_FOR_IT or len(set(bare)) < 3 or _FILLER.search(value) is not None


def is_specimen(value: str) -> bool:
    """Whether the value shows what a secret looks like, and says so."""
    return _SPECIMEN.search(value) is not None or _is_sequence(value)


def is_placeholder(value: str) -> bool:
    """Whether a password or key without a shape is a filler, a specimen or a reference to one that is elsewhere."""
    return is_filler(value) or is_specimen(value) or _REFERENCE.search(value) is not None


def looks_random(value: str) -> bool:
    """Whether it looks as if a machine made it."""
    if len(value) < _RANDOM_LENGTH or entropy(value) < _RANDOM_ENTROPY:
        return False
    pieces = _PIECES.split(value)
    return max(len(_TURNS.findall(piece)) for piece in pieces) >= _RANDOM_TURNS or any(map(_is_of_mixed_case, pieces))


def _is_of_mixed_case(piece: str) -> bool:
    """Whether capitals stand among small letters as nobody writes them: words have longer runs of small ones."""
    runs = _SMALL.findall(piece)
    small = sum(map(len, runs))
    return len(piece) >= _MIXED_LENGTH and len(runs) >= _MIXED_RUNS and small <= _MIXED_RUN * len(runs)


class AssignmentFinder:
    """Finds values that are set to something secret by name; made once, because patterns are compiled."""

    def __init__(self) -> None:
        self._assigned = re2.compile(_ASSIGNED)
        self._of_vendor = re2.compile(_OF_VENDOR)
        self._curl = re2.compile(_CURL)
        self._listed = re2.compile(_LISTED)
        self._words = re2.compile(r"[^\s\"'`,;-][^\s\"'`,;]{5,63}")
        self._quoted = re2.compile(_QUOTED)

    def find(self, data: bytes) -> Iterator[tuple[int, int, str, float]]:
        """Half-open ranges with label and score."""
        for hit in self._of_vendor.finditer(data):
            if score := _vendor_score(hit):
                yield *hit.span(2), "Key of a vendor", score
        for hit in self._assigned.finditer(data):
            if score := _assigned_score(data, hit):
                label = "Password" if hit.group(1) is None else "Keyword and Entropy"
                yield *hit.span(3), label, score
        for hit in self._curl.finditer(data):
            # A key may stand in the user's place, with no password.
            group = 1 if hit.group(1) else 2
            password = _bare(hit.group(group).decode())
            if b"curl" in data[max(hit.start() - 300, 0) : hit.start()] and not is_placeholder(password):
                yield *hit.span(group), "Password", 0.8 if is_mixed(password) else 0.5
        for hit in self._listed.finditer(data):
            for word in self._words.finditer(data, *hit.span(1)):
                value = word.group().decode()
                if is_mixed(value) and not is_placeholder(value):
                    yield *word.span(), "Password", 0.7
        for hit in self._quoted.finditer(data):
            value = hit.group(1).decode()
            if looks_random(value) and entropy(value) >= _BARE_ENTROPY and not is_placeholder(value):
                yield *hit.span(1), "High Entropy", 0.4


def _bare(value: str) -> str:
    """What stands in braces that nobody filled in; a template's name stays there."""
    inner = value.strip("{}")
    return inner if value.startswith("{") and not value.startswith("{{") and len(_TURNS.findall(inner)) > 3 else value


def _vendor_score(hit: Any) -> float:
    value, name = hit.group(2).decode(), hit.group()[: hit.start(2) - hit.start()].decode().rstrip("\\\"'`:=>([, @")
    if is_placeholder(value):
        return 0.0
    says_key = _SAYS_KEY.search(name) is not None
    if _UUID.fullmatch(value):
        return 0.7 if says_key else 0.0
    return (0.8 if says_key else 0.7) if looks_random(value) else 0.0


def _assigned_score(data: bytes, hit: Any) -> float:
    value = hit.group(3).decode()
    name = _name(data, hit.start(), hit.start(2))
    quoted = bool(hit.group(2))
    if is_placeholder(value) or _PUBLIC.search(name) is not None:
        return 0.0
    if _UUID.fullmatch(value):
        return 0.4
    if hit.group(1) is None:
        if _PASSWORD.search(name) is None:
            return 0.0
        if len(value) < 6 or not is_mixed(value):
            return 0.4 if quoted and len(value) >= 8 else 0.0
        return 0.8 if quoted or looks_random(value) else 0.7
    if not looks_random(value):
        return 0.0
    # All kinds of things have keys.
    if name.lower().endswith(_MERELY_KEYS) and _MORE_THAN_KEYS.search(name) is None:
        return 0.65 if quoted and entropy(value) >= _KEY_ENTROPY else 0.4
    return 0.8


def _name(data: bytes, start: int, end: int) -> str:
    """The whole name that is assigned to, from what stands before the word that was found."""
    begin = start
    while begin > max(start - 40, 0) and (data[begin - 1 : begin].isalnum() or data[begin - 1 : begin] in b"_-."):
        begin -= 1
    return data[begin:end].decode().rstrip("\\\"'`:=>([, @")


def is_mixed(value: str) -> bool:
    """Whether it has letters, and digits or signs among or behind them, as passwords have."""
    letters = sum(char.isalpha() for char in value)
    return 0 < letters < len(value) and (
        any(map(str.isdigit, value)) or any(char in "!@#$%^&*+~" for char in value[:-1])
    )


def _is_sequence(value: str) -> bool:
    """Whether most characters are the next one after their neighbour, or the same."""
    steps = sum(ord(b) - ord(a) in (0, 1) for a, b in pairwise(value))
    return len(value) > 5 and steps > 0.6 * (len(value) - 1)
