"""`pointsman packs`: what packs there are."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from router.cli.output import FINE, out, print_json
from router.packs.store import Pack, list_shipped, read_pack, shipped_folder


def run_list(as_json: bool) -> int:
    """The packs that come with Pointsman, a row each."""
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
