"""Every key that a policy may hold is explained in docs/policy.md, by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from router.config.schema import (
    DecisionSettings,
    EncoderSettings,
    LimitSettings,
    ParitySettings,
    PolicyFile,
    RespondSettings,
    RouteSettings,
    UpstreamSettings,
)
from router.signals.registry import FAMILIES

DOCS = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()
SECTIONS: tuple[type[BaseModel], ...] = (
    PolicyFile,
    UpstreamSettings,
    EncoderSettings,
    LimitSettings,
    ParitySettings,
    DecisionSettings,
    RouteSettings,
    RespondSettings,
)


def keys() -> Iterator[str]:
    for section in SECTIONS:
        yield from section.model_fields
    for family, row in FAMILIES.items():
        yield family
        yield from row.builtins
        yield from (name.removeprefix("min_").removeprefix("max_") for name in row.settings.model_fields)


@pytest.mark.parametrize("key", sorted(set(keys())))
def test_a_key_is_explained(key: str) -> None:
    words = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]+)`", DOCS))))
    assert key in words or f"min_{key}" in words
