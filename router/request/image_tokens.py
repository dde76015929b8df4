"""How many tokens of a model's context an image takes, by the rule that its upstream publishes.

Arithmetic over a width and a height, and the size that an image file declares; no pixel is decoded. A request's own
wish for less detail (`detail: low`) is not looked at, so that a count is what the image takes at most.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from router.request.errors import ImageError
from router.request.image_containers import read_still
from router.request.view import ImagePart

RULE_PATTERN: Final = (
    r"^(none|openai_tiles(:\d{1,6}\+\d{1,6})?|openai_patches(:\d{1,2}(\.\d{1,4})?)?|anthropic|gemini_tiles"
    r"|qwen2_vl(:\d{1,6})?|qwen3_vl(:\d{1,6})?|patches:[1-9]\d{0,3}|fixed:\d{1,6})$"
)
"""What a rule looks like, for a schema. Part of it is a closed list, part are numbers of the upstream's model."""

_OPENAI_TILE, _OPENAI_BOX, _OPENAI_SHORT = 512, 2048, 768
_OPENAI_PATCH, _OPENAI_PATCHES = 32, 1536
_ANTHROPIC_EDGE, _ANTHROPIC_PIXELS, _ANTHROPIC_TOKENS = 1568, 750, 1600
_GEMINI_SMALL, _GEMINI_TILE, _GEMINI_TOKENS = 384, 768, 258
_QWEN_LEAST, _QWEN_MOST, _QWEN_FRAME = 4, 16_384, 2


@dataclass(frozen=True, slots=True)
class ImageRule:
    """A rule that has been read. `needs_size` is whether it asks for width and height at all."""

    name: str
    numbers: tuple[float, ...] = ()

    @property
    def needs_size(self) -> bool:
        """False where every image takes the same."""
        return self.name not in ("none", "fixed")


NO_RULE: Final = ImageRule("none")


def read_rule(written: str) -> ImageRule:
    """The rule as a policy writes it; ValueError where it is none.

    - `none`: images take nothing.
    - `fixed:N`: every image takes N, as where a model resizes all to one size (576 for LLaVA 1.5, 256 for Gemma 3).
    - `patches:P`: one token for each patch of P x P pixels begun, nothing resized.
    - `openai_tiles`, or `openai_tiles:BASE+TILE`: OpenAI's rule for GPT-4o and GPT-4.1 (85+170); other models differ in
      the two numbers only (GPT-4o mini 2833+5667, o1 75+150). Fitted into 2048 x 2048, then the shorter side to at most
      768, then BASE plus TILE for each tile of 512 x 512.
    - `openai_patches`, or `openai_patches:FACTOR`: OpenAI's rule for the mini and nano models: patches of 32 x 32, at
      most 1,536 of them, times FACTOR (1 by itself; 1.62 for GPT-4.1 mini, 2.46 for nano, 1.72 for o4-mini).
      Both: platform.openai.com/docs/guides/images-vision, "Calculating costs".
    - `anthropic`: width x height / 750, the longer side at most 1,568 pixels and about 1,600 tokens at most
      (docs.anthropic.com, "Vision", "Evaluate image size").
    - `gemini_tiles`: 258 where both sides are at most 384, else 258 for each tile of 768 x 768 begun
      (ai.google.dev/gemini-api/docs/tokens, Gemini 2.0).
    - `qwen2_vl`, or `qwen2_vl:MOST`: Qwen2-VL and Qwen2.5-VL: sides rounded to multiples of 28 pixels, a token for each
      28 x 28, from 4 to MOST (16,384), and two around them (`smart_resize` of github.com/QwenLM/Qwen2-VL,
      qwen-vl-utils). `qwen3_vl` is the same with 32 pixels.
    """
    if re.fullmatch(RULE_PATTERN, written) is None:
        raise ValueError(f"{written!r} is no rule for image tokens, such as openai_tiles, anthropic or fixed:576")
    name, _, numbers = written.partition(":")
    rule = ImageRule(name, tuple(float(number) for number in re.split(r"\+", numbers)) if numbers else ())
    if name.startswith("qwen") and rule.numbers and rule.numbers[0] < _QWEN_LEAST:
        raise ValueError(f"{written!r}: an image takes at least {_QWEN_LEAST} tokens")
    return rule


