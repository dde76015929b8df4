"""`memory_write`: calls to the tools that the policy declares to be the assistant's memory.

    memory_write:
      remembers: {tools: [save_memory, 'memory_*']}
      remembers_rule: {tools: [save_memory], arguments: ['\\b(always|never|from now on)\\b'], over: pending}

What an assistant remembers, later conversations are told: a rule that slips in here outlives the chat it came from.
Names are compared without regard to case, and `*` stands for any run of characters. Costs microseconds a kilobyte of
arguments.

What it can't see: memory that the policy does not name, or that an application keeps by itself; whether the user wanted
it remembered; a write before it has been called. It does not read what is remembered but for the patterns given.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from router.request.view import RequestView
from router.signals.base import Cost, Observation, SignalName
from router.signals.re2_search import compile_patterns
from router.signals.settings import Phrases, SignalSettings
from router.signals.tool_calls import Asked, CallsOver, name_matcher, observe_calls


class MemoryWriteSettings(SignalSettings):
    """Settings of a `memory_write` signal."""

    tools: Phrases = Field(
        description="Names of the tools that write to memory; `*` is any run of characters and `?` one."
    )
    arguments: Phrases | None = Field(
        None,
        description="Patterns in RE2 syntax, found anywhere in the text of the arguments, escapes undone, without "
        "regard to case; one is enough. Omitted: any call.",
    )
    over: CallsOver = Field(
        "all",
        description="Calls that are looked at. pending: those behind the last thing that a user said; all: every one.",
    )

    @model_validator(mode="after")
    def _patterns_compile(self) -> MemoryWriteSettings:
        self.asked()
        return self

    def asked(self) -> Asked:
        """What is asked of one call. ValueError for a pattern that RE2 refuses."""
        arguments = self.arguments or ()
        return Asked(name_matcher(self.tools, "glob", "tools"), compile_patterns(arguments, "arguments"), arguments)


class MemoryWriteSignal:
    """Whether memory is written; has no score. The label is the tool as the policy names it, or the pattern found."""

    cost = Cost.HEURISTIC

    def __init__(self, name: SignalName, settings: MemoryWriteSettings) -> None:
        self.name = name
        self._over = settings.over
        self._asked = settings.asked()

    async def prepare(self) -> None:
        """Nothing to do: the patterns are compiled."""

    async def observe(self, view: RequestView) -> Observation:
        """Look at the calls."""
        return await observe_calls(view, self._over, self._asked)
