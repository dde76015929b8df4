"""What the families that rest on embeddings get right on real requests, at their default settings, with the starters.

`pytest -s tests/signals/test_learned_figures.py` prints the figures. Nothing of `text/authored` and of the images took
part in writing examples or in setting constants; some intents of CLINC150 did, after a first look.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from signal_fakes import built, encoders, said, view

from router.inference.cache import EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.open import open_vision_model
from router.inference.text import TextEncoder
from router.inference.vision import VisionEncoder
from router.packs.store import open_pack
from router.request.images import ImageLimits
from router.request.view import ImagePart, RequestView
from router.signals.base import Signal
from router.signals.resources import Resources

pytestmark = [pytest.mark.data, pytest.mark.slow]

SAMPLE = 120

ASKED_OF_IMAGES = {
    "animal": "what breed is this dog",
    "chart_plot": "summarise the trend in this chart",
    "chest_xray": "is there pneumonia in this chest x-ray",
    "code_screenshot": "find the bug in this function",
    "food": "how do I cook this dish",
    "map": "how do I get from the station to the museum on this map",
    "passport_or_id": "extract the name and number from this passport",
    "receipt_invoice": "what is the total of this invoice",
    "vehicle": "which model of car is this",
    "table": "turn this table into CSV",
}

Rows = list[dict[str, Any]]


def rows(file: str) -> Rows:
    path = Path(os.environ["POINTSMAN_DATA"]) / "text" / f"{file}.jsonl"
    return [json.loads(line) for line in path.read_text().rstrip().split("\n")]


def sample(file: str, wanted: Callable[[str], bool] = lambda _: True, most: int = SAMPLE) -> list[str]:
    """Evenly spaced texts of a set."""
    texts = [row["text"] for row in rows(file) if wanted(row["label"])]
    return texts[:: max(1, len(texts) // most)][:most]


async def share_matched(
    signal: Signal, texts: list[str], what: str, make: Callable[[str], RequestView] = said
) -> float:
    share = sum([bool((await signal.observe(make(text))).matched) for text in texts]) / len(texts)
    print(f"\n{signal.name}: {what}: {share:.3f} of {len(texts)}", end="")
    return share


def chats() -> list[tuple[dict[str, Any], RequestView]]:
    found = []
    for row in rows("authored/conversations"):
        turns = [
            (m["role"], m["content"] if isinstance(m["content"], str) else m["content"][0]["text"])
            for m in row["request"]["messages"]
        ]
        found.append((row["expect"], view(*turns)))
    return found


@pytest.mark.parametrize(("method", "least", "sure_least"), [("head", 0.75, 0.84), ("anchors", 0.72, 0.77)])
async def test_domain(starter_with_heads: Resources, method: str, least: float, sure_least: float) -> None:
    signal = await built("domain", {"method": method}, starter_with_heads)
    right = sure = sure_and_right = 0
    authored = rows("authored/domain")
    by_label: Counter[str] = Counter()
    for row in authored:
        answer = await signal.observe(said(row["text"]))
        hit = answer.label == row["label"]
        right += hit
        by_label[row["label"]] += hit
        sure += bool(answer.matched)
        sure_and_right += bool(answer.matched and hit)
    print(f"\ndomain, {method}: {right / len(authored):.3f} of {len(authored)}; {sure} from the threshold on,", end=" ")
    print(f"{sure_and_right / sure:.3f} of them right; {dict(by_label)}", end="")
    assert right / len(authored) >= least
    assert sure_and_right / sure >= sure_least


@pytest.mark.parametrize(
    ("file", "labels", "least", "most"),
    [
        ("sources/mmlu_redux_subjects", ("global_facts", "high_school_geography", "prehistory", "virology"), 0.8, 1.0),
        ("sources/xquad_questions_multilingual", ("en",), 0.85, 1.0),
        ("sources/gpteacher", ("benign_coding",), 0.0, 0.25),
        ("sources/gpteacher", ("benign_roleplay",), 0.0, 0.25),
        ("sources/math_code_reasoning", ("math_word_problem",), 0.0, 0.15),
        ("sources/banking77", None, 0.0, 0.2),
    ],
)
async def test_fact_check(
    starter_text: TextEncoder, file: str, labels: tuple[str, ...] | None, least: float, most: float
) -> None:
    signal = await built("fact_check", {}, encoders(starter_text))
    texts = sample(file, lambda label: labels is None or label in labels)
    assert least <= await share_matched(signal, texts, f"{file} {labels or ''}") <= most


def replied(text: str) -> RequestView:
    return view(("user", "How do I do it?"), ("assistant", "Like this."), ("user", text))


@pytest.mark.parametrize(
    ("file", "label", "wanted", "least", "most"),
    [
        ("sources/clinc150", "thank_you", "satisfied", 0.75, 1.0),
        ("sources/clinc150", "repeat", "needs_clarification", 0.35, 1.0),
        ("sources/clinc150", "weather", "any", 0.0, 0.05),
        ("sources/banking77", None, "any", 0.0, 0.15),
        ("sources/benign_instructions", None, "any", 0.0, 0.15),
        ("sources/gpteacher", None, "any", 0.0, 0.15),
    ],
)
async def test_feedback(
    starter_text: TextEncoder, file: str, label: str | None, wanted: str, least: float, most: float
) -> None:
    settings = {} if wanted == "any" else {"any": [wanted]}
    signal = await built("feedback", settings, encoders(starter_text))
    texts = sample(file, lambda each: label in {None, each})
    assert least <= await share_matched(signal, texts, f"{file} {label or ''}: {wanted}", replied) <= most


async def test_reask(starter_text: TextEncoder) -> None:
    signal = await built("reask", {}, encoders(starter_text))
    found: dict[bool, list[bool]] = {True: [], False: []}
    for expect, request in chats():
        answer = await signal.observe(request)
        found[expect["reask"]].append(bool(answer.matched))
        print(f"\nreask: {expect['reask']}: {answer.score:.2f}", end="")
    recall, alarms = (sum(found[kind]) / len(found[kind]) for kind in (True, False))
    print(f"\nreask: {recall:.3f} of {len(found[True])} found, {alarms:.3f} of {len(found[False])} false", end="")
    assert recall >= 0.3
    assert alarms <= 0.05


@pytest.mark.parametrize("same", [True, False])
async def test_reask_of_paraphrases(starter_text: TextEncoder, same: bool) -> None:
    """Two requests of one intent, and of two, one after the other."""
    signal = await built("reask", {}, encoders(starter_text))
    intents: dict[str, list[str]] = {}
    for row in rows("sources/banking77"):
        intents.setdefault(row["label"], []).append(row["text"])
    names = sorted(intents)
    pairs = [(intents[name][0], intents[name if same else names[i - 1]][1]) for i, name in enumerate(names)]
    matched = 0
    for first, second in pairs:
        request = view(("user", first), ("assistant", "I see."), ("user", second))
        matched += bool((await signal.observe(request)).matched)
    print(f"\nreask: {'one intent' if same else 'two intents'}: {matched / len(pairs):.3f} of {len(pairs)}", end="")
    assert matched / len(pairs) >= 0.2 if same else matched / len(pairs) <= 0.02


@pytest.fixture
async def starters(starter_text: TextEncoder, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[VisionEncoder]:
    pack = open_pack("starter", "vision", Path("/nowhere"))
    model = open_vision_model(pack, ImageLimits(), tmp_path_factory.mktemp("weights"))
    executor = InferenceExecutor(threads=2, queue=64)
    yield VisionEncoder(pack, model, executor, EmbeddingCache(1 << 25))
    executor.close()


async def test_agreement(starter_text: TextEncoder, starters: VisionEncoder) -> None:
    signal = await built("agreement", {}, encoders(starter_text, starters))
    folder = Path(os.environ["POINTSMAN_DATA"]) / "images" / "dev"
    alarms: dict[str, list[bool]] = {"own": [], "other": [], "pointing": []}
    kinds = list(ASKED_OF_IMAGES)
    pointing = ["tell me what you see", "any idea what this could be?", "what can you say about the attached image?"]
    pointing += ["is this ok", "thoughts?", "can you check this for me"]
    for index, kind in enumerate(kinds):
        for number, path in enumerate(sorted((folder / kind).iterdir())[:6]):
            image = ImagePart("/messages/0/content/1", "inline", path.read_bytes())
            other = ASKED_OF_IMAGES[kinds[(index + 3) % len(kinds)]]
            for what, text in (("own", ASKED_OF_IMAGES[kind]), ("other", other), ("pointing", pointing[number])):
                alarms[what].append(bool((await signal.observe(view(("user", text, image)))).matched))
    shares = {what: sum(each) / len(each) for what, each in alarms.items()}
    print(f"\nagreement: {shares} of {len(alarms['own'])}", end="")
    assert shares["own"] <= 0.15
    assert shares["other"] >= 0.9
    assert shares["pointing"] <= 0.4


async def test_complexity(starter_text: TextEncoder) -> None:
    signal = await built("complexity", {}, encoders(starter_text))
    easy = await share_matched(signal, sample("sources/clinc150"), "everyday commands")
    proofs = sample("sources/mmlu_redux_subjects", lambda label: label in {"abstract_algebra", "college_mathematics"})
    hard = await share_matched(signal, proofs, "college mathematics")
    arena = await share_matched(
        signal, sample("sources/benign_instructions", lambda label: label == "benign_arena_hard"), "arena"
    )
    assert easy <= 0.12
    assert hard >= 0.4
    assert arena >= 0.55
