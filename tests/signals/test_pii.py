from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from reading_fakes import FakeReader, lines
from signal_fakes import ask, built, encoders, image, in_tool_result, said, turns_given, view

from router.inference.classifier import TaggedSpan
from router.inference.executor import Overloaded
from router.inference.reading import ReadLine
from router.request.errors import ImageError
from router.request.view import FilePart, RequestView, TextPart, ToolCallPart, ToolDefinition
from router.signals.base import Cost, Evidence
from router.signals.gathering import MAX_EVIDENCE
from router.signals.pii import PiiSettings
from router.signals.resources import SignalSetupError

CARD = "4111 1111 1111 1111"
TD3 = ("P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L898902C36UTO7408122F1204159ZE184226B<<<<<10")
WHERE = "/messages/0/content/0"


async def types_in(text: str, **settings: Any) -> set[str]:
    return {e.label for e in (await ask("pii", settings, said(text))).evidence if (e.score or 0) >= 0.5}


async def test_evidence_names_part_place_type_and_score_and_nothing_that_was_said() -> None:
    observation = await ask("pii", {}, said("hello", f"pay with card {CARD} now"))
    (evidence,) = observation.evidence
    assert evidence == Evidence("/messages/1/content/0", "CREDIT_CARD", observation.score, (14, 33))
    assert observation.matched is True
    assert observation.label == "CREDIT_CARD"
    assert "4111" not in repr(observation)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("4111111111111111", "CREDIT_CARD"),
        ("4111-1111-1111-1111", "CREDIT_CARD"),
        ("4111 1111 1111 1111 12/26 123", "CREDIT_CARD"),
        ("4111 1111 1111 1111/123", "CREDIT_CARD"),
        ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "CREDIT_CARD"),
        ("４１１１１１１１１１１１１１１１", "CREDIT_CARD"),
        ("٤١١١١١١١١١١١١١١١", "CREDIT_CARD"),
        ("4111\u200b1111\u200b1111\u200b1111", "CREDIT_CARD"),
        ("我的卡号是4111111111111111。", "CREDIT_CARD"),
        ("3782 822463 10005", "CREDIT_CARD"),
        ("my amex 371449635398431", "CREDIT_CARD"),
        ("5555555555554444", "CREDIT_CARD"),
        ("2223003122003222", "CREDIT_CARD"),
        ("3530111333300000", "CREDIT_CARD"),
        ("card 30569309025904", "CREDIT_CARD"),
        ("DE89 3704 0044 0532 0130 00", "IBAN_CODE"),
        ("de89370400440532013000", "IBAN_CODE"),
        ("GB29NWBK60161331926819.", "IBAN_CODE"),
        ("(FR14 2004 1010 0505 0001 3M02 606)", "IBAN_CODE"),
        ("MT84MALT011000012345MTLCAST001S", "IBAN_CODE"),
        ("NO93 8601 1117 947", "IBAN_CODE"),
        ("512-34-5678", "US_SSN"),
        ("social security number 512345678", "US_SSN"),
        ("SSN: 512 34 5678", "US_SSN"),
        ("jane.doe+x@mail.co.uk", "EMAIL_ADDRESS"),
        ("<jane@example.com>", "EMAIL_ADDRESS"),
        ("jane@example.com.", "EMAIL_ADDRESS"),
        ("is it jane@firm.org?", "EMAIL_ADDRESS"),
        ("josé@münchen.de", "EMAIL_ADDRESS"),
        ("mailto:jane@firm.org?subject=x", "EMAIL_ADDRESS"),
        ("+49 30 901820", "PHONE_NUMBER"),
        ("+14155552671", "PHONE_NUMBER"),
        ("(415) 555-2671", "PHONE_NUMBER"),
        ("415-555-2671 ext. 12", "PHONE_NUMBER"),
        ("call me at 0171 5551234", "PHONE_NUMBER"),
        ("电话 010 6552 9988", "PHONE_NUMBER"),
        ("93.184.216.34", "IP_ADDRESS"),
        ("http://81.20.30.40:8080/x", "IP_ADDRESS"),
        ("2a00:1450:4001:829::200e", "IP_ADDRESS"),
        ("my ip is 2a02:810::1", "IP_ADDRESS"),
        ("\n".join(TD3), "TRAVEL_DOCUMENT"),
    ],
)
async def test_each_way_of_writing_a_type_is_found(text: str, kind: str) -> None:
    assert kind in await types_in(text)
    assert kind in await types_in(f"Please keep this: {text}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4111111111111112",
        "41111111111111110",
        "a4111111111111111",
        "0.4111111111111111",
        "9111111111111111",
        "550e8400-e29b-41d4-a716-446655440000",
        "DE88370400440532013000",
        "DE89 3704 0044 0532 0130",
        "XX89370400440532013000",
        "DE8937040044053201300012",
        "000-12-3456",
        "666-12-3456",
        "912-34-5678",
        "512-00-5678",
        "512-34-0000",
        "512-345678",
        "part 512345678",
        "@decorator.method",
        "user@host",
        "git@github.com:pointsman/pointsman.git",
        "https://shop:word@db.internal.net/x",
        "npm i @scope/pkg@1.2.3",
        "released 2023-10-11 at 10:30:45",
        "from 1914-1918 and 1939-1945",
        "978-0-306-40615-7",
        "it costs 1,234,567.89 for 12 345 678 people",
        "version 1.2.3.4",
        "127.0.0.1",
        "the server's IP address is 10.20.30.40",
        "ping the host 192.168.1.17",
        "ip address 172.16.254.3",
        "client 192.0.2.33 and server 198.51.100.7",
        "my ip is fe80::1",
        "address 2001:db8:85a3::8a2e:370:7334",
        "ip fd12:3456:789a:1::1",
        "256.1.1.1",
        "1.2.3.4.5",
        "std::vector<a::b>",
        "at 12:30:45",
        "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<",
        "x = [1, 2, 3]; y = 0xDEADBEEF; z = 3.14159265358979",
    ],
)
async def test_what_only_looks_like_it_is_not_found(text: str) -> None:
    assert await types_in(text) == set()


