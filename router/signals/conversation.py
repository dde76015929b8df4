"""`conversation`: the shape of the request, in counts.

    conversation:
      long_chat: {min_user_turns: 10}
      picture_story: {min_images: 2, max_tools: 0}

Messages are counted by role, and so are images, audio, files, tools on offer, calls and results. `pending_tool_results`
are results that came in after the assistant's last message: while there are some, an agent is at work and no person has
asked anything new (`active_tool_loop`). A request that continues what the upstream keeps (`previous_response_id`, a
stored conversation or prompt) brings along turns that no signal sees: `continues` tells of it. The observation's value
is the count where the signal bounds one thing, and absent where it bounds several. Costs microseconds. Some names need
no definition: see `BUILTINS`. It sees no content at all, so that a client that labels its messages wrongly is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pydantic import Field, model_validator

from router.request.view import AudioPart, FilePart, ImagePart, RequestView, Role, ToolCallPart, ToolResultPart
from router.signals.base import Cost, Evidence, Observation, SignalName, observed
from router.signals.settings import SignalSettings


def _parts(kind: type) -> Callable[[RequestView], list[str]]:
    return lambda view: [part.pointer for _, part in view.parts() if isinstance(part, kind)]


def _messages(role: Role) -> Callable[[RequestView], list[str]]:
    return lambda view: [turn.pointer for turn in view.turns if turn.role == role]


def _pending(view: RequestView) -> list[str]:
    """Results that the assistant has not answered yet; none where the last message has none, as when a person wrote it.

    A result counts when some call of the conversation asked for it. Some APIs put results into a message of the user.
    """
    calls = {part.call_id for turn in view.turns for part in turn.parts if isinstance(part, ToolCallPart)}
    found: list[str] = []
    for turn in reversed(view.turns):
        results = [p.pointer for p in turn.parts if isinstance(p, ToolResultPart) and p.call_id in calls]
        if turn.role == "assistant" or not results:
            break
        found = results + found
    return found


_COUNTED: Final[Mapping[str, Callable[[RequestView], list[str]]]] = {
    "turns": lambda view: [turn.pointer for turn in view.turns],
    "user_turns": _messages("user"),
    "system_turns": _messages("system"),
    "developer_turns": _messages("developer"),
    "assistant_turns": _messages("assistant"),
    "tool_turns": _messages("tool"),
    "images": _parts(ImagePart),
    "audio": _parts(AudioPart),
    "files": _parts(FilePart),
    "tools": lambda view: [tool.pointer for tool in view.tools],
    "tool_calls": _parts(ToolCallPart),
    "tool_results": _parts(ToolResultPart),
    "pending_tool_results": _pending,
}
"""What is counted, as the JSON pointers of what counts."""


def _least(what: str) -> int | None:
    return Field(None, ge=0, description=f"Least number of {what}.")


def _most(what: str) -> int | None:
    return Field(None, ge=0, description=f"Greatest number of {what}.")


class ConversationSettings(SignalSettings):
    """Settings of a `conversation` signal: all that is given must hold, each bound inclusive."""

    continues: bool | None = Field(
        default=None,
        description="Whether the model also reads earlier turns that only the upstream keeps; nobody judges those.",
    )
    min_turns: int | None = _least("messages of any role")
    max_turns: int | None = _most("messages of any role")
    min_user_turns: int | None = _least("user messages")
    max_user_turns: int | None = _most("user messages")
    min_system_turns: int | None = _least("system messages")
    max_system_turns: int | None = _most("system messages")
    min_developer_turns: int | None = _least("developer messages")
    max_developer_turns: int | None = _most("developer messages")
    min_assistant_turns: int | None = _least("assistant messages")
    max_assistant_turns: int | None = _most("assistant messages")
    min_tool_turns: int | None = _least("messages of tools")
    max_tool_turns: int | None = _most("messages of tools")
    min_images: int | None = _least("images, in tool results too")
    max_images: int | None = _most("images, in tool results too")
    min_audio: int | None = _least("audio parts")
    max_audio: int | None = _most("audio parts")
    min_files: int | None = _least("files, in tool results too")
    max_files: int | None = _most("files, in tool results too")
    min_tools: int | None = _least("tools that the client offers")
    max_tools: int | None = _most("tools that the client offers")
    min_tool_calls: int | None = _least("tool calls that the assistant made")
    max_tool_calls: int | None = _most("tool calls that the assistant made")
    min_tool_results: int | None = _least("tool results")
    max_tool_results: int | None = _most("tool results")
    min_pending_tool_results: int | None = _least("tool results that the assistant has not answered yet")
    max_pending_tool_results: int | None = _most("tool results that the assistant has not answered yet")

    @model_validator(mode="after")
    def _says_something(self) -> ConversationSettings:
        bounds = self.bounds()
        if not bounds and self.continues is None:
            raise ValueError("at least one bound is needed")
        for what, least, most in bounds:
            if least is not None and most is not None and least > most:
                raise ValueError(f"min_{what} is greater than max_{what}")
        return self

    @property
    def has_number(self) -> bool:
        """See `SignalSettings`; of several counts none is the number."""
        return len(self.bounds()) == 1 and self.continues is None

    @property
    def counted(self) -> Mapping[str, tuple[int | None, int | None]]:
        """See `SignalSettings`."""
        counts: dict[str, tuple[int | None, int | None]] = {what: (least, most) for what, least, most in self.bounds()}
        if self.continues is not None:
            counts["kept_elsewhere"] = (1, None) if self.continues else (None, 0)
        return counts

    def bounds(self) -> tuple[tuple[str, int | None, int | None], ...]:
        """What is counted, its least and its greatest number; only where one is given."""
        every = ((what, getattr(self, f"min_{what}"), getattr(self, f"max_{what}")) for what in _COUNTED)
        return tuple(bound for bound in every if bound[1:] != (None, None))


BUILTINS: Final[Mapping[str, ConversationSettings]] = {
    "has_images": ConversationSettings(min_images=1),
    "has_audio": ConversationSettings(min_audio=1),
    "has_files": ConversationSettings(min_files=1),
    "has_tools": ConversationSettings(min_tools=1),
    "has_tool_calls": ConversationSettings(min_tool_calls=1),
    "has_tool_results": ConversationSettings(min_tool_results=1),
    "active_tool_loop": ConversationSettings(min_pending_tool_results=1),
    "multi_turn": ConversationSettings(min_user_turns=2),
    "continues": ConversationSettings(continues=True),
}
"""Names that a condition may use without a definition in the policy."""


class ConversationSignal:
    """Whether all bounds hold; has no score. The evidence names the first of each kind that was counted."""

    cost = Cost.HEURISTIC

    def __init__(self, name: SignalName, settings: ConversationSettings) -> None:
        self.name = name
        self._bounds = settings.bounds()
        self._continues = settings.continues

    async def prepare(self) -> None:
        """Nothing to do."""

    async def observe(self, view: RequestView) -> Observation:
        """Count and compare."""
        counted = [(what, _COUNTED[what](view), least, most) for what, least, most in self._bounds]
        matched = all(
            (least is None or len(found) >= least) and (most is None or len(found) <= most)
            for _, found, least, most in counted
        )
        value = float(len(counted[0][1])) if len(counted) == 1 and self._continues is None else None
        matched = matched and self._continues in (None, view.continues)
        return observed(matched, evidence=tuple(_cite((what, found) for what, found, _, _ in counted)), value=value)


def _cite(counted: Iterable[tuple[str, list[str]]]) -> Iterable[Evidence]:
    for what, found in counted:
        yield Evidence(found[0] if found else "", label=what, detail=str(len(found)))
