"""Finds a pack by name or path, reads its manifest and checks the files it carries.

It knows the packs that come with the project. It loads no model and fetches nothing.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from router.packs.documents import problems_of, read_small, yaml_tree
from router.packs.files import KINDS, PackError, TowerKind, carried_files, faults, inside, named_paths, tower_of
from router.packs.manifest import Manifest

MANIFEST = "pack.yaml"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Pack:
    """A folder whose carried files are what its manifest says.

    `digest` is the SHA-256 in hex of the manifest's bytes; as the manifest names every file's digest, it stands for the
    whole pack.
    """

    folder: Path
    manifest: Manifest = field(repr=False)
    digest: str


def shipped_folder() -> Path:
    """Where the project's own packs lie: beside this module in a wheel, in `models/` of a checkout."""
    in_wheel = Path(__file__).parent / "shipped"
    return in_wheel if in_wheel.is_dir() else Path(__file__).parents[2] / "models"


def list_shipped() -> tuple[str, ...]:
    """Names of the packs that come with the project, sorted."""
    return tuple(sorted(path.parent.name for path in shipped_folder().glob(f"*/{MANIFEST}")))


def open_pack(name_or_path: str, tower: TowerKind, base: Path, elsewhere: Collection[TowerKind] = ()) -> Pack:
    """The pack that a policy names for this tower, with every carried file checked.

    A value with a path separator, or the name of a folder in `base` (the policy's folder), is a path. Any other value
    names a shipped pack, whole (`starter-text`) or by its family (`starter`). Another server runs the towers
    `elsewhere`: of a pack that is opened for one of these, no graph and no weights need lie here. Raises PackError.
    """
    pack = read_pack(_find(name_or_path, tower, base))
    tower_of(pack.manifest, tower)
    # Its other towers, where they are run here, are opened by themselves.
    broken = faults(pack.folder, carried_files(pack.manifest, KINDS if tower in elsewhere else elsewhere))
    if broken:
        raise PackError(
            f"pack {pack.manifest.name!r} is damaged: {'; '.join(broken)}. Restore the pack, or make it anew"
        )
    return pack


def read_pack(folder: Path) -> Pack:
    """The pack in this folder, its files not yet checked; raises PackError for a manifest that does not hold."""
    path = folder / MANIFEST
    data = read_small(path, f"; a pack is a folder with a {MANIFEST}")
    manifest = _parse(data, path)
    for named in named_paths(manifest):
        inside(folder, named)
    return Pack(folder, manifest, hashlib.sha256(data).hexdigest())


def _find(name_or_path: str, tower: TowerKind, base: Path) -> Path:
    as_path = base / expanded(name_or_path)
    if "/" in name_or_path or (name_or_path and is_folder(as_path)):
        if not is_folder(as_path):
            raise PackError(f"no pack at {as_path}: there is no such folder; paths are relative to the policy's folder")
        return as_path
    known = list_shipped()
    for name in (name_or_path, f"{name_or_path}-{tower}"):
        if name in known:
            return shipped_folder() / name
    raise PackError(_unknown(name_or_path, tower, known))


def _unknown(name: str, tower: TowerKind, known: tuple[str, ...]) -> str:
    families = [each.removesuffix(f"-{tower}") for each in known if each.endswith(f"-{tower}")]
    near = difflib.get_close_matches(name, [*families, *known], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(families) or 'none'}."
    return f"no {tower} pack is named {name!r}: {hint} A pack of your own is named by its path, as in ./packs/mine"


def expanded(name_or_path: str) -> Path:
    """The path with `~` resolved; as it is where there is no such home."""
    try:
        return Path(name_or_path).expanduser()
    except RuntimeError:
        return Path(name_or_path)


def is_folder(path: Path) -> bool:
    """Whether there is one; no for a path that no folder can have, such as one too long."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _parse(data: bytes, path: Path) -> Manifest:
    tree = yaml_tree(data, path)
    if not isinstance(tree, dict):
        raise PackError(f"{path} is not a manifest: a mapping with `format: {FORMAT}` is expected")
    written = tree.get("format")
    if written != FORMAT or isinstance(written, bool):
        # Whatever else stands there may be of any size, so that it is not shown.
        shown = repr(written)[:40] if written is None or (type(written) is int and abs(written) < 1e9) else "no number"
        raise PackError(f"{path} has format {shown}; this version reads format {FORMAT}: export the pack anew")
    try:
        return Manifest.model_validate(tree)
    except ValidationError as error:
        raise PackError(f"{path} is not a manifest of format {FORMAT}: {problems_of(error)}") from error
