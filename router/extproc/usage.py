"""What an LLM's answer says of its own size, and whether a piece of a streamed answer carries some of it.

One reader for OpenAI's chat completions, completions, embeddings and Responses, and for Anthropic's messages: their
words do not collide. It looks at names and numbers; texts are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

MAX_TOKENS: Final = 10**9
"""Past this a number is not believed."""

_NESTED = ("response", "message")
"""Where events repeat the answer: `response` in OpenAI's Responses, `message` in Anthropic's message_start."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens in and out; None where the answer did not say. `cached` are those of `tokens_in` that were read before."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cached: int | None = None

    def then(self, later: Usage) -> Usage:
        """What is known after a `later` piece: its numbers count for the whole answer so far."""
        return Usage(
            self.tokens_in if later.tokens_in is None else later.tokens_in,
            self.tokens_out if later.tokens_out is None else later.tokens_out,
            self.cached if later.cached is None else later.cached,
        )


NOTHING_SAID: Final = Usage()


def usage_of(answer: Any) -> Usage:
    """What this piece says, a decoded JSON value of any shape."""
    said = NOTHING_SAID
    for usage in _usages(answer):
        said = said.then(_read(usage))
    return said


def carries_content(event: Any) -> bool:
    """Whether an event of a stream has something of the answer itself: text, reasoning, or a call of a tool."""
    if not isinstance(event, dict):
        return False
    kind = event.get("type")
    if isinstance(kind, str) and (kind == "content_block_delta" or kind.endswith(".delta")):
        return True
    choices = event.get("choices")
    return isinstance(choices, list) and any(map(_choice_says, choices))


def _choice_says(choice: Any) -> bool:
    if not isinstance(choice, dict):
        return False
    delta = choice.get("delta")
    if isinstance(delta, dict):
        return any(value for key, value in delta.items() if key != "role")
    return bool(choice.get("text"))


def _usages(answer: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(answer, dict):
        return
    for whole in (answer, *(answer.get(key) for key in _NESTED)):
        if isinstance(whole, dict) and isinstance(whole.get("usage"), dict):
            yield whole["usage"]


def _read(usage: dict[str, Any]) -> Usage:
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        cached = _detail(usage, "prompt_tokens_details")
        return Usage(_count(usage, "prompt_tokens"), _count(usage, "completion_tokens"), cached)
    tokens_in, cached = _count(usage, "input_tokens"), _detail(usage, "input_tokens_details")
    read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
    if tokens_in is not None and (read is not None or written is not None):
        # Anthropic counts what it has cached, or caches now, beside the rest.
        tokens_in, cached = tokens_in + (read or 0) + (written or 0), read
    return Usage(tokens_in, _count(usage, "output_tokens"), cached)


def _detail(usage: dict[str, Any], key: str) -> int | None:
    details = usage.get(key)
    return _count(details, "cached_tokens") if isinstance(details, dict) else None


def _count(usage: dict[str, Any], key: str) -> int | None:
    value = usage.get(key)
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else None