@pytest.mark.parametrize("address", ["10.20.30.40", "192.168.1.17", "fe80:12:34:56::1"])
async def test_an_address_of_a_private_network_counts_where_the_policy_says_so(address: str) -> None:
    observation = await ask("pii", {"threshold": 0.4}, said(f"the server is {address}"))
    assert (observation.matched, observation.label, observation.score) == (True, "IP_ADDRESS", 0.4)


async def test_a_card_is_no_phone_number_and_an_address_no_domain() -> None:
    assert await types_in(f"call about {CARD}") == {"CREDIT_CARD"}
    assert await types_in("call 512-34-5678") == {"US_SSN"}
    assert await types_in(f"call about {CARD}", types=["PHONE_NUMBER"]) == set()


async def test_words_nearby_raise_and_lower_a_score() -> None:
    async def score(text: str) -> float:
        return (await ask("pii", {}, said(text))).score or 0.0

    assert await score("ssn 512345678") > await score("512345678")
    assert await score("card 501864667909") > await score("501864667909") > await score("order 501864667909")


async def test_only_the_types_that_are_asked_for_count() -> None:
    text = said(f"{CARD} jane@firm.org")
    assert (await ask("pii", {"types": ["US_SSN"]}, text)).matched is False
    assert (await ask("pii", {"types": ["EMAIL_ADDRESS"]}, text)).label == "EMAIL_ADDRESS"


async def test_the_surest_finding_gives_the_label() -> None:
    observation = await ask("pii", {}, said(f"call 415-555-2671, card {CARD}", "\n".join(TD3)))
    assert [e.label for e in observation.evidence] == ["CREDIT_CARD", "TRAVEL_DOCUMENT", "PHONE_NUMBER"]


async def test_min_count_counts_different_values_and_the_score_is_of_the_one_that_settles_it() -> None:
    settings = {"types": ["EMAIL_ADDRESS"], "min_count": 3}
    assert (await ask("pii", settings, said("a@firm.org b@firm.org", "A@firm.org a@firm.org"))).matched is False
    matched = await ask("pii", settings, said("a@firm.org b@firm.org", "a@example.com"))
    assert matched.matched is True
    assert matched.score == 0.6
    assert (await ask("pii", {**settings, "threshold": 0.9}, said("a@firm.org b@firm.org a@example.com"))).score == 0.6


async def test_many_values_are_counted_in_bounded_memory() -> None:
    text = " ".join(f"u{i}@firm.org" for i in range(1_500))
    settings = {"types": ["EMAIL_ADDRESS"], "min_count": 1_000}
    assert (await ask("pii", settings, said(text))).matched is True
    assert len((await ask("pii", settings, said(text))).evidence) == MAX_EVIDENCE


def everywhere() -> RequestView:
    """A card in every place of a request."""
    made = view(
        ("system", f"s {CARD}"),
        ("user", f"u {CARD}"),
        ("assistant", ToolCallPart("/call/arguments", "1", "pay", f'{{"card": "{CARD}"}}')),
        ("assistant", ToolCallPart("/other/arguments", "1", CARD, "")),
        ("tool", in_tool_result(TextPart("/result", CARD))),
        ("user", FilePart("/file", name="jane@firm.org.txt")),
    )
    return RequestView(made.api, None, made.turns, (ToolDefinition("/tools/0", "t", f"pays {CARD}"),), False, 0, None)


