from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from tiny_tower import photo, preprocess_by_hand, reference_embeddings

from router.inference.cache import EmbeddingCache
from router.inference.executor import InferenceExecutor, Overloaded
from router.inference.open import open_encoders
from router.inference.vision import VisionEncoder
from router.inference.vision_model import VisionModel
from router.packs.store import Pack
from router.request.errors import ImageError
from router.request.images import ImageLimits
from router.request.view import ImagePart


@pytest.fixture
def encoder(
    vision_pack: Pack, vision_model: VisionModel, executor: InferenceExecutor, cache: EmbeddingCache
) -> VisionEncoder:
    return VisionEncoder(vision_pack, vision_model, executor, cache)


def part(data: bytes) -> ImagePart:
    return ImagePart("/messages/0/content/0", "inline", data)


@pytest.mark.parametrize("file_format", ["PNG", "WEBP", "JPEG"])
async def test_an_image_means_what_it_means_to_the_reference(
    encoder: VisionEncoder, siglip_like: Any, file_format: str
) -> None:
    for seed in range(10, 20):
        data = photo(seed, file_format)
        found = await encoder.embed(part(data))
        expected = reference_embeddings(siglip_like, preprocess_by_hand(data)[None])[0]
        assert found.shape == (encoder.dimension,)
        assert float(found @ expected) > 0.99999


async def test_a_large_jpeg_is_decoded_small_and_means_the_same(encoder: VisionEncoder, siglip_like: Any) -> None:
    data = photo(3, "JPEG", (1_200, 900))
    expected = reference_embeddings(siglip_like, preprocess_by_hand(data)[None])[0]
    assert float(await encoder.embed(part(data)) @ expected) > 0.9999


async def test_the_same_bytes_are_encoded_once(encoder: VisionEncoder, vision_model: VisionModel, counted: Any) -> None:
    sizes = counted(vision_model)
    first, second = await asyncio.gather(encoder.embed(part(photo(1))), encoder.embed(part(photo(1))))
    assert first is second
    assert await encoder.embed(part(photo(1))) is first
    await encoder.embed(part(photo(2)))
    assert sizes == [1, 1]


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (ImagePart("/p", "not_fetched", url="https://example.org/a.png"), "not fetched"),
        (ImagePart("/p", "malformed", reason="not base64"), "not base64"),
        (ImagePart("/p", "malformed"), "malformed"),
        (ImagePart("/p", "inline", b""), "empty"),
        (ImagePart("/p", "inline", b"GIF89a, or so"), None),
        (ImagePart("/p", "inline", photo(1, "JPEG")[:-200]), None),
        (ImagePart("/p", "inline", b"%PDF-1.7"), "unknown format"),
    ],
)
async def test_what_cannot_be_judged_raises_its_reason(
    encoder: VisionEncoder, vision_model: VisionModel, counted: Any, image: ImagePart, reason: str | None
) -> None:
    sizes = counted(vision_model)
    for _ in range(2):
        with pytest.raises(ImageError) as caught:
            await encoder.embed(image)
        assert caught.value.reason == reason or (reason is None and caught.value.reason)
    assert sizes == []


async def test_too_much_work_is_shed(vision_pack: Pack, vision_model: VisionModel) -> None:
    executor = InferenceExecutor(threads=1, queue=0)
    encoder = VisionEncoder(vision_pack, vision_model, executor, EmbeddingCache(1 << 20))
    results = await asyncio.gather(*(encoder.embed(part(photo(seed))) for seed in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [np.ndarray, Overloaded, Overloaded]
    executor.close()


async def test_the_encoder_says_what_the_pack_says(
    vision_pack: Pack, executor: InferenceExecutor, cache: EmbeddingCache
) -> None:
    encoders = open_encoders(None, vision_pack, executor, cache, ImageLimits())
    assert encoders.text is None
    assert encoders.vision is not None
    found = encoders.vision
    assert (found.pack, found.space, found.dimension) == (vision_pack.digest, "tiny", 8)
    assert (found.logit_scale, found.logit_bias) == (10.0, -5.0)


async def test_what_the_cache_holds_cannot_be_written_to(encoder: VisionEncoder) -> None:
    row = await encoder.embed(part(photo(1)))
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 1
