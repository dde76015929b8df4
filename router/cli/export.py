"""`pointsman packs export` and `pointsman packs pull`: from a published checkpoint to a folder on this machine.

What needs torch is imported when a verb runs, behind a check that says which extra to install.
"""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from router.cli.output import DOES_NOT_HOLD, FINE, WRONG_USE, complain, errors, escape, out
from router.export.errors import ExportError, WrongUseError, require_extra
from router.packs.catalogue import near_names, read_catalogue
from router.packs.files import PackError
from router.packs.parts import Precision


def run_export(
    source: str, to: Path, revision: str | None, precision: Precision, *, force: bool, allow_drift: bool
) -> int:
    """Make a pack of a hub id, a folder or a catalogue name; exit 1 when none was written, 2 for wrong use."""
    try:
        require_extra()
        from router.export.hub import fetch  # noqa: PLC0415
        from router.export.pack import export_pack  # noqa: PLC0415
        from router.export.placement import may_write  # noqa: PLC0415

        hub_id, pinned = _resolve(source, revision)
        # Before anything is fetched for nothing.
        may_write(to, force)
        checkpoint = fetch(hub_id, pinned, _say)
        made = export_pack(checkpoint, to, precision, force=force, allow_drift=allow_drift, progress=_say)
    except (ExportError, PackError) as error:
        return _refused(error)
    table = Table("part", "measure", "worst", "mean", "gate", box=None, pad_edge=False)
    for part, parity in made.parity.items():
        note = " (missed, allowed)" if parity.drift_allowed else ""
        table.add_row(part, parity.measure, f"{parity.worst:.8f}", f"{parity.mean:.8f}", f"{parity.gate}{note}")
    out.print(table)
    out.print(f"Wrote {escape(str(made.folder))}, a pack of {precision} from a {made.kind} checkpoint.")
    return FINE


def run_pull(source: str, to: Path, revision: str | None) -> int:
    """Lay a hub id's or a catalogue name's checkpoint into a folder; exit 1 when that failed, 2 for wrong use."""
    try:
        require_extra()
        from router.export.hub import pull  # noqa: PLC0415

        hub_id, pinned = _resolve(source, revision)
        checkpoint = pull(hub_id, pinned, to, _say)
    except (ExportError, PackError) as error:
        return _refused(error)
    licence = f", licence {checkpoint.licence}" if checkpoint.licence else ""
    out.print(f"Wrote {escape(str(to))}: {escape(checkpoint.source)} at {checkpoint.revision}{licence}.")
    return FINE


def _resolve(source: str, revision: str | None) -> tuple[str, str | None]:
    """Hub id or folder, and revision, of what the user named; raises WrongUseError for a name that is not known."""
    if "/" in source or (source and Path(source).expanduser().exists()):
        return source, revision
    catalogue = read_catalogue()
    entry = catalogue.get(source)
    if entry is None:
        part = [name for name in catalogue if source and source.lower() in name.lower()]
        near = near_names(source, catalogue) or part[:3]
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise WrongUseError(
            f"{source or 'an empty name'} is no folder here, no hub id (owner/name) and not in the catalogue; {hint}"
            f"`pointsman packs list --catalogue` shows its {len(catalogue)} names"
        )
    if entry.unchecked:
        _say(f"{source} is {entry.hub}; nobody has checked the catalogue's {', '.join(entry.unchecked)}")
    return entry.hub, revision or entry.revision


def _refused(error: Exception) -> int:
    complain(str(error))
    return WRONG_USE if isinstance(error, WrongUseError) else DOES_NOT_HOLD


def _say(step: str) -> None:
    """A line of progress; on standard error, so that results can be piped."""
    errors.print(f"[dim]{escape(step)}[/]")
