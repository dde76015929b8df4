"""Credentials that have a shape of their own: keys with a prefix, tokens with a structure, passwords in URLs.

The rules of detect-secrets are taken from its plugins and compiled with RE2, which runs in linear time; its scanner
works on files and global settings, and is not used. What it has no rule for, or an older one, stands below, after what
the vendors document. Whether a match is a placeholder is for `secret_words.py` to say.
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

_SHAPES: Final = (
    ("AWS Access Key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    ("AWS Bedrock API Key", r"(?:ABSKQmVkcm9ja0FQSUtleS|bedrock-api-key-)[A-Za-z0-9+/=]{60,}"),
    ("Google API Key", r"AIza[0-9A-Za-z_-]{35}"),
    ("Google OAuth Secret", r"GOCSPX-[A-Za-z0-9_-]{28}"),
    ("Google OAuth Token", r"ya29\.[A-Za-z0-9_-]{60,}"),
    ("Azure Client Secret", r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    ("Azure Shared Access Signature", r"[?&;]sig=([A-Za-z0-9%+/]{43,90}(?:=|%3[Dd])?)"),
    ("Azure Shared Access Key", r"SharedAccessKey=([A-Za-z0-9+/]{43}=)"),
    ("GitHub Token", r"gh[oprsu]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    ("Slack Token", r"xox[abeoprs]-(?:[0-9]+-){1,4}[A-Za-z0-9]{10,}|xapp-\d-[A-Z0-9]+-\d+-[A-Za-z0-9]{20,}"),
    ("Slack Webhook", r"https?://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{30,}"),
    ("Teams Webhook", r"https://[a-z0-9-]+\.webhook\.office\.com/webhookb2/[0-9a-f@-]{73}/\w+/[0-9a-f]{32}"),
    ("Discord Webhook", r"https://discord(?:app)?\.com/api/webhooks/\d{17,20}/[A-Za-z0-9_-]{60,}"),
    ("Stripe Key", r"(?:[sr]k_(?:live|test|prod)|whsec)_[0-9A-Za-z]{16,}"),
    ("OpenAI Key", r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{40,}|[A-Za-z0-9]{48})"),
    ("Anthropic Key", r"sk-ant-[a-z]{3,8}\d\d-[A-Za-z0-9_-]{60,}"),
    ("OpenRouter Key", r"sk-or-v1-[0-9a-f]{64}"),
    ("Groq Key", r"gsk_[A-Za-z0-9]{52}"),
    ("xAI Key", r"xai-[A-Za-z0-9]{80}"),
    ("Perplexity Key", r"pplx-[A-Za-z0-9]{48}"),
    ("Replicate Token", r"r8_[A-Za-z0-9]{37}"),
    ("Hugging Face Token", r"(?:hf|api_org)_[A-Za-z]{34}"),
    ("GitLab Token", r"gl(?:pat|dt|ft|soat|rt|ptt|cbt|oas)-[A-Za-z0-9_-]{20,64}"),
    ("Vault Token", r"hv[sb]\.[A-Za-z0-9_-]{90,}|s\.[A-Za-z0-9]{24}"),
    ("DigitalOcean Token", r"do[oprt]_v1_[a-f0-9]{64}"),
    ("npm Token", r"npm_[A-Za-z0-9]{36}"),
    ("Databricks Token", r"dapi[a-f0-9]{32}(?:-\d)?"),
    ("Grafana Token", r"glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}|(?:glc_|eyJrIjoi)[A-Za-z0-9+/]{32,}={0,3}"),
    ("Sourcegraph Token", r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}"),
    ("Notion Token", r"ntn_[0-9]{11}[A-Za-z0-9]{35}|secret_[A-Za-z0-9]{43}"),
    ("Sentry Token", r"sntrys_eyJ[A-Za-z0-9+/]{40,}={0,2}_[A-Za-z0-9+/]{43}|sntryu_[a-f0-9]{64}"),
    ("Linear Key", r"lin_(?:api|oauth)_[A-Za-z0-9]{40,64}"),
    ("Postman Key", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("Shopify Token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("Alibaba Access Key", r"LTAI[A-Za-z0-9]{20}"),
    ("Facebook App Token", r"\d{13,17}\|[A-Za-z0-9_-]{27}"),
    ("42 Secret", r"s-s4t2(?:ud|af)-[a-f0-9]{64}"),
    ("1Password Token", r"ops_eyJ[A-Za-z0-9+/]{250,}={0,3}|A3-[A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3}"),
    ("Pulumi Token", r"pul-[a-f0-9]{40}"),
    ("Fly Token", r"fo1_[\w-]{43}|fm[12][ar]?_[A-Za-z0-9+/]{100,}={0,3}"),
    ("Terraform Token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}"),
    ("Doppler Token", r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9_.]{40,60}"),
    ("ReadMe Key", r"rdme_[a-z0-9]{70}"),
    ("Artifactory Key", r"AKCp[A-Za-z0-9]{69}"),
    ("Square Token", r"(?:EAAA|sq0atp-)[A-Za-z0-9_-]{22,60}"),
    ("age Secret Key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
)  # fmt: skip

_URL: Final = r"[A-Za-z][A-Za-z0-9+.-]{1,20}://([^\s/:@\"'<>`]{0,128}):([^\s/@\"'<>`]{3,128})@[A-Za-z0-9\[]"
_KEY_BLOCK: Final = r"-----BEGIN (?:[A-Z0-9]{2,10} ){0,2}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d"
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
    ours = (Rule(label, re2.compile(pattern)) for label, pattern in _SHAPES)
    theirs = (
        Rule(detector.secret_type, re2.compile(for_re2(pattern)))
        for detector in _DETECTORS
        for pattern in detector.denylist
    )
    return (*ours, *theirs)


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
        self._jwt = re2.compile(_JWT)

    def find(self, data: bytes) -> Iterator[tuple[int, int, str, float]]:
        """Half-open ranges with label and score."""
        for hit in self._block.finditer(data):
            # A header alone is what a manual shows.
            body = _KEY_BODY.search(data, hit.end(), hit.end() + 400)
            yield hit.start(), hit.end(), "Private Key", SURE if body is not None else 0.3
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
