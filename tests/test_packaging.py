"""The built wheel holds all that the command needs, and works from where it was unpacked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
POLICY = """\
version: 1
upstreams: [{model: m, cluster: c, endpoint: "http://127.0.0.1:9"}]
default_model: m
encoders: {text: starter, vision: starter}
signals: {image: {p: {concepts: [a passport]}}}
decisions: [{name: d, when: {image: p}, route: {models: [m]}}]
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = out.glob("pointsman-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(out / "site")
    return out / "site"


@pytest.fixture
def run(unpacked: Path, tmp_path: Path) -> Run:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(unpacked)}
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)

    return call


def test_the_wheel_is_what_is_imported(run: Run, unpacked: Path) -> None:
    assert run("-c", "import router; print(router.__file__)").stdout.strip() == str(unpacked / "router" / "__init__.py")


def test_the_wheel_has_packs_and_templates_and_decides(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "request.json").write_text('{"model": "m", "messages": [{"role": "user", "content": "hello"}]}')
    command = ("-m", "router.cli.main")
    assert run(*command, "--version").stdout.startswith("pointsman ")
    assert "starter-vision" in run(*command, "packs", "list").stdout
    assert "worker-0.sock" in run(*command, "envoy", "policy.yaml").stdout
    assert run(*command, "explain", "policy.yaml", "request.json").stdout.startswith("default (no_match)")


def test_the_wheel_has_the_page(run: Run, unpacked: Path) -> None:
    inside = Path("router") / "admin" / "pages"
    for folder in ("static", "templates"):
        written = {file.name for file in (ROOT / inside / folder).iterdir()}
        assert written == {file.name for file in (unpacked / inside / folder).iterdir()}
    page = "from router.admin.pages.rendering import render; print(render('gone.html.j2', {}))"
    assert "No record of that name" in run("-c", page).stdout


def test_the_wheel_verifies_and_probes_its_packs(run: Run) -> None:
    verified = json.loads(run("-m", "router.cli.main", "packs", "verify", "starter-vision", "--json").stdout)
    assert (verified["holds"], verified["sides"]) == (True, [])
    assert "run it from a checkout" in verified["why_no_reference"]
    assert (
        len(json.loads(run("-m", "router.cli.main", "packs", "probe", "starter-vision", "--json").stdout)["images"])
        == 11
    )


def test_the_wheel_carries_no_tests_and_no_training(unpacked: Path) -> None:
    assert sorted(path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")) == ["router"]