@pytest.mark.parametrize(
    ("roles", "pointers"),
    [
        (["system"], {"/messages/0/content/0"}),
        (["developer"], {"/tools/0"}),
        (["user"], {"/messages/1/content/0", "/file/filename"}),
        (["assistant"], {"/call/arguments"}),
        (["tool"], {"/result"}),
    ],
)
async def test_every_place_is_read(roles: list[str], pointers: set[str]) -> None:
    observation = await ask("pii", {"roles": roles}, everywhere())
    assert {e.pointer for e in observation.evidence} == pointers


async def test_a_name_of_a_called_tool_is_read_where_no_text_repeats_it() -> None:
    request = view(("assistant", ToolCallPart("/other/arguments", "1", CARD, "")))
    assert [e.pointer for e in (await ask("pii", {}, request)).evidence] == ["/other/name"]


@pytest.mark.parametrize("filler", ["harmless words, ", "безобидные слова, ", "无害的话，"])
async def test_twenty_thousand_harmless_characters_hide_nothing(filler: str) -> None:
    text = filler * (10_000 // len(filler)) + f" {CARD} " + filler * (10_000 // len(filler))
    observation = await ask("pii", {}, said(text))
    assert [text[slice(*(e.span or (0, 0)))] for e in observation.evidence] == [CARD]


@pytest.mark.parametrize(
    "text", ["4111 " * 20_000, "GB12 " * 20_000, "a@b " * 20_000, "\ufdfa" * 50_000, "<O" * 40_000]
)
async def test_others_get_their_turn_while_a_long_text_is_read(text: str) -> None:
    assert await turns_given(ask("pii", {}, said(text))) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["4111 1111 1111 1112 ", "1.1.1.1.1 ", "<OOOOOOOOOOOOUTO", "0-0.0/0 (", "a@a."])
