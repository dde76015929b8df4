"""The files that a manifest names: where they are allowed to lie, and whether they are what the manifest says.

Nothing here opens a model; `store.py` finds packs and `layout.py` brings weights together that a pack does not carry.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Collection, Iterable
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from router.packs.heads import Heads
from router.packs.manifest import Manifest, TextClassifier, TextGraph, TextTower, VisionTower
from router.packs.parts import PackFile, WeightFile

TowerKind = Literal["text", "vision", "classifier"]
KINDS: Final[tuple[TowerKind, ...]] = ("text", "vision", "classifier")
Tower = TextTower | VisionTower | TextClassifier


class PackError(Exception):
    """A pack that cannot be used. The message says what is wrong, where, and what to do; it is for the operator."""


def tower_of(manifest: Manifest, kind: TowerKind) -> Tower:
    """The manifest's tower of this kind; raises PackError when it has none."""
    tower: Tower | None = getattr(manifest, kind)
    if tower is not None:
        return tower
    if kind == "classifier":
        raise PackError(f"pack {manifest.name!r} has no classifier")
    raise PackError(f"pack {manifest.name!r} has no {kind} tower; name one that has under `encoders: {{{kind}: ...}}`")


def towers_of(manifest: Manifest) -> tuple[Tower, ...]:
    """Every tower and classifier of the pack."""
    return tuple(each for each in (manifest.text, manifest.vision, manifest.classifier) if each is not None)


def runtime_files(tower: Tower) -> tuple[PackFile, ...]:
    """What a session of this tower opens: graph, weights and, for text, the tokenizer."""
    return (tower.graph, *tower.weights, *files_beside_a_model(tower))


def files_beside_a_model(tower: Tower) -> tuple[PackFile, ...]:
    """What is opened of this tower where its model is run elsewhere: the tokenizer, for text."""
    return (tower.tokenizer,) if isinstance(tower, TextGraph) else ()


def carried_files(manifest: Manifest, elsewhere: Collection[TowerKind] = ()) -> tuple[PackFile, ...]:
    """Every file with a digest that must lie in the pack's own folder; of the towers that run `elsewhere`, no model."""
    carried: list[PackFile] = []
    for kind in KINDS:
        tower: Tower | None = getattr(manifest, kind)
        if tower is None:
            continue
        opened = files_beside_a_model(tower) if kind in elsewhere else runtime_files(tower)
        carried += [file for file in opened if not (isinstance(file, WeightFile) and file.source)]
        carried.append(PackFile(path=tower.golden.path, sha256=tower.golden.sha256))
    if manifest.heads is not None and "text" not in elsewhere:
        carried += files_of_heads(manifest.heads)
    if manifest.vision is not None:
        images = manifest.vision.golden.images
        carried += [PackFile(path=each.path, sha256=each.sha256) for each in images if each.sha256 is not None]
    return tuple(carried)


def files_of_heads(heads: Heads) -> tuple[PackFile, ...]:
    """The graph and the golden vectors; the pack always carries both."""
    return (heads.graph, PackFile(path=heads.golden.path, sha256=heads.golden.sha256))


def undigested_images(manifest: Manifest) -> tuple[str, ...]:
    """Golden images that the manifest names without a digest, as those of earlier packs: swapped ones show only as far
    as their pixels do."""
    images = manifest.vision.golden.images if manifest.vision is not None else ()
    return tuple(each.path for each in images if each.sha256 is None)


def named_paths(manifest: Manifest) -> tuple[str, ...]:
    """Every path that the manifest writes, those of golden images and of weights from elsewhere included."""
    towers = towers_of(manifest)
    paths = [file.path for tower in towers for file in runtime_files(tower)]
    paths += [tower.golden.path for tower in towers]
    if manifest.heads is not None:
        paths += [file.path for file in files_of_heads(manifest.heads)]
    if manifest.vision is not None:
        paths += [each.path for each in manifest.vision.golden.images]
    return tuple(paths)


def inside(folder: Path, relative: str) -> Path:
    """The path below `folder`; raises PackError when it would lead out of it, by `..`, as absolute or by a link."""
    pure = PurePosixPath(relative)
    path = folder / pure
    try:
        leads_out = ".." in pure.parts or not path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError) as error:  # in this order: no access, a NUL, a loop of links
        raise PackError(
            f"{folder / 'pack.yaml'}: path {relative[:200]!r} is none that a file can have, or its links form a loop"
        ) from error
    if not relative or pure.is_absolute() or leads_out:
        raise PackError(
            f"{folder / 'pack.yaml'}: path {relative[:200]!r} leads out of the pack; write it relative to the pack's "
            "folder"
        )
    return path


def open_regular(path: Path) -> BufferedReader:
    """The file, open for reading. Raises OSError, for a pipe or a device as well: nobody may ever write to it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def sha256_of(path: Path) -> str:
    """Digest in hex of a regular file's bytes, read in pieces; raises OSError."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def faults(folder: Path, files: Iterable[PackFile]) -> list[str]:
    """A sentence for each file that is missing, cannot be read or has another digest; empty when all hold."""
    found: list[str] = []
    for file in files:
        path = inside(folder, file.path)
        try:
            digest = sha256_of(path)
        except FileNotFoundError:
            found.append(f"{path} is missing")
        except OSError as error:
            found.append(f"{path} cannot be read: {error.strerror}")
        else:
            if digest != file.sha256:
                found.append(f"{path} has sha256 {digest}, the manifest says {file.sha256}")
    return found


def read_checked(folder: Path, path: str, sha256: str | None, most: int | None = None) -> bytes:
    """The file's bytes, which have this digest if there is one, and are not more than `most`; raises PackError
    otherwise."""
    target = inside(folder, path)
    try:
        with open_regular(target) as file:
            data = file.read(-1 if most is None else most + 1)
    except OSError as error:
        raise PackError(f"{target} cannot be read: {error.strerror}") from error
    if most is not None and len(data) > most:
        raise PackError(f"{target} has more than {most >> 20} MiB")
    digest = hashlib.sha256(data).hexdigest()
    if sha256 is not None and digest != sha256:
        raise PackError(f"{target} has sha256 {digest}, the manifest says {sha256}; restore the pack")
    return data
