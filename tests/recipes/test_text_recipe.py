"""The pure parts of the recipe of the text heads; training itself needs the data and an hour."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.text import attacks, dedupe
from models.text.branch import Branch
from models.text.calibrate import platt, reliability, rising, sigmoid, temperature, threshold, wilson
from models.text.domain_head import NEAREST, DomainHead
from models.text.export import paired
from models.text.linear import balanced, fit
from models.text.pii import IGNORED, NO_PERSON, PERSON, loss_of
from models.text.pii_data import joined, part_of, told_apart
from models.text.sources import Row, calibrates, may_train, own_sections
from models.text.states import in_pairs
from router.inference.head_features import PATTERNS
from router.signals.domain_anchors import SUBJECTS


@pytest.mark.parametrize("kind", [attacks.direct, attacks.role_play])
def test_attacks_leave_no_slot_open(kind: object) -> None:
    random_ = random.Random(0)
    texts = [kind(random_) for _ in range(300)]  # type: ignore[operator]
    assert not [text for text in texts if re.search(r"\{(?!role|task)\w+\}", text)]
    assert len(set(texts)) > 200


def test_a_suffix_keeps_the_request() -> None:
    text = attacks.suffixed("How do magnets work?", ["alpha", "##beta", "gamma"], random.Random(1))
    assert text.startswith("How do magnets work? ")
    assert "##" not in text


def test_measuring_and_calibrating_rows_do_not_train() -> None:
    for source in ("tensor_trust", "xquad_questions_multilingual", "authored/domain"):
        assert not may_train(Row("", "", source))
    held = Row("", "", "benign_instructions", "x:data/arena-hard-v0.1/question.jsonl")
    assert calibrates(held)
    assert not may_train(held)
    assert may_train(Row("", "", "benign_instructions", "x:data/seed_tasks.jsonl"))


def test_near_duplicates_by_grams() -> None:
    long = "one two three four five six seven eight nine ten eleven"
    texts = [long + " twelve", "something else that has nothing to do with it at all today", "Good morning"]
    assert by(texts, [long, "good MORNING!"]) == [True, False, True]


def by(texts: list[str], measuring: list[str]) -> list[bool]:
    return dedupe.by_grams(texts, measuring).tolist()


def test_near_duplicates_by_cosine() -> None:
    unit = np.eye(3, dtype=np.float32)
    assert dedupe.by_cosine(unit, unit[:1]).tolist() == [True, False, False]
    assert not dedupe.by_cosine(unit, unit[:0]).any()


@given(st.integers(1, 12))
def test_pairs_are_the_same_in_numpy_and_in_the_graph(size: int) -> None:
    states = np.random.default_rng(size).normal(size=(size, 384)).astype(np.float32)
    pairs = paired(torch.from_numpy(states)[None])
    assert pairs.shape[1] == -(-size // 2)
    np.testing.assert_allclose(pairs[0].numpy(), in_pairs(states), rtol=1e-5, atol=1e-6)


def test_padding_changes_nothing_for_the_branch() -> None:
    torch.manual_seed(0)
    branch = Branch().eval()
    pairs, means, patterns = torch.randn(1, 5, 384), torch.randn(1, 384), torch.rand(1, PATTERNS)
    alone = branch(pairs, means, patterns)
    padding = torch.full((1, 3, 384), 9.0)
    padded = branch(torch.cat([pairs, padding], 1), means, patterns, torch.tensor([[1.0] * 5 + [0.0] * 3]))
    torch.testing.assert_close(alone, padded)


def test_the_domain_head_knows_its_neighbours() -> None:
    vectors = np.eye(len(SUBJECTS), 384, dtype=np.float32).repeat(NEAREST, axis=0)
    labels = np.arange(len(SUBJECTS)).repeat(NEAREST)
    head = DomainHead.of(torch.nn.Linear(384, len(SUBJECTS)), vectors, labels)
    torch.nn.init.zeros_(head.linear.weight)
    assert head(torch.from_numpy(vectors[::NEAREST])).argmax(1).tolist() == list(range(len(SUBJECTS)))


def test_linear_finds_what_separates() -> None:
    random_ = np.random.default_rng(0)
    features = random_.normal(size=(300, 4)).astype(np.float32)
    labels = (features[:, 1] > 0).astype(np.int64)
    head = fit(features, labels, np.ones(300, np.float32), 1, 1e-4)
    told = (head(torch.from_numpy(features))[:, 0] > 0).numpy()
    assert (told == labels).mean() > 0.97


def test_sources_weigh_their_share_and_labels_alike() -> None:
    weights = balanced([(4, 0.75), (2, 0.25)], np.array([0, 0, 0, 1, 0, 0]))
    assert weights[:4].sum() == pytest.approx(0.75)
    assert weights[3] == pytest.approx(0.375)
    assert weights[4:].sum() == pytest.approx(0.25)


def test_temperature_undoes_a_scale() -> None:
    random_ = np.random.default_rng(0)
    logits = random_.normal(size=(4000, 3)) * 2
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = np.array([random_.choice(3, p=share) for share in shares])
    assert temperature(logits * 3, labels) == pytest.approx(3, rel=0.15)


def test_platt_undoes_scale_and_bias() -> None:
    random_ = np.random.default_rng(0)
    logits = random_.normal(size=20_000) * 2
    hits = random_.random(20_000) < sigmoid(logits)
    moved = logits * 2 + 1
    scale, bias = platt(moved[~hits], moved[hits])
    assert (scale, bias) == (pytest.approx(0.5, abs=0.05), pytest.approx(-0.5, abs=0.1))


def test_threshold_lets_one_in_a_hundred_through() -> None:
    values = np.linspace(0, 0.9, 300)
    assert (values >= threshold(values)).sum() == 3
    assert (np.linspace(0, 0.9, 50) >= threshold(np.linspace(0, 0.9, 50))).sum() == 0


def test_reliability_leaves_out_empty_tenths() -> None:
    table = reliability(np.array([0.05, 0.95, 0.97]), np.array([False, True, True]), np.ones(3))
    assert [(round(p, 2), share, n) for p, share, n in table] == [(0.05, 0.0, 1), (0.96, 1.0, 2)]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30))
def test_the_rising_curve_never_falls_and_keeps_the_mean(values: list[float]) -> None:
    curve = rising(np.array(values))
    assert (np.diff(curve) >= -1e-9).all()
    assert curve.mean() == pytest.approx(np.mean(values), abs=1e-9)
    assert rising(np.sort(values)) == pytest.approx(np.sort(values))


@given(st.integers(0, 60), st.integers(0, 60))
def test_intervals_hold_the_share(hits: int, misses: int) -> None:
    low, high = wilson(hits, hits + misses)
    assert 0 <= low <= high <= 1
    if hits + misses:
        assert low <= hits / (hits + misses) <= high


def test_neighbouring_stretches_of_one_kind_are_one() -> None:
    text = "Ann Lee, Bo"
    assert joined(text, [(0, 3, "PERSON"), (4, 7, "PERSON"), (9, 11, "PERSON")]) == (
        (0, 7, "PERSON"),
        (9, 11, "PERSON"),
    )


def test_templates_are_parted_for_good() -> None:
    parts = [part_of(f"template {number}") for number in range(400)]
    assert 60 < parts.count("test") < 140
    assert 25 < parts.count("calibrate") < 80


def test_every_field_has_questions() -> None:
    sections = own_sections("domain_questions")
    assert set(sections) == set(SUBJECTS)
    assert min(map(len, sections.values())) >= 40


def test_what_was_judged_in_a_text_is_a_person_or_none_and_other_capitals_beside_people_are_unsure() -> None:
    text = "Ask Ada Byron, not Jira, about Babbage. Adamant Ada agreed."
    marked = told_apart(text, ["+Ada", "+Ada Byron", "-Jira"])
    assert {text[start:end] for start, end, _ in marked.spans} == {"Ada", "Ada Byron"}
    assert {text[start:end] for start, end in marked.unsure} == {"Ask", "Babbage", "Adamant"}
    alone = told_apart("Open Jira and Notion.", ["-Jira"])
    assert (alone.spans, alone.unsure) == ((), ())


def test_where_only_people_were_looked_for_any_other_label_is_right() -> None:
    sure = torch.tensor([[0.0, 12.0, 0.0, 0.0], [0.0, 0.0, 0.0, 12.0]])
    none, unsure = torch.tensor([NO_PERSON, PERSON]), torch.tensor([NO_PERSON, IGNORED])
    assert float(loss_of(sure, none)) < 0.3
    assert float(loss_of(sure[:1], unsure[:1])) < 0.01
    assert float(loss_of(sure[1:], none[:1])) > 5
    assert torch.isfinite(loss_of(sure * 100, none))
    assert float(loss_of(sure, unsure)) == pytest.approx(float(loss_of(sure[:1], none[:1])))
