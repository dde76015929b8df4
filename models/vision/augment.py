"""What happens to a training image on its way to the tower: crops, turns, colours, and the marks of bad cameras.

Documents and screens keep most of their content and are never mirrored; photos are cropped harder.
"""

from __future__ import annotations

import io
import random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageOps

from .collection import Item

# What is served; training may use less.
SIZE = 256
PHOTOS = frozenset(
    [
        "animal",
        "building",
        "food",
        "landscape",
        "person_face",
        "product",
        "vehicle",
        "pcb_electronics",
        "semiconductor_wafer",
        "other",
        "other_medical",
    ]
)
# What comes on paper must not be told apart by the paper's colour: the collected manuscripts are all old and brown.
PAPERS = frozenset({"document_page", "handwriting", "receipt_invoice", "table"})
STAND_ALONE = frozenset({"pcb_electronics", "product", "food", "other", "semiconductor_wafer"})
RESAMPLES = (
    Image.Resampling.BICUBIC,
    Image.Resampling.BICUBIC,
    Image.Resampling.BICUBIC,
    Image.Resampling.BILINEAR,
    Image.Resampling.LANCZOS,
    Image.Resampling.BOX,
)


def load(item: Item) -> Image.Image:
    """Decode."""
    return Image.open(io.BytesIO(item.data)).convert("RGB")


def plain(item: Item, size: int = SIZE) -> NDArray[np.uint8]:
    """Exactly the preprocessing that the pack promises."""
    return np.asarray(load(item).resize((size, size), Image.Resampling.BICUBIC))


def _crop(image: Image.Image, rng: random.Random, photo: bool, size: int) -> Image.Image:
    width, height = image.size
    smallest = 0.3 if photo else 0.5
    area = rng.uniform(smallest, 1.0)
    stretch = rng.uniform(0.8, 1.25)
    w = min(1.0, (area * stretch) ** 0.5)
    h = min(1.0, (area / stretch) ** 0.5)
    left = rng.uniform(0, 1 - w) * width
    top = rng.uniform(0, 1 - h) * height
    box = (left, top, left + max(8.0, w * width), top + max(8.0, h * height))
    box = (box[0], box[1], min(width, box[2]), min(height, box[3]))
    return image.resize((size, size), rng.choice(RESAMPLES), box=box)


def _colour(pixels: NDArray[np.uint8], rng: random.Random) -> NDArray[np.uint8]:
    x = pixels.astype(np.float32)
    if rng.random() < 0.10:
        x = np.repeat(x.mean(-1, keepdims=True), 3, axis=-1)
    elif rng.random() < 0.5:
        grey = x.mean(-1, keepdims=True)
        x = grey + (x - grey) * rng.uniform(0.5, 1.5)
    gains = np.array([rng.gauss(1, 0.06) for _ in range(3)], dtype=np.float32)
    x = x * gains * rng.uniform(0.75, 1.25)
    middle = rng.uniform(90, 160)
    x = middle + (x - middle) * rng.uniform(0.7, 1.3) + rng.gauss(0, 8)
    if rng.random() < 0.15:
        noise = np.random.default_rng(rng.getrandbits(32)).normal(0, rng.uniform(2, 14), x.shape)
        x = x + noise.astype(np.float32)
    clipped: NDArray[np.uint8] = np.clip(x, 0, 255).astype(np.uint8)
    return clipped


def _padded(image: Image.Image, rng: random.Random) -> Image.Image:
    """The image as part of something larger: a screenshot with margins, a scan lying on its glass."""
    width, height = image.size
    colour = rng.choice([(255, 255, 255), (0, 0, 0), tuple(rng.randrange(256) for _ in range(3))])
    w, h = int(width * rng.uniform(1.0, 1.6)), int(height * rng.uniform(1.0, 1.6))
    canvas = Image.new("RGB", (w, h), colour)
    canvas.paste(image, (rng.randint(0, w - width), rng.randint(0, h - height)))
    return canvas


