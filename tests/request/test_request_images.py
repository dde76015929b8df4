from __future__ import annotations

import io
import logging
import re
import struct
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile

from router.request import image_containers
from router.request.errors import ImageError
from router.request.image_containers import read_still, sniff
from router.request.images import ImageLimits, decode

LIMITS = ImageLimits()
FIRST_FRAMES = ImageLimits(frames=1_000)
WIDTH, HEIGHT = 24, 16


def scene(width: int = WIDTH, height: int = HEIGHT) -> Image.Image:
    """A colour picture that no flip or turn leaves as it is."""
    y, x = np.mgrid[0:height, 0:width]
    channels = (x * 255 // width, y * 255 // height, (x * y) * 255 // (width * height))
    return Image.fromarray(np.stack(channels, axis=-1).astype(np.uint8))


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def reason(data: bytes, limits: ImageLimits = LIMITS) -> str:
    with pytest.raises(ImageError) as caught:
        decode(data, limits)
    return caught.value.reason


def pixels(image: Image.Image) -> np.ndarray:
    assert image.mode == "RGB"
    return np.asarray(image)


def largest_difference(image: Image.Image, expected: Image.Image) -> int:
    return int(np.abs(pixels(image).astype(int) - pixels(expected.convert("RGB"))).max())


def png_chunk(kind: bytes, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + kind + payload + struct.pack(">I", zlib.crc32(kind + payload))


def png(width: int, height: int, *chunks: bytes, depth: int = 8, colour: int = 2) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + b"".join(chunks) + png_chunk(b"IEND", b"")


def with_png_chunk(data: bytes, kind: bytes, payload: bytes) -> bytes:
    """The chunk goes right behind the header."""
    return data[:33] + png_chunk(kind, payload) + data[33:]


def with_jpeg_segment(data: bytes, kind: int, payload: bytes) -> bytes:
    return data[:2] + b"\xff" + bytes([kind]) + struct.pack(">H", len(payload) + 2) + payload + data[2:]


def exif(orientation: int, order: str = "<") -> bytes:
    magic = b"II*\0" if order == "<" else b"MM\0*"
    entries = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, orientation, 0)
    return magic + struct.pack(f"{order}IH", 8, 1) + entries + struct.pack(f"{order}I", 0)


SAMPLES = {
    "PNG": encoded(scene(), "PNG"),
    "JPEG": encoded(scene(), "JPEG", quality=95),
    "progressive": encoded(scene(), "JPEG", quality=95, progressive=True),
    "WEBP": encoded(scene(), "WEBP", quality=95),
    "lossless": encoded(scene(), "WEBP", lossless=True),
    "GIF": encoded(scene(), "GIF"),
    "BMP": encoded(scene(), "BMP"),
    "palette": encoded(scene().quantize(16), "PNG"),
    "alpha": encoded(scene().convert("RGBA"), "PNG"),
    "webp-alpha": encoded(Image.new("RGBA", (9, 7), (1, 2, 3, 4)), "WEBP", exif=b"Exif\0\0" + exif(6)),
    "animation": encoded(scene(), "GIF", save_all=True, append_images=[scene().rotate(90), scene().rotate(180)]),
    "webp-animation": encoded(scene(), "WEBP", save_all=True, append_images=[scene().rotate(180)]),
    "png-animation": encoded(scene(), "PNG", save_all=True, append_images=[scene().rotate(180)]),
}


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - {"webp-alpha"}))
def test_what_pillow_reads_is_read_the_same(name: str) -> None:
    with Image.open(io.BytesIO(SAMPLES[name])) as reference:
        assert largest_difference(decode(SAMPLES[name], FIRST_FRAMES), reference) == 0


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"quality": 100, "subsampling": 0}, {"optimize": True}])
def test_jpeg_with_all_its_metadata_decodes_to_the_same_pixels(options: dict[str, Any]) -> None:
    plain = encoded(scene(333, 222), "JPEG", **options)
    adorned = encoded(scene(333, 222), "JPEG", icc_profile=b"p" * 100_000, comment=b"c" * 999, exif=exif(1), **options)
    with Image.open(io.BytesIO(plain)) as reference:
        assert largest_difference(decode(adorned, LIMITS), reference) == 0


