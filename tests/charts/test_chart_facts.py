"""What chart and product must both know: figures, headers, Envoy's parts. The product's source is what counts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_render import CHART, ROOT, documents, one, pods, render, render_text

from router.actions import headers
from router.cli.envoy import MESSAGE_TIMEOUT_SLACK
from router.config.bootstrap import REPLACEMENT_BYTES
from router.config.envoy_binary import find_envoy
from router.config.handling import LimitSettings
from router.extproc.life import DRAIN_GRACE, DRAIN_NOTICE
from router.extproc.service import SERVICE_NAME

POLICY = """\
version: 1
upstreams:
  - {model: small, cluster: small, endpoint: "http://127.0.0.1:8000"}
  - {model: large, cluster: large, endpoint: "https://models.example:8443"}
default_model: small
trusted_headers: [x-team, x-user]
strip_from_clients: [x-team]
limits: {body_bytes: 5000000, decoded_bytes: 7000000, decision_ms: 1250, held_bytes: 100000000}
"""


def product() -> dict[str, int]:
    text = (CHART / "templates" / "_facts.tpl").read_text()
    block = text[text.index('define "pointsman.product"') : text.index("toJson")]
    return {name: int(value) for name, value in re.findall(r'"(\w+)" (\d+)', block)}


def test_the_charts_figures_are_the_products() -> None:
    said = product()
    limits = LimitSettings()
    assert DRAIN_NOTICE <= said["drainNoticeSeconds"] < DRAIN_NOTICE + 1
    assert said["drainGraceSeconds"] == DRAIN_GRACE
    assert said["messageSlackMs"] == MESSAGE_TIMEOUT_SLACK * 1000
    assert said["replacementBytes"] == REPLACEMENT_BYTES
    assert (said["bodyBytes"], said["decisionMs"], said["heldBytes"]) == (
        limits.body_bytes,
        limits.decision_ms,
        limits.held_bytes,
    )


@pytest.mark.parametrize(
    ("case", "seconds"),
    [
        ("standalone", 5 + 60),
        ("standalone-full", 10 + 120),
        ("extproc-istio", 5),
    ],
)
def test_a_pod_may_take_as_long_as_its_parts_take_to_end(case: str, seconds: int) -> None:
    [pod] = [pod for pod in pods(render(case)) if pod.owner["kind"] == "Deployment"]
    assert pod.spec["terminationGracePeriodSeconds"] >= seconds + DRAIN_NOTICE + DRAIN_GRACE + 1
    assert pod.spec["terminationGracePeriodSeconds"] <= seconds + DRAIN_NOTICE + DRAIN_GRACE + 10


def with_policy(*words: str) -> list[dict[str, Any]]:
    return documents(render_text("--set-json", f"policy.text={json.dumps(POLICY)}", *words))


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `pointsman envoy` says for workers behind a name, by mutual TLS."""
    policy = tmp_path_factory.mktemp("policy") / "policy.yaml"
    policy.write_text(POLICY)
    host = "pm-pointsman.llm.svc.cluster.local"
    words = ["envoy", str(policy), "--workers", "2", "--workers-at", f"{host}:9000"]
    words += ["--workers-ca", "/etc/envoy/pointsman/ca.crt", "--workers-name", "pm-pointsman.llm.svc"]
    words += ["--workers-cert", "/etc/envoy/pointsman/tls.crt", "--workers-key", "/etc/envoy/pointsman/tls.key"]
    command = [sys.executable, "-m", "router.cli.main", *words]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return yaml.safe_load(said.stdout)


@pytest.fixture(scope="module")
def snippet() -> dict[str, Any]:
    found = with_policy("--set", "mode=extproc,workers=2,tls.mode=mutual,tls.secretName=s,binding.kind=envoy")
    return {name: yaml.safe_load(text) for name, text in one(found, "ConfigMap", "pm-pointsman-envoy")["data"].items()}


def listener(bootstrap: dict[str, Any]) -> dict[str, Any]:
    return bootstrap["static_resources"]["listeners"][0]


def manager(bootstrap: dict[str, Any]) -> dict[str, Any]:
    return listener(bootstrap)["filter_chains"][0]["filters"][0]["typed_config"]


def test_the_snippets_filter_is_that_of_the_bootstrap(snippet: dict[str, Any], bootstrap: dict[str, Any]) -> None:
    [made] = snippet["http_filter.yaml"]
    assert made == manager(bootstrap)["http_filters"][0]


