from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from router.inference.cache import EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.open import open_text_model, text_heads
from router.inference.text import TextEncoder
from router.inference.text_model import TextModel
from router.packs.store import Pack, open_pack
from router.signals.resources import Resources

FIGURES = [
    "test_agent_figures.py",
    "test_jailbreak_figures.py",
    "test_learned_figures.py",
    "test_pii_figures.py",
    "test_reading_figures.py",
    "test_secret_figures.py",
]
collect_ignore = [] if "POINTSMAN_DATA" in os.environ else FIGURES


@pytest.fixture(scope="session")
def starter_text_pack() -> Pack:
    return open_pack("starter", "text", Path("/nowhere"))


@pytest.fixture(scope="session")
def starter_text_model(starter_text_pack: Pack, tmp_path_factory: pytest.TempPathFactory) -> TextModel:
    return open_text_model(starter_text_pack, tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="session")
def starter_model_with_heads(starter_text_pack: Pack, tmp_path_factory: pytest.TempPathFactory) -> TextModel:
    assert starter_text_pack.manifest.heads is not None
    names = [head.name for head in starter_text_pack.manifest.heads.heads]
    return open_text_model(starter_text_pack, tmp_path_factory.mktemp("weights"), heads=names)


@pytest.fixture
async def starter_with_heads(starter_text_pack: Pack, starter_model_with_heads: TextModel) -> AsyncIterator[Resources]:
    """The text encoder and all of its heads, as a policy that asks for them has them."""
    executor = InferenceExecutor(threads=2, queue=64)
    text = TextEncoder(starter_text_pack, starter_model_with_heads, executor, EmbeddingCache(1 << 25))
    yield Resources(text=text, heads=text_heads(text, executor))
    executor.close()


@pytest.fixture
async def starter_text(starter_text_pack: Pack, starter_text_model: TextModel) -> AsyncIterator[TextEncoder]:
    executor = InferenceExecutor(threads=2, queue=64)
    yield TextEncoder(starter_text_pack, starter_text_model, executor, EmbeddingCache(1 << 25))
    executor.close()