def _tinted(pixels: NDArray[np.uint8], rng: random.Random) -> NDArray[np.uint8]:
    """The same page on other paper: white made yellow, brown or grey, or brown bleached to grey."""
    x = pixels.astype(np.float32)
    if rng.random() < 0.4:
        x = np.repeat(x.mean(-1, keepdims=True), 3, axis=-1)
        x = x * (245.0 / max(60.0, float(np.percentile(x, 80))))
    if rng.random() < 0.6:
        warm = rng.uniform(0.0, 1.0)
        paper = np.array([1.0 - 0.12 * warm, 1.0 - 0.2 * warm, 1.0 - 0.42 * warm], dtype=np.float32)
        x = x * paper * rng.uniform(0.8, 1.0)
    clipped: NDArray[np.uint8] = np.clip(x, 0, 255).astype(np.uint8)
    return clipped


def regrounded(image: Image.Image, rng: random.Random) -> Image.Image:
    """What stands on white put onto something else: articles and boards must not be told by the shop's white wall."""
    small = image.copy()
    small.thumbnail((192, 192))
    corners = [(0, 0), (small.width - 1, 0), (0, small.height - 1), (small.width - 1, small.height - 1)]
    # Drop it unless the ground is white on all sides.
    if any(min(small.getpixel(corner)) < 236 for corner in corners):  # type: ignore[arg-type]
        return image
    marker = (255, 0, 255)
    for corner in corners:
        ImageDraw.floodfill(small, corner, marker, thresh=18)
    away = (np.asarray(small) == np.array(marker)).all(-1)
    if not 0.08 < away.mean() < 0.95:
        return image
    mask = Image.fromarray((away * 255).astype(np.uint8)).resize(image.size, Image.Resampling.BILINEAR)
    grain = np.random.default_rng(rng.getrandbits(32))
    base = np.array([rng.randrange(256) for _ in range(3)], dtype=np.float32)
    cells = rng.choice([2, 4, 12, 60])
    field = Image.fromarray(grain.normal(0, 1, (cells, cells, rng.choice([1, 3]))).astype(np.float32).mean(-1))
    waves = np.asarray(field.resize(image.size, Image.Resampling.BICUBIC))[..., None]
    ground = Image.fromarray(np.clip(base + waves * rng.uniform(0, 50), 0, 255).astype(np.uint8))
    return Image.composite(ground, image, mask)


def augmented(item: Item, seed: int, size: int = SIZE) -> NDArray[np.uint8]:
    """One draw; the same for the same seed."""
    rng = random.Random(seed)
    image = load(item)
    photo = item.label in PHOTOS
    if item.label in STAND_ALONE and rng.random() < 0.3:
        image = regrounded(image, rng)
    if rng.random() < 0.12:
        factor = rng.uniform(0.35, 0.8)
        image = image.resize(
            (max(24, int(image.width * factor)), max(24, int(image.height * factor))), Image.Resampling.BILINEAR
        )
    if rng.random() < 0.12:
        image = _padded(image, rng)
    if (photo and rng.random() < 0.5) or (item.label == "chest_xray" and rng.random() < 0.2):
        image = ImageOps.mirror(image)
    if rng.random() < 0.25:
        fill = rng.choice([(255, 255, 255), (0, 0, 0), tuple(rng.randrange(256) for _ in range(3))])
        image = image.rotate(rng.gauss(0, 5), Image.Resampling.BILINEAR, expand=rng.random() < 0.5, fillcolor=fill)
    if (
        item.label in ("passport_or_id", "pcb_electronics", "semiconductor_wafer", "payment_card", "receipt_invoice")
        and rng.random() < 0.08
    ):
        image = image.rotate(rng.choice([90, 180, 270]), expand=True)
    if rng.random() < 0.15:
        squashed = image.resize((size, size), rng.choice(RESAMPLES))
    else:
        squashed = _crop(image, rng, photo, size)
    if rng.random() < 0.12:
        squashed = squashed.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 1.6)))
    if rng.random() < 0.2:
        buffer = io.BytesIO()
        squashed.save(buffer, "JPEG", quality=rng.randint(20, 80))
        squashed = Image.open(buffer).convert("RGB")
    pixels = np.asarray(squashed)
    if item.label in PAPERS and rng.random() < 0.35:
        pixels = _tinted(pixels, rng)
    if rng.random() < 0.8:
        pixels = _colour(pixels, rng)
    if rng.random() < 0.15:
        pixels = pixels.copy()
        h, w = (int(size * rng.uniform(0.1, 0.4)) for _ in range(2))
        y, x = rng.randint(0, size - h), rng.randint(0, size - w)
        pixels[y : y + h, x : x + w] = [rng.randrange(256) for _ in range(3)]
    return pixels
