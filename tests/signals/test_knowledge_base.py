from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from signal_fakes import DIMENSION, FakeText, ask, built, encoders, said, unit, view

from router.inference.text import TextEncoder
from router.signals.base import Cost, Observation
from router.signals.knowledge_base import KnowledgeBaseSettings
from router.signals.resources import SignalSetupError

TEXTS = {
    "charged twice": unit(1),
    "wrong invoice": unit(0.8, 0.6),
    "where is my parcel": unit(0, 0, 1),
    "parcel is late": unit(0, 0.6, 0.8),
    "refund.": unit(1),
    "delivery.": unit(0, 0, 1),
    "between.": unit(0.9, 0, 0.436),
    "against all.": unit(-1, -1, -1),
}
FILE = """billing:
  - charged twice
  - wrong invoice
shipping:
  - where is my parcel
  - parcel is late
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kb.yaml").write_text(FILE)
    return tmp_path


async def judge(folder: Path, *texts: str, **settings: Any) -> Observation:
    settings = {"file": "kb.yaml", "k": 2, **settings}
    return await ask("knowledge_base", settings, said(*texts), encoders(FakeText(TEXTS), base=folder))


async def test_the_nearest_examples_vote_and_their_mean_is_the_score(folder: Path) -> None:
    answer = await judge(folder, "refund.")
    assert (answer.matched, answer.label, answer.pack) == (True, "billing", "text-pack")
    assert answer.score == pytest.approx(0.9)


async def test_evidence_names_the_files_state_and_the_line_of_the_nearest(folder: Path) -> None:
    (evidence,) = (await judge(folder, "refund.")).evidence
    digest = hashlib.sha256(FILE.encode()).hexdigest()
    assert evidence.detail == f"sha256:{digest[:12]} line 2"
    assert (evidence.label, evidence.span) == ("billing", (0, 7))


async def test_only_those_of_the_nearest_that_bear_the_label_make_its_score(folder: Path) -> None:
    answer = await judge(folder, "delivery.", k=3)
    assert answer.label == "shipping"
    assert answer.score == pytest.approx(0.9)


async def test_several_that_are_near_outvote_one_that_is_nearest(folder: Path) -> None:
    (folder / "kb.yaml").write_text("a: [charged twice]\nb: [wrong invoice, parcel is late, where is my parcel]\n")
    assert (await judge(folder, "refund.", k=1)).label == "a"
    assert (await judge(folder, "between.", k=4)).label == "b"


@pytest.mark.parametrize(("threshold", "matched"), [(0.89, True), (0.91, False)])
async def test_threshold(folder: Path, threshold: float, matched: bool) -> None:
    assert (await judge(folder, "refund.", threshold=threshold)).matched is matched


async def test_only_labels_asked_for_match(folder: Path) -> None:
    answer = await judge(folder, "refund.", any=["shipping"])
    assert (answer.matched, answer.label) == (False, "billing")
    assert (await judge(folder, "refund.", any=["shipping", "billing"])).matched is True


async def test_the_window_with_the_highest_score_decides(folder: Path) -> None:
    answer = await judge(folder, "between. delivery.", k=1)
    assert answer.label == "shipping"
    assert answer.evidence[0].span == (8, 18)


async def test_what_is_like_no_example_scores_nothing(folder: Path) -> None:
    answer = await judge(folder, "against all.", threshold=0.01)
    assert (answer.matched, answer.score) == (False, 0.0)
    assert answer.label in {"billing", "shipping"}


async def test_more_neighbours_than_examples_are_all_examples(folder: Path) -> None:
    assert (await judge(folder, "refund.", k=100)).label == "billing"


async def test_nothing_to_read_is_no_match(folder: Path) -> None:
    given = encoders(FakeText(TEXTS), base=folder)
    for request in (view(), said(""), view(("assistant", "refund."))):
        answer = await ask("knowledge_base", {"file": "kb.yaml"}, request, given)
        assert (answer.matched, answer.score, answer.evidence) == (False, 0.0, ())


async def test_overload_sheds_and_no_number_is_unknown(folder: Path) -> None:
    text = FakeText({**TEXTS, "odd": np.full(DIMENSION, np.nan, np.float32)})
    signal = await built("knowledge_base", {"file": "kb.yaml"}, encoders(text, base=folder))
    assert (await signal.observe(said("odd"))).reason == "no number"
    text.overloaded = True
    assert (await signal.observe(said("refund."))).status == "shed"
    assert signal.cost is Cost.TEXT_MODEL


async def test_the_file_is_read_once_and_its_examples_embedded_once(folder: Path) -> None:
    text = FakeText(TEXTS)
    signal = await built("knowledge_base", {"file": "kb.yaml"}, encoders(text, base=folder))
    (folder / "kb.yaml").unlink()
    await signal.observe(said("refund."))
    await signal.observe(said("refund."))
    assert len(text.embedded) == 4 + 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"file": "gone.yaml"}, r"knowledge_base/it: gone\.yaml: No such file"),
        ({"file": "bad.jsonl"}, r"knowledge_base/it: bad\.jsonl: line 2: "),
        ({"file": "kb.yaml", "any": ["biling"]}, "no exemplar has the label 'biling'; it has: billing, shipping"),
    ],
)
async def test_a_file_that_does_not_serve_is_told_to_the_author(
    folder: Path, settings: dict[str, Any], message: str
) -> None:
    (folder / "bad.jsonl").write_text('{"text": "a", "label": "x"}\n{"text": 3}\n')
    with pytest.raises(SignalSetupError, match=message):
        await built("knowledge_base", settings, encoders(FakeText(), base=folder))


async def test_with_the_starter_encoder_a_paraphrase_finds_its_label(folder: Path, starter_text: TextEncoder) -> None:
    given = encoders(starter_text, base=folder)
    signal = await built("knowledge_base", {"file": "kb.yaml", "k": 2}, given)
    assert (await signal.observe(said("My package still has not arrived"))).label == "shipping"
    assert (await signal.observe(said("You took the money from my card two times"))).label == "billing"


@pytest.mark.parametrize(
    "settings", [{}, {"file": " "}, {"file": "a", "k": 0}, {"file": "a", "any": []}, {"file": "a", "threshold": 2}]
)
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        KnowledgeBaseSettings.model_validate(settings)
