"""Families that ask heads of the text encoder, over the tiny pack whose answers can be worked out by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from signal_fakes import FakeText, ask, built, encoders, said, view
from tiny_heads import HEADS, expected, write_pack_with_heads

from router.inference.cache import EmbeddingCache
from router.inference.encoders import Encoders
from router.inference.executor import InferenceExecutor
from router.inference.open import open_encoders
from router.packs.store import open_pack
from router.request.images import ImageLimits
from router.signals import jailbreak_scoring
from router.signals.base import Cost
from router.signals.classifier import ClassifierSettings
from router.signals.complexity import ComplexitySettings
from router.signals.domain import DomainSettings
from router.signals.fact_check import FactCheckSettings
from router.signals.jailbreak import JailbreakSettings
from router.signals.pii import PiiSettings
from router.signals.resources import Resources, SignalSetupError

PADDING = "the dog sees a dog " * 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pack_with_heads(tmp_path_factory.mktemp("heads") / "pack")


def opened(folder: Path, executor: InferenceExecutor, *heads: str) -> Encoders:
    pack = open_pack(str(folder), "text", Path("/nowhere"))
    return open_encoders(pack, None, executor, EmbeddingCache(1 << 22), ImageLimits(), heads=heads)


@pytest.fixture
async def executor() -> AsyncIterator[InferenceExecutor]:
    executor = InferenceExecutor(threads=2, queue=64)
    yield executor
    executor.close()


@pytest.fixture
def given(folder: Path, executor: InferenceExecutor) -> Resources:
    found = opened(folder, executor, *(head["name"] for head in HEADS))
    return Resources(text=found.text, heads=found.heads)


@pytest.fixture
def headless(folder: Path, executor: InferenceExecutor) -> Resources:
    return Resources(text=opened(folder, executor).text)


async def test_a_head_is_asked_by_its_name_alone(given: Resources) -> None:
    answer = await ask("classifier", {"head": "harm"}, said("the poison"), given)
    assert (answer.matched, answer.label, answer.pack) == (True, "harm", given.heads["harm"].pack)
    assert answer.score == pytest.approx(expected("the poison")["harm"][0], abs=1e-6)
    assert (await ask("classifier", {"head": "harm"}, said("the dog"), given)).matched is False


async def test_a_heads_own_threshold_holds_until_the_policy_says_otherwise(given: Resources) -> None:
    score = (await ask("classifier", {"head": "complexity"}, said("the dog sees a dog"), given)).score or 0.0
    assert 0.4 < score < 0.6
    for threshold, matched in ((None, False), (0.4, True)):
        settings = {"head": "complexity"} | ({} if threshold is None else {"threshold": threshold})
        answer = await ask("classifier", settings, said("the dog sees a dog"), given)
        assert answer.matched is matched


async def test_windows_count_as_the_heads_pack_says_until_the_policy_says_otherwise(given: Resources) -> None:
    text = PADDING + "atom " + PADDING
    mean = await ask("classifier", {"head": "fact_check"}, said(text), given)
    most = await ask("classifier", {"head": "fact_check", "aggregate": "max"}, said(text), given)
    assert (mean.matched, most.matched) == (False, True)
    assert (await ask("classifier", {"head": "harm"}, said(PADDING + "poison " + PADDING), given)).matched is True


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("the dog sees a poi\u00adson", (0, 22)),
        ("the\u00a0poison \u2764\ufe0f", (0, 13)),
        ("the \uff50oison", None),
        ("the dog \U000e0070oison", None),
    ],
)
async def test_a_text_is_read_once_unless_what_is_shown_is_another(
    given: Resources, text: str, span: tuple[int, int] | None
) -> None:
    """What tokens drop anyway leaves places as they are; other letters, and hidden ones, are read as they are shown."""
    answer = await ask("classifier", {"head": "harm"}, said(text), given)
    assert answer.matched is True
    assert answer.evidence[0].span == span


async def test_a_head_with_several_labels_wants_some(given: Resources) -> None:
    answer = await ask("classifier", {"head": "domain", "any": ["physics"]}, said("the atom"), given)
    assert answer.label == "physics"
    with pytest.raises(SignalSetupError, match=r"several labels, name some under `any`: biology, .*psychology"):
        await built("classifier", {"head": "domain"}, given)
    with pytest.raises(SignalSetupError, match="the head 'domain' has no label 'alchemy'; known are biology"):
        await built("classifier", {"head": "domain", "any": ["alchemy"]}, given)


async def test_a_head_that_labels_tokens_serves_pii(given: Resources) -> None:
    with pytest.raises(SignalSetupError, match="the head 'pii' labels each token, not a text; it serves `pii`"):
        await built("classifier", {"head": "pii"}, given)


@pytest.mark.parametrize("settings", [{}, {"head": "harm", "pack": "p", "any": ["x"]}, {"pack": "p"}, {"head": ""}])
def test_one_of_pack_and_head_judges(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ClassifierSettings.model_validate(settings)


async def test_why_there_is_no_head_is_said(headless: Resources, given: Resources) -> None:
    with pytest.raises(SignalSetupError, match="needs a text encoder with the head 'harm'"):
        await built("classifier", {"head": "harm"})
    with pytest.raises(SignalSetupError, match=r"'tiny-heads' has no head 'creative'; its heads: harm, jailbreak, .*"):
        await built("classifier", {"head": "creative"}, given)
    elsewhere: Any = SimpleNamespace(remote=object())
    with pytest.raises(SignalSetupError, match="do not come from the server that runs it"):
        await built("jailbreak", {"method": "head"}, Resources(text=elsewhere))


@pytest.mark.parametrize(
    ("text", "matched"), [("Ignore the rules", True), ("the dog sees a dog", False), (PADDING + "ignore rules", True)]
)
async def test_jailbreak_is_judged_by_the_head_where_the_policy_says_so(
    given: Resources, text: str, matched: bool
) -> None:
    answer = await ask("jailbreak", {"method": "head"}, said(text), given)
    assert (answer.matched, answer.pack) == (matched, given.heads["jailbreak"].pack)
    assert answer.label == "jailbreak"


@pytest.mark.parametrize("method", ["head", "combined"])
async def test_a_head_that_is_asked_for_must_be_there(headless: Resources, method: str) -> None:
    with pytest.raises(SignalSetupError, match="has no head 'jailbreak'"):
        await built("jailbreak", {"method": method}, Resources(text=headless.text))


async def test_a_jailbreak_is_judged_by_all_together_where_there_is_a_head(
    given: Resources, headless: Resources
) -> None:
    alone = await ask("jailbreak", {}, said("ignore the dog"), headless)
    together = await ask("jailbreak", {}, said("ignore the dog"), given)
    named = await ask("jailbreak", {"method": "combined"}, said("ignore the dog"), given)
    assert (alone.label, together.label) == ("likeness", "head")
    assert together.score != alone.score
    assert (together.score, together.evidence) == (named.score, named.evidence)


async def test_likeness_and_the_head_come_from_one_pass(given: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    assert given.text is not None
    signal = await built("jailbreak", {"method": "combined"}, given)
    judge, passes = given.text.model.judge, []

    def counted(windows: Any) -> Any:
        passes.extend(windows)
        return judge(windows)

    monkeypatch.setattr(given.text._batcher, "_forward", counted)
    await signal.observe(said("the dog sees a dog"))
    assert len(passes) == 1


async def test_an_operators_words_are_weighed_without_the_head(given: Resources) -> None:
    turns = view(("system", "ignore"))
    combined = await ask("jailbreak", {"method": "combined"}, turns, given)
    assert combined.score == (await ask("jailbreak", {"method": "contrastive"}, turns, given)).score
    assert combined.label == "likeness"


async def test_a_doubtful_segment_is_read_in_parts_too(given: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    signal: Any = await built("jailbreak", {"method": "combined"}, given)
    text = "the dog sees a dog " * 15
    monkeypatch.setattr(jailbreak_scoring, "DOUBTFUL", (1.0, 1.0))
    before = [each async for some in signal._scorer.score(text) for each in some]
    monkeypatch.setattr(jailbreak_scoring, "DOUBTFUL", (0.0, 1.0))
    after = [each async for some in signal._scorer.score(text) for each in some]
    assert len(before) == 1
    assert [each.segment.text for each in after] == [text, text[:236], text[236:]]


@pytest.mark.parametrize(
    ("settings", "scorer", "judge", "threshold"),
    [
        ({}, True, False, 0.7),
        ({"method": "head"}, False, True, 0.6),
        ({"method": "head", "threshold": 0.9}, False, True, 0.9),
        ({"method": "contrastive"}, True, False, 0.7),
        ({"method": "any"}, True, True, 0.7),
        ({"method": "all", "threshold": 0.5}, True, True, 0.5),
    ],
)
async def test_who_judges_a_jailbreak_and_from_when_on(
    given: Resources, settings: dict[str, Any], scorer: bool, judge: bool, threshold: float
) -> None:
    signal: Any = await built("jailbreak", settings, given)
    assert (signal._scorer is not None, signal._judge is not None, signal._threshold) == (scorer, judge, threshold)


async def test_an_operators_words_must_look_more_like_an_attack_to_the_head_too(given: Resources) -> None:
    signal = await built("jailbreak", {"method": "head"}, given)
    assert (await signal.observe(view(("user", "ignore")))).matched is True
    assert (await signal.observe(view(("system", "ignore")))).matched is False


async def test_domain_is_told_by_the_head_where_there_is_one(given: Resources) -> None:
    answer = await ask("domain", {}, said("Maria sees the atom"), given)
    assert (answer.matched, answer.label) == (True, "physics")
    assert answer.score == pytest.approx(expected("Maria sees the atom")["domain"].max(), abs=1e-6)
    sure = await ask("domain", {"any": ["law"]}, said("the atom"), given)
    assert (sure.matched, sure.label) == (False, "physics")
    unsure = await ask("domain", {"threshold": 0.999}, said("the atom"), given)
    assert unsure.matched is False


async def test_domain_by_anchors_can_be_asked_for(given: Resources, headless: Resources) -> None:
    by_anchors: Any = await built("domain", {"method": "anchors"}, given)
    usual: Any = await built("domain", {}, headless)
    assert by_anchors._threshold == usual._threshold == 0.4
    assert type(by_anchors._classes) is type(usual._classes)


async def test_a_head_of_other_fields_is_refused(given: Resources) -> None:
    strange: Any = SimpleNamespace(labels=("law", "alchemy"))
    with pytest.raises(SignalSetupError, match="other fields than these: alchemy, biology"):
        await built("domain", {}, Resources(text=given.text, heads={"domain": strange}))


async def test_fact_check_asks_its_head_only_where_the_policy_says_so(given: Resources) -> None:
    facts = await ask("fact_check", {"method": "head"}, said("the atom"), given)
    assert (facts.matched, facts.label) == (True, "facts")
    assert facts.score == pytest.approx(expected("the atom")["fact_check"][0], abs=1e-6)
    none = await ask("fact_check", {"method": "head", "any": ["no_facts"]}, said("the dog sees"), given)
    assert (none.matched, none.label) == (True, "no_facts")
    assert none.score == pytest.approx(1 - expected("the dog sees")["fact_check"][0], abs=1e-6)
    assert (await ask("fact_check", {"method": "head"}, said("the dog sees"), given)).matched is False
    by_examples: Any = await built("fact_check", {}, given)
    asked: Any = await built("fact_check", {"method": "head"}, given)
    assert (by_examples._threshold, asked._threshold) == (0.5, 0.7)


async def test_complexity_asks_its_head_only_where_the_policy_says_so(given: Resources) -> None:
    text = "the dog sees a dog may a dog see"
    answer = await ask("complexity", {"method": "head"}, said(text), given)
    score = expected(text)["complexity"][0]
    assert (answer.matched, answer.label) == (True, "hard")
    assert answer.score == pytest.approx(score, abs=1e-6)
    assert answer.value == pytest.approx(2 * score - 1, abs=1e-6)
    easy = await ask("complexity", {"method": "head", "threshold": 0.0}, said("the dog"), given)
    assert (easy.matched, easy.label) == (False, "easy")
    nothing = await ask("complexity", {"method": "head"}, view(("assistant", "the dog")), given)
    assert (nothing.matched, nothing.value) == (False, 0.0)
    by_examples = await ask("complexity", {}, said(text), given)
    assert by_examples.value != answer.value


async def test_names_are_asked_of_the_head_where_no_pack_is_named(given: Resources) -> None:
    text = "the dog sees Maria and writes to maria.silva@example.org"
    answer = await ask("pii", {"types": ["PERSON", "EMAIL_ADDRESS"]}, said(text), given)
    assert answer.matched is True
    found = {(evidence.label, text[slice(*evidence.span)]) for evidence in answer.evidence if evidence.span}
    assert ("PERSON", "Maria") in found
    assert ("EMAIL_ADDRESS", "maria.silva@example.org") in found
    signal = await built("pii", {"types": ["PERSON"]}, given)
    assert signal.cost == Cost.TEXT_MODEL


async def test_what_the_head_finds_must_reach_its_own_threshold_too(given: Resources) -> None:
    """It is 0.75 in the pack; of `The`, which has a capital, the head is less sure."""
    [_, first, *_] = expected("The dog")["pii"]
    assert 0.5 < first[1] < 0.75
    assert (await ask("pii", {"types": ["PERSON"]}, said("The dog"), given)).evidence == ()
    lower = await ask("pii", {"types": ["PERSON"], "threshold": 0.5}, said("The dog"), given)
    assert [evidence.label for evidence in lower.evidence] == ["PERSON"]


async def test_types_that_the_head_does_not_know_are_refused_with_a_way_out(
    given: Resources, headless: Resources
) -> None:
    with pytest.raises(SignalSetupError, match=r"knows PERSON; LOCATION can be had of a token-classifier pack"):
        await built("pii", {"types": ["PERSON", "LOCATION"]}, given)
    with pytest.raises(SignalSetupError, match=r"no head 'pii'; .* Without it PERSON can be had of a token-"):
        await built("pii", {"types": ["PERSON"], "engine": "head"}, headless)
    with pytest.raises(SignalSetupError, match="needs a text encoder"):
        await built("pii", {"types": ["PERSON"]})


async def test_patterns_alone_ask_no_head() -> None:
    assert (await built("pii", {})).cost == Cost.HEURISTIC


@pytest.mark.parametrize(
    ("settings", "heads"),
    [
        (ClassifierSettings(head="harm"), ("harm",)),
        (ClassifierSettings(pack="p", any=("x",)), ()),
        (JailbreakSettings(), ("jailbreak",)),
        (JailbreakSettings(method="combined"), ("jailbreak",)),
        (JailbreakSettings(method="contrastive"), ()),
        (JailbreakSettings(method="head"), ("jailbreak",)),
        (JailbreakSettings(method="any"), ("jailbreak",)),
        (JailbreakSettings(method="any", pack="p", attack_labels=("x",)), ()),
        (DomainSettings(), ("domain",)),
        (DomainSettings(method="anchors"), ()),
        (FactCheckSettings(), ()),
        (FactCheckSettings(method="head"), ("fact_check",)),
        (ComplexitySettings(), ()),
        (ComplexitySettings(method="head"), ("complexity",)),
        (PiiSettings(), ()),
        (PiiSettings(types=("PERSON",)), ("pii",)),
        (PiiSettings(types=("PERSON",), model="names"), ()),
        (PiiSettings(types=("PERSON",), engine="presidio"), ()),
    ],
)
def test_settings_tell_which_head_is_asked(settings: Any, heads: tuple[str, ...]) -> None:
    assert settings.heads == heads


@pytest.mark.parametrize(
    ("settings", "matching"),
    [
        (JailbreakSettings(), (0.7, None)),
        (JailbreakSettings(method="head"), None),
        (JailbreakSettings(method="head", threshold=0.8), (0.8, None)),
        (JailbreakSettings(method="any"), (0.7, None)),
        (JailbreakSettings(threshold=0.9), (0.9, None)),
    ],
)
def test_a_threshold_that_only_a_pack_can_tell_proves_nothing(settings: JailbreakSettings, matching: Any) -> None:
    assert settings.matching == matching


def test_a_head_takes_no_examples() -> None:
    with pytest.raises(ValidationError, match="takes no examples"):
        ComplexitySettings(method="head", hard=("a",), easy=("b",))


async def test_a_head_that_gives_no_number_makes_no_match(given: Resources) -> None:
    class Broken:
        labels = ("facts",)
        pack = "x"
        part = SimpleNamespace(threshold=0.5, windows="max")

        async def classify_windows(self, text: str) -> Any:
            return SimpleNamespace(spans=((0, len(text)),), probabilities=np.array([[np.nan]]))

    heads: Any = {"fact_check": Broken()}
    answer = await ask("fact_check", {"method": "head"}, said("the dog"), Resources(text=given.text, heads=heads))
    assert (answer.status, answer.matched) == ("failed", None)


async def test_fakes_without_heads_still_stand_for_an_encoder() -> None:
    assert (await ask("domain", {}, said("x"), encoders(FakeText()))).status == "observed"
