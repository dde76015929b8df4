"""`pointsman import`: a policy out of another router's configuration, and what of that could not be carried."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from router.cli.output import DOES_NOT_HOLD, FINE, WRONG_USE, Stop, complain, file_or_stop, note, print_json
from router.config.imports.ledger import Finding, Reason
from router.config.imports.vsr import Imported, import_vsr
from router.config.problems import PolicyError, dotted
from router.config.yaml_source import MAX_BYTES


def run_import_vsr(config: Path, to: Path | None, force: bool, as_json: bool) -> int:
    """Exit code 0: all was carried. 1: the policy was written, and does without something. 2: nothing was written."""
    try:
        file_or_stop(config)
        imported = _read(config)
        if to is not None:
            _write(to, imported.text, force)
    except Stop as stop:
        return stop.code
    if as_json:
        print_json(_json(config, to, imported))
    else:
        if to is None:
            print(imported.text, end="")
        _tell(config, to, imported)
    return FINE if imported.complete else DOES_NOT_HOLD


def _read(config: Path) -> Imported:
    try:
        with config.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
        return import_vsr(config, text)
    except OSError as error:
        complain(f"{config}: cannot be read: {error.strerror}")
    except PolicyError as error:
        for line in error.lines():
            complain(_shown(line))
    raise Stop(WRONG_USE)


def _write(to: Path, text: str, force: bool) -> None:
    try:
        with to.open("w" if force else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        complain(f"{to}: exists; --force replaces it")
    except OSError as error:
        complain(f"{to}: cannot be written: {error.strerror}")
    else:
        return
    raise Stop(WRONG_USE)


def _tell(config: Path, to: Path | None, imported: Imported) -> None:
    groups: dict[Reason, list[Finding]] = {}
    for finding in imported.findings:
        groups.setdefault(finding.reason, []).append(finding)
    for kind in ("lost", "changed"):
        for reason, findings in groups.items():
            if reason.kind == kind:
                note(_shown(f"{config}:{_line(reason, findings)}"))
    counts = {kind: sum(each.reason.kind == kind for each in imported.findings) for kind in ("lost", "changed", "moot")}
    note(
        f"{to or 'policy'}: {len(imported.carried)} values carried, {counts['lost']} places lost, {counts['changed']} "
        f"with a difference, {counts['moot']} without effect here (--json lists every one)"
    )


def _line(reason: Reason, findings: Sequence[Finding]) -> str:
    first = findings[0]
    more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
    instead = f" ({reason.instead})" if reason.instead else ""
    return f"{first.line}:{first.column}: {reason.kind}: {dotted(first.location)}{more}: {reason.why}{instead}"


def _shown(line: str) -> str:
    """Keys and names come from the file; what could steer a terminal is shown as a question mark."""
    return "".join(each if each.isprintable() else "?" for each in line)


def _encodable(key: str) -> str:
    """Half of a surrogate pair, which YAML can write, is a question mark."""
    return key.encode("utf-8", "replace").decode("utf-8")


def _json(config: Path, to: Path | None, imported: Imported) -> dict[str, Any]:
    return {
        "config": str(config),
        "written": None if to is None else str(to),
        "complete": imported.complete,
        "carried": sorted(_encodable(dotted(each)) for each in imported.carried),
        "findings": [
            {
                "kind": each.reason.kind,
                "line": each.line,
                "column": each.column,
                "key": _encodable(dotted(each.location)),
                "why": each.reason.why,
                "instead": each.reason.instead,
            }
            for each in imported.findings
        ],
        "policy": imported.text,
    }
