"""The parsed request: what every signal, decision and action reads.

One shape for every API. A part knows its JSON pointer (RFC 6901) in the body that the client sent, so that evidence
can name it without quoting it. Nothing here parses or edits; see `apis.py` and `edit.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

Api = Literal[
    "openai.chat",
    "openai.responses",
    "openai.completions",
    "openai.embeddings",
    "anthropic.messages",
    "anthropic.count_tokens",
]
Role = Literal["system", "developer", "user", "assistant", "tool"]
Capability = Literal["tools", "json_schema", "logprobs", "parallel_choices"]
"""What not every model can: call tools, answer in a given schema, tell probabilities, give several answers at once."""
SourceStatus = Literal["inline", "not_fetched", "malformed"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A run of text that a person, a model or a tool wrote."""

    pointer: str
    text: str = field(repr=False)


@dataclass(frozen=True)
class ImagePart:
    """One image, or what may be or hold one. `data` is what the client embedded, not yet decoded as an image.

    `status` is `inline` (data is there), `not_fetched` (an http(s) URL, kept but not followed, or a file by its
    identifier) or `malformed` (a data URI that is none, or a file of a type that cannot be read, such as PDF);
    `reason` says why for the last. The URL itself is content and stays out of logs.
    """

    pointer: str
    status: SourceStatus
    data: bytes = field(default=b"", repr=False)
    media_type: str = ""
    url: str = field(default="", repr=False)
    reason: str = ""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the bytes in hex, computed once; of the URL when nothing is inline."""
        return hashlib.sha256(self.data or self.url.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class AudioPart:
    """Audio that the client embedded; `format` is the client's word for it."""

    pointer: str
    format: str
    data: bytes = field(default=b"", repr=False)
    status: SourceStatus = "inline"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file by content or by the upstream's identifier; `name` is content and stays out of logs."""

    pointer: str
    name: str = field(default="", repr=False)
    data: bytes = field(default=b"", repr=False)
    media_type: str = ""
    file_id: str = field(default="", repr=False)
    status: SourceStatus = "inline"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """A call that the assistant made; `arguments` is the JSON text as the model wrote it.

    Where an API has the arguments as JSON, not as a text with JSON in it, `arguments` is that JSON written anew; where
    it has a text that is no JSON (a program, a query), it is that text. Tools that an API brings along, and gives no
    name in a call, go by the name of their type: `web_search`, `local_shell`.

    Where `name` or `call_id` is more than a plain label, a TextPart of its own repeats it; where `arguments` has
    escapes (`\\u0041`, `\\n`), a TextPart with the same pointer says it as a model reads it.
    """

    pointer: str
    call_id: str = field(repr=False)
    name: str = field(repr=False)
    arguments: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolResultPart:
    """What a tool gave back, with its texts, images, audio and files."""

    pointer: str
    call_id: str = field(repr=False)
    parts: tuple[TextPart | ImagePart | AudioPart | FilePart, ...]


Part = TextPart | ImagePart | AudioPart | FilePart | ToolCallPart | ToolResultPart


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the conversation.

    Whatever the API, what a tool gave back is a turn of the role `tool`, and what a model said, thought and called in
    one go is one turn. A message that holds both is several turns with the same pointer; an answer that the API has as
    several items is one, at the first of them.
    """

    pointer: str
    role: Role
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool that the client offers to the model.

    `parameters` is the text of all else in the definition: of a JSON schema its descriptions, values and longer names,
    of a grammar its rules; one string a line, in their order.
    """

    pointer: str
    name: str = field(repr=False)
    description: str = field(default="", repr=False)
    parameters: str = field(default="", repr=False)


@dataclass(frozen=True)
class TextSpan:
    """A piece of text with its place and role, whichever part it came from.

    Where the pointer leads to an object or a list, `text` is all the text in it, one string a line.
    """

    pointer: str
    role: Role
    text: str = field(repr=False)

    @cached_property
    def ascii_lower(self) -> bytes | None:
        """The text in lower case where all of it is ASCII, else None; kept, since many signals may look at it."""
        return self.text.lower().encode() if self.text.isascii() else None


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open byte range in the body."""

    start: int
    end: int


@dataclass(frozen=True)
class RequestView:
    """A request as the policy sees it.

    `extras` are what stands beside the conversation and a model may see all the same, such as `documents` or a chat
    template: shaped like turns, with the role of who usually writes it, but no turns to be counted.
    `model_span` is where the value of the top-level `model` stands in the body, quotes included; None when the body has
    no such member. `requested_model` is None then, and also when the value is null. `include_usage` says that a stream
    has to end with a chunk that counts tokens. `outputs` are the kinds of answer that the client asks for, and
    `max_output_tokens` how long it may become; no kind of answer is asked for where the API gives numbers, as
    embeddings do. `needs` are abilities that the request relies on. `headers` are those that the policy trusts, by
    lower-case name, and only those.

    `continues` says that the model reads more than the body holds, because the upstream keeps it: an earlier
    conversation, a prompt template, an item by its identifier, a summary that only the upstream can decrypt. No signal
    sees any of that. Files by identifier are parts of their own and do not count.
    """

    api: Api
    requested_model: str | None
    turns: tuple[Turn, ...]
    tools: tuple[ToolDefinition, ...]
    stream: bool
    body_bytes: int
    model_span: Span | None
    include_usage: bool = False
    extras: tuple[Turn, ...] = ()
    outputs: tuple[Literal["text", "image", "audio"], ...] = ("text",)
    max_output_tokens: int | None = None
    needs: frozenset[Capability] = frozenset()
    continues: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def parts(self) -> Iterator[tuple[Turn, Part]]:
        """Every part of every turn in order, then of the extras; those in a tool result follow its `ToolResultPart`."""
        for turn in (*self.turns, *self.extras):
            for part in turn.parts:
                yield turn, part
                if isinstance(part, ToolResultPart):
                    for inner in part.parts:
                        yield turn, inner

    @cached_property
    def images(self) -> tuple[ImagePart, ...]:
        """Every image of every turn, in tool results too; none is "the" image."""
        return tuple(part for _, part in self.parts() if isinstance(part, ImagePart))

    @cached_property
    def texts(self) -> tuple[TextSpan, ...]:
        """Every text of every turn and role, then of the extras, then of the tools. Empty texts are left out.

        Texts are content, text files, names that are no labels, tool results, and tool call arguments. Tools have the
        role `developer`, since who offers tools writes the application.
        """
        spans = []
        for turn, part in self.parts():
            match part:
                case TextPart(pointer=pointer, text=text) if text:
                    spans.append(TextSpan(pointer, turn.role, text))
                case ToolCallPart(pointer=pointer, arguments=arguments) if arguments:
                    spans.append(TextSpan(pointer, turn.role, arguments))
                case _:
                    pass
        for tool in self.tools:
            if text := "\n".join(filter(None, (tool.name, tool.description, tool.parameters))):
                spans.append(TextSpan(tool.pointer, "developer", text))
        return tuple(spans)

    @cached_property
    def user_texts(self) -> tuple[TextSpan, ...]:
        """Those of `texts` that are the user's."""
        return tuple(span for span in self.texts if span.role == "user")

    @cached_property
    def latest_user_texts(self) -> tuple[TextSpan, ...]:
        """The texts of the last user turn: what the person asks now."""
        for turn in reversed(self.turns):
            if turn.role == "user":
                return tuple(
                    TextSpan(p.pointer, "user", p.text) for p in turn.parts if isinstance(p, TextPart) and p.text
                )
        return ()
