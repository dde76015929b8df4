"""Which tool calls of a request a signal looks at, and what it asks of one; for `tool_call` and `memory_write`.

A call is judged as a whole: one name, one set of arguments. Nothing here knows a policy's settings.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import re2

from router.request.errors import RequestError
from router.request.free_text import unescaped
from router.request.strict_json import JsonObject, decode
from router.request.view import RequestView, ToolCallPart, ToolResultPart, Turn
from router.signals.base import Evidence, Observation, failed, observed
from router.signals.destructive import ARGUMENTS, IN_ARGUMENTS, IN_NAMES, NAMES
from router.signals.json_members import Steps, as_text, values_at
from router.signals.re2_search import Hit, compile_pattern, compile_patterns, first_match
from router.signals.texts import encodable

CallsOver = Literal["pending", "all"]
"""`pending`: calls behind the last thing that a user said, which are those of the loop that is still open; `all`: every
call of the conversation."""

MAX_EVIDENCE: Final = 8
"""Calls that are cited."""

CALLS_AT_ONCE: Final = 32
"""Calls after which other requests get their turn."""

COMMAND_LINE: Final = 2_000
"""Characters of the arguments that are read as what stands behind a program's name."""

LONGEST_NAME: Final = 256
"""Characters at the end of a tool's name in which the name of a program is looked for."""

_NAMESPACE: Final = re.compile(r"[.:/]|__")

UNREADABLE: Final = "arguments are not a JSON object"

NameMatcher = Callable[[str], str | None]
"""From a tool's name to the policy's word that it matches; None where it matches none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of one call: all that is given must hold. `arguments` are RE2 programs, of which one is enough;
    `words` are the policy's own words for them. `members` are RE2 programs by the path of the member they are for."""

    name: NameMatcher | None = None
    arguments: tuple[Any, ...] = ()
    words: tuple[str, ...] = ()
    members: Mapping[Steps, Any] | None = None
    destructive: bool = False


class Answer(NamedTuple):
    """Whether a call is what was asked; None where its arguments could not be read."""

    matched: bool | None
    evidence: Evidence


def calls_over(view: RequestView, over: CallsOver) -> Iterator[ToolCallPart]:
    """The calls that `over` names, in the order of the conversation."""
    turns = _behind_the_user(view.turns) if over == "pending" else (*view.turns, *view.extras)
    return (part for turn in turns for part in turn.parts if isinstance(part, ToolCallPart))


def name_matcher(words: tuple[str, ...], method: Literal["exact", "glob", "regex"], where: str) -> NameMatcher:
    """A matcher without regard to case. ValueError, which names the word under `where`, for a pattern that is none."""
    if method == "exact":
        by_name = {word.casefold(): word for word in reversed(words)}
        return lambda name: by_name.get(name.strip().casefold())
    if method == "glob":
        programs = tuple(compile_pattern(_glob(word), where, may_be_empty=True) for word in words)
    else:
        programs = compile_patterns(words, where)
    return lambda name: next(
        (word for word, program in zip(words, programs, strict=True) if program.search(encodable(name.strip()))), None
    )


async def observe_calls(view: RequestView, over: CallsOver, asked: Asked) -> Observation:
    """Matched if one call is what was asked; else unknown if the arguments of one that might be could not be read."""
    found: list[Evidence] = []
    doubtful: list[Evidence] = []
    for index, call in enumerate(calls_over(view, over), 1):
        matched, evidence = await _judge(call, asked)
        if matched:
            found.append(evidence)
            if len(found) == MAX_EVIDENCE:
                break
        elif matched is None and len(doubtful) < MAX_EVIDENCE:
            doubtful.append(evidence)
        if index % CALLS_AT_ONCE == 0:
            await asyncio.sleep(0)
    if not found and doubtful:
        return failed(UNREADABLE, tuple(doubtful))
    return observed(bool(found), label=found[0].label if found else "", evidence=tuple(found))


async def _judge(call: ToolCallPart, asked: Asked) -> Answer:
    """The cheap questions first; the last one that was asked gives the label."""
    label = ""
    span = None
    no = Answer(False, Evidence(call.pointer))
    if asked.name is not None:
        word = asked.name(call.name)
        if word is None:
            return no
        label = word
    text = unescaped(call.arguments)
    if asked.arguments:
        hit = await first_match(asked.arguments, text)
        if hit is None:
            return no
        label, span = asked.words[hit.pattern], hit.span
    if asked.destructive:
        hit = await _destruction(call.name, text)
        if hit is not None:
            label, span = IN_ARGUMENTS[hit.group - 1].label, hit.span
        elif NAMES.search(encodable(call.name)):
            label = IN_NAMES.label
        else:
            return no
    if asked.members:
        holds = await _members_hold(call.arguments, asked.members)
        if not holds:
            return Answer(holds, Evidence(call.pointer, detail=UNREADABLE if holds is None else ""))
    return Answer(True, Evidence(call.pointer, label=label, span=span))


async def _destruction(name: str, text: str) -> Hit | None:
    """What in the arguments destroys something, by themselves or behind the tool's name.

    Many tools are named for the program that they run, and given only what stands behind it: `git`, `push --force`.
    """
    hit = await first_match((ARGUMENTS,), text)
    if hit is not None:
        return hit
    program = _NAMESPACE.split(name[-LONGEST_NAME:])[-1].strip() + " "
    hit = await first_match((ARGUMENTS,), program + text[:COMMAND_LINE])
    if hit is None or hit.span is None:
        return hit
    # It begins with the program: what begins behind it was looked for before.
    return hit._replace(span=(0, max(hit.span[1] - len(program), 0)))


async def _members_hold(arguments: str, members: Mapping[Steps, Any]) -> bool | None:
    """Whether each member has a value that its pattern occurs in; None where there is no object to look into."""
    document = _object_in(arguments)
    if document is None:
        return None
    for steps, program in members.items():
        for value in values_at(document, steps):
            if await first_match((program,), as_text(value)):
                break
        else:
            return False
    return True


def _object_in(arguments: str) -> JsonObject | None:
    # Tools without parameters are often called with nothing at all.
    if not arguments.strip():
        return {}
    try:
        return decode(encodable(arguments).encode())
    except RequestError:
        return None


def _behind_the_user(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The turns behind the last one in which a user says something; some APIs put tool results in a user's turn."""
    for index in range(len(turns) - 1, -1, -1):
        turn = turns[index]
        if turn.role == "user" and any(not isinstance(part, ToolResultPart) for part in turn.parts):
            return turns[index + 1 :]
    return turns


def _glob(word: str) -> str:
    """An RE2 pattern of the whole name, where `*` is any run of characters and `?` one."""
    inside = "".join({"*": ".*", "?": "."}.get(char) or re2.escape(char) for char in word)
    return rf"(?s)\A{inside}\z"
