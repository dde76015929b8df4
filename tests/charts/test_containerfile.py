"""The Containerfile as it is written: linted, pinned, without root. test_image.py carries it out."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml
from chart_render import CHART, ROOT
from image_build import CONTAINERFILE, sent_to_the_builder, stages

USER = "65532:65532"


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [hadolint, "--no-color", CONTAINERFILE], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_both_stages_stand_on_one_base_that_a_variable_pins() -> None:
    build, final = stages()
    assert build.base == final.base == "${PYTHON_IMAGE}${PYTHON_DIGEST:+@${PYTHON_DIGEST}}"
    assert re.search(r"^ARG PYTHON_IMAGE=\S+:\d[^\s:]*$", CONTAINERFILE.read_text(), re.MULTILINE)
    assert "--platform" not in "".join(build.base + final.base)


def test_the_image_runs_nothing_as_root_and_makes_nothing_as_root_but_copies() -> None:
    _, final = stages()
    assert final.all("USER") == [USER]
    assert final.all("RUN") == []
    assert final.all("COPY") == ["--from=build /opt/pointsman /opt/pointsman"]
    chart = (CHART / "templates" / "_helpers.tpl").read_text()
    assert {int(user) for user in re.findall(r"runAsUser: (\d+)", chart)} == {int(USER.partition(":")[0])}


def test_it_says_what_it_is() -> None:
    _, final = stages()
    [labels] = final.all("LABEL")
    for label in ("title", "description", "licenses", "version", "revision", "created", "base.name"):
        assert f"org.opencontainers.image.{label}=" in labels


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"ARG VERSION={project}" in CONTAINERFILE.read_text()
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == project


def test_only_what_is_copied_goes_to_the_builder() -> None:
    build, _ = stages()
    copied = [source for words in build.all("COPY") for source in words.split()[:-1]]
    for source in copied:
        assert (ROOT / source).exists(), source
        assert sent_to_the_builder(source), source
    for kept_back in (
        ".git/config",
        ".venv/bin/python",
        "tests/conftest.py",
        "charts/pointsman/values.yaml",
        "secret.env",
    ):
        assert not sent_to_the_builder(kept_back), kept_back
    for stale in ("router/__pycache__/x.pyc", "router/proto/ext_proc_pb2.py"):
        assert not sent_to_the_builder(stale), stale


def test_the_wheel_gets_all_that_it_is_made_of() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = {source for words in stages()[0].all("COPY") for source in words.split()[:-1]}
    assert {*build["packages"], *build["force-include"]} <= copied
