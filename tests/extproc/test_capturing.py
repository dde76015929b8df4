from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keeping_house import STORE, content_in, keeping_house, kept_in

from router.extproc.capturing import Draft, Judged, Redactor
from router.extproc.machinery import SetupError
from router.records.capture import shown
from router.records.redaction import UnsureError, strings_of
from router.records.sealing import SealError, read_keys
from router.request.view import RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, observed
from router.signals.pii import PiiSettings, PiiSignal
from router.signals.places import ALL_ROLES, all_texts
from router.signals.secret import SecretSettings, SecretSignal

KEY = base64.b64encode(b"k" * 32).decode()
CARD = "4111 1111 1111 1111"
MAIL = "bob.miller@example.org"
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
PNG = base64.b64encode(bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c6360000000020001e221bc33"
    "0000000049454e44ae426082"
)).decode()  # fmt: skip
POLICY = """\
version: 1
upstreams: [{model: a, cluster: x}, {model: b, cluster: y}]
default_model: a
trusted_headers: [x-team, x-unread]
records: {path: r.sqlite, capture: {CAPTURE}}
signals:
  keyword: {trains: {any: [railway]}}
  pii: {card: {types: [CREDIT_CARD]}, mail: {types: [EMAIL_ADDRESS]}}
  secret: {any_key: {}}
  header: {team: {name: x-team, any: [blue]}}
decisions:
  - {name: rail, priority: 3, when: {keyword: trains}, route: {models: [b]}}
  - {name: cards, priority: 2, guard: true, when: {pii: card}, respond: {message: "No."}}
  - {name: blue, priority: 1, when: {header: team}, route: {models: [b]}}
"""


def policy_in(folder: Path, capture: str, text: str = POLICY) -> Path:
    policy = folder / "policy.yaml"
    policy.write_text(text.replace("{CAPTURE}", f"{{{capture}}}"))
    return policy


def bytes_in(folder: Path) -> bytes:
    """All that is in the store's files."""
    return b"".join(one.read_bytes() for one in folder.glob(f"{STORE}*"))


PLAIN = "decisions: all, encrypt: false"


async def test_only_chosen_decisions_are_captured(tmp_path: Path) -> None:
    async with keeping_house(policy_in(tmp_path, "decisions: [rail], encrypt: false")) as keeping:
        await keeping.chat("a railway")
        await keeping.chat("hello")
    rail, other = sorted(kept_in(tmp_path), key=lambda stored: stored.decision, reverse=True)
    assert (rail.decision, rail.content) == ("rail", "kept")
    assert (other.decision, other.content) == ("default", None)
    content = content_in(tmp_path, rail.record)
    assert content is not None
    assert content.whole
    # Nothing was found: byte for byte as it came.
    assert content.body == json.dumps({"model": "any", "messages": [{"role": "user", "content": "a railway"}]}).encode()


async def test_what_signals_find_is_replaced_also_where_no_decision_asks_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    text = f"a railway; I am {MAIL}, {MAIL.upper()} or again {MAIL}, card {CARD}, token {TOKEN}"
    async with keeping_house(policy_in(tmp_path, PLAIN)) as keeping:
        await keeping.chat(text, tools=[{"type": "function", "function": {"name": "f", "description": f"ask {MAIL}"}}])
    [stored] = kept_in(tmp_path)
    assert "secret/any_key" not in stored.observations
    content = content_in(tmp_path, stored.record)
    assert content is not None
    assert content.redacted
    said = content.body.decode()
    assert not [value for value in (MAIL, MAIL.upper(), CARD, TOKEN) if value in said]
    assert "<EMAIL_ADDRESS>" in said
    assert "<CREDIT_CARD>" in said
    assert "a railway; I am " in said
    assert shown(content)["text"][0].startswith("a railway; I am <EMAIL_ADDRESS>")
    assert MAIL.encode() not in bytes_in(tmp_path)
    assert not [value for value in (MAIL, CARD, TOKEN) for one in caplog.records if value in str(one.__dict__)]


async def test_what_is_no_text_of_the_request_is_redacted_as_well(tmp_path: Path) -> None:
    async with keeping_house(policy_in(tmp_path, PLAIN)) as keeping:
        await keeping.chat("hello", metadata={"k": TOKEN, MAIL: "v"}, user=MAIL, odd={"deep": [f"card {CARD}"]})
    [stored] = kept_in(tmp_path)
    content = content_in(tmp_path, stored.record)
    assert content is not None
    assert content.redacted
    assert not [value for value in (MAIL, CARD, TOKEN) if value.encode() in bytes_in(tmp_path)]


