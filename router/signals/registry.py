"""The families of signals: what each needs, and how one is built from its settings. A table, and nothing clever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import BaseModel

from router.inference.encoders import Encoders
from router.inference.text import TextEncoder
from router.inference.vision import VisionEncoder
from router.signals.base import Signal, SignalName
from router.signals.context import ContextSettings, ContextSignal
from router.signals.conversation import BUILTINS, ConversationSettings, ConversationSignal
from router.signals.embedding import EmbeddingSettings, EmbeddingSignal
from router.signals.image import ImageSettings, ImageSignal
from router.signals.jailbreak import JailbreakSettings, JailbreakSignal
from router.signals.keyword import KeywordSettings, KeywordSignal

Tower = Literal["text", "vision"]


class SignalSetupError(Exception):
    """A signal that can't work with the encoders at hand; the message is for the policy's author."""


@dataclass(frozen=True, slots=True)
class Family:
    """One family. `build` takes settings of the family's own model; it raises SignalSetupError for the policy's author.

    `needs` are the encoders without which `build` raises; `builtins` are names that need no definition.
    """

    settings: type[BaseModel]
    build: Callable[[SignalName, Any, Encoders], Signal]
    needs: frozenset[Tower] = frozenset()
    builtins: Mapping[str, BaseModel] = field(default_factory=dict)


def _keyword(name: SignalName, settings: KeywordSettings, _: Encoders) -> Signal:
    return KeywordSignal(name, settings)


def _conversation(name: SignalName, settings: ConversationSettings, _: Encoders) -> Signal:
    return ConversationSignal(name, settings)


def _context(name: SignalName, settings: ContextSettings, encoders: Encoders) -> Signal:
    return ContextSignal(name, settings, encoders.text)


def _embedding(name: SignalName, settings: EmbeddingSettings, encoders: Encoders) -> Signal:
    return EmbeddingSignal(name, settings, _text(name, encoders))


def _jailbreak(name: SignalName, settings: JailbreakSettings, encoders: Encoders) -> Signal:
    return JailbreakSignal(name, settings, _text(name, encoders))


def _image(name: SignalName, settings: ImageSettings, encoders: Encoders) -> Signal:
    text, vision = _text(name, encoders), _vision(name, encoders)
    if (text.space, text.dimension) != (vision.space, vision.dimension):
        raise SignalSetupError(
            f"{name}: captions and images must be embedded in one space, but the text encoder's is "
            f"{text.space!r} ({text.dimension}-d) and the vision encoder's {vision.space!r} ({vision.dimension}-d)"
        )
    return ImageSignal(name, settings, text, vision)


def _text(name: SignalName, encoders: Encoders) -> TextEncoder:
    if encoders.text is None:
        raise SignalSetupError(f"{name}: needs a text encoder; name one under `encoders`")
    return encoders.text


def _vision(name: SignalName, encoders: Encoders) -> VisionEncoder:
    if encoders.vision is None:
        raise SignalSetupError(f"{name}: needs a vision encoder; name one under `encoders`")
    return encoders.vision


FAMILIES: Final[Mapping[str, Family]] = {
    "keyword": Family(KeywordSettings, _keyword),
    "conversation": Family(ConversationSettings, _conversation, builtins=BUILTINS),
    "context": Family(ContextSettings, _context),
    "embedding": Family(EmbeddingSettings, _embedding, needs=frozenset({"text"})),
    "image": Family(ImageSettings, _image, needs=frozenset({"text", "vision"})),
    "jailbreak": Family(JailbreakSettings, _jailbreak, needs=frozenset({"text"})),
}
"""Every family, by the name that policies use."""
