"""`modality`: which kinds of content come in, and which are wanted as the answer.

    modality:
      voice_or_picture: {any: [audio, image]}
      picture_with_question: {all: [text, image]}
      wants_picture: {output: [image], wording: true}

Content of every turn counts, in tool results too. `output` goes by the request's own fields: the kinds of answer that
it lists, and a tool that generates images. Costs microseconds. Some names need no definition: see `BUILTINS`.

What it can't see: what a file holds that is kept elsewhere or can't be opened here (it counts as a file, nothing else),
and whether a picture shows text. `wording` is weak: it knows turns of phrase of some languages (`image_wording.py`),
looks at the beginning and the end of what the user says last, and takes a quotation or a "don't draw a cat" for a wish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from router.request.view import AudioPart, FilePart, ImagePart, Part, RequestView, TextPart, ToolCallPart
from router.signals.base import Cost, Evidence, Observation, SignalName, observed
from router.signals.image_wording import NOT_PICTURES, WORDINGS
from router.signals.re2_search import compile_pattern, compile_patterns
from router.signals.settings import SignalSettings
from router.signals.texts import visible

Input = Literal["text", "image", "audio", "file"]
Output = Literal["text", "image", "audio"]

SAID_AT_EDGES: Final = 2_000
"""Characters at the beginning and at the end of each text in which a wish is looked for: people say what they want
before or behind what they paste."""

TEXTS_AT_MOST: Final = 32
"""Texts of the last user turn that are searched for a wish, the first ones."""

_PROGRAMS: Final[tuple[Any, ...]] = compile_patterns(WORDINGS, "WORDINGS")
_NO_PICTURE: Final[Any] = compile_pattern(NOT_PICTURES, "NOT_PICTURES")


class ModalitySettings(SignalSettings):
    """Settings of a `modality` signal: all that is given must hold."""

    any: tuple[Input, ...] | None = Field(
        default=None, min_length=1, description="Kinds of content; that one of them comes in is enough."
    )
    all: tuple[Input, ...] | None = Field(
        default=None, min_length=1, description="Kinds of content that must all come in."
    )
    only: tuple[Input, ...] | None = Field(
        default=None, min_length=1, description="Kinds of content beside which no other may come in."
    )
    output: tuple[Output, ...] | None = Field(
        default=None, min_length=1, description="Kinds of answer; that one of them is asked for is enough."
    )
    wording: bool = Field(
        default=False,
        description="Whether a wish for a picture in the user's own words counts as asking for an image. Weak.",
    )

    @model_validator(mode="after")
    def _says_something(self) -> ModalitySettings:
        if self.any is None and self.all is None and self.only is None and self.output is None:
            raise ValueError("at least one of any, all, only and output is needed")
        if self.wording and (self.output is None or "image" not in self.output):
            raise ValueError("`wording` needs `image` among `output`")
        return self


BUILTINS: Final[Mapping[str, ModalitySettings]] = {
    "image_input": ModalitySettings(any=("image",)),
    "audio_input": ModalitySettings(any=("audio",)),
    "file_input": ModalitySettings(any=("file",)),
    "text_only": ModalitySettings(only=("text",)),
    "image_output": ModalitySettings(output=("image",)),
    "audio_output": ModalitySettings(output=("audio",)),
}
"""Names that a condition may use without a definition in the policy."""


class ModalitySignal:
    """Whether the kinds of content are as asked; has no score. Evidence names the first of each kind."""

    cost = Cost.HEURISTIC

    def __init__(self, name: SignalName, settings: ModalitySettings) -> None:
        self.name = name
        self._settings = settings

    async def prepare(self) -> None:
        """Nothing to do: the patterns are compiled."""

    async def observe(self, view: RequestView) -> Observation:
        """Look at the parts and the fields, and at the words where the fields do not settle it."""
        settings = self._settings
        found = first_of_each(view)
        holds = (
            (settings.any is None or any(kind in found for kind in settings.any))
            and (settings.all is None or all(kind in found for kind in settings.all))
            and (settings.only is None or found.keys() <= set(settings.only))
        )
        evidence = [Evidence(pointer, label=kind) for kind, pointer in found.items()]
        if settings.output is None or not holds:
            return observed(holds, evidence=tuple(evidence))
        evidence += [Evidence("", label=f"{kind} wanted") for kind in view.outputs]
        if any(kind in view.outputs for kind in settings.output):
            return observed(True, evidence=tuple(evidence))
        wish = _wish(view) if settings.wording else None
        if wish is not None:
            evidence.append(wish)
        return observed(wish is not None, evidence=tuple(evidence))


def first_of_each(view: RequestView) -> dict[Input, str]:
    """The kinds of content that come in, each with the pointer of its first part.

    Text is what users, the assistant and tools wrote, blank text aside; what an operator set up is no content. What a
    file holds counts only where it could be opened.
    """
    found: dict[Input, str] = {}
    file = ""
    for turn, part in view.parts():
        if isinstance(part, FilePart):
            file = f"{part.pointer}/"
        kind = _kind(part, in_file=bool(file) and part.pointer.startswith(file))
        if kind is not None and (kind != "text" or turn.role not in ("system", "developer")):
            found.setdefault(kind, part.pointer)
    return found


def _kind(part: Part, in_file: bool) -> Input | None:
    match part:
        case TextPart(text=text) if text and not text.isspace():
            return "text"
        case ToolCallPart():
            return "text"
        case ImagePart(status=status) if status == "inline" or not in_file:
            return "image"
        case AudioPart():
            return "audio"
        case FilePart():
            return "file"
        case _:
            return None


def _wish(view: RequestView) -> Evidence | None:
    """Where the user asks for a picture; None where nothing sounds like it."""
    for text in view.latest_user_texts[:TEXTS_AT_MOST]:
        for said in _edges(text.text):
            if any(map(_asks(visible(said)), _PROGRAMS)):
                return Evidence(text.pointer, label="image wanted", detail="wording")
    return None


def _asks(said: str) -> Callable[[Any], bool]:
    def asked_by(program: Any) -> bool:
        hits: Iterator[Any] = program.finditer(said)
        return any(not program.groups or not _NO_PICTURE.search(hit.group(1) or "") for hit in hits)

    return asked_by


def _edges(text: str) -> tuple[str, ...]:
    if len(text) <= 2 * SAID_AT_EDGES:
        return (text,)
    return text[:SAID_AT_EDGES], text[-SAID_AT_EDGES:]