MODES = ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"]
HELD_BY = {
    "PNG": {"1", "L", "LA", "P", "RGB", "RGBA", "I;16"},
    "JPEG": {"L", "RGB", "CMYK"},
    "WEBP": {"RGB", "RGBA"},
    "GIF": {"1", "L", "P", "RGB"},
    "BMP": {"1", "L", "P", "RGB", "RGBA"},
}


@pytest.mark.parametrize(
    ("form", "mode"), [(form, mode) for form in HELD_BY for mode in MODES if mode in HELD_BY[form]]
)
def test_every_mode_that_a_format_holds_becomes_rgb(form: str, mode: str) -> None:
    if mode == "I;16":
        grey = np.asarray(scene().convert("L")).astype(np.uint16) * 257
        image = Image.fromarray(grey)
        assert image.mode == "I;16"
    else:
        image = scene().convert(mode)
    expected = scene().convert("L") if mode in ("L", "LA", "I;16") else scene()
    tolerance = {"JPEG": 40, "WEBP": 60}.get(form, 0)
    if mode in ("P", "1") or form == "GIF":
        expected = image if form != "GIF" else Image.open(io.BytesIO(encoded(image, form)))
    found = decode(encoded(image, form), LIMITS)
    assert found.size == (WIDTH, HEIGHT)
    assert largest_difference(found, expected) <= tolerance


@pytest.mark.parametrize("form", ["PNG", "WEBP", "BMP"])
def test_transparency_is_composited_on_white_so_that_nothing_hides_behind_it(form: str) -> None:
    image = Image.new("RGBA", (4, 1))
    image.putdata([(0, 0, 0, 0), (0, 0, 0, 255), (0, 0, 0, 128), (255, 0, 0, 0)])
    options = {"lossless": True, "exact": True} if form == "WEBP" else {}
    found = pixels(decode(encoded(image, form, **options), LIMITS))
    if form == "BMP":  # Pillow writes no bit masks, and without them BMP has no alpha.
        assert found[0].tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 0], [255, 0, 0]]
    else:
        assert found[0].tolist() == [[255, 255, 255], [0, 0, 0], [127, 127, 127], [255, 255, 255]]


def test_bmp_with_an_alpha_mask_is_composited_on_white() -> None:
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    header = struct.pack("<IiiHHIIiiII", 56, 2, 1, 1, 32, 3, 8, 0, 0, 0, 0) + masks
    data = b"BM" + struct.pack("<IHHI", 14 + 56 + 8, 0, 0, 14 + 56) + header + bytes([0, 0, 0, 0, 0, 0, 0, 255])
    assert pixels(decode(data, LIMITS))[0].tolist() == [[255, 255, 255], [0, 0, 0]]


def test_grey_with_alpha_is_composited_on_white() -> None:
    image = Image.fromarray(np.array([[[0, 0], [0, 255], [200, 128]]], np.uint8), "LA")
    assert pixels(decode(encoded(image, "PNG"), LIMITS))[0, :, 0].tolist() == [255, 0, 227]


@pytest.mark.parametrize(
    ("mode", "transparency", "expected"),
    [
        ("P", 0, [[255, 255, 255], [0, 255, 0]]),
        ("P", bytes([255, 0]), [[255, 0, 0], [255, 255, 255]]),
        ("P", bytes([255, 51]), [[255, 0, 0], [204, 255, 204]]),
        ("RGB", (255, 0, 0), [[255, 255, 255], [0, 255, 0]]),
    ],
)
def test_transparent_colours_of_a_png_are_white(mode: str, transparency: Any, expected: list[list[int]]) -> None:
    image = Image.new("RGB", (2, 1), (255, 0, 0))
    image.putpixel((1, 0), (0, 255, 0))
    if mode == "P":
        palette = Image.new("P", (2, 1))
        palette.putpalette([255, 0, 0, 0, 255, 0])
        palette.putdata([0, 1])
        image = palette
    assert pixels(decode(encoded(image, "PNG", transparency=transparency), LIMITS))[0].tolist() == expected


