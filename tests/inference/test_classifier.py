"""Classifier packs behind executor and cache: windows, tags, gate and canary."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_classifier import digest, write_classifier_pack

from router.inference.cache import EmbeddingCache
from router.inference.canary import Canary
from router.inference.classifier import Classifier
from router.inference.encoders import Encoders
from router.inference.executor import InferenceExecutor, Overloaded
from router.inference.gate import check_encoders
from router.inference.open import open_classifier_model, open_encoders
from router.packs.store import open_pack
from router.request.images import ImageLimits

PEOPLE = {
    "maria": "B-PER", "silva": "I-PER", "joe": "B-PER", "lisbon": "B-LOC", "pe": "B-PER", "##trov": "I-PER", "-": "O",
}  # fmt: skip
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
Make = Callable[..., Classifier]


@pytest.fixture
def make(tmp_path: Path, executor: InferenceExecutor, cache: EmbeddingCache) -> Make:
    def make(words: dict[str, str], labels: list[str], **more: Any) -> Classifier:
        folder = write_classifier_pack(tmp_path / "made", words, labels, **more)
        pack = open_pack(str(folder), "classifier", tmp_path)
        return Classifier(pack, open_classifier_model(pack), executor, cache)

    return make


@pytest.fixture
def insults(make: Make) -> Classifier:
    return make({"idiot": "toxic", "fool": "rude"}, ["fine", "toxic", "rude"])


@pytest.fixture
def people(make: Make) -> Classifier:
    return make(PEOPLE, TAGS, level="token")


async def test_a_word_deep_in_a_long_text_shows_in_its_own_windows_alone(insults: Classifier) -> None:
    text = "well " * 60 + "idiot " + "well " * 60
    windows = await insults.classify_windows(text)
    assert windows.probabilities.shape == (len(windows.spans), 3)
    assert windows.probabilities.dtype == np.float64
    assert np.allclose(windows.probabilities.sum(axis=1), 1)
    place = text.index("idiot")
    for (start, end), row in zip(windows.spans, windows.probabilities, strict=True):
        assert (row[1] > 0.9) == (start <= place < end)


async def test_an_empty_text_is_one_window(insults: Classifier) -> None:
    windows = await insults.classify_windows("")
    assert windows.spans == ((0, 0),)
    assert insults.labels[int(windows.probabilities[0].argmax())] == "fine"


async def test_what_was_judged_before_is_not_judged_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = make({"idiot": "toxic"}, ["fine", "toxic"])
    judged: list[int] = []
    probabilities = classifier.model.probabilities
    monkeypatch.setattr(classifier.model, "probabilities", lambda some: judged.append(len(some)) or probabilities(some))
    first = await classifier.classify_windows("you idiot")
    assert np.array_equal((await classifier.classify_windows("you idiot")).probabilities, first.probabilities)
    assert judged == [1]


async def test_more_than_may_wait_is_passed_on(make: Make) -> None:
    classifier = make({"idiot": "toxic"}, ["fine", "toxic"])
    full = InferenceExecutor(threads=1, queue=0)
    classifier = Classifier(classifier.source, classifier.model, full, EmbeddingCache(1 << 20))
    results = await asyncio.gather(
        *(classifier.classify_windows(f"well {'ho ' * 200}{index}") for index in range(4)), return_exceptions=True
    )
    assert any(isinstance(result, Overloaded) for result in results)
    full.close()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("the house", []),
        ("Maria Silva lives in Lisbon.", [("Maria Silva", "PER"), ("Lisbon", "LOC")]),
        ("Maria, Joe", [("Maria", "PER"), ("Joe", "PER")]),
        ("Maria Joe", [("Maria", "PER"), ("Joe", "PER")]),
        ("  Maria\n\n Silva  ", [("Maria\n\n Silva", "PER")]),
        ("Petrov met Maria", [("Petrov", "PER"), ("Maria", "PER")]),
        ("日本 Maria é", [("Maria", "PER")]),
        ("\ud800 Maria", [("Maria", "PER")]),
        ("well " * 40 + "Maria Silva " + "well " * 40, [("Maria Silva", "PER")]),
    ],
)
async def test_tags_are_whole_words_in_characters_of_the_text(
    people: Classifier, text: str, expected: list[tuple[str, str]]
) -> None:
    spans = await people.tag(text)
    assert [(text[span.start : span.end], span.label) for span in spans] == expected
    assert all(0.9 < span.score <= 1 for span in spans)
    assert people.labels == ("LOC", "PER")


@pytest.mark.parametrize("before", range(0, 20))
async def test_a_name_on_the_border_of_two_windows_is_one_span(people: Classifier, before: int) -> None:
    text = "well " * before + "Maria Silva " + "well " * 30
    (span,) = await people.tag(text)
    assert text[span.start : span.end] == "Maria Silva"


async def test_plain_labels_join_neighbours(make: Make) -> None:
    people = make({"maria": "NAME", "silva": "NAME"}, ["O", "NAME"], level="token")
    (span,) = await people.tag("Maria Silva")
    assert (span.start, span.end, span.label) == (0, 11, "NAME")


async def test_a_word_is_what_its_pieces_are_on_average(make: Make) -> None:
    """Two of three pieces are outside, and surely so: half a word is no name."""
    people = make({"ma": "PER", "##na": "O", "##ger": "O", "o": "O"}, ["O", "PER"], level="token")
    assert await people.tag("manager") == ()
    assert [span.label for span in await people.tag("ma")] == ["PER"]


async def test_gate_and_canary_prove_classifiers(
    tmp_path: Path, executor: InferenceExecutor, cache: EmbeddingCache
) -> None:
    write_classifier_pack(tmp_path / "mine", {"idiot": "toxic"}, ["fine", "toxic"])
    write_classifier_pack(tmp_path / "people", PEOPLE, TAGS, level="token")
    encoders = opened(tmp_path, executor, cache)
    assert check_encoders(encoders) == []
    canary = Canary(encoders, executor, 3600.0)
    assert [await canary.round(turn) for turn in range(5)] == [[]] * 5


async def test_a_classifier_that_has_drifted_is_caught_at_the_start_and_while_serving(
    tmp_path: Path, executor: InferenceExecutor, cache: EmbeddingCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_classifier_pack(tmp_path / "mine", {"idiot": "toxic"}, ["fine", "toxic"])
    write_classifier_pack(tmp_path / "people", PEOPLE, TAGS, level="token")
    encoders = opened(tmp_path, executor, cache)
    canary = Canary(encoders, executor, 3600.0)
    model = encoders.classifiers["./mine"].model
    probabilities = model.probabilities
    monkeypatch.setattr(model, "probabilities", lambda some: probabilities(some)[:, ::-1])
    assert {(miss.pack, miss.stage) for miss in await canary.round(1)} == {("mine", "embeddings")}

    vectors = json.loads((folder / "golden/classifier.json").read_text())
    vectors["probabilities"][1] = [0.5, 0.5]
    (folder / "golden/classifier.json").write_text(json.dumps(vectors))
    manifest = (folder / "pack.yaml").read_text()
    old = encoders.classifiers["./mine"].model.tower.golden.sha256
    (folder / "pack.yaml").write_text(manifest.replace(old, digest(folder / "golden/classifier.json")))
    misses = check_encoders(opened(tmp_path, executor, cache))
    assert {(miss.pack, miss.stage) for miss in misses} == {("mine", "embeddings"), ("mine", "batch")}


async def test_a_pack_under_two_references_is_opened_once(
    tmp_path: Path, executor: InferenceExecutor, cache: EmbeddingCache
) -> None:
    write_classifier_pack(tmp_path / "mine", {"idiot": "toxic"}, ["fine", "toxic"])
    packs = {reference: open_pack(reference, "classifier", tmp_path) for reference in ("./mine", "mine")}
    encoders = open_encoders(None, None, executor, cache, ImageLimits(), classifiers=packs)
    assert encoders.classifiers["./mine"] is encoders.classifiers["mine"]
    assert len(encoders.distinct_classifiers) == 1


def opened(base: Path, executor: InferenceExecutor, cache: EmbeddingCache) -> Encoders:
    packs = {reference: open_pack(reference, "classifier", base) for reference in ("./mine", "./people")}
    return open_encoders(None, None, executor, cache, ImageLimits(), classifiers=packs)