async def test_what_cannot_be_replaced_keeps_all_of_it_out(tmp_path: Path) -> None:
    number = CARD.replace(" ", "").replace("-", "")
    async with keeping_house(policy_in(tmp_path, PLAIN)) as keeping:
        await keeping.chat("hello", metadata={"number": int(number)})
    [stored] = kept_in(tmp_path)
    assert stored.content == "redaction"
    assert number.encode() not in bytes_in(tmp_path)


async def test_content_is_encrypted_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEYS", KEY)
    async with keeping_house(policy_in(tmp_path, "decisions: all, key_env: TEST_KEYS, redact: false")) as keeping:
        await keeping.chat("a very particular sentence")
    [stored] = kept_in(tmp_path)
    content = content_in(tmp_path, stored.record, read_keys(KEY))
    assert content is not None
    assert b"a very particular sentence" in content.body
    assert b"particular" not in bytes_in(tmp_path)
    with pytest.raises(SealError):
        content_in(tmp_path, stored.record)


@pytest.mark.parametrize("given_key", [None, "short"])
async def test_a_policy_whose_key_is_not_there_is_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_key: str | None
) -> None:
    if given_key:
        monkeypatch.setenv("TEST_KEYS", given_key)
    with pytest.raises(SetupError, match=r"TEST_KEYS is not set|key 1"):
        async with keeping_house(policy_in(tmp_path, "decisions: all, key_env: TEST_KEYS")):
            pass


async def test_the_key_may_stand_in_a_file_beside_the_policy(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"{KEY}\n{'ab' * 32}\n")
    async with keeping_house(policy_in(tmp_path, "decisions: all, key_file: keys")) as keeping:
        await keeping.chat("hello")
    [stored] = kept_in(tmp_path)
    assert content_in(tmp_path, stored.record, read_keys(KEY)) is not None


async def test_what_is_too_large_is_not_captured_and_the_record_says_so(tmp_path: Path) -> None:
    async with keeping_house(policy_in(tmp_path, f"{PLAIN}, max_bytes: 200")) as keeping:
        await keeping.chat("x" * 300)
    assert [stored.content for stored in kept_in(tmp_path)] == ["too_large"]


async def test_headers_are_captured_only_where_a_signal_reads_them_and_redacted_too(tmp_path: Path) -> None:
    sent = {"x-team": f"blue, {MAIL}", "x-unread": "secret", "authorization": "secret"}
    async with keeping_house(policy_in(tmp_path, PLAIN)) as keeping:
        await keeping.chat("hello", headers=sent)
    [stored] = kept_in(tmp_path)
    content = content_in(tmp_path, stored.record)
    assert content is not None
    assert content.headers == {"x-team": "blue, <EMAIL_ADDRESS>"}


IMAGE = [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]


@pytest.mark.parametrize(
    ("capture", "kept"),
    [
        (f"{PLAIN}", False),
        (f"{PLAIN}, redact: false", False),
        # Nobody has looked into it.
        (f"{PLAIN}, images: true", False),
        (f"{PLAIN}, images: true, redact: false", True),
    ],
)
async def test_an_image_is_kept_or_its_digest_is(tmp_path: Path, capture: str, kept: bool) -> None:
    async with keeping_house(policy_in(tmp_path, capture)) as keeping:
        await keeping.chat(IMAGE)
    [stored] = kept_in(tmp_path)
    content = content_in(tmp_path, stored.record)
    assert content is not None
    assert (PNG.encode() in content.body) == kept
    assert (b"removed:sha256=" in content.body) == (not kept)
    assert content.removed == (0 if kept else 1)
    assert shown(content)["images"] == ([{"index": 0, "media_type": "image/png", "data_base64": PNG}] if kept else [])


class Fixed:
    """A signal with an answer of its own."""

    cost = Cost.HEURISTIC
    name = SignalName("pii", "fixed")

    def __init__(self, *answers: Observation) -> None:
        self._answers = list(answers)

    async def prepare(self) -> None: ...

    async def observe(self, view: RequestView) -> Observation:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def chat(content: Any) -> Judged:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode()
    return Judged("r", "openai.chat", body, {})


@pytest.mark.parametrize("extra", [{}, {"metadata": {"key": TOKEN}}])
def test_the_model_that_was_asked_for_is_asked_about_too(extra: dict[str, Any]) -> None:
    body = json.dumps({"model": TOKEN, "messages": [{"role": "user", "content": "hi"}], **extra}).encode()
    draft = Draft(Judged("r", "openai.chat", body, {}), False)
    answer = asyncio.run(SecretSignal(SignalName("secret", "all"), SecretSettings()).observe(draft.asked))
    assert draft.revise(draft.asked, [(Redactor(Fixed(), 0.5), answer)])
    assert TOKEN.encode() not in draft.content().body


