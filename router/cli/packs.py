"""`pointsman packs list`: what packs there are, and which checkpoints others can be made of."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from router.cli.output import DOES_NOT_HOLD, FINE, complain, out, print_json
from router.packs.catalogue import read_catalogue
from router.packs.files import PackError
from router.packs.store import Pack, list_shipped, read_pack, shipped_folder


def run_list(as_json: bool, catalogue: bool = False) -> int:
    """The packs that come with Pointsman, or the checkpoints of the catalogue, a row each; exit 1 for a broken one."""
    try:
        return _list_catalogue(as_json) if catalogue else _list_packs(as_json)
    except PackError as error:
        complain(str(error))
        return DOES_NOT_HOLD


def _list_catalogue(as_json: bool) -> int:
    entries = read_catalogue()
    if as_json:
        print_json([{"name": name, **entry.model_dump(mode="json")} for name, entry in entries.items()])
        return FINE
    table = Table("name", "kind", "hub", "licence", "MB", "use", box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    for name, entry in entries.items():
        table.add_row(name, entry.kind, entry.hub, entry.licence, f"{entry.size_mb:,}", entry.use)
    out.print(table)
    return FINE


def _list_packs(as_json: bool) -> int:
    packs = [read_pack(shipped_folder() / name) for name in list_shipped()]
    if as_json:
        print_json([_row(pack) for pack in packs])
        return FINE
    table = Table("name", "towers", "dimension", "space", "licence", "digest", box=None, pad_edge=False)
    for pack in packs:
        row = _row(pack)
        table.add_row(
            row["name"], ", ".join(row["towers"]), str(row["dimension"]), row["space"], row["licence"], pack.digest[:12]
        )
    out.print(table)
    return FINE


def _row(pack: Pack) -> dict[str, Any]:
    manifest = pack.manifest
    towers = {"text": manifest.text, "vision": manifest.vision}
    present = {name: tower for name, tower in towers.items() if tower is not None}
    return {
        "name": manifest.name,
        "towers": list(present),
        "dimension": next(iter(present.values())).dimension,
        "space": manifest.space,
        "licence": manifest.licence,
        "description": manifest.description,
        "digest": pack.digest,
        "folder": str(pack.folder),
    }