def image_tokens(rule: ImageRule, width: int, height: int) -> int:
    """Tokens of an image of `width` x `height` pixels, each at least 1. Which of the two is which does not matter."""
    if width < 1 or height < 1:
        raise ValueError("an image has at least one pixel")
    return _RULES[rule.name](rule.numbers, width, height)


def declared_size(image: ImagePart) -> tuple[int, int]:
    """Width and height that an embedded image declares, not turned upright. ImageError where it cannot be told.

    Work in proportion to the file's size; a size is what the file says, whether or not its pixels can be decoded.
    """
    if image.status != "inline":
        raise ImageError("not fetched" if image.status == "not_fetched" else image.reason or "malformed")
    still = read_still(image.data, 1)
    if still.width < 1 or still.height < 1:
        raise ImageError("corrupt")
    return still.width, still.height


def _tiles(numbers: tuple[float, ...], width: int, height: int) -> int:
    base, tile = numbers or (85, 170)
    scale = min(1.0, _OPENAI_BOX / max(width, height))
    scale = min(scale, _OPENAI_SHORT / min(width, height))
    return int(base + tile * _begun(width * scale, _OPENAI_TILE) * _begun(height * scale, _OPENAI_TILE))


def _capped_patches(numbers: tuple[float, ...], width: int, height: int) -> int:
    (factor,) = numbers or (1.0,)
    count = _begun(width, _OPENAI_PATCH) * _begun(height, _OPENAI_PATCH)
    if count > _OPENAI_PATCHES:
        scale = math.sqrt(_OPENAI_PATCH**2 * _OPENAI_PATCHES / (width * height))
        across, down = width * scale / _OPENAI_PATCH, height * scale / _OPENAI_PATCH
        # A side shorter than a patch can't be brought down to a whole number of them.
        scale *= min((math.floor(side) / side for side in (across, down) if side >= 1), default=1.0)
        count = _begun(width * scale, _OPENAI_PATCH) * _begun(height * scale, _OPENAI_PATCH)
    return math.ceil(min(count, _OPENAI_PATCHES) * factor)


def _anthropic(_: tuple[float, ...], width: int, height: int) -> int:
    scale = min(1.0, _ANTHROPIC_EDGE / max(width, height))
    return min(math.ceil(width * height * scale * scale / _ANTHROPIC_PIXELS), _ANTHROPIC_TOKENS)


def _gemini(_: tuple[float, ...], width: int, height: int) -> int:
    if max(width, height) <= _GEMINI_SMALL:
        return _GEMINI_TOKENS
    return _GEMINI_TOKENS * _begun(width, _GEMINI_TILE) * _begun(height, _GEMINI_TILE)


def _qwen(side: int) -> Callable[[tuple[float, ...], int, int], int]:
    def count(numbers: tuple[float, ...], width: int, height: int) -> int:
        most = int(numbers[0]) if numbers else _QWEN_MOST
        across, down = max(1, round(width / side)), max(1, round(height / side))
        pixels = width * height / side**2
        if across * down > most:
            scale = math.sqrt(most / pixels)
            across, down = (max(1, math.floor(x / side * scale)) for x in (width, height))
        elif across * down < _QWEN_LEAST:
            scale = math.sqrt(_QWEN_LEAST / pixels)
            across, down = (math.ceil(x / side * scale) for x in (width, height))
        return min(across * down, most) + _QWEN_FRAME

    return count


def _patches(numbers: tuple[float, ...], width: int, height: int) -> int:
    return _begun(width, int(numbers[0])) * _begun(height, int(numbers[0]))


def _begun(length: float, unit: int) -> int:
    # Scaling to exactly a multiple must not begin another unit for a rounding error.
    return max(1, math.ceil(length / unit - 1e-9))


_RULES: Final[Mapping[str, Callable[[tuple[float, ...], int, int], int]]] = {
    "none": lambda numbers, width, height: 0,
    "fixed": lambda numbers, width, height: int(numbers[0]),
    "patches": _patches,
    "openai_tiles": _tiles,
    "openai_patches": _capped_patches,
    "anthropic": _anthropic,
    "gemini_tiles": _gemini,
    "qwen2_vl": _qwen(28),
    "qwen3_vl": _qwen(32),
}
