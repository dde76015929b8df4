from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from signal_fakes import FakeText, FakeVision, built, encoders

from router.signals.base import Cost, SignalName, failed, observed
from router.signals.registry import FAMILIES, SignalSetupError

LEAST: dict[str, dict[str, Any]] = {
    "keyword": {"any": ["a"]},
    "conversation": {"min_images": 1},
    "context": {"min_tokens": 1},
    "embedding": {"texts": ["a"]},
    "image": {"concepts": ["a"]},
    "jailbreak": {},
}


def test_the_table_names_every_family() -> None:
    assert set(FAMILIES) == set(LEAST)


@pytest.mark.parametrize("family", FAMILIES)
async def test_each_family_is_built_from_its_least_settings(family: str) -> None:
    signal = await built(family, LEAST[family], encoders(FakeText(), FakeVision({})))
    assert signal.name == SignalName(family, "it")
    assert signal.cost in Cost


@pytest.mark.parametrize("family", FAMILIES)
async def test_needs_are_exactly_the_encoders_without_which_it_cannot_be_built(family: str) -> None:
    for missing, given in (("text", encoders(None, FakeVision({}))), ("vision", encoders(FakeText()))):
        if missing in FAMILIES[family].needs:
            with pytest.raises(SignalSetupError, match=f"{family}/it: .*{missing}"):
                await built(family, LEAST[family], given)
        else:
            await built(family, LEAST[family], given)


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
