"""Render the images that `pointsman packs verify` and `packs probe` use, and write them where the package has them.

    python -m models.parity.corpus [--out router/export/corpus]

Twenty files for verification: what the project's renderers draw, in the formats, modes and sizes that clients send, and
a few patterns that resizing finds hard. Eleven for the probe. All from seeds that no training has seen.
"""

from __future__ import annotations

import argparse
import io
import shutil
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from models.rendering import BUNDLED_FONT, FIRST_UNSEEN_SEED, render

OUT = Path(__file__).parents[2] / "router" / "export" / "corpus"
SEED = FIRST_UNSEEN_SEED + 7_000
EDGE = 420
PROBE_EDGE = 384
MAX_BYTES = 1_000_000
ORIENTATION = 0x0112

PROBE_FIELDS: dict[str, tuple[str, ...]] = {
    "identity": (
        "a passport",
        "an identity card",
        "a driver's licence",
        "a residence permit",
        "a travel document with a portrait photo",
        "a photo of an ID document",
        "the data page of a passport",
    ),
    "medical": (
        "a chest x-ray",
        "a radiograph of the lungs",
        "an MRI scan of the brain",
        "a CT scan",
        "an ultrasound image",
        "a histology slide",
        "a medical scan",
    ),
    "software": (
        "a screenshot of source code",
        "a terminal window",
        "a command line session",
        "a code editor",
        "program code in a dark theme",
        "a shell prompt with command output",
        "a screenshot of a programming tool",
    ),
}
PROBE_IMAGES: tuple[tuple[str, str, int], ...] = (
    ("passport", "identity", 0),
    ("passport", "identity", 1),
    ("identity_card", "identity", 0),
    ("drivers_licence", "identity", 0),
    ("chest_radiograph", "medical", 0),
    ("chest_radiograph", "medical", 1),
    ("mri", "medical", 0),
    ("ct", "medical", 0),
    ("code", "software", 0),
    ("code", "software", 1),
    ("terminal", "software", 0),
)


def drawn(kind: str, offset: int = 0, edge: int = EDGE) -> Image.Image:
    """A rendered image, at most `edge` pixels wide and high."""
    image = render(kind, SEED + offset, BUNDLED_FONT)
    image.thumbnail((edge, edge))
    return image


def encoded(image: Image.Image, file_format: str, **options: object) -> bytes:
    """The file's bytes."""
    out = io.BytesIO()
    image.save(out, file_format, **options)
    return out.getvalue()


def rounded(image: Image.Image) -> Image.Image:
    """With transparent corners and a shadow that fades out."""
    mask = Image.new("L", image.size, 0)
    ImageDraw.Draw(mask).rounded_rectangle((6, 6, image.width - 7, image.height - 7), 30, fill=200)
    ImageDraw.Draw(mask).rounded_rectangle((10, 10, image.width - 11, image.height - 11), 28, fill=255)
    result = image.copy()
    result.putalpha(mask)
    return result


def turned(image: Image.Image, orientation: int, quality: int) -> bytes:
    """A JPEG whose pixels lie on the side, with EXIF that says so."""
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    transpose = {6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270, 3: Image.Transpose.ROTATE_180}[
        orientation
    ]
    return encoded(image.transpose(transpose), "JPEG", quality=quality, exif=exif)


def zone_plate(edge: int) -> Image.Image:
    """Rings that grow finer outwards until they are finer than pixels: what shows a resize without antialias."""
    axis = np.linspace(-1, 1, edge)
    radius = axis[:, None] ** 2 + axis[None, :] ** 2
    return Image.fromarray(np.rint(127.5 + 127.5 * np.cos(radius * edge * 0.9)).astype(np.uint8))


def checkers(width: int, height: int) -> Image.Image:
    """Single pixels of two colours."""
    odd = (np.indices((height, width)).sum(0) % 2).astype(bool)
    colours = np.where(odd[..., None], np.array([250, 30, 10]), np.array([5, 60, 240]))
    return Image.fromarray(colours.astype(np.uint8))


def noise(width: int, height: int) -> Image.Image:
    """Every level of every channel, at random."""
    return Image.fromarray(np.random.default_rng(SEED).integers(0, 256, (height, width, 3), dtype=np.uint8))


