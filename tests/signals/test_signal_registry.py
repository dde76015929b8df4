from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from signal_fakes import FakeText, FakeVision, built, encoders

from router.signals.base import Cost, SignalName, failed, observed
from router.signals.registry import FAMILIES
from router.signals.resources import Resources, SignalSetupError

LEAST: dict[str, dict[str, Any]] = {
    "keyword": {"any": ["a"]},
    "structure": {"count": "questions"},
    "language": {"any": ["de"]},
    "conversation": {"min_images": 1},
    "context": {"min_tokens": 1},
    "embedding": {"texts": ["a"]},
    "image": {"concepts": ["a"]},
    "jailbreak": {},
    "api": {"stream": True},
    "modality": {"any": ["image"]},
    "header": {"name": "x-team", "any": ["a"]},
    "metadata": {"header": "x-claims", "key": "a"},
    "role": {"header": "x-roles", "any": ["a"]},
    "tool_call": {"destructive": True},
    "tool_result": {},
    "memory_write": {"tools": ["a"]},
    "agreement": {},
    "complexity": {},
    "knowledge_base": {"file": str(Path(__file__).parent / "exemplars.yaml")},
    "preference": {"of": {"code": "source code", "chat": "small talk"}},
    "reask": {},
    "domain": {},
    "fact_check": {},
    "feedback": {},
    "pii": {},
    "secret": {},
    "classifier": {"pack": "./toxicity", "any": ["toxic"]},
}


class FakeClassifier:
    """A pack of two labels, as far as building a signal goes."""

    level = "text"
    labels = ("fine", "toxic")
    pack = "classifier-pack"


def given(text: object = None, vision: object = None) -> Resources:
    """Encoders, and the classifier that the least settings name."""
    return encoders(text, vision, classifiers={"./toxicity": FakeClassifier()})


def test_the_table_names_every_family() -> None:
    assert set(FAMILIES) == set(LEAST)


@pytest.mark.parametrize("family", FAMILIES)
async def test_each_family_is_built_from_its_least_settings(family: str) -> None:
    signal = await built(family, LEAST[family], given(FakeText(), FakeVision({})))
    assert signal.name == SignalName(family, "it")
    assert signal.cost in Cost


@pytest.mark.parametrize("family", FAMILIES)
async def test_needs_are_exactly_the_encoders_without_which_it_cannot_be_built(family: str) -> None:
    for missing, resources in (("text", given(None, FakeVision({}))), ("vision", given(FakeText()))):
        if missing in FAMILIES[family].needs:
            with pytest.raises(SignalSetupError, match=f"{family}/it: .*{missing}"):
                await built(family, LEAST[family], resources)
        else:
            await built(family, LEAST[family], resources)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_setting_is_described_for_the_schema(family: str) -> None:
    model: type[BaseModel] = FAMILIES[family].settings
    assert model.model_config["extra"] == "forbid"
    assert model.model_config["frozen"] is True
    assert all(field.description for field in model.model_fields.values())
    assert model.model_json_schema()["additionalProperties"] is False


@pytest.mark.parametrize("family", FAMILIES)
def test_builtins_are_settings_of_the_family(family: str) -> None:
    assert all(isinstance(preset, FAMILIES[family].settings) for preset in FAMILIES[family].builtins.values())


def test_an_observation_is_unknown_exactly_when_it_was_not_observed() -> None:
    assert observed(True).matched is True
    assert failed("truncated").matched is None
    with pytest.raises(ValueError, match="does not go with"):
        type(failed("x"))("failed", False)
