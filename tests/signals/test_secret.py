from __future__ import annotations

from typing import Any

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st
from reading_fakes import FakeReader, lines
from signal_fakes import ask, built, encoders, image, in_tool_result, said, turns_given, view

from router.request.errors import ImageError
from router.request.view import FilePart, TextPart, ToolCallPart
from router.signals.base import Cost, Evidence
from router.signals.resources import SignalSetupError
from router.signals.secret import SecretFinder, SecretSettings
from router.signals.secret_rules import ShapeFinder, for_re2, shapes
from router.signals.secret_words import entropy, is_placeholder, looks_random

# Made up, put together here so that no scanner takes this file for a leak.
NOISE = "q7Zk2Vb9Xw4Lr8Tn3Hs6Jd1Fg5Mc0Pyq7Zk2Vb9Xw4Lr8Tn3Hs6Jd1Fg5Mc0Py" * 4
HEX = "3f9a1c7e5b2d8046" * 8
AWS = "AKIA" + "Q7ZK2VB5XW4LR6TN"
GITHUB = "ghp_" + NOISE[:36]
STRIPE = "sk_" + "live_" + NOISE[:24]
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJqYW5lIiwiYWRtaW4iOnRydWV9." + NOISE[:43]
BODY = "-----\n" + NOISE[:64] + "\n" + NOISE[64:128]


async def labels_in(text: str, **settings: Any) -> list[str]:
    observation = await ask("secret", settings, said(text))
    return [e.label for e in observation.evidence] if observation.matched else []


