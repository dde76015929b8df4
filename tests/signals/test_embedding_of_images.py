"""`embedding` with image anchors and image queries, and its ways to pool and to score."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from pydantic import ValidationError
from signal_fakes import DIMENSION, FakeText, FakeVision, ask, built, encoders, image, said, unit, view

from router.inference.executor import Overloaded
from router.request.errors import ImageError
from router.request.view import ImagePart
from router.signals.base import Cost
from router.signals.embedding import EmbeddingSettings
from router.signals.resources import Resources, SignalSetupError

TEXTS = {"a pump": unit(1), "a valve": unit(0, 1), "a tap": unit(0.6, 0.8), "like a pump.": unit(0.8, 0, 0.6)}


def png(shade: int) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (4, 4), (shade, shade, shade)).save(data, "PNG")
    return data.getvalue()


class Vision(FakeVision):
    """Also knows real images, by digest."""

    def __init__(self, table: dict[str, Any], files: dict[bytes, NDArray[np.float32]]) -> None:
        super().__init__(table)
        self.files = {hashlib.sha256(data).hexdigest(): row for data, row in files.items()}

    async def embed(self, image: ImagePart) -> NDArray[np.float32]:
        if image.digest in self.files:
            return self.files[image.digest]
        return await super().embed(image)


def resources(base: Path = Path()) -> Resources:
    table = {"pump": unit(1), "tap": unit(0.6, 0.8), "fog": unit(0, 0, 0, 1), "cut": "truncated", "busy": Overloaded()}
    return encoders(FakeText(TEXTS), Vision(table, {png(10): unit(1), png(20): unit(0, 1)}), base=base)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "pump.png").write_bytes(png(10))
    (tmp_path / "valve.png").write_bytes(png(20))
    return tmp_path


async def test_a_text_is_compared_with_image_anchors_and_the_file_is_the_label(folder: Path) -> None:
    settings = {"images": ["shop/pump.png", "valve.png"]}
    answer = await ask("embedding", settings, said("like a pump."), resources(folder))
    assert (answer.matched, answer.label, answer.pack) == (True, "shop/pump.png", "text-pack")
    assert answer.score == pytest.approx(0.8)


async def test_images_are_compared_with_text_and_image_anchors_alike(folder: Path) -> None:
    settings = {"texts": ["a valve"], "images": ["shop/pump.png"], "query": "image", "threshold": 0.7}
    answer = await ask("embedding", settings, view(("user", image("fog"), image("tap"))), resources(folder))
    assert (answer.matched, answer.label, answer.pack) == (True, "a valve", "vision-pack")
    assert [(e.image, e.score) for e in answer.evidence] == [(1, pytest.approx(0.8)), (0, 0.0)]


async def test_an_image_query_reads_no_text() -> None:
    settings = {"texts": ["a pump"], "query": "image"}
    answer = await ask("embedding", settings, said("a pump"), resources())
    assert (answer.matched, answer.score, answer.evidence) == (False, 0.0, ())


async def test_both_takes_the_better_of_text_and_images() -> None:
    settings = {"texts": ["a pump"], "query": "both", "threshold": 0.7}
    by_text = await ask("embedding", settings, view(("user", "like a pump.", image("fog"))), resources())
    by_image = await ask("embedding", settings, view(("user", "a valve", image("pump"))), resources())
    assert (by_text.matched, by_text.evidence[0].image) == (True, None)
    assert (by_image.matched, by_image.evidence[0].image) == (True, 0)
    assert by_image.score == pytest.approx(1.0)


@pytest.mark.parametrize(("text", "matched", "status"), [("a pump", True, "observed"), ("a valve", None, "failed")])
async def test_an_image_that_cannot_be_judged_makes_no_match_unknown(
    text: str, matched: bool | None, status: str
) -> None:
    settings = {"texts": ["a pump"], "query": "both"}
    answer = await ask("embedding", settings, view(("user", text, image("cut"))), resources())
    assert (answer.matched, answer.status) == (matched, status)


async def test_overload_sheds() -> None:
    settings = {"texts": ["a pump"], "query": "both"}
    answer = await ask("embedding", settings, view(("user", "a valve", image("busy"))), resources())
    assert answer.status == "shed"


async def test_an_embedding_that_is_no_number_is_unknown() -> None:
    broken = encoders(FakeText({"a pump": unit(1), "odd": np.full(DIMENSION, np.nan, np.float32)}))
    answer = await ask("embedding", {"texts": ["a pump"]}, said("odd"), broken)
    assert (answer.status, answer.reason) == ("failed", "no number")


async def test_top_k_averages_the_nearest_anchors() -> None:
    settings = {"texts": ["a pump", "a valve", "a tap"], "aggregate": "top_k", "k": 2}
    answer = await ask("embedding", settings, said("a pump"), resources())
    assert answer.score == pytest.approx(0.8)
    assert answer.label == "a pump"


async def test_a_soft_score_is_a_half_at_the_threshold() -> None:
    settings = {"texts": ["a pump"], "threshold": 0.8, "mode": "soft", "softness": 0.1}
    at = await ask("embedding", settings, said("like a pump."), resources())
    above = await ask("embedding", {**settings, "threshold": 0.7}, said("like a pump."), resources())
    assert at.score == pytest.approx(0.5, abs=1e-5)
    assert above.score == pytest.approx(1 / (1 + np.exp(-1)), abs=1e-4)


@given(st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=2).filter(any), st.integers(0, 100))
async def test_what_matches_is_the_same_hard_and_soft(axes: list[float], percent: int) -> None:
    text = FakeText({"a": unit(1), "it": unit(*axes) if np.hypot(*axes) > 1e-3 else unit(1)})
    hard, soft = [
        await ask("embedding", {"texts": ["a"], "threshold": percent / 100, "mode": mode}, said("it"), encoders(text))
        for mode in ("hard", "soft")
    ]
    assert hard.matched == soft.matched
    assert 0 <= (soft.score or 0.0) <= 1


@pytest.mark.parametrize(
    ("settings", "cost"),
    [({}, Cost.TEXT_MODEL), ({"query": "image"}, Cost.VISION_MODEL), ({"query": "both"}, Cost.VISION_MODEL)],
)
async def test_cost_is_that_of_the_query(settings: dict[str, Any], cost: Cost) -> None:
    assert (await built("embedding", {"texts": ["a pump"], **settings}, resources())).cost is cost


async def test_a_missing_file_is_named(folder: Path) -> None:
    with pytest.raises(SignalSetupError, match=r"embedding/it: image shop/gone\.png: No such file"):
        await built("embedding", {"images": ["shop/gone.png"]}, resources(folder))


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "empty"), (b"no image", "unknown format"), (png(9)[:40], "corrupt|truncated")],
)
async def test_a_file_that_is_no_image_is_named_with_the_reason(folder: Path, data: bytes, reason: str) -> None:
    (folder / "bad.png").write_bytes(data)
    with pytest.raises(SignalSetupError, match=rf"embedding/it: image bad\.png: ({reason})"):
        await built("embedding", {"images": ["bad.png"]}, resources(folder))


async def test_a_folder_is_no_image(folder: Path) -> None:
    with pytest.raises(SignalSetupError, match="image shop: Is a directory"):
        await built("embedding", {"images": ["shop"]}, resources(folder))


async def test_an_image_that_the_encoder_refuses_is_told_at_the_start(folder: Path) -> None:
    class Refusing(FakeVision):
        async def embed(self, image: ImagePart) -> NDArray[np.float32]:
            raise ImageError("too many pixels")

    with pytest.raises(SignalSetupError, match=r"image valve\.png: too many pixels"):
        await built("embedding", {"images": ["valve.png"]}, encoders(FakeText(), Refusing({}), base=folder))


@pytest.mark.parametrize("settings", [{"texts": ["a"], "query": "image"}, {"texts": ["a"], "images": ["valve.png"]}])
async def test_images_need_a_vision_encoder_in_the_same_space(folder: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(SignalSetupError, match="needs a vision encoder"):
        await built("embedding", settings, encoders(FakeText(), base=folder))
    foreign = FakeVision({})
    foreign.space = "two"
    with pytest.raises(SignalSetupError, match="one space"):
        await built("embedding", settings, encoders(FakeText(), foreign, base=folder))


async def test_images_are_compared_with_images_whatever_the_text_space(folder: Path) -> None:
    given_resources = resources(folder)
    given_resources.vision.space = "two"  # type: ignore[union-attr, misc]
    settings = {"images": ["shop/pump.png"], "query": "image"}
    answer = await ask("embedding", settings, view(("user", image("tap"))), given_resources)
    assert (answer.matched, answer.label) == (True, "shop/pump.png")


@pytest.mark.parametrize(
    "settings",
    [
        {"texts": [], "images": []},
        {"texts": ["a"], "query": "audio"},
        {"texts": ["a"], "k": 1},
        {"texts": ["a"], "k": 2, "aggregate": "top_k"},
        {"texts": ["a"], "k": 0, "aggregate": "top_k"},
        {"texts": ["a"], "softness": 0.1},
        {"texts": ["a"], "softness": 0, "mode": "soft"},
        {"texts": ["a"], "query": "image", "over": "all"},
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EmbeddingSettings.model_validate(settings)
