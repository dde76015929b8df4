"""What values are taken and what is said about those that are not."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from chart_render import CASES, CHART, ROOT, ChartError, case_file, documents, one, pods, render, render_text, run_helm

POLICY = ROOT / "examples" / "demo" / "policy.yaml"
WITH_POLICY = ("--set-file", f"policy.text={POLICY}")


@pytest.mark.parametrize("major", [4, 3])
@pytest.mark.parametrize("case", CASES)
def test_lint_finds_nothing(case: str, major: int) -> None:
    assert "0 chart(s) failed" in run_helm("lint", "--strict", str(CHART), "-f", case_file(case), major=major)


@pytest.mark.parametrize("case", CASES)
def test_helm_3_renders_the_same(case: str) -> None:
    assert render_text("-f", case_file(case), major=3) == render_text("-f", case_file(case))


def test_the_policy_arrives_as_it_was_written() -> None:
    """Helm reads YAML 1.1, to which one of the demo's messages is an error."""
    found = documents(render_text(*WITH_POLICY))
    assert one(found, "ConfigMap", "pm-pointsman-policy")["data"]["policy.yaml"] == POLICY.read_text()


@pytest.mark.parametrize(
    "example", ["coding-agents", "cost-tiers", "medical", "multi-tenant", "privacy", "safety-first"]
)
def test_every_example_can_be_given_as_it_is(example: str) -> None:
    render_text("--set-file", f"policy.text={ROOT / 'examples' / example / 'policy.yaml'}")


@pytest.mark.parametrize(
    "words",
    [
        "replica=3",
        "image.tags=x",
        "image.tag=latest",
        "image.digest=sha256:12",
        "policy.inline=x",
        "packs.from=disk",
        "packs.pull.url=x",
        "workers=many",
        "workers=0",
        "resources.limits.gpu=1",
        "resources.limits.cpu=lots",
        "envoy.port=1",
        "service.type=External",
        "tls.mode=mtls",
        "tls.certManager.issuer=x",
        "binding.kind=nginx",
        "binding.routes[0].backend=x",
        "records.dsn=postgres://u:p@h/d",
        "records.dsnSecret.value=x",
        "redis.url=redis://h",
        "metrics.podMonitor.on=true",
        "autoscaling.min=1",
        "drain.endpointSeconds=soon",
        "networkPolicy.ingress=x",
        "socketMode=777",
        "mode=deployment",
    ],
)
def test_the_schema_refuses(words: str) -> None:
    with pytest.raises(ChartError, match=re.escape("values don't meet the specifications of the schema")):
        render_text(*WITH_POLICY, "--set", words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("policy.existingConfigMap=x", "give one of the two"),
        ("limits.bodyBytes=1", "policy.text says it already"),
        ("resources.limits.memory=1Gi", "they need 1856 MiB"),
        ("workers=3", "they need 2720 MiB"),
        ("mode=extproc", "set tls.mode to mutual"),
        ("mode=extproc,tls.mode=mutual", "needs tls.secretName or tls.certManager.enabled"),
        ("mode=extproc,tls.mode=server,tls.certManager.enabled=true", "tls.certManager.issuerRef.name"),
        ("mode=extproc,tls.mode=insecure,binding.kind=istio", "needs binding.gateway"),
        ("mode=extproc,tls.mode=insecure,binding.kind=istio,binding.gateway=g,workers=2", "leave workers at auto"),
        ("mode=extproc,tls.mode=mutual,tls.secretName=s,binding.kind=gke,binding.gateway=g", "set tls.mode: server"),
        (
            "mode=extproc,tls.mode=server,tls.secretName=s,binding.kind=envoyGateway,binding.gateway=g",
            "tls.caConfigMap",
        ),
        ("mode=extproc,tls.mode=server,tls.secretName=s,binding.kind=istio,binding.gateway=g", "tls.clientCredential"),
        (
            "mode=extproc,tls.mode=insecure,binding.gateway=g,binding.routes[0].cluster=c",
            "a service or an inferencePool",
        ),
        (
            "mode=extproc,tls.mode=insecure,binding.gateway=g,binding.routes[0].service=c",
            "cluster (the policy's) and port",
        ),
        ("mode=extproc,tls.mode=insecure,ingress.enabled=true", "go with mode: standalone"),
        ("mode=sidecar,metrics.serviceMonitor.enabled=true", "use metrics.podMonitor"),
        ("binding.kind=envoy", "goes with mode: extproc"),
        ("httpRoute.enabled=true", "httpRoute.parentRefs"),
        ("ingress.enabled=true", "ingress.host"),
        ("packs.from=pvc", "packs.claimName"),
        ("packs.from=oci,packs.oci.reference=packs:1", "by digest"),
        ("packs.from=pull", "packs.pull.archives"),
        ("autoscaling.enabled=true,autoscaling.maxReplicas=1", "less than autoscaling.minReplicas"),
        ("policy.files.policy\\.yaml=x", "the policy's own name"),
    ],
)
def test_what_does_not_go_together_is_refused_with_a_way_out(words: str, said: str) -> None:
    with pytest.raises(ChartError, match=re.escape(said)):
        render_text(*WITH_POLICY, "--set", words)


