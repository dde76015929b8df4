"""What a request needs of a model, and which of that a model does not meet.

Facts are measured once a request: kinds of content that come in and are wanted back, abilities, and how much of a
context it takes. Nothing here chooses; models that miss a need are dropped before anything does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Literal

from router.request.errors import ImageError
from router.request.image_tokens import NO_RULE, ImageRule, declared_size, image_tokens, read_rule
from router.request.view import AudioPart, FilePart, ImagePart, Part, RequestView, TextPart, ToolCallPart
from router.selection.upstream import Upstream

BYTES_PER_TOKEN: Final = 3
"""Of UTF-8 text, digits aside, which are a token each, for an estimate that rather counts too much.

Held against two public tokenizers (32,000 and 131,000 entries) it gives 1.0 to 1.4 times their tokens for English,
German, code, YAML and Chinese, 0.7 to 2.6 times for Japanese, Russian, Arabic, Hindi and Thai (less than 1 with the
small vocabulary only), 0.84 for numbers in JSON, and 0.6 for base64, which nothing but an exact counter gets right.
"""

TOKENS_PER_TURN: Final = 4
"""What a chat template writes around a message: role and marks (three and a name in OpenAI's cookbook, "How to count
tokens with tiktoken")."""

UNKNOWN_SIZE: Final = (1024, 1024)
"""Width and height that stand in for an image whose own cannot be told, such as one behind a URL."""

NeedKind = Literal["input", "output", "ability", "context"]

_KINDS: Final[dict[type, str]] = {
    TextPart: "text",
    ToolCallPart: "text",
    ImagePart: "image",
    AudioPart: "audio",
    FilePart: "file",
}
_ABILITIES: Final = {
    "tools": "calling tools",
    "json_schema": "answers in a given JSON schema",
    "logprobs": "probabilities of tokens",
    "parallel_choices": "several answers at once",
}


@dataclass(frozen=True, slots=True)
class Unmet:
    """A need that a model does not meet. For `context`, `asked` and `held` are tokens; both are 0 otherwise."""

    kind: NeedKind
    name: str
    asked: int = 0
    held: int = 0

    @property
    def word(self) -> str:
        """For records: `input:image`, `ability:tools`, `context`."""
        return self.kind if self.kind == "context" else f"{self.kind}:{self.name}"


@dataclass(frozen=True)
class Needs:
    """What a request needs.

    `text_tokens` are those of all texts and tools, `output_tokens` how many the answer may have (None: not said).
    `sizes` are width and height of each image of the conversation, None where the image does not tell.
    """

    inputs: frozenset[str]
    outputs: frozenset[str]
    abilities: frozenset[str]
    text_tokens: int
    output_tokens: int | None
    sizes: tuple[tuple[int, int] | None, ...] = ()

    def input_tokens(self, upstream: Upstream) -> int:
        """Tokens of texts and images, the latter by the upstream's rule; an upstream without a rule counts none."""
        rule = upstream.image_tokens
        if rule not in self._by_rule:
            self._by_rule[rule] = sum(image_tokens(_rule(rule), *(size or UNKNOWN_SIZE)) for size in self.sizes)
        return self.text_tokens + self._by_rule[rule]

    def context_tokens(self, upstream: Upstream) -> int:
        """Tokens of the question and, as far as the request says how long it may become, of the answer."""
        return self.input_tokens(upstream) + (self.output_tokens or 0)

    def unmet(self, upstream: Upstream) -> tuple[Unmet, ...]:
        """What the upstream does not meet; empty where it can take the request."""
        return tuple(self._missing(upstream))

    def _missing(self, upstream: Upstream) -> Iterator[Unmet]:
        for name in sorted(self.inputs.difference(upstream.modalities)):
            yield Unmet("input", name)
        for name in sorted(self.outputs.difference(upstream.outputs)):
            yield Unmet("output", name)
        if upstream.capabilities is not None:
            for name in sorted(self.abilities - upstream.capabilities):
                yield Unmet("ability", name)
        if upstream.context_tokens is not None:
            asked = self.context_tokens(upstream)
            if asked > upstream.context_tokens:
                yield Unmet("context", "context", asked, upstream.context_tokens)

    @cached_property
    def _by_rule(self) -> dict[str, int]:
        """Tokens of all images, by the rule they were counted by."""
        return {}


def estimate_tokens(view: RequestView) -> int:
    """Tokens of every text, tool and message frame, by size in bytes; for most texts rather too many than too few."""
    digits = other = 0
    for text in view.texts:
        data = text.text.encode(errors="surrogatepass")
        rest = len(data.translate(None, b"0123456789"))
        digits += len(data) - rest
        other += rest
    frames = TOKENS_PER_TURN * (len(view.turns) + len(view.tools))
    return digits + -(-other // BYTES_PER_TOKEN) + frames


def measure(view: RequestView, sized: bool, count: Callable[[RequestView], int] = estimate_tokens) -> Needs:
    """The needs of a request; `sized` is whether images' sizes are looked up. Work in proportion to the request."""
    parts = tuple(_own_parts(view))
    images = [part for part in parts if isinstance(part, ImagePart)]
    return Needs(
        inputs=frozenset(_KINDS[type(part)] for part in parts if type(part) in _KINDS and not _is_empty(part)),
        outputs=frozenset(view.outputs),
        abilities=frozenset(view.needs),
        text_tokens=count(view),
        output_tokens=view.max_output_tokens,
        sizes=tuple(_size(image) if sized else None for image in images),
    )


def wants_sizes(upstreams: Iterable[Upstream]) -> bool:
    """Whether any of these counts images by their size."""
    return any(_rule(upstream.image_tokens).needs_size for upstream in upstreams)


def explain(filtered: Sequence[tuple[Unmet, ...]]) -> str:
    """For the client: each need that no candidate meets, in words; where each is met by some, that none meets all.

    One item a candidate, none of them empty. Names no model, and nothing that the request says.
    """
    everyone = set.intersection(*({(need.kind, need.name) for need in needs} for needs in filtered))
    every = {(need.kind, need.name): need for needs in filtered for need in needs}
    for_all = sorted(everyone) or sorted(every)
    said = "; ".join(_in_words(key, filtered) for key in for_all)
    if everyone:
        return f"No model that this request may go to can take it. None of them meets: {said}."
    return f"No model that this request may go to can take it. None of them meets all of: {said}."


def _in_words(key: tuple[NeedKind, str], filtered: Sequence[tuple[Unmet, ...]]) -> str:
    kind, name = key
    match kind:
        case "input":
            return f"{name} input"
        case "output":
            return f"{name} output"
        case "ability":
            return _ABILITIES.get(name, name)
        case "context":
            held, asked = max((n.held, n.asked) for needs in filtered for n in needs if n.kind == "context")
            return f"a context of about {asked} tokens, the answer included (the longest of these holds {held})"


def _own_parts(view: RequestView) -> Iterator[Part]:
    """Parts of the conversation, those aside that are only what a file or a recording holds."""
    holder = ""
    for turn in view.turns:
        for part in turn.parts:
            for one in (part, *getattr(part, "parts", ())):
                if holder and one.pointer.startswith(holder):
                    continue
                if isinstance(one, FilePart | AudioPart):
                    holder = f"{one.pointer}/"
                yield one


def _is_empty(part: Part) -> bool:
    return isinstance(part, TextPart) and not part.text


def _size(image: ImagePart) -> tuple[int, int] | None:
    try:
        return declared_size(image)
    except ImageError:
        return None


@lru_cache(maxsize=256)
def _rule(written: str) -> ImageRule:
    return read_rule(written) if written else NO_RULE