@pytest.mark.parametrize(
    ("secret", "label"),
    [
        (AWS, "AWS Access Key"),
        ("AIza" + NOISE[:35], "Google API Key"),
        ("GOCSPX-" + NOISE[:28], "Google OAuth Secret"),
        (NOISE[:3] + "7Q~" + NOISE[:34], "Azure Client Secret"),
        ("DefaultEndpointsProtocol=https;AccountKey=" + NOISE[:86] + "==", "Azure Storage Account access key"),
        ("https://x.blob.core.windows.net/a?sv=2022&sig=" + NOISE[:43] + "%3D", "Azure Shared Access Signature"),
        (GITHUB, "GitHub Token"),
        ("github_pat_" + NOISE[:22] + "_" + NOISE[:59], "GitHub Token"),
        ("glpat-" + NOISE[:20], "GitLab Token"),
        ("xoxb-73912840561-73912840562-" + NOISE[:24], "Slack Token"),
        ("https://hooks.slack.com/services/T0A1B2C3D/B0A1B2C3D/" + NOISE[:24], "Slack Webhook"),
        (STRIPE, "Stripe Key"),
        ("sk-proj-" + NOISE[:60], "OpenAI Key"),
        ("sk-ant-api03-" + NOISE[:93], "Anthropic Key"),
        ("hf_" + "qZkVbXwLrTnHsJdFgMcPyAeRuIoWsBtDnK", "Hugging Face Token"),
        ("npm_" + NOISE[:36], "npm Token"),
        ("SG." + NOISE[:22] + "." + NOISE[:43], "SendGrid API Key"),
        ("pypi-AgEIcHlwaS5vcmc" + NOISE[:80], "PyPI Token"),
        ("AC" + HEX[:32], "Twilio API Key"),
        ("739128405:" + NOISE[:35], "Telegram Bot Token"),
        (HEX[:32] + "-us12", "Mailchimp Access Key"),
        ("dop_v1_" + HEX[:64], "DigitalOcean Token"),
        (JWT, "JSON Web Token"),
        ("-----BEGIN RSA PRIVATE KEY" + BODY, "Private Key"),
        ("-----BEGIN PRIVATE KEY" + BODY, "Private Key"),
        ("-----BEGIN OPENSSH PRIVATE KEY" + BODY.replace("\n", "\\n"), "Private Key"),
        ("-BEGIN RSA PRIVATE KEY\n" + NOISE[:48] + "\n" + NOISE[48:64], "Private Key"),
        ("figd_" + NOISE[:40], "Figma Token"),
        ("nvapi-" + NOISE[:64], "NVIDIA Key"),
        ("key-" + HEX[:32], "Mailgun Key"),
        ("dckr_pat_" + NOISE[:27], "Docker Token"),
        ("pat-eu1-3f9a1c7e-5b2d-8046-8f9a-1c7e5b2d8046", "HubSpot Token"),
        ("datadog: " + HEX[:40], "Key of a vendor"),
        ("HEROKU_API_KEY=3f9a1c7e-5b2d-8046-8f9a-1c7e5b2d8046", "Key of a vendor"),
        ('algolia-search-key = "' + HEX[:32] + '"', "Keyword and Entropy"),
        ("AZURE_DEVOPS_PAT=" + NOISE[:52], "Keyword and Entropy"),
        ("JIRA_API_TOKEN=" + "qRtZbWmKpLxVnHsJdFgYcPae", "Key of a vendor"),
        ("DB_PASS=tr0ub4dor&3", "Password"),
        ("machine api.acme.io login jane password tr0ub4dor3", "Password"),
        ("db.internal:5432:shop:app:tr0ub4dor3", "Password"),
        ("sshpass -p 'tr0ub4dor3' ssh root@host", "Password"),
        ("mysql -u root -ptr0ub4dor3 shop", "Password"),
        ("deploy --api-key tr0ub4dor3x", "Password"),
        ('{"auths": {"hub": {"auth": "ZGVwbG95OnRyMHViNGRvcjM="}}}', "Password"),
        ("postgres://shop:hunter42@db.internal:5432/shop", "Password in URL"),
        ("redis://:h7x93kQ@cache/0", "Password in URL"),
        ("https://jane:s3cr3tPw@intra.net/x", "Password in URL"),
        ("curl -u jane:s3cr3tPw https://intra.net", "Password"),
        ('curl --user "{jane-07}":"{ZqL5kVrX1n8tA2}" https://intra.net', "Password"),
        ("passwords:\n  - staging\n  - tr0ub4dor\n", "Password"),
        ("PASSW0RD=tr0ub4dor&3x", "Password"),
        ("api_t0ken: k3J9xQ2mV7bN4cT8wZ6r", "Keyword and Entropy"),
        ("password = 'hunter42!'", "Password"),
        ("DB_PASSWORD=tr0ub4dor&3", "Password"),
        ("my password is tr0ub4dor3", "Password"),
        ("Server=db;Uid=sa;Pwd=s3cr3tPw;", "Password"),
        ('{"passwd": "s3cr3tPw"}', "Password"),
        ("password => 's3cr3tPw'", "Password"),
        ("api_key: " + NOISE[:32], "Keyword and Entropy"),
        ('"clientSecret": "' + NOISE[:40] + '"', "Keyword and Entropy"),
        ("Authorization: Bearer " + NOISE[:40], "Keyword and Entropy"),
        ("token := `" + HEX[:40] + "`", "Keyword and Entropy"),
        ('{\\"secret_key\\": \\"' + NOISE[:32] + '\\"}', "Keyword and Entropy"),
    ],
)
async def test_each_kind_of_secret_is_found(secret: str, label: str) -> None:
    assert await labels_in(secret) == [label]
    assert await labels_in(f"see below\n{secret}\nand above") == [label]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What is the best way to store a password?",
        "The secret is to keep going; the key: patience.",
        "password: ",
        "password = os.environ['DB_PASSWORD']",
        "password=${DB_PASSWORD}",
        "password: <your password>",
        "password={{ vault.password }}",
        "password = getpass.getpass()",
        'password = "password"',
        'api_key = "your_api_key_1234567890abc"',
        "API_KEY=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "api_key = config.api_key_v2",
        "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_" + f"Your{NOISE}"[:36],
        "sk-..." + "and so on",
        "https://user:password@example.com/",
        "https://user:${TOKEN}@example.com/",
        "postgres://localhost:5432/shop",
        "see http://example.com:8080/a@b",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "-----BEGIN PUBLIC KEY" + BODY,
        "commit 3f9a1c7e5b2d80463f9a1c7e5b2d80463f9a1c7e",
        "sha256:" + HEX[:64],
        '"integrity": "sha512-' + NOISE[:86] + '=="',
        "public_key = '" + NOISE[:40] + "'",
        "key_id: " + HEX[:32],
        "csrf-token=" + NOISE[:40],
        "secret_name: prod-database-2024",
        "client_id = '3f9a1c7e-5b2d-4046-8f9a-1c7e5b2d8046'",
        "max_tokens: 4096",
        "tokenizer.token_type = 'WordPiece2Model'",
        "curl -u username:password https://x",
        'curl --user "{user}":"{password}" https://x',
        "secrets:\n  - production\n  - staging-area\n",
        "curl -u $USER:$PASS https://x",
        "foreign key (user_id) references users(id)",
        "api_key = AbstractXMLHTTPRequestFactory",
        "secret_key: getSecretKeyFromTheVaultOfUs",
        "auth_token: HTTPOAuthV2BearerTokenFilter",
        "restore-keys: cache-key-" + HEX[:32],
        "https://cdn.acme.io/img/box.ico-" + HEX[:32] + ".png",
        "uses: codecov/codecov-action@" + HEX[:40],
        "sentry-trace: " + HEX[:32] + "-" + HEX[:16] + "-1",
        "grafana: sha256:" + HEX[:64],
        "sentry: release-2024-11-30-rc1-build7",
        "twitter_client_id = " + HEX[:32],
        "tests_passed: build-1234a",
        "mysql -u root -p shop",
        "deploy --token $TOKEN --password <word>",
        "main.c:5432:12:error: x1 undeclared",
        '{"auth": "bm90IGEgbG9naW4gYXQgYWxs"}',
        '{"auth": "deploying"}',
        "BEGIN PRIVATE KEY and END PRIVATE KEY stand around it",
        "eyJhbGciOiJIUzI1NiJ9",
        "APARTMENTS AND APARTHEID",
        "KeyboardInterrupt, AccessibilityKey2Handler",
        "<div key='item-42' class='x'>",
    ],
)
async def test_what_only_looks_like_a_secret_is_not_found(text: str) -> None:
    assert await labels_in(text) == []