def test_no_policy_is_refused() -> None:
    with pytest.raises(ChartError, match="a policy is needed"):
        render_text()


def test_a_connection_string_without_its_secret_is_refused() -> None:
    with pytest.raises(ChartError, match=r"set records\.dsnSecret\.name"):
        render("standalone-full", "--set", "records.dsnSecret.name=,extraEnv=null,extraEnvFrom=null")
    with pytest.raises(ChartError, match=r"records\.dsnEnv is OTHER"):
        render("standalone-full", "--set", "records.dsnEnv=OTHER")


def test_checked_answers_need_more_than_a_binding_makes() -> None:
    policy = POLICY.read_text() + "responses: {checks: [{name: x}]}\n"
    with pytest.raises(ChartError, match=r"responses\.checks need a second filter"):
        render("extproc-istio", "--set-json", f"policy.text={json.dumps(policy)}")


def test_open_failures_need_a_route_for_the_default_model() -> None:
    with pytest.raises(ChartError, match="on_failure: open needs a route"):
        render("extproc-inference", "--set", "binding.routes[0].model=other")


@pytest.mark.parametrize(
    ("cpu", "mode", "workers"),
    [
        ("1", "standalone", 1),
        ("3", "standalone", 3),
        ("3500m", "sidecar", 3),
        ("500m", "sidecar", 1),
        ("4", "extproc", 1),
    ],
)
def test_workers_are_the_whole_cores_of_the_limit(cpu: str, mode: str, workers: int) -> None:
    words = (
        *WITH_POLICY,
        "--set",
        f"mode={mode},tls.mode=insecure,resources.limits.memory=8Gi,resources.limits.cpu={cpu}",
    )
    found = documents(render_text(*words))
    if mode == "sidecar":
        patch = yaml.safe_load(one(found, "ConfigMap", "pm-pointsman-snippet")["data"]["patch.yaml"])
        containers = patch["spec"]["template"]["spec"]["initContainers"]
    else:
        [pod] = [pod for pod in pods(found) if pod.owner["kind"] == "Deployment"]
        containers = pod.containers
    [serve] = [container for container in containers if container["name"] == "pointsman"]
    assert f"--workers={workers}" in serve["command"]


def test_every_value_is_in_the_schema_and_the_other_way_round() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    free = ("labels", "annotations", "files", "request", "affinity", "requests", "limits")

    def compare(value: object, said: dict[str, object], where: str) -> None:
        properties = said.get("properties")
        if not isinstance(value, dict) or not isinstance(properties, dict) or where.rpartition(".")[2] in free:
            return
        assert set(value) == set(properties) - {"global"}, where
        assert said["additionalProperties"] is False, where
        for key, inner in value.items():
            compare(inner, properties[key], f"{where}.{key}")

    compare(values, schema, "")


def test_values_are_all_commented_sections_and_few() -> None:
    assert len((CHART / "values.yaml").read_text().splitlines()) < 140


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("standalone", ["port-forward service/pm-pointsman 8080:80", "/v1/chat/completions", "helm -n llm test pm"]),
        ("extproc-envoygateway", ["Gateway llm asks Pointsman now", "/v1/chat/completions"]),
        ("extproc-envoy", ["configmap pm-pointsman-envoy", "port 9000 9001", "/v1/chat/completions"]),
        ("extproc-inference", ["tls.mode is insecure"]),
        ("sidecar", ["pm-pointsman-snippet", "/run/pointsman/worker-0.sock", "/v1/chat/completions"]),
    ],
)
def test_notes_say_how_to_send_the_first_request(case: str, words: list[str]) -> None:
    # `helm template` prints no notes; an install that asks no cluster does.
    notes = run_helm("install", "pm", str(CHART), "--namespace", "llm", "--dry-run=client", "-f", case_file(case))
    notes = notes.partition("NOTES:")[2]
    for word in words:
        assert word in notes