def test_the_snippets_routes_are_those_of_the_bootstrap(snippet: dict[str, Any], bootstrap: dict[str, Any]) -> None:
    again = bootstrap["static_resources"]["listeners"][1]["filter_chains"][0]["filters"][0]["typed_config"]
    assert snippet["routes.yaml"] == again["route_config"]["virtual_hosts"][0]["routes"]


def test_the_snippets_cluster_is_that_of_the_bootstrap(snippet: dict[str, Any], bootstrap: dict[str, Any]) -> None:
    [made] = snippet["cluster.yaml"]
    workers = bootstrap["static_resources"]["clusters"][0]
    # Pods come and go behind the name.
    assert made.pop("dns_refresh_rate") == "1s"
    assert made == workers


def test_the_snippets_buffer_and_headers_are_those_of_the_bootstrap(
    snippet: dict[str, Any], bootstrap: dict[str, Any]
) -> None:
    assert snippet["listener.yaml"] == {
        "per_connection_buffer_limit_bytes": listener(bootstrap)["per_connection_buffer_limit_bytes"]
    }
    [strip, theirs] = snippet["early_header_mutation.yaml"]
    [ours, clients] = manager(bootstrap)["early_header_mutation_extensions"]
    mutations = strip["typed_config"]["mutations"]
    assert mutations[:1] == ours["typed_config"]["mutations"]
    assert mutations[1:] == [{"remove": "x-gateway-model-name"}]
    assert theirs == clients
    assert clients["typed_config"]["mutations"] == [{"remove": "x-team"}]


def test_gateways_get_the_limits_of_the_policy(bootstrap: dict[str, Any]) -> None:
    size = listener(bootstrap)["per_connection_buffer_limit_bytes"]
    tls = "mode=extproc,tls.mode=insecure,binding.gateway=g"
    found = with_policy("--set", f"{tls},binding.kind=envoyGateway")
    assert one(found, "ClientTrafficPolicy")["spec"]["connection"] == {"bufferLimit": str(size)}
    assert "x-team" in one(found, "ClientTrafficPolicy")["spec"]["headers"]["earlyRequestHeaders"]["remove"]
    [processor] = one(found, "EnvoyExtensionPolicy")["spec"]["extProc"]
    assert (processor["messageTimeout"], processor["failOpen"]) == ("2250ms", False)
    found = with_policy("--set", f"{tls},binding.kind=istio")
    patches = {p["applyTo"]: p["patch"]["value"] for p in one(found, "EnvoyFilter")["spec"]["configPatches"]}
    assert patches["LISTENER"] == {"per_connection_buffer_limit_bytes": size}
    assert patches["HTTP_FILTER"]["typed_config"]["message_timeout"] == "2.250s"
    found = with_policy("--set", f"{tls},binding.kind=gke")
    [chain] = one(found, "GCPRoutingExtension")["spec"]["extensionChains"]
    assert chain["extensions"][0]["timeout"] == "2250ms"


def test_a_policy_elsewhere_gets_its_limits_from_values() -> None:
    words = "mode=extproc,tls.mode=insecure,binding.gateway=g,binding.kind=envoyGateway,policy.existingConfigMap=mine"
    found = documents(
        render_text("--set", f"{words},limits.bodyBytes=1000000,limits.decisionMs=500,limits.onFailure=open")
    )
    assert one(found, "ClientTrafficPolicy")["spec"]["connection"] == {
        "bufferLimit": str(1_000_000 + REPLACEMENT_BYTES)
    }
    [processor] = one(found, "EnvoyExtensionPolicy")["spec"]["extProc"]
    assert (processor["messageTimeout"], processor["failOpen"]) == ("1500ms", True)


def test_gateways_take_away_every_header_that_the_product_sets() -> None:
    removed = one(render("extproc-envoygateway"), "ClientTrafficPolicy")["spec"]["headers"]["earlyRequestHeaders"][
        "remove"
    ]
    assert set(removed) == {headers.CLUSTER, headers.MODEL, headers.DECISION, headers.RECORD, "x-gateway-model-name"}


def test_the_grpc_probe_asks_for_the_products_service() -> None:
    [pod] = [pod for pod in pods(render("extproc-inference")) if pod.owner["kind"] == "Deployment"]
    assert pod.container("pointsman")["readinessProbe"]["grpc"] == {"port": 9000, "service": SERVICE_NAME}


