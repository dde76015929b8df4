"""What holds of everything that the chart renders, whatever the values: hardening, references, ports, reachability."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from chart_render import (
    CASES,
    CHART,
    WORKLOADS,
    Pod,
    deployment,
    documents_with,
    one,
    pods,
    render,
)

SECRETS = re.compile(r"password|passwd|token|secret|api[_-]?key|dsn|credential", re.IGNORECASE)


def all_pods(case: str) -> list[Pod]:
    """Those of the documents and the one that the sidecar's snippet patches."""
    found = render(case)
    made = list(pods(found))
    for document in found:
        if document["kind"] == "ConfigMap" and "patch.yaml" in document.get("data", {}):
            template = yaml.safe_load(document["data"]["patch.yaml"])["spec"]["template"]
            spec = {**template["spec"], "containers": []}
            made.append(Pod(document, template["metadata"]["labels"], spec))
    return made


@pytest.mark.parametrize("case", CASES)
def test_containers_are_restricted(case: str) -> None:
    """As the `restricted` Pod Security Standard asks, and with a root file system that can't be written."""
    for pod in all_pods(case):
        for container in pod.containers:
            context = container["securityContext"]
            assert context["runAsNonRoot"] is True
            assert context["runAsUser"] >= 10_000
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["seccompProfile"] == {"type": "RuntimeDefault"}
            assert "privileged" not in context
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            assert key not in pod.spec
        assert all("hostPath" not in volume for volume in pod.spec["volumes"])


@pytest.mark.parametrize("case", CASES)
def test_containers_have_requests_and_limits(case: str) -> None:
    for pod in all_pods(case):
        for container in pod.containers:
            for kind in ("requests", "limits"):
                assert set(container["resources"][kind]) >= {"cpu", "memory"}


@pytest.mark.parametrize("case", CASES)
def test_volumes_in_memory_and_on_disk_are_bounded(case: str) -> None:
    for pod in all_pods(case):
        for volume in pod.spec["volumes"]:
            assert "emptyDir" not in volume or "sizeLimit" in volume["emptyDir"] or volume["name"] == "more"


@pytest.mark.parametrize("case", CASES)
def test_every_mount_has_its_volume_and_every_volume_a_mount(case: str) -> None:
    for pod in all_pods(case):
        mounted = {mount["name"] for container in pod.containers for mount in container.get("volumeMounts", [])}
        assert mounted == {volume["name"] for volume in pod.spec["volumes"]}
        for container in pod.containers:
            paths = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
            assert len(paths) == len(set(paths))


@pytest.mark.parametrize("case", WORKLOADS)
def test_no_pod_gets_a_token(case: str) -> None:
    found = render(case)
    for pod in pods(found):
        assert pod.spec["automountServiceAccountToken"] is False
    assert one(found, "ServiceAccount")["automountServiceAccountToken"] is False
    assert not [d for d in found if d["kind"] in {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}]


@pytest.mark.parametrize("case", CASES)
def test_secrets_are_by_reference_alone(case: str) -> None:
    found = render(case)
    assert not [d for d in found if d["kind"] == "Secret"]
    for pod in all_pods(case):
        for container in pod.containers:
            for variable in container.get("env", []):
                assert "value" not in variable or not SECRETS.search(variable["name"]), variable["name"]


def test_records_and_otlp_get_their_secrets() -> None:
    variables = {v["name"]: v for v in deployment("standalone-full").container("pointsman")["env"]}
    for name, secret in (
        ("POINTSMAN_RECORDS_DSN", {"name": "records", "key": "dsn"}),
        ("POINTSMAN_CAPTURE_KEY", {"name": "capture", "key": "key"}),
        ("OTEL_EXPORTER_OTLP_HEADERS", {"name": "otlp", "key": "headers"}),
    ):
        assert variables[name]["valueFrom"] == {"secretKeyRef": secret}


@pytest.mark.parametrize("case", CASES)
def test_images_are_pinned(case: str) -> None:
    for pod in all_pods(case):
        for container in pod.containers:
            assert re.search(r"@sha256:[0-9a-f]{64}$|:[^:/]+$", container["image"]), container["image"]
            assert not container["image"].endswith(":latest")


