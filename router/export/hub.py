"""Gets a checkpoint: a local folder as it lies, or a hub id through huggingface_hub, every file's digest checked.

`HF_ENDPOINT`, `HF_TOKEN` and `HF_HOME` are honoured. What was fetched stays in the hub's own cache, so that a download
that broke off goes on where it stopped. It knows nothing about models.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, errors, hf_hub_download

from router.export.errors import ExportError
from router.packs.files import sha256_of

Progress = Callable[[str], None]
"""Told in a few words what is done now."""

DEFAULT_ENDPOINT = "https://huggingface.co"
CONFIG = "config.json"
_WANTED = (
    CONFIG,
    "modules.json",
    "sentence_bert_config.json",
    "*_Pooling/config.json",
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "spiece.model",
    "spm.model",
    "vocab.txt",
    "added_tokens.json",
)
_SAFE_WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
# Read by torch without running what is pickled in them; asked for only where there are no safetensors.
_PICKLED_WEIGHTS = ("pytorch_model*.bin", "pytorch_model.bin.index.json", "model.pt")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint's files on disk. `revision` is the hub's commit, empty for a local folder; so is `licence`."""

    folder: Path
    source: str
    revision: str = ""
    licence: str = ""


@dataclass(frozen=True, slots=True)
class _RemoteFile:
    """`digest` is the sha256 of a large file, else the id that git gives its bytes; empty where the hub says none."""

    path: str
    size: int
    large: bool
    digest: str


def fetch(source: str, revision: str | None, progress: Progress, cache: Path | None = None) -> Checkpoint:
    """The checkpoint that `source` names: an existing folder, or a hub id such as `google/siglip-base-patch16-224`.

    `cache` replaces the hub's cache folder. Raises ExportError.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise ExportError(f"{source} is a folder here; --revision is for a hub id")
        if not (folder / CONFIG).is_file():
            raise ExportError(f"{source} is no checkpoint: it has no {CONFIG}")
        return Checkpoint(folder, source)
    if source.startswith((".", "/", "~")) or source.count("/") != 1:
        raise ExportError(f"{source} is neither a folder here, nor a hub id (owner/name), nor a name of the catalogue")
    return _fetch_remote(source, revision, progress, cache)


def pull(source: str, revision: str | None, to: Path, progress: Progress, cache: Path | None = None) -> Checkpoint:
    """Fetch a hub id's checkpoint and lay it into `to`, whole or not at all; raises ExportError."""
    if to.exists():
        raise ExportError(f"{to} exists already; name a folder that does not")
    fetched = fetch(source, revision, progress, cache)
    to.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{to.name}.", dir=to.parent))
    try:
        # The cache holds links to blobs, a folder of one's own holds files.
        shutil.copytree(fetched.folder, fresh / "files")
        (fresh / "files").rename(to)
    except OSError as error:
        raise ExportError(f"{to} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return Checkpoint(to, fetched.source, fetched.revision, fetched.licence)


def _fetch_remote(repo: str, revision: str | None, progress: Progress, cache: Path | None) -> Checkpoint:
    endpoint = os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT
    with _explained(repo, revision, endpoint):
        progress(f"asking {endpoint} for {repo}")
        info = HfApi(endpoint=endpoint).model_info(repo, revision=revision, files_metadata=True)
    files = _wanted(info.siblings or [])
    if not any(file.path == CONFIG for file in files):
        raise ExportError(f"{repo} has no {CONFIG}; it is no checkpoint that can be exported")
    paths = []
    for number, file in enumerate(files, 1):
        progress(f"file {number} of {len(files)}: {file.path}, {file.size / 1e6:,.1f} MB")
        with _explained(repo, revision, endpoint, file.path):
            path = hf_hub_download(repo, file.path, revision=info.sha, endpoint=endpoint, cache_dir=cache)
        paths.append(Path(path))
        _check(Path(path), file, repo)
    config = next(path for path, file in zip(paths, files, strict=True) if file.path == CONFIG)
    licence = str(getattr(info.card_data, "license", None) or "")
    return Checkpoint(config.parent, repo, info.sha or "", licence)


def _wanted(siblings: list[Any]) -> list[_RemoteFile]:
    """Small files first: what cannot be exported is found out before the weights are fetched."""
    names = [each.rfilename for each in siblings]
    safe = [name for name in names if _matches(name, _SAFE_WEIGHTS)]
    wanted = {*safe, *(name for name in names if _matches(name, _WANTED))}
    if not safe:
        wanted |= {name for name in names if _matches(name, _PICKLED_WEIGHTS)}
    found = [
        _RemoteFile(each.rfilename, each.size or 0, bool(each.lfs), each.lfs.sha256 if each.lfs else each.blob_id or "")
        for each in siblings
        if each.rfilename in wanted
    ]
    return sorted(found, key=lambda file: (file.size, file.path))


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    # fnmatch lets * match a slash; weights of other formats lie in subfolders.
    return any(fnmatch.fnmatchcase(name, pattern) and name.count("/") == pattern.count("/") for pattern in patterns)


def _check(path: Path, file: _RemoteFile, repo: str) -> None:
    found = sha256_of(path) if file.large else _git_blob_id(path.read_bytes())
    if not file.digest or found == file.digest:
        return
    # A damaged blob would be taken from the cache the next time.
    path.resolve().unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    raise ExportError(
        f"{repo}: {file.path} came with digest {found}, the hub says {file.digest}. It was thrown away; "
        "fetch it again, and if that changes nothing, ask who serves the endpoint"
    )


def _git_blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


@contextlib.contextmanager
def _explained(repo: str, revision: str | None, endpoint: str, path: str = "") -> Iterator[None]:
    """Turn what huggingface_hub raises into an ExportError that says what to do."""
    try:
        yield
    except errors.GatedRepoError as error:
        raise ExportError(
            f"{repo} is gated: accept its licence at {endpoint}/{repo}, then set HF_TOKEN to a token of the account "
            "that accepted it (or run `hf auth login`), and try again"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ExportError(f"{repo} has no revision {revision!r}; name a branch, a tag or a commit") from error
    except errors.RemoteEntryNotFoundError as error:
        raise ExportError(f"{repo}: {path} is listed but cannot be found; try again, or another --revision") from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403, 404):
            raise ExportError(
                f"{endpoint} has no model {repo}, or it is private; check the spelling, or set HF_TOKEN to a token "
                "that may read it"
            ) from error
        raise ExportError(f"{endpoint} answered {status} for {repo} {path}; try again later") from error
    except ExportError:
        raise
    except Exception as error:  # the HTTP client's errors have no common root across its releases
        raise ExportError(
            f"{endpoint} cannot be reached for {repo} {path} ({type(error).__name__}); what was fetched is kept: run "
            "the same command again, or set HF_ENDPOINT to a mirror, or name a local folder"
        ) from error