@pytest.mark.parametrize(("mode", "level"), [("L", 7), ("1", 0), ("I;16", 7)])
def test_a_transparent_grey_of_a_png_is_white(mode: str, level: int) -> None:
    image = {
        "L": Image.new("L", (2, 1), 7),
        "1": Image.new("1", (2, 1), 0),
        "I;16": Image.fromarray(np.full((1, 2), 7, np.uint16)),
    }[mode]
    image.putpixel((1, 0), {"L": 100, "1": 1, "I;16": 25_700}[mode])
    found = pixels(decode(encoded(image, "PNG", transparency=level), LIMITS))[0, :, 0].tolist()
    assert found == [255, {"L": 100, "1": 255, "I;16": 100}[mode]]


def test_transparent_gif_is_composited_on_white() -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putdata([0, 1])
    found = pixels(decode(encoded(image, "GIF", transparency=0), LIMITS))
    assert found[0].tolist() == [[255, 255, 255], [40, 50, 60]]


def test_sixteen_bits_are_scaled_not_clipped() -> None:
    ramp = np.linspace(0, 65_535, 256).astype(np.uint16).reshape(16, 16)
    found = pixels(decode(encoded(Image.fromarray(ramp), "PNG"), LIMITS))[..., 0]
    assert np.array_equal(found.ravel(), np.arange(256))


def test_sixteen_bit_colour_is_scaled() -> None:
    rows = b"".join(b"\0" + struct.pack(">HHH", 0, 32_768, 65_535) * 2 for _ in range(2))
    data = png(2, 2, png_chunk(b"IDAT", zlib.compress(rows)), depth=16)
    assert pixels(decode(data, LIMITS))[0, 0].tolist() == [0, 128, 255]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_exif_orientation_is_applied(form: str, orientation: int, order: str) -> None:
    upright = scene(48, 32)
    back = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }[orientation]
    stored = upright if back is None else upright.transpose(back)
    data = encoded(
        stored, form, exif=b"Exif\0\0" + exif(orientation, order), **({} if form == "PNG" else {"quality": 95})
    )
    found = decode(data, LIMITS)
    assert found.size == upright.size
    assert largest_difference(found, upright) <= (0 if form == "PNG" else 60)
    assert np.abs(pixels(found).astype(int) - pixels(upright)).mean() < 6


@pytest.mark.parametrize(
    "tiff",
    [
        b"",
        b"II*\0",
        b"II*\0\xff\xff\xff\xff",
        b"II*\0\x08\0\0\0",
        b"II*\0\x08\0\0\0\xff\xff",
        b"XX*\0\x08\0\0\0\0\0",
        exif(0),
        exif(9),
        exif(6)[:-6],
        b"MM\0*" + exif(6)[4:],
        bytes(100),
        b"\xff" * 100,
    ],
)
def test_a_broken_orientation_leaves_the_image_as_it_lies(tiff: bytes) -> None:
    for data in (
        with_png_chunk(SAMPLES["PNG"], b"eXIf", tiff),
        with_jpeg_segment(SAMPLES["JPEG"], 0xE1, b"Exif\0\0" + tiff),
    ):
        assert decode(data, LIMITS).size in ((WIDTH, HEIGHT), (HEIGHT, WIDTH))


@pytest.mark.parametrize("name", ["animation", "webp-animation", "png-animation"])
def test_of_an_animation_the_first_frame_counts_and_the_frames_are_limited(name: str) -> None:
    first = decode(SAMPLES[name], FIRST_FRAMES)
    assert np.abs(pixels(first).astype(int) - pixels(scene())).mean() < 20
    assert reason(SAMPLES[name]) == "animated"
    assert decode(SAMPLES[name], ImageLimits(frames=3)).size == (WIDTH, HEIGHT)


def test_a_png_with_pictures_beside_the_one_it_shows_is_animated_whatever_it_announces() -> None:
    data = with_png_chunk(with_png_chunk(SAMPLES["PNG"], b"fdAT", bytes(8)), b"acTL", struct.pack(">II", 1, 0))
    assert reason(data) == "animated"


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"])
def test_a_still_in_a_format_that_can_move_is_judged(form: str) -> None:
    data = encoded(scene(), form, save_all=True)
    assert decode(data, LIMITS).size == (WIDTH, HEIGHT)


def card(width: int = 200, height: int = 140) -> Image.Image:
    """A picture with dark areas and lines on a light ground, as a document has them."""
    image = Image.new("RGB", (width, height), (230, 225, 210))
    image.paste((40, 60, 90), (12, 20, 60, 90))
    for y in range(24, 120, 8):
        image.paste((20, 20, 20), (80, y, 180, y + 3))
    return image