@pytest.mark.parametrize("case", WORKLOADS)
def test_selectors_match_the_pods_and_only_those(case: str) -> None:
    found = render(case)
    pod = deployment(case)
    others = [other for other in pods(found) if other.owner["kind"] != "Deployment"]
    selectors = [pod.owner["spec"]["selector"]["matchLabels"]]
    for document in found:
        if document["kind"] == "Service":
            selectors.append(document["spec"]["selector"])
        if document["kind"] in {"PodDisruptionBudget", "PodMonitor"}:
            selectors.append(document["spec"]["selector"]["matchLabels"])
        if document["kind"] == "NetworkPolicy":
            selectors.append(document["spec"]["podSelector"]["matchLabels"])
    spread = [rule["labelSelector"]["matchLabels"] for rule in pod.spec["topologySpreadConstraints"]]
    for selector in [*selectors, *spread]:
        assert selector.items() <= pod.labels.items()
        assert not [other for other in others if selector.items() <= other.labels.items()]


def test_monitors_find_their_service() -> None:
    found = render("standalone-full")
    wanted = one(found, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    matching = [d for d in found if d["kind"] == "Service" and wanted.items() <= d["metadata"]["labels"].items()]
    assert [d["metadata"]["name"] for d in matching] == ["pm-pointsman-metrics"]
    [endpoint] = one(found, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in matching[0]["spec"]["ports"]]


@pytest.mark.parametrize("case", CASES)
def test_ports_that_are_named_exist(case: str) -> None:
    for pod in all_pods(case):
        for container in pod.containers:
            names = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                said = container.get(probe, {})
                for kind in ("httpGet", "tcpSocket", "grpc"):
                    if kind in said:
                        assert said[kind]["port"] in {*names, *names.values()}
    if case != "sidecar":
        names = {port["name"] for c in deployment(case).containers for port in c.get("ports", [])}
        for document in render(case):
            if document["kind"] == "Service":
                assert {port["targetPort"] for port in document["spec"]["ports"]} <= names


@pytest.mark.parametrize("case", CASES)
def test_pointsman_has_all_three_probes_and_none_asks_more_than_is_there(case: str) -> None:
    [serve] = [c for pod in all_pods(case) for c in pod.containers if c["name"] == "pointsman"]
    assert serve["livenessProbe"]["httpGet"]["path"] == "/livez"
    for probe in (serve["startupProbe"], serve["readinessProbe"]):
        if "grpc" in probe:
            # A kubelet has no TLS for it, and asks one worker.
            assert "--insecure" in serve["command"]
            assert "--workers=1" in serve["command"]
        else:
            assert probe["httpGet"] == {"path": "/readyz", "port": "probe"}
    startup = serve["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] == 300


@pytest.mark.parametrize("case", CASES)
def test_a_policy_is_checked_before_workers_start(case: str) -> None:
    for pod in all_pods(case):
        names = [container["name"] for container in pod.containers]
        if "pointsman" in names:
            assert names.index("check") < names.index("pointsman")
            assert pod.container("check")["command"][:2] == ["pointsman", "check"]
            path = pod.container("check")["command"][2]
            assert f"--config={path}" in pod.container("pointsman")["command"]


@pytest.mark.parametrize("case", [case for case in CASES if case not in {"existing-configmap", "packs-pull"}])
def test_an_upgrade_checks_the_new_policy_before_anything_is_replaced(case: str) -> None:
    found = render(case)
    job = one(found, "Job")
    policy = one(found, "ConfigMap", "pm-pointsman-policy-new")
    assert policy["data"] == one(found, "ConfigMap", "pm-pointsman-policy")["data"]
    for hook, weight in ((policy, -5), (job, 0)):
        assert hook["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
        assert int(hook["metadata"]["annotations"]["helm.sh/hook-weight"]) == weight
    assert job["spec"]["backoffLimit"] == 0
    # What it checks with is what the pods check with.
    [hook_pod] = [pod for pod in pods(found) if pod.owner is job]
    if case != "sidecar":
        assert hook_pod.container("check") == deployment(case).container("check")


def test_packs_that_are_pulled_are_checked_by_the_pods_alone() -> None:
    assert [d for d in render("packs-pull") if d["kind"] == "Job"] == []
    names = [container["name"] for container in deployment("packs-pull").containers]
    assert names.index("pull-packs") < names.index("check")


@pytest.mark.parametrize("case", WORKLOADS)
def test_a_rollout_never_takes_a_pod_away_first(case: str) -> None:
    assert deployment(case).owner["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}


def test_sidecars_start_before_envoy_and_end_after_it() -> None:
    pod = deployment("standalone")
    assert [c["name"] for c in pod.spec["initContainers"]] == ["check", "envoy-config", "pointsman"]
    assert pod.container("pointsman")["restartPolicy"] == "Always"
    assert [c["name"] for c in pod.spec["containers"]] == ["envoy"]


def test_a_policy_change_restarts_pods_only_when_envoys_bootstrap_changes() -> None:
    def annotation(text: str) -> str:
        found = documents_with(text)
        return str(one(found, "Deployment")["spec"]["template"]["metadata"]["annotations"]["checksum/envoy"])

    policy = one(render("standalone"), "ConfigMap", "pm-pointsman-policy")["data"]["policy.yaml"]
    assert annotation(policy) == annotation(policy.replace("prove, derive", "prove, derive, show"))
    assert annotation(policy) != annotation(policy.replace("vllm-small.models", "vllm-tiny.models"))
    assert annotation(policy) != annotation(policy + "limits: {body_bytes: 1000000}\n")


def _annotations(case: str, text: str, *words: str) -> dict[str, str]:
    found = render(case, "--set-json", f"policy.text={json.dumps(text)}", *words)
    annotations: dict[str, str] = one(found, "Deployment")["spec"]["template"]["metadata"]["annotations"]
    return annotations


@pytest.mark.parametrize("case", ["standalone", "extproc-istio"])
@pytest.mark.parametrize(
    "more",
    [
        "observe_only: true",
        "gateway_api_inference: true",
        "trusted_headers: [x-team]\nstrip_from_clients: [x-team]",
        "responses: {usage: true}",
        "limits: {decision_ms: 1234}",
        'trusted_metadata: {x-team: "a.b:team"}',
        "trusted_attributes: {x-from: source.address}",
    ],
)
def test_what_workers_refuse_without_a_new_envoy_makes_pods_anew(case: str, more: str) -> None:
    policy = one(render(case), "ConfigMap", "pm-pointsman-policy")["data"]["policy.yaml"]
    key = more.rpartition("\n")[2].partition(":")[0]
    assert f"\n{key}:" not in policy
    before, after = (_annotations(case, text) for text in (policy, f"{policy}\n{more}\n"))
    assert before["checksum/envoy"] != after["checksum/envoy"]


def test_files_beside_the_policy_make_pods_anew() -> None:
    policy = one(render("standalone"), "ConfigMap", "pm-pointsman-policy")["data"]["policy.yaml"]
    first, same, other = (
        _annotations("standalone", policy, "--set", f"policy.files.next\\.yaml={text}") for text in ("a", "a", "b")
    )
    assert first == same
    assert first["checksum/files"] != other["checksum/files"]


def test_alerts_and_dashboards_are_the_files_of_the_chart() -> None:
    found = render("standalone-full")
    groups = [g for path in sorted(CHART.glob("alerts/*.yaml")) for g in yaml.safe_load(path.read_text())["groups"]]
    rules = [d for d in found if d["kind"] == "PrometheusRule"]
    assert [rule["spec"]["groups"] for rule in rules] == ([groups] if groups else [])
    for path in CHART.glob("dashboards/*.json"):
        board = one(found, "ConfigMap", f"pm-pointsman-dashboard-{path.stem}")
        assert board["data"][path.name].strip() == path.read_text().strip()
        assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
