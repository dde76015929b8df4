"""Mode sidecar: the templates in a chart of somebody's own, and the patch for a pod that has none."""

from __future__ import annotations

import shutil
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from chart_render import CHART, KUBERNETES, Document, documents, one, pods, render, render_text

POLICY = one(render("sidecar"), "ConfigMap", "pm-pointsman-policy")["data"]["policy.yaml"]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> list[Document]:
    """The parent chart, with this one where `helm dependency build` would put it."""
    parent = tmp_path_factory.mktemp("parent") / "gateway"
    shutil.copytree(Path(__file__).parent / "parent", parent)
    shutil.copytree(CHART, parent / "charts" / "pointsman")
    (parent / "policy.yaml").write_text(POLICY)
    return documents(render_text("--set-file", f"pointsman.policy.text={parent / 'policy.yaml'}", chart=parent))


@pytest.mark.parametrize("version", KUBERNETES)
def test_a_chart_of_ones_own_can_take_the_templates(rendered: list[Document], version: str) -> None:
    kubernetes_validate.validate(one(rendered, "Deployment"), version, strict=True)
    [pod] = [pod for pod in pods(rendered) if pod.owner["kind"] == "Deployment"]
    assert [container["name"] for container in pod.containers] == ["check", "pointsman", "envoy"]
    assert pod.container("pointsman")["restartPolicy"] == "Always"
    assert "--socket-mode=660" in pod.container("pointsman")["command"]
    mounted = {mount["name"] for container in pod.containers for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod.spec["volumes"]}
    [source] = next(v for v in pod.spec["volumes"] if v["name"] == "policy")["projected"]["sources"]
    assert one(rendered, "ConfigMap", source["configMap"]["name"])["data"]["policy.yaml"] == POLICY


def test_the_patch_makes_a_pod_that_kubernetes_takes() -> None:
    """A Deployment of an Envoy's, patched as `kubectl patch` merges lists of containers and volumes: by name."""
    patch = yaml.safe_load(one(render("sidecar"), "ConfigMap", "pm-pointsman-snippet")["data"]["patch.yaml"])
    template = patch["spec"]["template"]
    [ours] = template["spec"]["containers"]
    envoy = {"name": ours["name"], "image": "envoyproxy/envoy:v1.40.0", "volumeMounts": ours["volumeMounts"]}
    template["spec"]["containers"] = [envoy]
    template["metadata"]["labels"]["app"] = "own"
    spec = {"selector": {"matchLabels": {"app": "own"}}, "template": template}
    whole = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "own"}, "spec": spec}
    for version in KUBERNETES:
        kubernetes_validate.validate(whole, version, strict=True)
    assert ours["volumeMounts"] == [{"name": "run", "mountPath": "/run/pointsman"}]


def test_the_monitor_finds_the_patched_pod() -> None:
    found = render("sidecar")
    patch = yaml.safe_load(one(found, "ConfigMap", "pm-pointsman-snippet")["data"]["patch.yaml"])
    labels = patch["spec"]["template"]["metadata"]["labels"]
    assert one(found, "PodMonitor")["spec"]["selector"]["matchLabels"] == labels


def test_no_workload_is_made() -> None:
    assert {d["kind"] for d in render("sidecar")} == {"ConfigMap", "Job", "PodMonitor"}