async def test_a_hostile_megabyte_takes_time_in_proportion(unit: str) -> None:
    """Windows are what takes time, and there are as many as the text is long: counted, not timed."""
    once = await turns_given(ask("pii", {}, said(unit * (100_000 // len(unit)))))
    many = await turns_given(ask("pii", {}, said(unit * (1_000_000 // len(unit)))))
    assert many <= 11 * once


# Images


async def test_a_zone_over_lines_of_an_image_is_a_travel_document_with_near_certainty() -> None:
    reader = FakeReader({"car": lines("FOR SALE"), "pass": lines("PASSPORT", *TD3)})
    request = view(("user", "look", image("car")), ("user", image("pass", "/second")))
    observation = await ask("pii", {"read_images": True}, request, encoders(reader=reader))
    assert observation.matched is True
    assert observation.score is not None and observation.score > 0.98
    (evidence,) = observation.evidence
    assert (evidence.pointer, evidence.image, evidence.span) == ("/second", 1, None)
    assert evidence.detail == "box 0.100,0.200,0.900,0.280"


async def test_pieces_of_a_row_belong_together() -> None:
    row = (
        ReadLine("1111 1111", (0.5, 0.10, 0.9, 0.18), 0.9),
        ReadLine("4111 1111", (0.1, 0.11, 0.4, 0.19), 0.9),
        ReadLine("12/29", (0.1, 0.3, 0.4, 0.38), 0.9),
    )
    reader = FakeReader({"card": row})
    observation = await ask("pii", {"read_images": True}, view(("user", image("card"))), encoders(reader=reader))
    assert [(e.label, e.detail) for e in observation.evidence] == [("CREDIT_CARD", "box 0.100,0.100,0.900,0.190")]


async def test_an_image_that_cannot_be_read_leaves_it_unknown_unless_something_else_matches() -> None:
    reader = FakeReader({"bad": ImageError("truncated"), "busy": Overloaded(), "ok": lines(CARD)})
    settings, given = {"read_images": True}, encoders(reader=reader)
    broken = await ask("pii", settings, view(("user", image("bad", "/bad"))), given)
    assert (broken.status, broken.reason) == ("failed", "truncated")
    assert broken.evidence == (Evidence("/bad", image=0, detail="truncated"),)
    assert (await ask("pii", settings, view(("user", image("busy"))), given)).status == "shed"
    assert (await ask("pii", settings, view(("user", image("bad"), image("busy"))), given)).reason == "truncated"
    assert (await ask("pii", settings, view(("user", image("bad"), image("ok"))), given)).matched is True
    assert (await ask("pii", settings, view(("user", CARD, image("bad"))), given)).matched is True


async def test_images_are_read_only_if_asked_and_of_the_roles_asked_for() -> None:
    reader = FakeReader({"a": lines(CARD), "b": lines(CARD)})
    request = view(("user", image("a")), ("tool", in_tool_result(image("b"))))
    assert (await ask("pii", {}, request, encoders(reader=reader))).matched is False
    observed = await ask("pii", {"read_images": True, "roles": ["tool"]}, request, encoders(reader=reader))
    assert [e.image for e in observed.evidence] == [1]
    assert reader.read_images == ["b"]


async def test_reading_images_is_what_it_costs_and_needs() -> None:
    assert (await built("pii", {})).cost is Cost.HEURISTIC
    assert (await built("pii", {"read_images": True}, encoders(reader=FakeReader({})))).cost is Cost.READING
    assert PiiSettings(read_images=True).reads_images
    with pytest.raises(SignalSetupError, match="ocr"):
        await built("pii", {"read_images": True})


# Classifiers


class FakeTagger:
    labels = ("O", "B-PER", "I-PER", "B-LOC", "given")
    pack = "names-pack"

    def __init__(self, *spans: TaggedSpan) -> None:
        self.spans = spans
        self.overloaded = False

    async def tag(self, text: str) -> tuple[TaggedSpan, ...]:
        if self.overloaded:
            raise Overloaded
        return self.spans


@pytest.mark.parametrize("label", ["PER", "B-PER", "I-PER", "PERSON"])
async def test_a_classifiers_labels_are_taken_for_what_they_usually_mean(label: str) -> None:
    tagger = FakeTagger(TaggedSpan(0, 4, label, 0.8), TaggedSpan(5, 9, "LOC", 0.9))
    settings = {"types": ["PERSON"], "model": "names"}
    observation = await ask("pii", settings, said("Jane Rome"), encoders(classifiers={"names": tagger}))
    assert observation.evidence == (Evidence(WHERE, "PERSON", 0.8, (0, 4)),)
    assert observation.pack == "names-pack"


async def test_a_policy_may_say_what_labels_mean() -> None:
    given = encoders(classifiers={"names": FakeTagger(TaggedSpan(0, 4, "given", 0.8))})
    settings = {"types": ["PERSON", "CREDIT_CARD"], "model": "names", "labels": {"given": "PERSON"}}
    signal = await built("pii", settings, given)
    assert signal.cost is Cost.TEXT_MODEL
    assert {e.label for e in (await signal.observe(said(f"Jane {CARD}"))).evidence} == {"PERSON", "CREDIT_CARD"}


async def test_an_overloaded_classifier_leaves_it_unknown_unless_a_pattern_matches() -> None:
    tagger = FakeTagger()
    tagger.overloaded = True
    settings, given = {"types": ["PERSON", "CREDIT_CARD"], "model": "names"}, encoders(classifiers={"names": tagger})
    assert (await ask("pii", settings, said("Jane"), given)).status == "shed"
    assert (await ask("pii", settings, said("Jane", CARD), given)).matched is True


async def test_a_pack_without_the_type_is_refused_with_the_labels_it_has() -> None:
    with pytest.raises(SignalSetupError, match=r"ORGANIZATION.*B-PER"):
        await built("pii", {"types": ["ORGANIZATION"], "model": "names"}, encoders(classifiers={"names": FakeTagger()}))
    with pytest.raises(SignalSetupError, match="not at hand"):
        await built("pii", {"types": ["PERSON"], "model": "names"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"types": ["PERSON"], "engine": "patterns"}, "no pattern finds PERSON"),
        ({"types": ["PERSON"], "model": "x", "engine": "head"}, "two sources"),
        ({"engine": "head"}, "would not be asked"),
        ({"types": []}, "at least 1"),
        ({"types": ["PERSON"], "model": "x", "engine": "presidio"}, "two sources"),
        ({"engine": "presidio"}, "would not be asked"),
        ({"labels": {"a": "PERSON"}}, "name it under `model`"),
        ({"nlp_configuration": "x.yaml"}, "engine: presidio"),
        ({"min_count": 0}, "greater than or equal to 1"),
        ({"roles": []}, "at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PiiSettings.model_validate(settings)


def test_only_a_named_pack_is_asked_for() -> None:
    assert PiiSettings().classifier_packs == ()
    assert PiiSettings(types=("PERSON",), model="packs/names").classifier_packs == ("packs/names",)