async def test_evidence_says_where_and_what_and_never_the_secret() -> None:
    observation = await ask("secret", {}, said("hi", f"use {AWS} there"))
    assert observation.evidence == (Evidence("/messages/1/content/0", "AWS Access Key", 0.95, (4, 24)),)
    assert AWS not in repr(observation)


async def test_the_threshold_tells_certain_ones_from_others() -> None:
    text = "password = 's3cr3tPw'"
    assert await labels_in(text, threshold=0.9) == []
    assert await labels_in(STRIPE, threshold=0.9) == ["Stripe Key"]
    assert await labels_in("AKIAIOSFODNN7EXAMPLE", threshold=0.5) == ["AWS Access Key"]
    assert await labels_in(f'x = "{NOISE[:40]}"', threshold=0.4) == ["High Entropy"]


async def test_a_secret_is_told_once() -> None:
    assert await labels_in(f'github_token = "{GITHUB}"') == ["GitHub Token"]


async def test_every_place_is_read() -> None:
    request = view(
        ("system", f"a {AWS}"),
        ("assistant", ToolCallPart("/call/arguments", "1", "run", f'{{"env": "{GITHUB}"}}')),
        ("tool", in_tool_result(TextPart("/result", STRIPE))),
        ("user", FilePart("/file", name=f"{JWT}.txt")),
    )
    observation = await ask("secret", {}, request)
    assert {e.pointer for e in observation.evidence} == {
        "/messages/0/content/0",
        "/call/arguments",
        "/result",
        "/file/filename",
    }
    assert (await ask("secret", {"roles": ["developer"]}, request)).matched is False


