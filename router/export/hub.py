"""Gets a checkpoint: a local folder as it lies, or a hub id through huggingface_hub, every file's digest checked.

`HF_ENDPOINT`, `HF_TOKEN` and `HF_HOME` are honoured. A connection that is cut goes on where it stopped; files that came
whole stay in the hub's own cache, so that a run that was killed begins with the first one missing. It knows nothing
about models.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import hashlib
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from huggingface_hub import HfApi, errors, hf_hub_download

from router.export.errors import ExportError, WrongUseError
from router.export.placement import put_in_place, utf8_or_stop, working_folder
from router.packs.files import sha256_of

Progress = Callable[[str], None]
"""Told in a few words what is done now."""

DEFAULT_ENDPOINT = "https://huggingface.co"
CONFIG = "config.json"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
# The network has errors of its own; these are of the folder that downloads go to.
_OWN_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EFBIG)
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
            raise WrongUseError(f"{source} is a folder here; --revision is for a hub id")
        if not (folder / CONFIG).is_file():
            raise WrongUseError(f"{source} is no checkpoint: it has no {CONFIG}")
        utf8_or_stop(folder.absolute())
        return Checkpoint(folder, source)
    if folder.is_file():
        raise WrongUseError(f"{source} is a file; a checkpoint is the folder with {CONFIG}, weights and tokenizer")
    if not _HUB_ID.fullmatch(source):
        raise WrongUseError(
            f"{source} is neither a folder here, nor a hub id (owner/name), nor a name of the catalogue"
        )
    return _fetch_remote(source, revision, progress, cache)


def pull(source: str, revision: str | None, to: Path, progress: Progress, cache: Path | None = None) -> Checkpoint:
    """Fetch a hub id's checkpoint and lay it into `to`, whole or not at all; raises ExportError."""
    if os.path.lexists(to):
        raise WrongUseError(f"{to} exists already; name a folder that does not")
    if Path(source).expanduser().is_dir():
        raise WrongUseError(
            f"{source} is a folder here, and there is nothing to pull; make a pack of it by "
            f"`pointsman packs export {shlex.quote(source)} --to DIR`"
        )
    with working_folder(to, progress) as files:
        fetched = fetch(source, revision, progress, cache)
        try:
            # The cache holds links to blobs, a folder of one's own holds files.
            shutil.copytree(fetched.folder, files, dirs_exist_ok=True)
            put_in_place(files, to, replace=False)
        except (OSError, shutil.Error) as error:
            raise ExportError(f"{to} cannot be written: {getattr(error, 'strerror', None) or error}") from error
    return Checkpoint(to, fetched.source, fetched.revision, fetched.licence)


def _fetch_remote(repo: str, revision: str | None, progress: Progress, cache: Path | None) -> Checkpoint:
    endpoint = _endpoint()
    with _explained(repo, revision, endpoint):
        progress(f"asking {_shown(endpoint)} for {repo}")
        info = HfApi(endpoint=endpoint).model_info(repo, revision=revision, files_metadata=True)
    files = _wanted(info.siblings or [])
    if not any(file.path == CONFIG for file in files):
        raise ExportError(f"{repo} has no {CONFIG}; it is no checkpoint that can be exported")
    paths: list[Path] = []
    for number, file in enumerate(files, 1):
        progress(f"file {number} of {len(files)}: {file.path}, {file.size / 1e6:,.1f} MB")
        with _explained(repo, revision, endpoint, file.path, f"{len(paths)} of {len(files)} files"):
            path = hf_hub_download(repo, file.path, revision=info.sha, endpoint=endpoint, cache_dir=cache)
        paths.append(Path(path))
        _check(Path(path), file, repo)
    config = next(path for path, file in zip(paths, files, strict=True) if file.path == CONFIG)
    licence = str(getattr(info.card_data, "license", None) or "")
    return Checkpoint(config.parent, repo, info.sha or "", licence)


def _endpoint() -> str:
    """The hub's address, without a slash behind; raises WrongUseError for an HF_ENDPOINT that is none."""
    said = os.environ.get("HF_ENDPOINT")
    if not said:
        return DEFAULT_ENDPOINT
    try:
        parts = urlsplit(said)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise WrongUseError(
            f"HF_ENDPOINT is {_shown(said)!r}, which is no address of a hub: https:// or http:// and a host. "
            f"Without it {DEFAULT_ENDPOINT} is asked"
        )
    return said.rstrip("/")


def _shown(endpoint: str) -> str:
    """Without a mirror's user name and password."""
    return re.sub(r"//[^/@]*@", "//", endpoint)


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
def _explained(repo: str, revision: str | None, endpoint: str, path: str = "", kept: str = "") -> Iterator[None]:
    """Turn what huggingface_hub raises into an ExportError that says what to do; `kept` is what has come whole."""
    fetched = f"{kept} are kept: run" if kept and not kept.startswith("0 ") else "nothing has been fetched yet: run"
    again = f"{fetched} the same command again, or set HF_ENDPOINT to a mirror, or name a local folder"
    about = f"{repo}: {path}" if path else repo
    endpoint = _shown(endpoint)
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
                "that may read it. There is no folder of that name here either"
            ) from error
        raise ExportError(f"{endpoint} answered {status} for {about}; try again later, {again}") from error
    except ExportError:
        raise
    except errors.OfflineModeIsEnabled as error:
        raise ExportError("HF_HUB_OFFLINE is set, so that no hub is asked; unset it, or name a local folder") from error
    except Exception as error:  # the HTTP client's errors have no common root across its releases
        if isinstance(error, OSError) and error.errno in _OWN_DISK:
            raise ExportError(
                f"{about} cannot be kept in the hub's cache here: {error.strerror}. Make room, or set HF_HOME to a "
                f"folder that has some; {again}"
            ) from error
        if isinstance(error, (ValueError, KeyError, TypeError)) and not path:
            raise ExportError(
                f"{endpoint} does not answer as a hub does ({type(error).__name__}); look whether HF_ENDPOINT is one, "
                "or a proxy answers in its place"
            ) from error
        raise ExportError(f"{endpoint} cannot be reached for {about} ({type(error).__name__}); {again}") from error
