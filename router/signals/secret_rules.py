"""Credentials that have a shape of their own: keys with a prefix, tokens with a structure, passwords in URLs.

The rules of detect-secrets are taken from its plugins and compiled with RE2, which runs in linear time; its scanner
works on files and global settings, and is not used. What it has no rule for, or an older one, stands in
`secret_vendors.py`. Whether a match is a placeholder is for `secret_words.py` to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pybase64
import re2
from detect_secrets.plugins.artifactory import ArtifactoryDetector
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.cloudant import CloudantDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector

from router.signals.secret_vendors import SHAPES
from router.signals.secret_words import entropy, is_filler, is_specimen

# Not taken: public IP addresses, which are no secrets; keywords and entropy, which `secret_words.py` has with more
# regard to what stands around; private keys and JSON web tokens, whose contents are looked at below; passwords in URLs
# and Slack's tokens, of which ours know more kinds and fewer look-alikes.
_DETECTORS: Final[tuple[Any, ...]] = (
    ArtifactoryDetector,
    AWSKeyDetector,
    AzureStorageKeyDetector,
    CloudantDetector,
    DiscordBotTokenDetector,
    GitHubTokenDetector,
    GitLabTokenDetector,
    IbmCloudIamDetector,
    IbmCosHmacDetector,
    MailchimpDetector,
    NpmDetector,
    OpenAIDetector,
    PypiTokenDetector,
    SendGridDetector,
    SoftlayerDetector,
    SquareOAuthDetector,
    StripeDetector,
    TelegramBotTokenDetector,
    TwilioKeyDetector,
)

# RE2 looks neither behind nor ahead, and repeats at most a thousand times; what follows is checked afterwards.
_FOR_RE2: Final = (
    (r"(?:(?<=\W)|(?<=^))", r"(?:^|\W)"),
    (r"(?!\w)", ""),
    (r"(?![a-zA-Z0-9_\-])", ""),
    ("(?![a-f0-9])", ""),
    ("{50,1024}", "{50,}"),
)

_URL: Final = r"[A-Za-z][A-Za-z0-9+.-]{1,20}://([^\s/:@\"'<>`]{0,128}):([^\s/@\"'<>`]{3,128})@[A-Za-z0-9\[]"
_KEY_BLOCK: Final = r"-----BEGIN (?:[A-Z0-9]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d"
_BARE_BLOCK: Final = r"-{0,4} ?BEGIN ?(?:[A-Z0-9]{2,10} ?){0,2}PRIVATE ?KEY(?: ?BLOCK)?"
"""The same as readers of images leave it, which count dashes badly."""

_KEY_BODY: Final = re.compile(rb"[A-Za-z0-9+/=]{40}")
_JWT: Final = r"(eyJ[A-Za-z0-9_-]{10,})\.(eyJ[A-Za-z0-9_-]{8,})\.[A-Za-z0-9_-]{16,}"

SURE: Final = 0.95
"""Score of what has a vendor's own shape and is not a placeholder."""

SPECIMEN: Final = 0.5
"""Score of what has the shape and says that it is an example."""

_IN_URL: Final = 0.85
_LEAST_SECRET: Final = 20
_LEAST_ENTROPY: Final = 2.8
"""Bits a character of a key with a shape; what has less was typed by somebody who shows what a key looks like."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One shape: what it is called, and its pattern for bytes."""

    label: str
    pattern: Any

    def matches(self, data: bytes) -> Iterator[tuple[int, int, float]]:
        """Where it occurs and is no filler, as half-open ranges, with scores."""
        for hit in self.pattern.finditer(data):
            start, end = hit.span()
            # A long group is the secret, without the names that stand around it; a short one is its prefix.
            group = max(range(self.pattern.groups + 1), key=lambda g: len(hit.group(g) or b"") if g else _LEAST_SECRET)
            if group:
                start, end = hit.span(group)
            elif hit.group()[:1].isalnum() and data[max(start - 1, 0) : start].isalnum():
                continue
            if data[end : end + 1].isalnum():
                continue
            secret = data[start:end].decode()
            if entropy(secret) >= _LEAST_ENTROPY and not is_filler(secret):
                yield start, end, SPECIMEN if is_specimen(secret) else SURE


def shapes() -> tuple[Rule, ...]:
    """All rules, ours first."""
    ours = (Rule(label, re2.compile(pattern)) for label, pattern in SHAPES)
    theirs = (
        Rule(detector.secret_type, re2.compile(for_re2(pattern)))
        for detector in _DETECTORS
        for pattern in detector.denylist
    )
    return (*ours, *theirs)


class ShapeFinder:
    """Finds what has a vendor's shape; all rules are asked at once which of them may have something to say."""

    def __init__(self) -> None:
        self._rules = shapes()
        self._which = re2.Set.SearchSet()
        for rule in self._rules:
            self._which.Add(rule.pattern.pattern)
        self._which.Compile()

    def find(self, data: bytes) -> Iterator[tuple[int, int, str, float]]:
        """Half-open ranges with label and score."""
        for index in sorted(self._which.Match(data) or ()):
            rule = self._rules[index]
            for start, end, score in rule.matches(data):
                yield start, end, rule.label, score


def for_re2(pattern: re.Pattern[str]) -> str:
    """A pattern of Python's, of those that detect-secrets has, in RE2's syntax. Raises ValueError for flags unknown."""
    flags = pattern.flags & ~(re.UNICODE | re.IGNORECASE)
    text = pattern.pattern
    if flags == re.VERBOSE and not any(char.isspace() or char == "#" for char in text):
        flags = re.NOFLAG
    if flags:
        raise ValueError(f"flags {flags!r} have no equal in RE2")
    for theirs, ours in _FOR_RE2:
        text = text.replace(theirs, ours)
    return f"(?i:{text})" if pattern.flags & re.IGNORECASE else text


class StructureFinder:
    """Finds secrets by what is around or inside them: passwords in URLs, private keys, JSON web tokens."""

    def __init__(self) -> None:
        self._url = re2.compile(_URL)
        self._block = re2.compile(_KEY_BLOCK)
        self._bare_block = re2.compile(_BARE_BLOCK)
        self._jwt = re2.compile(_JWT)

    def find(self, data: bytes) -> Iterator[tuple[int, int, str, float]]:
        """Half-open ranges with label and score."""
        for hit in self._block.finditer(data):
            # A header alone is what a manual shows.
            body = _KEY_BODY.search(data, hit.end(), hit.end() + 400)
            yield hit.start(), hit.end(), "Private Key", SURE if body is not None else 0.3
        for hit in self._bare_block.finditer(data):
            if _KEY_BODY.search(data, hit.end(), hit.end() + 400) is not None:
                yield hit.start(), hit.end(), "Private Key", SURE
        for hit in self._jwt.finditer(data):
            if _is_jwt_header(hit.group(1)):
                yield hit.start(), hit.end(), "JSON Web Token", 0.85
        for hit in self._url.finditer(data):
            password = hit.group(2).decode()
            if not is_filler(password) and not password.startswith(("$", "{", "%", "<")):
                yield *hit.span(2), "Password in URL", SPECIMEN if is_specimen(password) else _IN_URL


def _is_jwt_header(part: bytes) -> bool:
    try:
        header = pybase64.b64decode(part + b"=" * (-len(part) % 4), altchars=b"-_")
    except ValueError:
        return False
    return header.startswith(b"{") and b'"alg"' in header
