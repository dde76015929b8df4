"""`context`: how long the request's texts are, in tokens.

    context:
      long: {min_tokens: 32000}

Tokens are those of the text encoder's tokenizer; an upstream's own tokenizer counts somewhat differently. Without a
text encoder an estimate stands in: four characters of ASCII a token, one token for any other character. Texts of every
turn and role count, tool calls and results too; images and the definitions of tools do not. Costs a tokenizer's pass,
and nothing where the size in bytes settles it: no text has more tokens than bytes.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pydantic import Field, model_validator

from router.inference.executor import Overloaded
from router.inference.text import TextEncoder
from router.request.view import RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, observed, shed
from router.signals.settings import SignalSettings
from router.signals.texts import encodable

MEASURED_AT_ONCE: Final = 262_144
"""Characters, well under a millisecond's work."""


class ContextSettings(SignalSettings):
    """Settings of a `context` signal: both bounds are inclusive."""

    min_tokens: int | None = Field(None, ge=0, description="Least number of tokens.")
    max_tokens: int | None = Field(None, ge=0, description="Greatest number of tokens.")

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
        self._encoder = encoder

    async def prepare(self) -> None:
        """Nothing to do."""

    async def observe(self, view: RequestView) -> Observation:
        """Count, unless the size in bytes settles it."""
        size = 0
        for text in view.texts:
            size += await _encoded_size(text.text)
        if size < self._least:
            return self._answer(False, f"at most {size} tokens")
        if self._least == 0 and self._most is not None and size <= self._most:
            return self._answer(True, f"at most {size} tokens")
        if self._encoder is None:
            tokens = sum(estimate(text.text) for text in view.texts)
            return self._answer(self._within(tokens), f"about {tokens} tokens")
        tokens = 0
        try:
            for text in view.texts:
                tokens += await self._encoder.count_tokens(encodable(text.text))
                if self._most is not None and tokens > self._most:
                    return self._answer(False, f"more than {self._most} tokens")
        except Overloaded:
            return shed(self._encoder.pack)
        return self._answer(self._within(tokens), f"{tokens} tokens")

    def _within(self, tokens: int) -> bool:
        return tokens >= self._least and (self._most is None or tokens <= self._most)

    def _answer(self, matched: bool, detail: str) -> Observation:
        pack = self._encoder.pack if self._encoder else ""
        return observed(matched, evidence=(Evidence("", label="tokens", detail=detail),), pack=pack)


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


def estimate(text: str) -> int:
    """Tokens of a text, roughly: a quarter of its ASCII characters, and every other one."""
    ascii_characters = len(text.encode("ascii", "ignore"))
    return -(-ascii_characters // 4) + len(text) - ascii_characters
