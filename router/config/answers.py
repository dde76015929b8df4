"""Reads the checks of answers: conditions that may rest only on signals that can read what an assistant says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from router.config.conditions import Known, Report, read_condition
from router.config.handling import CheckSettings
from router.config.problems import Location, dotted
from router.policy.agenda import bases_of
from router.policy.logic import signals_of
from router.policy.model import All, AtLeast, Condition, Decision, Not, Refuse
from router.policy.model import Any as AnyOf
from router.policy.projection import Projection
from router.signals.base import SignalName
from router.signals.settings import SignalSettings

ASSISTANT: Final = "assistant"

READERS: Final = (
    *("classifier", "domain", "embedding", "jailbreak", "keyword", "knowledge_base", "language", "memory_write"),
    *("pii", "secret", "tool_call"),
)
"""Families that find out about a text or a call by itself, whoever wrote it."""

ABOUT_REQUESTS: Final = (
    "asks about a request; of an answer it could find out nothing. Families that can read answers: "
    + ", ".join(READERS)
)
UNFINISHED: Final = (
    "a streamed answer is judged as it comes, so that what is not there yet may still come; say what must not be there"
)


def read_checks(
    rows: Sequence[CheckSettings],
    settings: Mapping[SignalName, SignalSettings],
    projections: Sequence[Projection],
    known: Known,
    on_failure: Literal["closed", "open"],
    report: Report,
) -> tuple[Decision, ...]:
    """The checks as decisions that refuse, the first before the others. What is wrong is reported."""
    bases = bases_of(projections)
    names: dict[str, int] = {}
    result: list[Decision] = []
    for index, row in enumerate(rows):
        here: Location = ("responses", "checks", index)
        if row.name in names:
            report(
                (*here, "name"), f'{dotted(("responses", "checks", names[row.name]))} is named "{row.name}" too', False
            )
        names.setdefault(row.name, index)
        when = read_condition(row.when, (*here, "when"), known, report)
        if when is None:
            continue
        if _has_not(when):
            report((*here, "when"), f"`not` has no place in a check: {UNFINISHED}", False)
        for asked in sorted(set(signals_of(when))):
            for base in bases.get(asked, (asked,)):
                _can_read(base, settings.get(base), (*here, "when"), report)
        refuses = row.on_unknown == "refuse" if row.on_unknown is not None else on_failure == "closed"
        respond = row.respond
        result.append(
            Decision(
                name=row.name,
                priority=-index,
                guard=True,
                unknown_matches=refuses,
                when=when,
                outcome=Refuse(respond.status, respond.code, respond.message),
                tier=-index,
            )
        )
    return tuple(result)


def read_by_checks(checks: Sequence[Decision], projections: Sequence[Projection]) -> frozenset[str]:
    """Every signal and projection below the checks, as `family/name`."""
    read = {name for check in checks for name in signals_of(check.when)}
    for projection in reversed(projections):
        if projection.name in read:
            read.update(projection.reads)
    return frozenset(map(str, read))


def _can_read(
    name: SignalName, settings: SignalSettings | None, here: Location, report: Callable[[Location, str, bool], None]
) -> None:
    if name.family not in READERS:
        report(here, f"{name} {ABOUT_REQUESTS}", False)
        return
    over: Any = getattr(settings, "over", "all")
    roles: Any = getattr(settings, "roles", (ASSISTANT,))
    if over in ("latest", "user"):
        report(
            here, f"{name} reads only what users say (`over: {over}`); a check needs a signal with `over: all`", False
        )
    elif ASSISTANT not in roles:
        report(here, f"{name} does not read what the assistant says; its `roles` need `{ASSISTANT}`", False)


def _has_not(tree: Condition) -> bool:
    match tree:
        case Not():
            return True
        case All(of=children) | AnyOf(of=children) | AtLeast(of=children):
            return any(map(_has_not, children))
        case _:
            return False