@pytest.mark.parametrize("tls", ["insecure", "server", "mutual"])
def test_envoy_takes_the_snippet(tls: str, tmp_path: Path) -> None:
    found = with_policy("--set", f"mode=extproc,workers=2,tls.mode={tls},tls.secretName=s,binding.kind=envoy")
    parts = {n: yaml.safe_load(t) for n, t in one(found, "ConfigMap", "pm-pointsman-envoy")["data"].items()}
    for name in ("ca.crt", "tls.crt", "tls.key"):
        text = yaml.safe_dump(parts["cluster.yaml"]).replace("/etc/envoy/pointsman/", f"{tmp_path}/")
        parts["cluster.yaml"] = yaml.safe_load(text)
        write_certificate(tmp_path, name)
    accepted(envoy_with(parts["http_filter.yaml"], parts), tmp_path)


@pytest.mark.parametrize("case", ["extproc-istio"])
def test_envoy_takes_what_istio_merges_into_its_configuration(case: str, tmp_path: Path) -> None:
    patches = {p["applyTo"]: p["patch"]["value"] for p in one(render(case), "EnvoyFilter")["spec"]["configPatches"]}
    processor = patches["HTTP_FILTER"]
    name = processor["typed_config"]["grpc_service"]["envoy_grpc"]["cluster_name"]
    cluster = {"name": name, "type": "STRICT_DNS", "connect_timeout": "1s", **patches["CLUSTER"]}
    http2 = {"explicit_http_config": {"http2_protocol_options": {}}}
    kind = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    cluster["typed_extension_protocol_options"] = {kind: {"@type": f"type.googleapis.com/{kind}", **http2}}
    parts = {
        "listener.yaml": patches["LISTENER"],
        "early_header_mutation.yaml": patches["NETWORK_FILTER"]["typed_config"]["early_header_mutation_extensions"],
        "routes.yaml": [{"match": {"prefix": "/"}, "direct_response": {"status": 503}}],
        "cluster.yaml": [cluster],
    }
    accepted(envoy_with([processor], parts), tmp_path)


def test_envoy_takes_the_bootstrap_that_standalone_makes(tmp_path: Path) -> None:
    """By the very words of the init container; tests that start the whole pod are in test_chart_standalone.py."""
    [pod] = [pod for pod in pods(with_policy()) if pod.owner["kind"] == "Deployment"]
    (tmp_path / "policy.yaml").write_text(POLICY)
    script = pod.container("envoy-config")["command"][-1]
    script = script.replace("pointsman envoy", f"{sys.executable} -m router.cli.main envoy")
    script = script.replace("/etc/pointsman/policy", str(tmp_path)).replace("/etc/envoy", str(tmp_path))
    subprocess.run(["/bin/sh", "-ec", script], check=True, cwd=ROOT, timeout=120)
    accepted(yaml.safe_load((tmp_path / "envoy.yaml").read_text()), tmp_path)


def envoy_with(filters: list[Any], parts: dict[str, Any]) -> dict[str, Any]:
    """A bootstrap of somebody else's with these parts in it."""
    http = "type.googleapis.com/envoy.extensions.filters"
    router = {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{http}.http.router.v3.Router"}}
    typed = {
        "@type": f"{http}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "own",
        "early_header_mutation_extensions": parts["early_header_mutation.yaml"],
        "http_filters": [*filters, router],
        "route_config": {"virtual_hosts": [{"name": "own", "domains": ["*"], "routes": parts["routes.yaml"]}]},
    }
    own = {
        "name": "own",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": typed}]}
        ],
        **parts["listener.yaml"],
    }
    return {"static_resources": {"listeners": [own], "clusters": parts["cluster.yaml"]}}


def accepted(bootstrap: dict[str, Any], folder: Path) -> None:
    path = folder / "bootstrap.yaml"
    path.write_text(yaml.safe_dump(bootstrap))
    command = [str(find_envoy()), "--mode", "validate", "-c", str(path), "--log-level", "error"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def write_certificate(folder: Path, name: str) -> None:
    import trustme

    if not (folder / name).exists():
        authority = trustme.CA()
        own = authority.issue_cert("envoy.test")
        authority.cert_pem.write_to_path(folder / "ca.crt")
        own.cert_chain_pems[0].write_to_path(folder / "tls.crt")
        own.private_key_pem.write_to_path(folder / "tls.key")
