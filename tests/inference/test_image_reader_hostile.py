"""Images that mean harm, read: an answer or a reason, never another error, and places that are those of the upright
image."""

from __future__ import annotations

import io
import struct
import threading
import zlib
from collections.abc import AsyncIterator

import numpy as np
import pytest
from PIL import Image
from test_image_reader import ATTACK, KEY, part, screenshot

from router.inference.cache import EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.reading import ImageReader
from router.inference.reading_model import MOST_LINES, LineModel
from router.request.errors import ImageError
from router.request.images import ImageLimits
from router.request.view import ImagePart, RequestView, Turn
from router.signals import places
from router.signals.base import SignalName
from router.signals.places import ALL_ROLES, read_images
from router.signals.registry import FAMILIES
from router.signals.resources import Resources


@pytest.fixture(scope="module")
def model() -> LineModel:
    return LineModel(ImageLimits())


@pytest.fixture
async def reader(model: LineModel, executor: InferenceExecutor, cache: EmbeddingCache) -> AsyncIterator[ImageReader]:
    yield ImageReader(model, executor, cache)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, depth: int, colour: int, rows: bytes, *more: bytes) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    end = chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(more) + end


def saved(image: Image.Image, form: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def progressive(scans: int) -> bytes:
    """A picture that the same scan goes over again and again."""
    data = saved(Image.new("RGB", (640, 480), "navy"), "JPEG", progressive=True)
    last = data.rfind(b"\xff\xda")
    return data[:last] + data[last:-2] * scans + b"\xff\xd9"


FRAMES = [Image.new("RGB", (60, 60), colour) for colour in ("red", "blue")]
NOISE = np.random.default_rng(0).integers(0, 256, (700, 700, 3), dtype=np.uint8)

WITHOUT_TEXT = {
    "as large as may be": png(5_000, 5_000, 8, 0, b"\0" * (5_001 * 5_000)),
    "one bit": png(4_000, 4_000, 1, 0, (b"\0" + b"\xaa" * 500) * 4_000),
    "1 x 65000": png(1, 65_000, 8, 2, b"\0\0\0\0" * 65_000),
    "65000 x 1": png(65_000, 1, 8, 2, b"\0" * (1 + 3 * 65_000)),
    "sixteen bits": png(300, 300, 16, 0, (b"\0" + b"\x12\x34" * 300) * 300),
    "chunks": png(40, 40, 8, 2, b"\0" * (121 * 40), *[chunk(b"tEXt", b"a")] * 90_000),
    "a profile that unfolds": png(
        40, 40, 8, 2, b"\0" * 4_840, chunk(b"iCCP", b"a\0\0" + zlib.compress(b"\0" * 20_000_000))
    ),
    "cmyk": saved(Image.new("CMYK", (300, 300), (9, 90, 200, 30)), "JPEG"),
    "noise": saved(Image.fromarray(NOISE), "PNG"),
}

REFUSED = {
    "a bomb": png(50_000, 50_000, 8, 2, b"\0" * 100),
    "cut off": saved(Image.fromarray(NOISE), "PNG")[:-5_000],
    "scans": progressive(500),
    "gif": saved(FRAMES[0], "GIF", save_all=True, append_images=FRAMES[1:]),
    "webp": saved(FRAMES[0], "WEBP", save_all=True, append_images=FRAMES[1:]),
    "apng": saved(FRAMES[0], "PNG", save_all=True, append_images=FRAMES[1:]),
    "tiff": saved(FRAMES[0], "TIFF"),
    "svg": b'<svg xmlns="http://www.w3.org/2000/svg"><text>secret</text></svg>',
    "avif": b"\0\0\0\x20ftypavif" + b"\0" * 64,
    "heic": b"\0\0\0\x18ftypheic" + b"\0" * 64,
    "nothing": b"",
    "more chunks": png(40, 40, 8, 2, b"\0" * 4_840, *[chunk(b"tEXt", b"")] * 100_001),
    "a palette cut off": png(80, 80, 8, 3, b"\0" * 6_480, chunk(b"PLTE", bytes(6)), chunk(b"tRNS", b"\0"))[:60],
}


@pytest.mark.parametrize("data", WITHOUT_TEXT.values(), ids=WITHOUT_TEXT)
async def test_images_without_text_have_none_whatever_they_cost(reader: ImageReader, data: bytes) -> None:
    assert await reader.read(ImagePart("/image", "inline", data)) == ()


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_read_has_a_reason(reader: ImageReader, data: bytes) -> None:
    with pytest.raises(ImageError):
        await reader.read(ImagePart("/image", "inline", data))


def turned(image: Image.Image, orientation: int, turn: Image.Transpose) -> ImagePart:
    """Stored as cameras store it: turned, with the orientation that turns it back."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return ImagePart("/turned", "inline", saved(image.transpose(turn), "JPEG", quality=95, exif=exif))


ORIENTATIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    6: Image.Transpose.ROTATE_90,
    8: Image.Transpose.ROTATE_270,
    5: Image.Transpose.TRANSPOSE,
}


@pytest.mark.parametrize(("orientation", "turn"), ORIENTATIONS.items())
async def test_places_are_those_of_the_upright_image(
    reader: ImageReader, orientation: int, turn: Image.Transpose
) -> None:
    image = Image.new("RGB", (900, 600), "white")
    image.paste(screenshot(KEY, size=(600, 80), letters=24), (0, 500))
    [line] = await reader.read(turned(image, orientation, turn))
    assert line.text == KEY
    left, top, right, bottom = line.box
    assert 0 <= left < 0.05
    assert 0.45 < right < 0.75
    assert 0.83 < top < bottom < 0.95


async def test_evidence_names_the_image_and_its_place_among_all(reader: ImageReader) -> None:
    image = Image.new("RGB", (900, 600), "white")
    image.paste(screenshot(KEY, size=(600, 80), letters=24), (0, 500))
    blank, told = part(Image.new("RGB", (300, 300), "white")), turned(image, 6, Image.Transpose.ROTATE_90)
    turns = (
        Turn("/messages/0", "user", (blank, part(Image.new("RGB", (200, 300), "grey")))),
        Turn("/messages/1", "tool", (told,)),
    )
    view = RequestView("openai.chat", None, turns, (), False, 0, None)
    row = FAMILIES["secret"]
    settings = row.settings.model_validate({"read_images": True, "roles": ["tool"]})
    signal = row.build(SignalName("secret", "it"), settings, Resources(reader=reader))
    await signal.prepare()
    answer = await signal.observe(view)
    assert answer.matched is True
    [evidence] = answer.evidence
    assert (evidence.pointer, evidence.image) == ("/turned", 2)
    left, top, right, bottom = map(float, evidence.detail.removeprefix("box ").split(","))
    assert 0 <= left < right < 0.75
    assert 0.83 < top < bottom < 0.95


async def test_a_full_page_is_laid_out_beside_the_loop(reader: ImageReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes time with the square of the lines in a row."""
    threads: list[int] = []
    lay_out = places.lay_out

    def seen(lines: object) -> object:
        threads.append(threading.get_ident())
        return lay_out(lines)  # type: ignore[arg-type]

    monkeypatch.setattr(places, "lay_out", seen)
    for lines in (["ab1"] * places.FEW_LINES, ["ab1"] * MOST_LINES):
        monkeypatch.setattr(reader, "read", answering(lines))
        turns = (Turn("/messages/0", "user", (part(Image.new("RGB", (9, 9))),)),)
        [found] = await read_images(RequestView("openai.chat", None, turns, (), False, 0, None), ALL_ROLES, reader)
        assert len(found.boxes) >= len(lines)
    assert threads[0] == threading.get_ident() != threads[1]


def answering(texts: list[str]) -> object:
    from router.inference.reading import ReadLine

    lines = tuple(ReadLine(text, (i / 2_000, 0.1, (i + 1) / 2_000, 0.2), 0.99) for i, text in enumerate(texts))

    async def read(_: ImagePart) -> tuple[ReadLine, ...]:
        return lines

    return read


async def test_thousands_of_words_are_read_or_refused_and_never_half_of_them(reader: ImageReader) -> None:
    image = Image.new("RGB", (1_000, 1_000), "white")
    word = screenshot("ab1", size=(60, 40), letters=10).crop((16, 14, 44, 30))
    for y in range(0, 980, 18):
        for x in range(0, 970, 30):
            image.paste(word, (x, y))
    with pytest.raises(ImageError, match="too much text"):
        await reader.read(part(image))


async def test_what_cannot_be_read_is_tried_once(reader: ImageReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three signals ask for an image's text, and a conversation brings it along again and again."""
    tried = 0
    find = reader.model.find

    def counted(data: bytes) -> object:
        nonlocal tried
        tried += 1
        return find(data)

    monkeypatch.setattr(reader.model, "find", counted)
    for _ in range(3):
        with pytest.raises(ImageError, match=r"truncated|corrupt"):
            await reader.read(ImagePart("/image", "inline", REFUSED["cut off"]))
    assert tried == 1


async def test_an_attack_beside_an_image_that_cannot_be_read_is_found(reader: ImageReader) -> None:
    broken = ImagePart("/broken", "inline", REFUSED["a bomb"])
    turns = (Turn("/messages/0", "user", (broken, part(screenshot(ATTACK)))),)
    found = await read_images(RequestView("openai.chat", None, turns, (), False, 0, None), ALL_ROLES, reader)
    assert [(each.index, each.missing) for each in found] == [(0, "too many pixels"), (1, "")]
    assert found[1].text.startswith(ATTACK)