@pytest.mark.parametrize("filler", ["harmless words, ", "безобидные слова, ", "无害的话，"])
async def test_twenty_thousand_harmless_characters_hide_nothing(filler: str) -> None:
    text = filler * (10_000 // len(filler)) + f" {AWS} " + filler * (10_000 // len(filler))
    observation = await ask("secret", {}, said(text))
    assert [text[slice(*(e.span or (0, 0)))] for e in observation.evidence] == [AWS]


@pytest.mark.parametrize("text", [f"{AWS[:10]}\u200b{AWS[10:]}", "".join(chr(ord(c) + 0xFEE0) for c in AWS)])
async def test_a_secret_that_is_hidden_from_programs_is_found(text: str) -> None:
    assert await labels_in(text) == ["AWS Access Key"]


@pytest.mark.parametrize(
    "text", ["password=" * 10_000, "eyJ" * 30_000, "a://b:" * 15_000, "\ufdfa" * 50_000, '"' * 90_000]
)
async def test_others_get_their_turn_while_a_long_text_is_read(text: str) -> None:
    assert await turns_given(ask("secret", {}, said(text))) >= 12


async def test_a_screenshot_of_a_key_is_seen() -> None:
    reader = FakeReader({"shot": lines("$ cat .env", f"STRIPE={STRIPE}"), "bad": ImageError("truncated")})
    given, settings = encoders(reader=reader), {"read_images": True}
    observation = await ask("secret", settings, view(("user", "why?", image("shot", "/shot"))), given)
    (evidence,) = observation.evidence
    assert (evidence.pointer, evidence.image, evidence.label) == ("/shot", 0, "Stripe Key")
    assert evidence.detail == "box 0.100,0.100,0.900,0.180"
    assert (await ask("secret", settings, view(("user", image("bad"))), given)).reason == "truncated"
    assert (await built("secret", settings, given)).cost is Cost.READING
    assert (await built("secret", {})).cost is Cost.HEURISTIC
    assert SecretSettings(read_images=True).reads_images
    with pytest.raises(SignalSetupError, match="ocr"):
        await built("secret", settings)


def test_every_rule_runs_in_linear_time() -> None:
    """RE2 took all of them, those of detect-secrets too: none is left out in silence."""
    assert all(isinstance(rule.pattern, type(re2.compile("a"))) for rule in shapes())
    assert len(shapes()) > 130


@given(
    st.lists(st.sampled_from(["ghp_", "sk-", "xoxb-", "hf_", "key-", " ", ".", "=", "-", NOISE[:36], HEX[:32], HEX]))
)
def test_asking_all_rules_at_once_finds_what_each_of_them_finds(pieces: list[str]) -> None:
    data = "".join(pieces).encode()
    assert list(SHAPES.find(data)) == [
        (start, end, rule.label, score) for rule in shapes() for start, end, score in rule.matches(data)
    ]


def test_a_pattern_that_has_no_equal_is_refused() -> None:
    import re

    with pytest.raises(ValueError, match="MULTILINE"):
        for_re2(re.compile("^a", re.MULTILINE))
    assert for_re2(re.compile("a(?!\\w)", re.IGNORECASE)) == "(?i:a)"


@pytest.mark.parametrize(
    "value", ["xxxxxxxx", "<token>", "${X}", "{{ x }}", "changeme", "0123456789", "abcdefghijk", "$(cat x)", "none"]
)
def test_placeholders_are_told(value: str) -> None:
    assert is_placeholder(value)


@given(st.text("0123456789abcdef", min_size=32, max_size=64))
def test_random_digits_have_high_entropy_and_short_values_are_never_random(value: str) -> None:
    assert 0 <= entropy(value) <= 4
    assert not looks_random(value[:15])


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for finding in FINDER.find(text, text.encode("ascii", "replace")):
        assert 0 <= finding.start < finding.end <= len(text)
        assert 0 <= finding.score <= 1


FINDER = SecretFinder()
SHAPES = ShapeFinder()
