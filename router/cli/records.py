"""`pointsman records`: look at the records that `serve` has kept, and try another policy on them."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rich.markup import escape
from rich.table import Column, Table

from router.cli.output import DOES_NOT_HOLD, FINE, WRONG_USE, Stop, complain, note, out, policy_or_stop, print_json
from router.cli.tree import headline, trees
from router.config.load import LoadedPolicy, parse_policy
from router.config.problems import PolicyError
from router.extproc.house import open_packs, pack_digests
from router.packs.files import PackError
from router.policy.model import Policy
from router.records.basis import StoredBasis, stored_basis
from router.records.record import DecisionRecord, milliseconds
from router.records.record_id import time_of
from router.records.redecide import Redecider
from router.records.replay import Replay, replay
from router.records.replay_page import render
from router.records.sqlite_store import Filter, StoreError, StoreReader
from router.records.stored import RecordFormatError, StoredRecord, to_record

_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
SHOWN_CHANGES: Final = 50


def run_list(
    store: Path | None,
    config: Path | None,
    decision: str | None,
    model: str | None,
    since: str | None,
    limit: int,
    as_json: bool,
) -> int:
    """Exit code 0, 1 when the store cannot be read, 2 for wrong use."""
    try:
        chosen = Filter(decision, model, _since_or_stop(since), limit)
        with _open_or_stop(store, config) as reader:
            found = [stored for stored, _ in reader.newest(chosen)]
    except Stop as stop:
        return stop.code
    if as_json:
        print_json([{"time": _time(stored), **to_record(stored, None).summary()} for stored in found])
        return FINE
    table = Table(
        Column("time", no_wrap=True, min_width=14),
        _identifiers("record"),
        "decision",
        "outcome",
        "model",
        "ms",
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
        table.add_row(*map(escape, cells), f"{milliseconds(stored.duration):.1f}")
    out.print(table)
    return FINE


def run_show(store: Path | None, config: Path | None, record: str, as_json: bool) -> int:
    """Exit code 0, 1 when there is no such record or the store cannot be read, 2 for wrong use."""
    try:
        with _open_or_stop(store, config) as reader:
            stored, basis = _one_or_stop(reader, record)
    except Stop as stop:
        return stop.code
    made = to_record(stored, _policy_of(basis))
    if as_json:
        print_json({"time": _time(stored), **_whole(stored, made)})
        return FINE
    out.print(f"{_time(stored)}  {escape(stored.record)}  policy {stored.policy[:12]}", soft_wrap=True)
    out.print(headline(made), soft_wrap=True)
    for tree in trees(made):
        out.print(tree)
    return FINE


def run_replay(
    store: Path | None,
    config: Path | None,
    policy: Path,
    since: str | None,
    limit: int | None,
    as_json: bool,
    html: Path | None,
    max_changed: int | None,
) -> int:
    """Exit code 0, 1 when more than `max_changed` would change or something does not hold, 2 for wrong use."""
    try:
        chosen = Filter(since=_since_or_stop(since), limit=limit)
        if html is not None and not html.parent.is_dir():
            complain(f"--html {html}: no folder {html.parent}")
            return WRONG_USE
        loaded = policy_or_stop(policy)
        redecider = Redecider(loaded.policy, stored_basis(loaded, pack_digests(open_packs(loaded))))
        with _open_or_stop(store, config or policy) as reader:
            came = replay(reader.newest(chosen), reader.basis, _policy_of, redecider)
        if not came.records:
            complain("there are no such records: nothing can be said of the policy")
            return DOES_NOT_HOLD
        if html is not None:
            html.write_text(render(came, str(policy)), encoding="utf-8")
    except Stop as stop:
        return stop.code
    except (PackError, OSError) as error:
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
        table = Table("from", "to", "count", _identifiers("for example"), box=None)
        for (old, new), tally in list(came.changes.items())[:SHOWN_CHANGES]:
            table.add_row(escape(str(old)), escape(str(new)), str(tally.count), tally.examples[0])
        out.print(table)
    if len(came.changes) > SHOWN_CHANGES:
        out.print(f"... and {len(came.changes) - SHOWN_CHANGES} more kinds of change; --json and --html name them")
    for name, tally in came.missing.items():
        out.print(
            f"[yellow]not decidable from the record[/]: {escape(name)} is missing in {tally.count}, as in "
            f"{tally.examples[0]}",
            soft_wrap=True,
        )
    out.print(
        f"[bold]{came.changed} of {came.records} would change[/], {came.unchanged} would not"
        + (f", {came.undecidable} cannot be told" if came.undecidable else "")
    )


def _identifiers(heading: str) -> Column:
    """A column that is never cut: half an identifier finds nothing."""
    return Column(heading, no_wrap=True, min_width=36)


@contextlib.contextmanager
def _open_or_stop(store: Path | None, config: Path | None) -> Iterator[StoreReader]:
    """The store, which a policy names or a flag; raises Stop after saying what is wrong with it."""
    path = store or _path_or_stop(config)
    try:
        with StoreReader(path) as reader:
            yield reader
    except (StoreError, RecordFormatError) as error:
        complain(f"{path}: {error}")
        raise Stop(DOES_NOT_HOLD) from None


def _path_or_stop(config: Path | None) -> Path:
    if config is None:
        complain("name the store with --store FILE, or the policy that says where it is with --config POLICY")
        raise Stop(WRONG_USE)
    loaded = policy_or_stop(config)
    if loaded.records is None:
        complain(f"{config} keeps no records: it has no `records`; name the store with --store FILE")
        raise Stop(WRONG_USE)
    return loaded.base / loaded.records.path


def _one_or_stop(reader: StoreReader, record: str) -> tuple[StoredRecord, StoredBasis]:
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
    if seconds is None:
        return "-"
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _since_or_stop(text: str | None) -> float | None:
    """Unix time of `90m`, `12h`, `7d`, or of a date or time as in 2026-03-01T12:00:00Z; without a zone it is UTC."""
    if text is None:
        return None
    if span := _SPAN.fullmatch(text):
        return time.time() - float(span[1]) * _SECONDS[span[2]]
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        complain(f"--since takes a span, as in 90m, 12h or 7d, or a time, as in 2026-03-01T12:00:00Z; not {text!r}")
        raise Stop(WRONG_USE) from None
    return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()
