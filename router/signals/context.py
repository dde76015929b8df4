"""`context`: how long the request is, in tokens.

    context:
      long: {min_tokens: 32000}
      fits_small_model: {max_tokens: 8000, image_tokens: qwen2_vl}

Tokens are those of the text encoder's tokenizer; an upstream's own tokenizer counts somewhat differently. Without a
text encoder an estimate stands in: four characters of ASCII a token, one token for any other character. Texts of every
turn and role count, tool calls and results and the definitions of tools too. Images count where `image_tokens` names
the upstream's rule (router/request/image_tokens.py has them all, with their sources), by the size that the file
declares; an image whose size can't be told leaves the answer open, unless the rest settles it. The observation's value
is the number of tokens. Costs a tokenizer's pass over each text that is not cached. It sees neither audio nor files,
nor what an upstream's chat template adds.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, Field, model_validator

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.request.errors import ImageError
from router.request.image_tokens import RULE_PATTERN, declared_size, image_tokens, read_rule
from router.request.view import RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, failed, observed, shed
from router.signals.settings import SignalSettings
from router.signals.texts import encodable

MEASURED_AT_ONCE: Final = 262_144
"""Characters, well under a millisecond's work."""


def _known_rule(written: str) -> str:
    read_rule(written)
    return written


class ContextSettings(SignalSettings):
    """Settings of a `context` signal: both bounds are inclusive."""

    min_tokens: int | None = Field(None, ge=0, description="Least number of tokens.")
    max_tokens: int | None = Field(None, ge=0, description="Greatest number of tokens.")
    image_tokens: Annotated[str, AfterValidator(_known_rule)] = Field(
        "none",
        description="How images count. none: not at all; openai_tiles, openai_patches, anthropic, gemini_tiles, "
        "qwen2_vl, qwen3_vl: by that upstream's rule; patches:P: a token for each P x P pixels; fixed:N: N for each.",
        json_schema_extra={"pattern": RULE_PATTERN},
    )

    @property
    def matching(self) -> tuple[int | None, int | None]:
        """See `SignalSettings`."""
        return self.min_tokens, self.max_tokens

    @property
    def counted(self) -> Mapping[str, tuple[int | None, int | None]] | None:
        """See `SignalSettings`; images that count by a rule of one upstream are no common measure."""
        return {"tokens": self.matching} if self.image_tokens == "none" else None

    @model_validator(mode="after")
    def _says_something(self) -> ContextSettings:
        if self.min_tokens is None and self.max_tokens is None:
            raise ValueError("min_tokens or max_tokens is needed")
        if self.min_tokens is not None and self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise ValueError("min_tokens is greater than max_tokens")
        return self


class ContextSignal:
    """Whether the number of tokens lies within the bounds; has no score."""

    def __init__(self, name: SignalName, settings: ContextSettings, encoder: TextEncoder | None) -> None:
        self.name = name
        # Counting a megabyte takes a tokenizer long enough to be asked only when it matters.
        self.cost = Cost.HEURISTIC if encoder is None else Cost.TEXT_MODEL
        self._least = settings.min_tokens or 0
        self._most = settings.max_tokens
        self._rule = read_rule(settings.image_tokens)
        self._encoder = encoder
        self._pack = encoder.pack if encoder else ""

    async def prepare(self) -> None:
        """Nothing to do."""

    async def observe(self, view: RequestView) -> Observation:
        """Count. Where that has no end, what is known of the number may settle the bounds all the same."""
        for_images, unreadable = await self._of_images(view)
        tokens, rest = await self._of_texts(view)
        tokens += for_images
        if rest is None and unreadable is None:
            about = "" if self._encoder else "about "
            return self._answer(self._within(tokens), f"{about}{tokens} tokens", float(tokens))
        settled = self._settled(tokens, math.inf if unreadable else tokens + (rest or 0))
        if settled is not None:
            return self._answer(settled, f"at least {tokens} tokens", None)
        if unreadable is not None:
            return failed(f"an image's size is unknown: {unreadable.detail}", (unreadable,), pack=self._pack)
        return shed(self._pack)

    async def _of_images(self, view: RequestView) -> tuple[int, Evidence | None]:
        """Tokens of the images whose size can be told, and the first one whose size can't."""
        tokens = 0
        unreadable: Evidence | None = None
        for index, image in enumerate(view.images):
            if not self._rule.needs_size:
                tokens += image_tokens(self._rule, 1, 1)
                continue
            try:
                tokens += image_tokens(self._rule, *declared_size(image))
            except ImageError as error:
                unreadable = unreadable or Evidence(image.pointer, image=index, detail=str(error))
            await asyncio.sleep(0)
        return tokens, unreadable

    async def _of_texts(self, view: RequestView) -> tuple[int, int | None]:
        """Tokens of the texts; where the tokenizer is too busy, of some, and how many the rest has at most."""
        tokens = 0
        for index, text in enumerate(view.texts):
            if self._encoder is None:
                tokens += await estimate(text.text)
                continue
            try:
                tokens += await self._encoder.count_tokens(encodable(text.text))
            except Overloaded:
                return tokens, sum([await _encoded_size(each.text) for each in view.texts[index:]])
        return tokens, None

    def _settled(self, least: float, most: float) -> bool | None:
        """Whether a number between the two lies within the bounds, None where that depends on the number."""
        bound = math.inf if self._most is None else self._most
        if most < self._least or least > bound:
            return False
        return True if least >= self._least and most <= bound else None

    def _within(self, tokens: int) -> bool:
        return tokens >= self._least and (self._most is None or tokens <= self._most)

    def _answer(self, matched: bool, detail: str, value: float | None) -> Observation:
        evidence = (Evidence("", label="tokens", detail=detail),)
        return observed(matched, evidence=evidence, pack=self._pack, value=value)


async def estimate(text: str) -> int:
    """Tokens of a text, roughly: a quarter of its ASCII characters, and every other one.

    Others get their turn while a long text is measured.
    """
    if text.isascii():
        return -(-len(text) // 4)
    ascii_characters = 0
    for start in range(0, len(text), MEASURED_AT_ONCE):
        ascii_characters += len(text[start : start + MEASURED_AT_ONCE].encode("ascii", "ignore"))
        if len(text) > start + MEASURED_AT_ONCE:
            await asyncio.sleep(0)
    return -(-ascii_characters // 4) + len(text) - ascii_characters


async def _encoded_size(text: str) -> int:
    """Bytes of UTF-8; others get their turn while a long text is measured."""
    if text.isascii():
        return len(text)
    size = 0
    for start in range(0, len(text), MEASURED_AT_ONCE):
        size += len(text[start : start + MEASURED_AT_ONCE].encode(errors="surrogatepass"))
        if len(text) > start + MEASURED_AT_ONCE:
            await asyncio.sleep(0)
    return size
