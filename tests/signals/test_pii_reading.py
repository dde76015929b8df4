"""Personal data and secrets in drawn images, through the reader that is shipped: its mistakes must not hide them."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator

import pytest
from PIL import Image, ImageDraw, ImageFont
from signal_fakes import ask, encoders, view

from models.rendering import BUNDLED_FONT, FIRST_UNSEEN_SEED, render
from router.inference.cache import EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.reading import ImageReader, open_reader
from router.request.images import ImageLimits
from router.request.view import ImagePart

# The reader takes seconds to open.
pytestmark = pytest.mark.slow

# Doc 9303's own specimens.
TD3 = ("P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L898902C36UTO7408122F1204159ZE184226B<<<<<10")
TD1 = ("I<UTOD231458907<<<<<<<<<<<<<<<", "7408122F1204159UTO<<<<<<<<<<<6", "ERIKSSON<<ANNA<MARIA<<<<<<<<<<")
TD2 = ("I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<", "D231458907UTO7408122F1204159<<<<<<<6")
MRV_A = ("V<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "L8988901C4XXX4009078F96121096ZE184226B<<<<<<")
MRV_B = ("V<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<", "L8988901C4XXX4009078F9612109<<<<<<<<")


@pytest.fixture
async def reader() -> AsyncIterator[ImageReader]:
    executor = InferenceExecutor(threads=2, queue=64)
    yield open_reader(executor, EmbeddingCache(1 << 25), ImageLimits())
    executor.close()


def drawn(*lines: str) -> ImagePart:
    font = ImageFont.load_default(36)
    image = Image.new("RGB", (1_400, 80 + 70 * len(lines)), "white")
    for row, line in enumerate(lines):
        ImageDraw.Draw(image).text((30, 40 + 70 * row), line, fill="black", font=font)
    data = io.BytesIO()
    image.save(data, "PNG")
    return ImagePart("/image", "inline", data.getvalue())


@pytest.mark.parametrize(
    ("family", "lines", "label"),
    [
        ("pii", ("PASSPORT", *TD3), "TRAVEL_DOCUMENT"),
        ("pii", TD1, "TRAVEL_DOCUMENT"),
        ("pii", ("IDENTITY CARD", *TD2), "TRAVEL_DOCUMENT"),
        ("pii", ("VISA", *MRV_A), "TRAVEL_DOCUMENT"),
        ("pii", ("VISA", *MRV_B), "TRAVEL_DOCUMENT"),
        ("pii", ("Visa card", "4111 1111 1111 1111", "valid thru 12/29"), "CREDIT_CARD"),
        ("secret", ("$ cat .env", "STRIPE=sk_" + "live_q7Zk2Vb9Xw4Lr8Tn3Hs6Jd1F"), "Stripe Key"),
    ],
)
async def test_what_an_image_says_is_found_in_its_place(
    reader: ImageReader, family: str, lines: tuple[str, ...], label: str
) -> None:
    request = view(("user", "what is this?", drawn(*lines)))
    observation = await ask(family, {"read_images": True}, request, encoders(reader=reader))
    assert observation.matched is True
    assert observation.label == label
    assert observation.evidence[0].image == 0
    assert observation.evidence[0].detail.startswith("box ")


@pytest.mark.parametrize("zone", [TD1, TD2, TD3, MRV_A, MRV_B])
async def test_a_travel_document_is_nearly_certain_by_its_check_digits(
    reader: ImageReader, zone: tuple[str, ...]
) -> None:
    request = view(("user", "what is this?", drawn(*zone)))
    observation = await ask("pii", {"read_images": True}, request, encoders(reader=reader))
    assert (observation.label, observation.matched) == ("TRAVEL_DOCUMENT", True)
    assert (observation.score or 0) >= 0.95


@pytest.mark.parametrize(("kind", "seed"), [("passport", 5_000), ("passport", 5_003), ("identity_card", 5_004)])
async def test_a_photo_of_a_document_is_nearly_certain_too(reader: ImageReader, kind: str, seed: int) -> None:
    """On a table, at a slant: drawn ones of nobody, with the typeface that Pillow carries."""
    data = io.BytesIO()
    render(kind, FIRST_UNSEEN_SEED + seed, BUNDLED_FONT).save(data, "PNG")
    request = view(("user", "who is this?", ImagePart("/image", "inline", data.getvalue())))
    observation = await ask("pii", {"read_images": True}, request, encoders(reader=reader))
    assert (observation.label, observation.score) == ("TRAVEL_DOCUMENT", 0.99)
