"""Puts a finished folder in its place, whole or not at all, and clears what a killed run has left beside it.

A run works in `.NAME.xxxxxxxx.part` beside its target and holds a lock on a file in there. The kernel lets go of the
lock when the process ends, however it ends, so that a folder whose lock is free is a leftover. What lies in the folder
is not this module's business.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from router.export.errors import ExportError, WrongUseError
from router.packs.store import MANIFEST

# Linux: paths from the current folder on, and swap both names (renameat2(2)).
_FROM_HERE = -100
_EXCHANGE = 2
_ATTEMPTS = 5


def target_of(to: Path) -> Path:
    """Where `to` leads, absolute: through a link to its folder, which is what is written, so that the link stays.

    Raises WrongUseError for a link that leads nowhere, and for what is no path.
    """
    utf8_or_stop(to)
    try:
        if to.is_symlink() and not to.exists():
            raise WrongUseError(f"{to} is a link that leads nowhere; remove it, or name another folder")
        return Path(os.path.realpath(to))
    except (OSError, ValueError) as error:
        raise WrongUseError(f"{to} is no path for a folder: {getattr(error, 'strerror', None) or error}") from error


def utf8_or_stop(path: Path) -> None:
    """Raises WrongUseError for a path that is not UTF-8: safetensors and onnxruntime open none of those."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise WrongUseError(f"{str(path)!r} is not UTF-8, which the libraries need that read it; rename it") from None


def may_write(to: Path, replace: bool, source: Path | None = None) -> None:
    """Raises WrongUseError unless `to` is free, or a pack that is to be replaced, and does not hold `source`."""
    target = target_of(to)
    if source is not None and Path(os.path.realpath(source)).is_relative_to(target):
        raise WrongUseError(f"{to} holds the checkpoint itself, which would be lost; name another folder")
    if not target.exists():
        return
    if not replace:
        raise WrongUseError(f"{to} exists already; --force replaces a pack, or name another folder")
    if not (target / MANIFEST).is_file():
        raise WrongUseError(f"{to} exists and is no pack, so it is not replaced; name another folder")


@contextlib.contextmanager
def working_folder(to: Path, progress: Callable[[str], None]) -> Iterator[Path]:
    """An empty folder on the target's filesystem, gone at the end unless `put_in_place` took it.

    Raises ExportError where the target's parent cannot be written, or where another process is writing the same target.
    """
    target = target_of(to)
    with _parent_explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear_leftovers(target, progress)
        part, lock = _new_part(target)
    try:
        files = part / "files"
        with _parent_explained(target):
            files.mkdir()
        yield files
    finally:
        shutil.rmtree(part, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextlib.contextmanager
def _parent_explained(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ExportError(f"{target.parent} cannot be written: {error.strerror}") from error


def put_in_place(files: Path, to: Path, replace: bool) -> None:
    """Make the working folder the target. At every moment the target is the old one or the new one, whole.

    Where the filesystem cannot swap two names in one step there is a moment without target; a run that dies in it
    leaves the old one to the next run, which puts it back. Raises ExportError, OSError.
    """
    target = target_of(to)
    _settle(files)
    if not target.exists():
        try:
            files.rename(target)
        except OSError as error:
            # Somebody else was quicker; a folder with anything in it is never renamed over.
            if target.exists():
                raise ExportError(_appeared(to)) from error
            raise
        return
    if not replace:
        raise ExportError(_appeared(to))
    if _exchange(files, target):
        return
    old = files.with_name("old")
    try:
        target.rename(old)
        files.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    # By another name nobody would put it back when this run dies while it is being removed.
    old.rename(files.with_name("gone"))


def _appeared(to: Path) -> str:
    return f"{to} has appeared meanwhile; nothing was written. Name another folder, or use --force for a pack"


def _settle(files: Path) -> None:
    """Open to other users, as a worker may be one, and on the disk before the name is: power may fail, too."""
    files.chmod(0o755)
    for path in files.rglob("*"):
        # Some writers leave files that their owner alone can read.
        path.chmod(0o755 if path.is_dir() else 0o644)
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def _clear_leftovers(target: Path, progress: Callable[[str], None]) -> None:
    ours = re.compile(re.escape(f".{target.name}.") + r"[a-z0-9_]{8}\.part")
    for part in sorted(target.parent.iterdir()):
        if not ours.fullmatch(part.name) or part.is_symlink() or not part.is_dir():
            continue
        try:
            lock = _lock(part)
        except BlockingIOError:
            raise ExportError(
                f"another process is writing {target} just now, in {part}; wait for it, or name another folder"
            ) from None
        except OSError:
            # Another user's, or a filesystem without locks: nobody can tell whether it is in use.
            progress(f"{part} may be left over from a killed run; remove it if nothing is writing {target.name}")
            continue
        try:
            if (part / "old").is_dir() and not target.exists():
                (part / "old").rename(target)
                progress(f"put {target} back, which a killed run had moved aside")
            shutil.rmtree(part, ignore_errors=True)
            progress(f"cleared {part}, left over from a killed run")
        finally:
            os.close(lock)


def _new_part(target: Path) -> tuple[Path, int | None]:
    for _ in range(_ATTEMPTS):
        part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
        try:
            return part, _lock(part)
        except (BlockingIOError, FileNotFoundError):
            # Another run looked for leftovers between the two steps, and took this folder for one.
            shutil.rmtree(part, ignore_errors=True)
        except OSError:
            return part, None
    raise ExportError(f"other processes keep writing {target}; wait for them, or name another folder")


def _lock(part: Path) -> int:
    """The lock's descriptor; raises BlockingIOError when another process has it, FileNotFoundError when it is gone."""
    path = part / "lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(path.stat(), os.fstat(lock)):
            raise FileNotFoundError(path)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _exchange(one: Path, other: Path) -> bool:
    """Swap the names of two folders in one step; False where the system or the filesystem cannot."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    if swap is None:
        return False
    return int(swap(_FROM_HERE, os.fsencode(one), _FROM_HERE, os.fsencode(other), _EXCHANGE)) == 0
