"""Safe decoding of the images that clients send: bytes in, upright opaque RGB out, or the reason why not.

Reads PNG, JPEG, WebP, GIF and BMP, the formats that the hosted APIs take plus what clipboards give; no TIFF, whose many
codecs are a risk that no client needs. Byte, pixel and frame limits are checked before any pixel is decoded. Runs
in worker threads and touches no global state of Pillow; resizing is the encoder's business.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFilter
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

from router.request.errors import ImageError
from router.request.image_containers import Format, read_still

# Straight to the decoder of a format: Image.open would warn about sizes by its own global limit, and try others.
_OPENERS: dict[Format, Callable[[io.BytesIO], ImageFile]] = {
    "PNG": PngImageFile,
    "JPEG": JpegImageFile,
    "WEBP": WebPImageFile,
    "GIF": GifImageFile,
    "BMP": BmpImageFile,
}

_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_WHITE = (255, 255, 255, 255)

# What counts as hidden by transparency. An alpha of 192 leaves three quarters of a contrast; 16 of 255 levels is about
# what is still legible; 16 x 16 pixels is less than a picture needs to be one.
_VISIBLE = 192
_NOTICEABLE = 16
_SIZEABLE = 256
_THUMBNAIL = 256


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What an image may cost. Beyond any of these it is not decoded.

    `bytes` of the file; `pixels` of the declared size, about 100 MB of memory at the default; `frames` of an animation.
    Only the first frame is looked at, and which ones an upstream shows its model nobody knows, so that by default an
    animation is not judged at all: guards close, routes do not match. More than 1 is for pictures of one's own.
    """

    bytes: int = 20 * 2**20
    pixels: int = 25_000_000
    frames: int = 1


def decode(data: bytes, limits: ImageLimits, target: tuple[int, int] | None = None) -> Image.Image:
    """The first frame of `data` in mode RGB, EXIF orientation applied, transparency on white, 16 bits scaled to 8.

    `target` is the (height, width) that the caller will resize to, as a pack's manifest writes it: a JPEG is then
    decoded at a fraction of its size, never below twice the target, which costs a fraction of the time. The result
    is not resized to it. Raises ImageError, and nothing else, for whatever bytes: `empty`, `too many bytes`,
    `unknown format`, `too many pixels`, `animated`, `too many scans`, `compressed BMP`, `truncated`, `corrupt`,
    `hidden by transparency`.
    """
    if len(data) > limits.bytes:
        raise ImageError("too many bytes")
    still = read_still(data, limits.frames)
    if still.width < 1 or still.height < 1:
        raise ImageError("corrupt")
    if still.width * still.height > limits.pixels:
        raise ImageError("too many pixels")
    if still.frames > limits.frames:
        raise ImageError("animated")
    try:
        image = _OPENERS[still.format](io.BytesIO(still.data))
        # Both read the size from the same bytes, each in its own way; only the one that was checked may be decoded.
        if image.size != (still.width, still.height):
            raise ImageError("corrupt")
        if target is not None and isinstance(image, JpegImageFile):
            height, width = target if still.orientation < 5 else target[::-1]
            image.draft(None, (2 * width, 2 * height))
        image.load()
        rgb = _opaque_rgb(image)
        turn = _UPRIGHT.get(still.orientation)
        return rgb if turn is None else rgb.transpose(turn)
    except ImageError:
        raise
    except Exception as error:
        # Pillow's decoders raise whatever a hostile file makes them stumble over, so no shorter list is complete.
        raise ImageError("truncated" if "truncated" in str(error).lower() else "corrupt") from None


def _opaque_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        image = _eight_bits(image)
    if not image.has_transparency_data:
        return image if image.mode == "RGB" else image.convert("RGB")
    image = image.convert("RGBA")
    alpha = image.getchannel("A")
    least = int(np.asarray(alpha).min())
    if least == 255:
        return image.convert("RGB")
    shown = Image.alpha_composite(Image.new("RGBA", image.size, _WHITE), image).convert("RGB")
    if least < _VISIBLE and _hides_content(image.convert("RGB"), shown, alpha):
        raise ImageError("hidden by transparency")
    return shown


def _hides_content(stored: Image.Image, shown: Image.Image, alpha: Image.Image) -> bool:
    """Whether a reader that drops the alpha channel, as many do, sees a picture where a reader that heeds it does not.

    One colour behind transparency is no picture: where `stored` differs from `shown`, it has to differ from its own
    most common colour, too. All are compared as thumbnails, each of whose pixels is the mean of an area, so that no
    pattern of visible dots between hidden ones escapes. Soft edges of what is visible are another colour than the
    background on most logos; they only count when there are very many of them.
    """
    scale = max(1, max(stored.size) // _THUMBNAIL)
    stored, shown, alpha = (picture.reduce(scale) for picture in (stored, shown, alpha))
    colours = np.asarray(stored).astype(np.int16)
    lost = (np.abs(colours - np.asarray(shown)).max(axis=-1) > _NOTICEABLE) & (np.asarray(alpha) < _VISIBLE)
    if np.count_nonzero(lost) < _SIZEABLE:
        return False
    background = np.median(colours[lost], axis=0)
    hidden = lost & (np.abs(colours - background).max(axis=-1) > _NOTICEABLE)
    near_visible = np.asarray(alpha.filter(ImageFilter.MaxFilter(5))) >= _VISIBLE
    return bool(
        np.count_nonzero(hidden & ~near_visible) > max(_SIZEABLE, 0.01 * hidden.size)
        or np.count_nonzero(hidden) > max(_SIZEABLE, 0.1 * hidden.size)
    )


def _eight_bits(image: Image.Image) -> Image.Image:
    """Grey of 16 bits as 8 bits; Pillow's own conversion would clip nearly all of it to white."""
    levels = np.asarray(image).astype(np.uint32)
    grey = Image.fromarray(((levels * 255 + 32_767) // 65_535).astype(np.uint8))
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        grey.putalpha(Image.fromarray(np.where(levels == transparent, 0, 255).astype(np.uint8)))
    return grey
