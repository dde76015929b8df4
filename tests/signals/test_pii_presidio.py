from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import spacy
from signal_fakes import ask, built, encoders, said

from router.inference.executor import Overloaded
from router.signals.pii_models import PIECE, QUEUE, PresidioTagger
from router.signals.resources import SignalSetupError

# Presidio and spaCy take seconds to import.
pytestmark = pytest.mark.slow

PRESIDIO = {"types": ["PERSON"], "engine": "presidio", "nlp_configuration": "nlp.yaml"}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spaCy model that knows one name by a rule, since none can be fetched, and Presidio's configuration for it."""
    folder = tmp_path_factory.mktemp("presidio")
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Jane Roe"}])
    nlp.to_disk(folder / "model")
    (folder / "nlp.yaml").write_text(
        f"nlp_engine_name: spacy\nmodels: [{{lang_code: en, model_name: {folder / 'model'}}}]\n"
        "ner_model_configuration: {model_to_presidio_entity_mapping: {PERSON: PERSON}, labels_to_ignore: []}\n"
    )
    (folder / "missing.yaml").write_text(
        "nlp_engine_name: spacy\nmodels: [{lang_code: en, model_name: en_no_such_model}]\n"
    )
    (folder / "odd.yaml").write_text("models: 3\n")
    (folder / "stanza.yaml").write_text("nlp_engine_name: stanza\nmodels: [{lang_code: en, model_name: en}]\n")
    return folder


async def test_presidio_finds_names_beside_what_patterns_find(folder: Path) -> None:
    settings = {**PRESIDIO, "types": ["PERSON", "CREDIT_CARD"]}
    text = "I am Jane Roe, card 4111111111111111"
    observation = await ask("pii", settings, said(text), encoders(base=folder))
    assert {(e.label, text[slice(*(e.span or ()))]) for e in observation.evidence} == {
        ("PERSON", "Jane Roe"),
        ("CREDIT_CARD", "4111111111111111"),
    }


async def test_presidio_finds_types_of_its_own_patterns(folder: Path) -> None:
    settings = {**PRESIDIO, "types": ["US_DRIVER_LICENSE"], "threshold": 0.3}
    observation = await ask("pii", settings, said("my driver license is H12234567"), encoders(base=folder))
    assert observation.label == "US_DRIVER_LICENSE"


async def test_a_name_in_a_long_text_is_found_in_its_place(folder: Path) -> None:
    text = "word " * (PIECE // 5 - 1) + "Jane Roe" + " word" * 2_000
    observation = await ask("pii", PRESIDIO, said(text), encoders(base=folder))
    assert [text[slice(*(e.span or ()))] for e in observation.evidence] == ["Jane Roe"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({**PRESIDIO, "nlp_configuration": "missing.yaml"}, "python -m spacy download en_no_such_model"),
        ({**PRESIDIO, "nlp_configuration": "nowhere.yaml"}, "cannot be read"),
        ({**PRESIDIO, "nlp_configuration": "odd.yaml"}, "no list of `models`"),
        ({**PRESIDIO, "nlp_configuration": "stanza.yaml"}, "must name the engine spacy"),
        ({**PRESIDIO, "nlp_configuration": None}, "python -m spacy download en_core_web_lg"),
        ({**PRESIDIO, "types": ["NO_SUCH_TYPE"]}, "no recogniser for NO_SUCH_TYPE"),
        ({**PRESIDIO, "types": ["URL"]}, "no recogniser for URL"),
    ],
)
async def test_what_is_missing_is_said_and_nothing_is_fetched(
    folder: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SignalSetupError, match=message):
        await built("pii", settings, encoders(base=folder))


async def test_without_presidio_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    with pytest.raises(SignalSetupError, match=r"pip install 'pointsman\[pii\]'"):
        await built("pii", {"types": ["PERSON"], "engine": "presidio"})


class SlowEngine:
    def __init__(self) -> None:
        self.go = threading.Event()
        self.texts: list[str] = []

    def analyze(self, text: str, language: str, entities: list[str]) -> list[Any]:
        self.go.wait(10)
        self.texts.append(text)
        return [SimpleNamespace(start=0, end=4, entity_type="PERSON", score=0.85)]


async def test_presidio_never_holds_up_the_event_loop_and_its_queue_is_bounded() -> None:
    engine = SlowEngine()
    tagger = PresidioTagger(["PERSON"], "en", engine)
    waiting = [asyncio.create_task(tagger.tag("Jane")) for _ in range(QUEUE)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await tagger.tag("Jane")
    engine.go.set()
    assert [(await task)[0].label for task in waiting] == ["PERSON"] * QUEUE
    assert (await tagger.tag("Jane"))[0].score == 0.85


async def test_work_that_nobody_waits_for_is_not_begun() -> None:
    engine = SlowEngine()
    tagger = PresidioTagger(["PERSON"], "en", engine)
    waiting = [asyncio.create_task(tagger.tag(f"{number}")) for number in range(5)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    engine.go.set()
    await tagger.tag("last")
    assert engine.texts in (["0", "last"], ["last"])
