"""How many keys, zones of travel documents and instructions are found that were planted in drawn and real images.

`pytest -s tests/signals/test_reading_figures.py` prints the figures, of few images; `python -m models.report` measures
more of them, on others.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from signal_fakes import built, encoders, view

from models.report.planting import planted_images
from router.evaluation.statistics import wilson
from router.inference.cache import EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.reading import ImageReader, open_reader
from router.inference.text import TextEncoder
from router.request.images import ImageLimits
from router.request.view import ImagePart

pytestmark = [pytest.mark.data, pytest.mark.slow]

EACH = 9
SEED = 4


@pytest.fixture
async def reader() -> AsyncIterator[ImageReader]:
    executor = InferenceExecutor(threads=2, queue=64)
    yield open_reader(executor, EmbeddingCache(1 << 25), ImageLimits())
    executor.close()


async def test_what_is_planted_in_images_is_found(starter_text: TextEncoder, reader: ImageReader) -> None:
    resources = encoders(starter_text, reader=reader)
    signals = {
        "key": await built("secret", {"read_images": True}, resources),
        "zone": await built("pii", {"types": ["TRAVEL_DOCUMENT"], "read_images": True}, resources),
        "instruction": await built("jailbreak", {"read_images": True}, resources),
    }
    there, found, alarms, bare = Counter[str](), Counter[str](), 0, 0
    for each in planted_images(Path(os.environ["POINTSMAN_DATA"]) / "images" / "train", EACH, SEED):
        request = view(("user", "what is this?", ImagePart("/image", "inline", each.data)))
        if each.kind is None:
            bare += 1
            alarms += any([(await signal.observe(request)).matched for signal in signals.values()])
            continue
        observation = await signals[each.kind].observe(request)
        there[each.kind] += 1
        if observation.matched:
            found[each.kind] += 1
            assert observation.evidence[0].image == 0
            assert "box " in observation.evidence[0].detail
    for kind, n in there.items():
        print(f"\n{kind}: {found[kind]} of {n}, {wilson(found[kind], n)}", end="")
    print(f"\nfalse alarms: {alarms} of {bare}", end="")
    assert found.total() >= 0.9 * there.total()
    assert alarms <= 1