def sixteen_bits(image: Image.Image) -> Image.Image:
    """Grey of 16 bits."""
    grey = np.asarray(image.convert("L")).astype(np.uint16)
    return Image.fromarray(grey * 257)


def corpus() -> dict[str, bytes]:
    """File names and bytes."""
    terminal, other = drawn("terminal"), drawn("interface").resize((180, 140))
    second = terminal.resize(other.size).quantize(32)
    card = rounded(drawn("payment_card", edge=257))
    return {
        "01-passport.png": encoded(drawn("passport", edge=301).quantize(160).convert("RGB"), "PNG", optimize=True),
        "02-identity-card-q90.jpg": encoded(drawn("identity_card"), "JPEG", quality=90),
        "03-drivers-licence.webp": encoded(drawn("drivers_licence"), "WEBP", quality=80),
        "04-residence-permit-turned.jpg": turned(drawn("residence_permit"), 6, 75),
        "05-payment-card-alpha.png": encoded(card.quantize(128).convert("RGBA"), "PNG"),
        "06-landscape-q95.jpg": encoded(drawn("landscape"), "JPEG", quality=95, subsampling=0, progressive=True),
        "07-building-q60.jpg": encoded(drawn("building"), "JPEG", quality=60),
        "08-car-lossless.webp": encoded(drawn("car", edge=211), "WEBP", lossless=True),
        "09-portrait-grey.jpg": encoded(drawn("portrait").convert("L"), "JPEG", quality=85),
        "10-food-cmyk.jpg": encoded(drawn("food").convert("CMYK"), "JPEG", quality=80),
        "11-code-palette.png": encoded(drawn("code").quantize(32), "PNG", optimize=True),
        "12-terminal.gif": encoded(terminal.quantize(32), "GIF"),
        "13-document-one-bit.png": encoded(drawn("document_page").convert("1"), "PNG", optimize=True),
        "14-radiograph-16-bit.png": encoded(sixteen_bits(drawn("chest_radiograph", edge=180)), "PNG", optimize=True),
        "15-chart-grey-alpha.png": encoded(rounded(drawn("chart", edge=240).convert("L")), "PNG", optimize=True),
        "16-zone-plate.png": encoded(zone_plate(307), "PNG", optimize=True),
        "17-checkers.png": encoded(checkers(613, 347), "PNG", optimize=True),
        "18-noise-q30.jpg": encoded(noise(149, 97), "JPEG", quality=30),
        "19-thin.png": encoded(drawn("map").resize((901, 7)), "PNG", optimize=True),
        "20-animated.gif": encoded(other.quantize(32), "GIF", save_all=True, append_images=[second]),
    }  # fmt: skip


def probe() -> dict[str, bytes]:
    """The probe's images and its file."""
    lines = ["# Made by models/parity/corpus.py.", "fields:"]
    for field, labels in PROBE_FIELDS.items():
        lines += [f"  {field}:", *(f'    - "{label}"' for label in labels)]
    lines.append("images:")
    files = {}
    for number, (kind, field, offset) in enumerate(PROBE_IMAGES, 1):
        name = f"probe/{number:02d}-{kind.replace('_', '-')}.jpg"
        files[name] = encoded(drawn(kind, 100 + offset, PROBE_EDGE), "JPEG", quality=80)
        lines.append(f"  - {{file: {name}, field: {field}}}")
    return {**files, "probe.yaml": ("\n".join(lines) + "\n").encode()}


def main() -> None:
    """Write them; exits 1 when they are too large for the package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    out: Path = parser.parse_args().out
    files = {**{f"verify/{name}": data for name, data in corpus().items()}, **probe()}
    total = sum(len(data) for data in files.values())
    for name, data in files.items():
        print(f"{len(data):8,} {name}")
    if total > MAX_BYTES:
        raise SystemExit(f"{total:,} bytes, at most {MAX_BYTES:,} are allowed")
    shutil.rmtree(out, ignore_errors=True)
    for name, data in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(data)
    print(f"{len(files)} files, {total:,} bytes in {out}")


if __name__ == "__main__":
    main()
