"""`tool_call`: tools that the assistant called, by name, by what it passed to them, or by what that would destroy.

    tool_call:
      shell: {names: [run_shell, 'exec_*'], method: glob}
      production_edit: {names: [write_file], members: {path: '^/srv/prod/'}}
      dangerous: {destructive: true, over: pending}
      browser_offered: {names: ['browser_*'], method: glob, offered: true}

All that is given must hold of one and the same call. `arguments` are searched as the model reads them, escapes undone;
`members` look into the JSON. `destructive` goes by a table of commands, statements and verbs (`destructive.py`). Costs
microseconds a kilobyte of arguments.

What it can't see: a call that has not been made yet, because calls come to light with the next request, by which time
the tool may have run; what a called script does; a command that is put together of pieces, encoded, or spelt with
variables. It can't tell a command that is to run from a file that merely begins a line with one, nor `rm -rf build`
from worse. Where `members` are asked for and the arguments are no JSON object, or have a key twice, the answer is
unknown.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from router.request.view import RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, observed
from router.signals.json_members import read_path
from router.signals.re2_search import compile_pattern, compile_patterns
from router.signals.settings import Phrase, Phrases, SignalSettings
from router.signals.tool_calls import MAX_EVIDENCE, Asked, CallsOver, name_matcher, observe_calls

Members = Annotated[dict[Phrase, Annotated[str, StringConstraints(min_length=1)]], Field(min_length=1)]
"""Patterns by the place of a value."""


class ToolCallSettings(SignalSettings):
    """Settings of a `tool_call` signal: all that is given must hold of one call."""

    names: Phrases | None = Field(None, description="Names of tools; one that fits is enough. Case does not matter.")
    method: Literal["exact", "glob", "regex"] = Field(
        "exact",
        description="How names are compared. exact: the whole name; glob: the whole name, where `*` is any run of "
        "characters and `?` one; regex: patterns in RE2 syntax, found anywhere in it.",
    )
    arguments: Phrases | None = Field(
        None,
        description="Patterns in RE2 syntax, found anywhere in the text of the arguments, escapes undone; one is "
        "enough.",
    )
    members: Members | None = Field(
        None,
        description="Patterns in RE2 syntax by the place of the value they are found in: names joined by dots, or a "
        "JSON pointer. Of a list one item is enough. All of them must be found.",
    )
    destructive: bool = Field(
        False, description="Whether the call must be one that deletes, overwrites or stops what it can't bring back."
    )
    over: CallsOver = Field(
        "all",
        description="Calls that are looked at. pending: those behind the last thing that a user said; all: every one.",
    )
    offered: bool = Field(
        False, description="Whether tools that the client offers to the model count as well, by their names."
    )
    case_sensitive: bool = Field(False, description="Whether upper and lower case differ in arguments and members.")

    @model_validator(mode="after")
    def _says_something(self) -> ToolCallSettings:
        if self.names is None and self.arguments is None and self.members is None and not self.destructive:
            raise ValueError("at least one of names, arguments, members and destructive is needed")
        if self.offered and (self.names is None or self.arguments or self.members or self.destructive):
            raise ValueError("`offered` goes with `names` alone: a tool that is only offered has no arguments")
        self.asked()
        return self

    def asked(self) -> Asked:
        """What is asked of one call. ValueError for a pattern or a path that is none."""
        return Asked(
            name=None if self.names is None else name_matcher(self.names, self.method, "names"),
            arguments=compile_patterns(self.arguments or (), "arguments", self.case_sensitive),
            words=self.arguments or (),
            members={
                read_path(path): compile_pattern(pattern, f"members.{path}", self.case_sensitive)
                for path, pattern in (self.members or {}).items()
            },
            destructive=self.destructive,
        )


class ToolCallSignal:
    """Whether one call is what was asked; has no score. The label is the policy's word, or the table's, that fits."""

    cost = Cost.HEURISTIC

    def __init__(self, name: SignalName, settings: ToolCallSettings) -> None:
        self.name = name
        self._over = settings.over
        self._offered = settings.offered
        self._asked = settings.asked()

    async def prepare(self) -> None:
        """Nothing to do: the patterns are compiled."""

    async def observe(self, view: RequestView) -> Observation:
        """Look at the calls, then at what is offered."""
        made = await observe_calls(view, self._over, self._asked)
        matching = self._asked.name
        if made.matched or not self._offered or matching is None:
            return made
        words = ((tool.pointer, matching(tool.name)) for tool in view.tools)
        found = [Evidence(pointer, label=word, detail="offered") for pointer, word in words if word is not None]
        return observed(bool(found), label=found[0].label if found else "", evidence=tuple(found[:MAX_EVIDENCE]))
