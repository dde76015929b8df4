"""`pointsman records`: look at the records that `serve` has kept, and try another policy on them."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.table import Column, Table

from router.admin.moments import since as moment_of
from router.cli.output import (
    DOES_NOT_HOLD,
    FINE,
    WRONG_USE,
    Stop,
    complain,
    escape,
    note,
    out,
    policy_or_stop,
    print_json,
)
from router.cli.record_store import Where, keys_if_there, keys_or_stop, open_or_stop
from router.cli.rerunning import Rerunner
from router.cli.tree import headline, trees
from router.config.load import LoadedPolicy, parse_policy
from router.config.problems import PolicyError
from router.extproc.machinery import SetupError, open_packs, pack_digests
from router.packs.files import PackError
from router.policy.model import Policy
from router.records.basis import StoredBasis, stored_basis
from router.records.capture import Content, content_of, shown
from router.records.record import DecisionRecord, milliseconds
from router.records.record_id import time_of
from router.records.redecide import Redecider
from router.records.replay import Replay, replay
from router.records.replay_page import render
from router.records.sealing import SealError
from router.records.store import Filter, Reader
from router.records.stored import CONTENT_KEPT, StoredAnswer, StoredFinding, StoredRecord, StoredShadow, to_record

MOST: Final = 2**31
"""Records that are listed or tried at most; stores count so far."""

SHOWN_CHANGES: Final = 50
LATEST: Final = 253_402_300_799
"""The last second of the calendar; identifiers can say more."""


def run_list(
    where: Where,
    decision: str | None,
    model: str | None,
    since: str | None,
    differing: bool,
    unpassed: bool,
    limit: int,
    as_json: bool,
) -> int:
    """Exit code 0, 1 when the store cannot be read, 2 for wrong use."""
    try:
        chosen = Filter(decision, model, _since_or_stop(since), min(limit, MOST), differing, unpassed)
        with open_or_stop(where) as reader:
            found = [stored for stored, _ in reader.newest(chosen)]
            summaries = [to_record(stored, None).summary() for stored in found] if as_json else []
    except Stop as stop:
        return stop.code
    if as_json:
        rows = zip(found, summaries, strict=True)
        print_json([{"time": _time(stored), **summary, **_beside(stored)} for stored, summary in rows])
        return FINE
    table = Table(
        Column("time", no_wrap=True, min_width=14),
        _identifiers("record"),
        "decision",
        "outcome",
        "model",
        "ms",
        *(("shadow",) if differing else ()),
        *(("answer",) if unpassed else ()),
        box=None,
    )
    for stored in found:
        # Month to second, so that a usual terminal has room for the rest.
        cells = (
            _time(stored)[5:19].replace("T", " "),
            stored.record,
            stored.decision,
            stored.outcome,
            stored.model or "-",
        )
        shadow = (escape(_of_shadow(stored.shadow)),) if differing and stored.shadow else ()
        answer = (escape(_of_answer(stored.answer)),) if unpassed and stored.answer else ()
        table.add_row(*map(escape, cells), f"{milliseconds(stored.duration):.1f}", *shadow, *answer)
    out.print(table)
    return FINE


def run_show(where: Where, record: str, content: bool, as_json: bool) -> int:
    """Exit code 0, 1 when there is no such record or the store cannot be read, 2 for wrong use."""
    try:
        with open_or_stop(where) as reader:
            stored, basis = _one_or_stop(reader, record)
            captured = _content_or_stop(reader, stored, where) if content else None
            made = to_record(stored, _policy_of(basis))
    except Stop as stop:
        return stop.code
    if as_json:
        also = {"captured": None if captured is None else shown(captured)} if content else {}
        print_json({"time": _time(stored), **_whole(stored, made), **_beside(stored), **also})
        return FINE
    out.print(f"{_time(stored)}  {escape(stored.record)}  policy {escape(stored.policy[:12])}", soft_wrap=True)
    out.print(headline(made), soft_wrap=True)
    for tree in trees(made):
        out.print(tree)
    if stored.shadow is not None:
        out.print(f"shadow: {escape(_of_shadow(stored.shadow))}", soft_wrap=True)
    if stored.answer is not None:
        out.print(f"answer: {escape(_of_answer(stored.answer))}", soft_wrap=True)
        for found in stored.answer.evidence:
            out.print(f"  {escape(_of_finding(found))}", soft_wrap=True)
    if stored.content is not None and not content:
        out.print(f"content: {escape(stored.content)}", soft_wrap=True)
    if captured is not None:
        _show_content(captured)
    return FINE


def run_replay(
    where: Where,
    policy: Path,
    since: str | None,
    limit: int | None,
    as_json: bool,
    html: Path | None,
    max_changed: int | None,
) -> int:
    """Exit code 0, 1 when more than `max_changed` would change or something does not hold, 2 for wrong use."""
    try:
        chosen = Filter(since=_since_or_stop(since), limit=min(limit or MOST, MOST))
        if html is not None and not html.parent.is_dir():
            complain(f"--html {html}: no folder {html.parent}")
            return WRONG_USE
        loaded = policy_or_stop(policy)
        redecider = Redecider(loaded.policy, stored_basis(loaded, pack_digests(open_packs(loaded))))
        where = where if where.config is not None else dataclasses.replace(where, config=policy)
        with open_or_stop(where) as reader, Rerunner(loaded, reader, keys_if_there(where)) as rerunner:
            came = replay(reader.newest(chosen), reader.basis, _policy_of, redecider, rerunner.again)
        if not came.records:
            complain("there are no such records: nothing can be said of the policy")
            return DOES_NOT_HOLD
        if html is not None:
            html.write_text(render(came, str(policy)), encoding="utf-8")
    except Stop as stop:
        return stop.code
    except (PackError, SetupError, OSError) as error:
        complain(str(error))
        return DOES_NOT_HOLD
    if as_json:
        print_json(came.as_json())
    else:
        _show_replay(came)
    if max_changed is not None and came.changed > max_changed:
        complain(f"{came.changed} of {came.records} would change, more than --max-changed {max_changed}")
        return DOES_NOT_HOLD
    return FINE


def _show_replay(came: Replay) -> None:
    if came.changes:
        reruns = ("re-run",) if came.rerun else ()
        table = Table("from", "to", "count", *reruns, _identifiers("for example"), box=None)
        for (old, new), tally in list(came.changes.items())[:SHOWN_CHANGES]:
            redacted = f" ({tally.redacted} redacted)" if tally.redacted else ""
            how = (f"{tally.rerun}{redacted}",) if came.rerun else ()
            table.add_row(escape(str(old)), escape(str(new)), str(tally.count), *how, escape(tally.examples[0]))
        out.print(table)
    if len(came.changes) > SHOWN_CHANGES:
        out.print(f"... and {len(came.changes) - SHOWN_CHANGES} more kinds of change; --json and --html name them")
    for name, tally in came.missing.items():
        out.print(
            f"[yellow]not decidable from the record[/]: {escape(name)} is missing in {tally.count}, as in "
            f"{escape(tally.examples[0])}",
            soft_wrap=True,
        )
    out.print(
        f"[bold]{came.changed} of {came.records} would change[/], {came.unchanged} would not"
        + (f", {came.undecidable} cannot be told" if came.undecidable else "")
    )
    if came.rerun:
        redacted = f", {came.redacted} of them about redacted content" if came.redacted else ""
        out.print(f"{came.exact} from their records alone, {came.rerun} by asking signals again{redacted}")


def _identifiers(heading: str) -> Column:
    """A column that is never cut: half an identifier finds nothing."""
    return Column(heading, no_wrap=True, min_width=36)


def _content_or_stop(reader: Reader, stored: StoredRecord, where: Where) -> Content | None:
    """What was captured; raises Stop after saying that nothing was, or that it cannot be opened."""
    if stored.content != CONTENT_KEPT:
        complain(f"the content of {stored.record} is not kept: {stored.content or 'the policy did not ask for it'}")
        raise Stop(DOES_NOT_HOLD)
    try:
        return content_of(reader, stored.record, keys_or_stop(where))
    except SealError as error:
        complain(f"the content of {stored.record} {error}; name the keys with --key-env or --key-file")
        raise Stop(DOES_NOT_HOLD) from None


def _show_content(content: Content) -> None:
    taken = ", something taken out" if not content.whole else ""
    out.print(f"content: {content.api}, {len(content.body)} bytes{taken}")
    seen = shown(content)
    for text in seen["text"]:
        out.print(f"  {escape(text)}", soft_wrap=True)
    for image in seen["images"]:
        size = len(image["data_base64"]) * 3 // 4
        out.print(f"  image {image['index'] + 1}: {escape(image['media_type'])}, about {size} bytes")


def _of_shadow(shadow: StoredShadow) -> str:
    where = " | ".join(shadow.models) or shadow.outcome
    same = "" if shadow.differs else ", the same"
    return f"{shadow.decision} → {where}{same}{'' if shadow.exact else ', signals asked'}"


def _of_answer(answer: StoredAnswer) -> str:
    what = f"{answer.check}, {answer.why}" if answer.check else f"not read, {answer.why}"
    return f"{what}{', streamed' if answer.stream else ''}{'' if answer.enforced else ', let through'}"


def _of_finding(found: StoredFinding) -> str:
    return " ".join(word for word in (found.signal, found.label, found.pointer, found.status, found.reason) if word)


def _beside(stored: StoredRecord) -> dict[str, Any]:
    """What lies beside a record, without the keys that say nothing."""
    pairs = {
        "shadow": stored.shadow and msgspec.to_builtins(stored.shadow),
        "answer": stored.answer and msgspec.to_builtins(stored.answer),
        "content": stored.content,
    }
    return {key: value for key, value in pairs.items() if value is not None}


def _one_or_stop(reader: Reader, record: str) -> tuple[StoredRecord, StoredBasis]:
    found = reader.find(record.lower())
    if not found:
        complain(f"no record {record} is kept; it may have been removed by age or size, or was never written")
        raise Stop(DOES_NOT_HOLD)
    if len(found) > 1:
        complain(f"several records begin with {record}, such as {found[0][0].record} and {found[1][0].record}")
        raise Stop(WRONG_USE)
    [(stored, digest)] = found
    return stored, reader.basis(digest)


def _policy_of(basis: StoredBasis) -> Policy | None:
    """The policy of a basis; None, with a note, where this version cannot read it any more."""
    try:
        loaded: LoadedPolicy = parse_policy(basis.text, Path("policy.yaml"))
    except PolicyError as error:
        note(f"policy {basis.policy[:12]} of some records cannot be read any more: {error.lines()[0]}")
        return None
    return loaded.policy


def _whole(stored: StoredRecord, made: DecisionRecord) -> dict[str, Any]:
    """As `explain --json` gives it; how much evidence was left out is known only to what is stored."""
    whole = made.whole()
    for name, observation in stored.observations.items():
        if observation.evidence_left_out:
            whole["signals"][name]["evidence_left_out"] = observation.evidence_left_out
    return whole


def _time(stored: StoredRecord) -> str:
    seconds = time_of(stored.record)
    if seconds is None or seconds > LATEST:
        return "-"
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _since_or_stop(text: str | None) -> float | None:
    """Unix time of `90m`, `12h`, `7d`, or of a date or time as in 2026-03-01T12:00:00Z; without a zone it is UTC."""
    if text is None:
        return None
    try:
        return moment_of(text)
    except ValueError:
        complain(f"--since takes a span, as in 90m, 12h or 7d, or a time, as in 2026-03-01T12:00:00Z; not {text!r}")
        raise Stop(WRONG_USE) from None
