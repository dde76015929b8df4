"""Fetches archives of packs: pull.py FOLDER NAME=SHA256=URL ...

An archive (.tar.gz) is laid out as FOLDER/NAME only when its SHA-256 is the one that was asked for. It holds a pack, at
its top or in one folder. What went wrong is said, and nothing is left half done: the pod does not start then.
"""

import hashlib
import shutil
import sys
import tarfile
import tempfile
import urllib.request
from pathlib import Path

TIMEOUT_SECONDS = 60
CHUNK = 1 << 20


def fetch(url: str, target: Path) -> str:
    """The SHA-256 of what was written. The values' schema takes http and https alone."""
    digest = hashlib.sha256()
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer, target.open("wb") as out:  # noqa: S310
        while chunk := answer.read(CHUNK):
            digest.update(chunk)
            out.write(chunk)
    return digest.hexdigest()


def lay_out(archive: Path, place: Path) -> None:
    """Through a folder beside `place`, so that `place` is whole or not there."""
    with tempfile.TemporaryDirectory(prefix=".", dir=place.parent) as folder:
        with tarfile.open(archive, "r:gz") as packed:
            packed.extractall(folder, filter="data")
        found = sorted(Path(folder).rglob("pack.yaml"), key=lambda path: len(path.parts))
        if not found:
            raise ValueError("it holds no pack.yaml")
        if place.exists():
            shutil.rmtree(place)
        found[0].parent.rename(place)
    place.chmod(0o755)


def pull(folder: Path, name: str, sha256: str, url: str) -> str:
    """Empty when the pack is in its place, else why it is not."""
    archive = folder / f".{name}.part"
    try:
        found = fetch(url, archive)
        if found != sha256.lower():
            return f"{name}: the archive has sha256 {found}, not {sha256}; check packs.pull.archives"
        lay_out(archive, folder / name)
    except (OSError, ValueError, tarfile.TarError) as error:
        return f"{name}: {type(error).__name__}: {error}"
    finally:
        archive.unlink(missing_ok=True)
    print(f"{name}: {sha256}", flush=True)
    return ""


def main() -> int:
    """1 when any pack is not there."""
    folder = Path(sys.argv[1])
    problems = [problem for word in sys.argv[2:] if (problem := pull(folder, *word.split("=", 2)))]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