def with_alpha(image: Image.Image, alpha: Any) -> Image.Image:
    made = image.convert("RGBA")
    made.putalpha(alpha)
    return made


def dots(size: tuple[int, int], pitch: int) -> Image.Image:
    """Alpha that is opaque at one pixel of each square and nothing elsewhere."""
    alpha = np.zeros(size[::-1], np.uint8)
    alpha[::pitch, ::pitch] = 255
    return Image.fromarray(alpha)


HIDDEN = {
    "everywhere": encoded(with_alpha(card(), 0), "PNG"),
    "nearly": encoded(with_alpha(card(), 3), "PNG"),
    "webp": encoded(with_alpha(card(), 0), "WEBP", lossless=True, exact=True),
    "palette": encoded(card().quantize(64), "PNG", transparency=bytes(256)),
    "grey": encoded(with_alpha(card().convert("L"), 0).convert("LA"), "PNG"),
    "faint": encoded(with_alpha(card(), 70), "PNG"),
    "pale": encoded(with_alpha(card().point(lambda level: 190 + level // 4), 0), "PNG"),
    "between visible dots": encoded(with_alpha(card(), dots((200, 140), 5)), "PNG"),
    "between dots of a large image": encoded(with_alpha(card().resize((1_600, 1_120)), dots((1_600, 1_120), 6)), "PNG"),
    "beside something visible": encoded(
        with_alpha(card(), Image.fromarray(np.repeat(np.uint8([255, 0]), 100)[None].repeat(140, 0))), "PNG"
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_picture_that_only_a_reader_without_alpha_sees_is_not_judged(name: str) -> None:
    assert reason(HIDDEN[name]) == "hidden by transparency"


def disc(side: int, softness: float) -> Image.Image:
    """Alpha of a disc with an edge of `softness` pixels."""
    y, x = np.mgrid[0:side, 0:side] - side / 2
    return Image.fromarray(np.clip((side * 0.4 - np.hypot(x, y)) / softness * 255, 0, 255).astype(np.uint8))


@pytest.mark.parametrize("side", [16, 32, 64, 128, 512, 1_000])
@pytest.mark.parametrize("ground", [(0, 0, 0), (255, 255, 255), (12, 200, 90)])
def test_a_logo_on_a_transparent_ground_of_one_colour_is_judged(side: int, ground: tuple[int, int, int]) -> None:
    alpha = disc(side, 2)
    stored = Image.new("RGB", (side, side), ground)
    stored.paste(scene(side, side), mask=alpha.point(lambda level: 255 if level else 0))
    found = decode(encoded(with_alpha(stored, alpha), "PNG"), LIMITS)
    assert pixels(found)[0, 0].tolist() == [255, 255, 255]


def test_a_soft_shadow_of_one_colour_is_judged() -> None:
    assert decode(encoded(with_alpha(Image.new("RGB", (300, 300)), disc(300, 90)), "PNG"), LIMITS).size == (300, 300)


def test_an_opaque_image_with_an_alpha_channel_is_what_is_stored() -> None:
    assert largest_difference(decode(encoded(with_alpha(card(), 255), "PNG"), LIMITS), card()) == 0


class CountedSearches:
    """A pattern that notes the bytes it was given to search."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self.pattern = pattern
        self.windows: list[int] = []

    def search(self, data: bytes, start: int, end: int = 1 << 40) -> re.Match[bytes] | None:
        found = self.pattern.search(data, start, end)
        self.windows.append((found.end() if found else min(end, len(data))) - start)
        # A match of a fixed length is tried once at each place: no run of bytes is walked twice.
        assert found is None or len(found[0]) == 2
        return found


@pytest.mark.parametrize("size", [20_000, 100_000])
@pytest.mark.parametrize(
    "make",
    [
        lambda size: b"\xff\xd8" + b"\xff" * size + b"\xe0\0\2",
        lambda size: b"\xff\xd8" + b"\xff" * size + b"\0\0",
        lambda size: b"\xff\xd8" + b"\xff\0" * (size // 2),
        lambda size: SAMPLES["JPEG"][:-2] + b"\xff\xda\0\2" * 70 + b"\xff" * size,
        lambda size: b"\xff\xd8" + b"\xff\xe0\0\0" * 9_000 + b"\xff" * size,
    ],
)
def test_the_walk_of_a_jpeg_searches_each_byte_once_and_in_small_windows(
    make: Callable[[int], bytes], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = CountedSearches(image_containers._JPEG_MARKER)
    monkeypatch.setattr(image_containers, "_JPEG_MARKER", counted)
    data = make(size)
    try:
        read_still(data, 1)
    except ImageError as error:
        assert error.reason in ("truncated", "corrupt", "too many scans")
    assert sum(counted.windows) <= 1.1 * len(data)
    assert max(counted.windows) <= 1 << 16


def test_fill_bytes_before_a_marker_are_skipped_wherever_a_window_ends() -> None:
    data = SAMPLES["JPEG"]
    for fill in ((1 << 16) - 3, (1 << 16) - 2, (1 << 16) - 1, 1 << 16, 3 << 16):
        assert largest_difference(decode(data[:2] + b"\xff" * fill + data[2:], LIMITS), decode(data, LIMITS)) == 0


def test_a_gif_frame_that_begins_beyond_its_screen_counts_with_its_own_size() -> None:
    data = bytearray(encoded(Image.new("P", (1, 1)), "GIF"))
    at = data.index(b",\0\0\0\0\x01\0\x01\0")
    data[at + 1 : at + 9] = struct.pack("<HHHH", 60_000, 60_000, 1, 1)
    assert reason(bytes(data)) == "too many pixels"


BOMBS = {
    "PNG": png(60_000, 60_000, png_chunk(b"IDAT", zlib.compress(bytes(1_000_000)))),
    "wide PNG": png(2**31 - 1, 1, png_chunk(b"IDAT", zlib.compress(b"\0"))),
    "JPEG": SAMPLES["JPEG"].replace(struct.pack(">HH", HEIGHT, WIDTH), struct.pack(">HH", 65_000, 65_000), 1),
    "progressive JPEG": SAMPLES["progressive"].replace(
        struct.pack(">HH", HEIGHT, WIDTH), struct.pack(">HH", 65_000, 65_000), 1
    ),
    "GIF": SAMPLES["GIF"].replace(struct.pack("<HH", WIDTH, HEIGHT), struct.pack("<HH", 65_535, 65_535), 1),
    "BMP": SAMPLES["BMP"].replace(struct.pack("<ii", WIDTH, HEIGHT), struct.pack("<ii", 65_535, -65_535), 1),
    "WEBP": b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<IB3x", 10, 0) + b"\xff\x3f\0\xff\x3f\0",
    "lossless WEBP": b"RIFF"
    + struct.pack("<I", 22)
    + b"WEBPVP8L"
    + struct.pack("<IBI", 9, 0x2F, 0x0FFFFFFF)
    + bytes(5),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_by_its_declared_size_before_anything_is_decoded(name: str) -> None:
    assert reason(BOMBS[name]) == "too many pixels"


def test_an_image_at_the_limit_passes_and_one_beyond_it_does_not() -> None:
    limit = ImageLimits(pixels=WIDTH * HEIGHT)
    for name in ("PNG", "JPEG", "WEBP", "GIF", "BMP"):
        assert decode(SAMPLES[name], limit).size == (WIDTH, HEIGHT)
        assert reason(SAMPLES[name], ImageLimits(pixels=WIDTH * HEIGHT - 1)) == "too many pixels"


def test_bytes_are_limited() -> None:
    data = SAMPLES["PNG"]
    assert decode(data, ImageLimits(bytes=len(data))).size == (WIDTH, HEIGHT)
    assert reason(data, ImageLimits(bytes=len(data) - 1)) == "too many bytes"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "empty"),
        (b"hello", "unknown format"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "unknown format"),
        (encoded(scene(), "TIFF"), "unknown format"),
        (encoded(scene(), "ICO"), "unknown format"),
        (encoded(scene(), "PPM"), "unknown format"),
        (b"\x89PNG\r\n\x1a\n", "truncated"),
        (b"\xff\xd8\xff", "truncated"),
        (b"\xff\xd8\xff\xd9", "corrupt"),
        (b"GIF89a", "truncated"),
        (b"GIF89a" + bytes(7) + b";", "corrupt"),
        (b"BM" + bytes(12), "truncated"),
        (b"RIFF\x04\0\0\0WEBP", "corrupt"),
        (b"RIFF\xff\0\0\0WEBPVP8 ", "truncated"),
        (png(0, 5), "corrupt"),
        (png(5, 5), "corrupt"),
        (png(5, 5, png_chunk(b"IDAT", b"no zlib")), "corrupt"),
        (png(5, 5, png_chunk(b"IDAT", zlib.compress(b"\0" * 3))), "truncated"),
        (png(5, 5, png_chunk(b"IDAT", zlib.compress(bytes(80))), colour=5), "corrupt"),
        (SAMPLES["PNG"][:60] + b"\0" + SAMPLES["PNG"][61:], "corrupt"),
    ],
)
def test_what_is_no_readable_image_is_refused_with_a_reason(data: bytes, expected: str) -> None:
    assert reason(data) == expected


@pytest.mark.parametrize("name", SAMPLES)
def test_a_truncated_image_never_passes_for_another_one(name: str) -> None:
    data = SAMPLES[name]
    whole = pixels(decode(data, FIRST_FRAMES))
    for length in range(len(data)):
        try:
            image = decode(data[:length], FIRST_FRAMES)
        except ImageError as error:
            assert error.reason in ("empty", "unknown format", "truncated", "corrupt")
        else:
            # Only what carries no pixel of the first frame may be missing.
            assert np.array_equal(pixels(image), whole)
            assert "animation" in name or length >= len(data) - 4


@pytest.mark.parametrize("name", ["PNG", "JPEG", "progressive", "WEBP", "GIF", "BMP"])
def test_half_an_image_is_no_image(name: str) -> None:
    data = SAMPLES[name]
    assert reason(data[: len(data) // 2]) == "truncated"


def test_a_jpeg_of_very_many_scans_is_refused_and_bytes_that_look_like_scans_are_not_counted() -> None:
    data = SAMPLES["progressive"]
    at = data.rindex(b"\xff\xda")
    last_scan = data[at:-2]
    assert reason(data[:-2] + last_scan * 100 + data[-2:]) == "too many scans"
    assert largest_difference(decode(data + b"\xff\xda" * 500, LIMITS), decode(data, LIMITS)) == 0


@pytest.mark.parametrize(
    "data",
    [
        png(1, 1, *[png_chunk(b"tEXt", b"")] * 100_001),
        b"\xff\xd8" + b"\xff\xfe\0\x02" * 10_001 + SAMPLES["JPEG"][2:],
        SAMPLES["GIF"][:13] + b"!\xfe" + b"\1x" * 1_000_001 + b"\0" + SAMPLES["GIF"][13:],
        SAMPLES["GIF"][:13] + b"x" * 1_000_001,
        b"RIFF" + struct.pack("<I", 800_040) + b"WEBPVP8X" + struct.pack("<I10x", 10) + b"junk\0\0\0\0" * 100_002,
        b"\xff\xd8\xff" + bytes(1_000_000),
    ],
)
def test_floods_of_empty_structure_are_refused(data: bytes) -> None:
    assert reason(data) in ("corrupt", "truncated")


def test_a_run_length_bmp_is_refused() -> None:
    data = bytearray(encoded(scene().quantize(4), "BMP"))
    data[30] = 1
    assert reason(bytes(data)) == "compressed BMP"


def test_texts_and_profiles_inside_a_png_have_no_say() -> None:
    bomb = b"x\0\0" + zlib.compress(bytes(50_000_000))
    data = SAMPLES["PNG"]
    for kind, payload in [
        (b"zTXt", bomb),
        (b"iCCP", bomb),
        (b"tEXt", b"transparency\0x"),
        (b"tEXt", b"bbox\0x"),
        (b"acTL", bytes(8)),
        (b"acTL", b""),
        (b"gAMA", b""),
    ]:
        data = with_png_chunk(data, kind, payload)
    assert largest_difference(decode(data, LIMITS), scene()) == 0


@pytest.mark.parametrize(
    "tiff",
    [b"II*\0\x08\0\0\0\x03\0" + bytes(range(36)), b"MM\0*\0\0\0\x08\0\x01\x01\x1a\0\x05\0\0\0\x01\xff\xff\xff\xff"],
)
def test_corrupt_exif_warns_nobody(tiff: bytes) -> None:
    # Warnings are errors here: one would come back as `corrupt`.
    data = with_jpeg_segment(SAMPLES["JPEG"], 0xE1, b"Exif\0\0" + tiff)
    assert decode(data, LIMITS).size == (WIDTH, HEIGHT)


def test_nothing_of_the_image_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    data = encoded(scene(), "PNG", icc_profile=b"hunter2")
    data = with_png_chunk(data, b"tEXt", b"hunter2\0hunter2")
    with caplog.at_level(logging.DEBUG):
        decode(data, LIMITS)
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(("width", "height"), [(2_000, 1_000), (1_000, 2_000)])
@pytest.mark.parametrize("orientation", [1, 6])
def test_a_jpeg_for_a_small_target_is_decoded_smaller_but_never_below_twice_the_target(
    width: int, height: int, orientation: int
) -> None:
    data = encoded(scene(width, height), "JPEG", quality=90, exif=exif(orientation))
    target = (60, 120)
    whole, small = decode(data, LIMITS), decode(data, LIMITS, target)
    assert small.width < whole.width
    assert small.width >= 2 * target[1]
    assert small.height >= 2 * target[0]
    shrunk = [image.resize((32, 32), Image.Resampling.BOX) for image in (whole, small)]
    assert largest_difference(*shrunk) < 8


def test_a_target_changes_nothing_for_small_images_and_other_formats() -> None:
    for name in ("PNG", "JPEG", "WEBP", "GIF", "BMP"):
        assert decode(SAMPLES[name], LIMITS, (224, 224)).size == (WIDTH, HEIGHT)
    assert decode(encoded(scene(900, 900), "PNG"), LIMITS, (10, 10)).size == (900, 900)


def test_many_threads_decode_at_once_with_the_same_result() -> None:
    data = encoded(scene(300, 200), "JPEG")
    expected = pixels(decode(data, LIMITS))
    with ThreadPoolExecutor(8) as pool:
        for image in pool.map(lambda _: decode(data, LIMITS), range(64)):
            assert np.array_equal(pixels(image), expected)


def test_global_settings_of_pillow_stay_as_they_are() -> None:
    before = (ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS)
    decode(SAMPLES["PNG"], LIMITS)
    assert before == (ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS)


def survives(data: bytes) -> None:
    try:
        image = decode(data, ImageLimits(pixels=1_000_000, frames=10))
    except ImageError as error:
        assert error.reason
    else:
        assert image.mode == "RGB"


MAGICS = [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"BM\0\0\0\0\0\0\0\0", b"RIFF\x20\0\0\0WEBPVP8X"]


@given(st.sampled_from(MAGICS), st.binary(max_size=200))
@example(b"RIFF\x00\0\0\0WEBP", b"")
def test_arbitrary_bytes_raise_nothing_but_an_image_error(magic: bytes, data: bytes) -> None:
    survives(magic + data)


@settings(max_examples=1_500, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), max_size=4),
    st.booleans(),
)
def test_mutated_images_raise_nothing_but_an_image_error(
    name: str, edits: list[tuple[float, bytes]], mend_checksums: bool
) -> None:
    data = SAMPLES[name]
    for place, replacement in edits:
        at = int(place * len(data))
        data = data[:at] + replacement + data[at + len(replacement) :]
    if mend_checksums and sniff(data) == "PNG":
        data = mended(data)
    survives(data)


def mended(data: bytes) -> bytes:
    """A PNG with right checksums as far as its chunks go, so that the damage reaches the decoder."""
    out, at = data[:8], 8
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        if at + 12 + length > len(data):
            break
        out += png_chunk(data[at + 4 : at + 8], data[at + 8 : at + 8 + length])
        at += 12 + length
    return out + data[at:]


@pytest.mark.parametrize("name", SAMPLES)
def test_the_declared_size_is_that_of_the_decoded_image(name: str) -> None:
    still = read_still(SAMPLES[name], 10)
    with Image.open(io.BytesIO(SAMPLES[name])) as reference:
        assert (still.width, still.height) == reference.size
        assert still.frames == getattr(reference, "n_frames", 1)
    assert sniff(SAMPLES[name]) == still.format