@pytest.mark.parametrize("number", ["4111111111111111.0", "411111111111111.1e1"])
def test_what_is_found_in_a_number_with_a_point_keeps_it_out(number: str) -> None:
    body = f'{{"model": "m", "messages": [{{"role": "user", "content": "hi"}}], "metadata": {{"c": {number}}}}}'
    draft = Draft(Judged("r", "openai.chat", body.encode(), {}), False)
    answer = asyncio.run(PiiSignal(SignalName("pii", "all"), PiiSettings()).observe(draft.asked))
    with pytest.raises(UnsureError):
        draft.revise(draft.asked, [(Redactor(Fixed(), 0.5), answer)])


@pytest.mark.parametrize("status", ["failed", "timed_out", "shed"])
def test_without_an_answer_nothing_is_kept(status: Any) -> None:
    draft = Draft(chat("hello"), False)
    with pytest.raises(UnsureError, match=f"pii/fixed: {status}"):
        draft.revise(draft.asked, [(Redactor(Fixed(), 0.5), Observation(status, None))])


def test_an_image_in_which_something_was_found_goes_and_the_other_stays() -> None:
    draft = Draft(chat([*IMAGE, *IMAGE]), True)
    found = observed(True, 0.9, evidence=(Evidence("/messages/0/content/3/image_url/url", "US_SSN", 0.9, image=1),))
    assert draft.revise(draft.asked, [(Redactor(Fixed(), 0.5, True), found)])
    assert len(draft.asked.images) == 1
    content = draft.content()
    assert content.removed == 1
    assert content.body.count(PNG.encode()) == 1


def test_an_image_that_could_not_be_read_goes() -> None:
    draft = Draft(chat(IMAGE), True)
    missing = Observation("failed", None, evidence=(Evidence("/messages/0/content/1/image_url/url", image=0),))
    assert draft.revise(draft.asked, [(Redactor(Fixed(), 0.5, True), missing)])
    assert PNG.encode() not in draft.content().body


def test_what_has_no_place_takes_its_whole_text_along() -> None:
    draft = Draft(chat([{"type": "text", "text": "hidden"}, {"type": "text", "text": "open"}]), False)
    found = observed(True, 0.9, evidence=(Evidence("/messages/0/content/0/text", "IBAN_CODE", 0.9),))
    assert draft.revise(draft.asked, [(Redactor(Fixed(), 0.5), found)])
    assert [text.text for text in draft.asked.texts][:2] == ["<IBAN_CODE>", "open"]


REDACTORS = (
    Redactor(PiiSignal(SignalName("pii", "all"), PiiSettings()), 0.5),
    Redactor(SecretSignal(SignalName("secret", "all"), SecretSettings()), 0.6),
)
VALUES = st.sampled_from(
    [CARD, MAIL, TOKEN, "DE89 3704 0044 0532 0130 00", "536-90-4399", "+1 212-555-0147", "10.1.2.3"]
)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=20)
TEXTS = st.lists(VALUES | WORDS, min_size=1, max_size=5).map(" ".join)
ARGUMENTS = st.dictionaries(WORDS, TEXTS | st.integers() | st.lists(TEXTS, max_size=2), max_size=3)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=3), arguments=ARGUMENTS, escaped=st.booleans())
def test_what_is_kept_has_nothing_left_that_signals_find(
    texts: list[str], arguments: dict[str, Any], escaped: bool
) -> None:
    call = {"name": "f", "arguments": json.dumps(arguments, ensure_ascii=escaped)}
    messages = [
        *({"role": "user", "content": text} for text in texts),
        {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "c1", "content": texts[-1]},
    ]
    tools = [{"type": "function", "function": {"name": "f", "description": texts[0], "parameters": {"x": arguments}}}]
    body = json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()

    async def run() -> None:
        draft = Draft(Judged("r", "openai.chat", body, {}), False)
        spans: set[str] = set()
        for _ in range(16):
            view = draft.asked
            told = [(one, await one.signal.observe(view)) for one in REDACTORS]
            every = all_texts(view, ALL_ROLES)
            for one, observation in told:
                spans |= {
                    text.text[slice(*e.span)]
                    for e in observation.evidence
                    for text in every
                    # Where two texts have one place, the span may be the other's.
                    if [each.pointer for each in every].count(text.pointer) == 1
                    and text.pointer == e.pointer
                    and e.span
                    and (e.score or 0) >= one.threshold
                }
            if not draft.revise(view, told):
                break
        else:
            return
        kept = draft.content()
        left = list(strings_of(json.loads(kept.body)))
        assert not [span for span in spans if any(span in text for text in left)]

    with contextlib.suppress(UnsureError):
        asyncio.run(run())
