"""The catalogue: checkpoints of the hub that make good packs, each by a short name.

It says what a checkpoint is, under which licence, and what nobody could check; it fetches nothing.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from router.packs.documents import problems_of, read_small, yaml_tree
from router.packs.files import PackError
from router.packs.store import shipped_folder

CATALOGUE = "catalogue.yaml"

Checkable = Literal["hub", "revision", "kind", "licence", "size_mb"]


class Entry(BaseModel):
    """One checkpoint. `unchecked` names the facts that were written down without asking the hub."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hub: str = Field(pattern=r"^[^/\s]+/[^/\s]+$")
    revision: str
    """A commit; a branch or tag only where `unchecked` lists `revision`."""
    kind: str
    licence: str
    size_mb: int = Field(gt=0)
    """Megabytes to download, roughly."""
    use: str
    unchecked: tuple[Checkable, ...] = ()


def read_catalogue(path: Path | None = None) -> dict[str, Entry]:
    """Every entry by its name, by default those that come with the project; raises PackError."""
    path = path if path is not None else shipped_folder() / CATALOGUE
    try:
        return TypeAdapter(dict[str, Entry]).validate_python(yaml_tree(read_small(path, ""), path))
    except ValidationError as error:
        raise PackError(f"{path} is not a catalogue: {problems_of(error)}") from error


def near_names(name: str, catalogue: dict[str, Entry]) -> list[str]:
    """Names of the catalogue that look like this one, the nearest first."""
    return difflib.get_close_matches(name, catalogue, n=3)
