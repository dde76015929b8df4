"""Finds a pack's reference: the checkpoint that the user or the manifest names, or what a shipped pack was made from.

It loads no model itself; importing it needs no torch.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from router.export.errors import ExportError
from router.export.verify.reference import Reference
from router.packs.files import PackError, sha256_of
from router.packs.layout import lay_out
from router.packs.manifest import Source
from router.packs.parts import DistributionFile
from router.packs.store import Pack, expanded, is_folder, shipped_folder

Progress = Callable[[str], None]

# Digits of the digest that exporters stamp a space with.
_STAMP = 12


class NoReferenceError(Exception):
    """There is nothing to hold the pack against but its golden vectors; the message says why, for the operator."""


def find_reference(pack: Pack, checkpoint: str | None, scratch: Path, progress: Progress) -> Reference:
    """The reference of this pack; `checkpoint` is a folder or a hub id, None for what the pack itself leads to.

    `scratch` is a folder for files that the reference keeps open. Raises NoReferenceError, or ExportError where the
    checkpoint was named by the caller and cannot be had.
    """
    if checkpoint is not None:
        return _from_checkpoint(checkpoint, None, progress)
    source = pack.manifest.source
    own = _own_tower(pack)
    archive = _archive(pack)
    try:
        if source is not None:
            return _from_source(pack, source, progress)
        if own is not None:
            return _from_tower(pack, own)
        if archive is not None:
            progress(f"unpacking the checkpoint of {archive.distribution}")
            return _from_archive(archive, scratch, progress)
    except (ExportError, PackError, OSError) as error:
        raise NoReferenceError(str(error)) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise NoReferenceError(f"the checkpoint's archive cannot be unpacked: {type(error).__name__}") from error
    raise NoReferenceError(_nothing(pack))


def other_weights(pack: Pack, checkpoint: str) -> str:
    """A note where the folder `checkpoint` is not what the pack was exported from: a drift may be no fault of the pack.

    Empty where it is, and where nobody can know, as with a pack of the hub's.
    """
    from router.export.checkpoint_files import weight_files  # noqa: PLC0415

    source = pack.manifest.source
    name, _, stamp = pack.manifest.space.rpartition("@")
    folder = expanded(checkpoint)
    if source is None or source.revision or name != source.checkpoint or len(stamp) < _STAMP or not is_folder(folder):
        return ""
    if sha256_of(weight_files(folder)[0]).startswith(stamp):
        return ""
    return (
        f"{checkpoint} has other weights than the checkpoint that the pack was exported from ({stamp}): "
        "what drifts may be the reference"
    )


def _nothing(pack: Pack) -> str:
    if pack.folder.parent == shipped_folder():
        return (
            "this pack was trained by the project, and its PyTorch module lies in the source tree, not in the "
            "installed package; run it from a checkout"
        )
    return "the manifest names no checkpoint; name one with --reference"


def _from_checkpoint(checkpoint: str, revision: str | None, progress: Progress) -> Reference:
    _require_torch()
    from router.export.hub import fetch  # noqa: PLC0415
    from router.export.kinds import recognise  # noqa: PLC0415

    fetched = fetch(checkpoint, revision, progress)
    progress(f"loading {fetched.source} into PyTorch")
    from router.export.verify.torch_reference import checkpoint_reference  # noqa: PLC0415

    return checkpoint_reference(recognise(fetched.folder), fetched.folder, fetched.source)


def _from_source(pack: Pack, source: Source, progress: Progress) -> Reference:
    if source.revision:
        return _from_checkpoint(source.checkpoint, source.revision, progress)
    _require_torch()
    if found := _local_checkpoint(pack, source):
        return _from_checkpoint(str(found), None, progress)
    raise ExportError(f"the pack was exported from a folder, {source.checkpoint!r}; name that folder with --reference")


def _local_checkpoint(pack: Pack, source: Source) -> Path | None:
    """The folder that the pack was exported from, when it lies here or beside the pack and its weights are those that
    the manifest's `space` is stamped with; the manifest has its name only."""
    from router.export.checkpoint_files import weight_files  # noqa: PLC0415

    name, _, stamp = pack.manifest.space.rpartition("@")
    if name != source.checkpoint or PurePosixPath(name).name != name or len(stamp) < _STAMP:
        return None
    for parent in (Path.cwd(), pack.folder.resolve().parent):
        try:
            if sha256_of(weight_files(parent / name)[0]).startswith(stamp):
                return parent / name
        except (ExportError, OSError):
            continue
    return None


def _own_tower(pack: Pack) -> Path | None:
    """The module of a tower that the project trained, in a checkout only."""
    module = shipped_folder() / "vision" / "tower.py"
    shipped = pack.folder.parent == shipped_folder() and pack.manifest.vision is not None
    return module if shipped and module.is_file() else None


def _from_tower(pack: Pack, module: Path) -> Reference:
    _require_torch()
    from router.export.verify.torch_reference import tower_reference  # noqa: PLC0415

    tower = pack.manifest.vision
    assert tower is not None
    if not tower.weights:
        raise ExportError("the pack's weights lie inside its graph, where the PyTorch module cannot read them")
    return tower_reference(tower, lay_out(pack, "vision") / tower.weights[0].path, module)


def _archive(pack: Pack) -> DistributionFile | None:
    """The archive that a text tower takes its weights from, when that is a whole checkpoint."""
    tower = pack.manifest.text
    sources = [file.source for file in tower.weights if file.source] if tower is not None else []
    return sources[0] if sources and sources[0].member else None


def _from_archive(source: DistributionFile, scratch: Path, progress: Progress) -> Reference:
    try:
        distribution = importlib.metadata.distribution(source.distribution)
    except importlib.metadata.PackageNotFoundError as error:
        raise ExportError(f"the distribution {source.distribution!r} is not installed") from error
    with zipfile.ZipFile(str(distribution.locate_file(source.path))) as members:
        if "config.json" not in members.namelist():
            raise ExportError(f"{source.path} of {source.distribution!r} holds weights but no checkpoint")
        members.extractall(scratch)
    _require_torch()
    from router.export.kinds import recognise  # noqa: PLC0415
    from router.export.verify.torch_reference import checkpoint_reference  # noqa: PLC0415

    progress(f"loading {source.distribution} into PyTorch")
    name = f"the checkpoint in {source.distribution} {distribution.version}"
    return checkpoint_reference(recognise(scratch), scratch, name)


def _require_torch() -> None:
    missing = [name for name in ("torch", "transformers", "safetensors") if importlib.util.find_spec(name) is None]
    if missing:
        raise ExportError(
            f'a reference is run by PyTorch, and {", ".join(missing)} is not installed: pip install "pointsman[export]"'
        )
