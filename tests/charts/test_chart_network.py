"""Who reaches whom: network policies, services, routes, and what is sent where once it was judged."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
import yaml
from chart_render import WORKLOADS, Document, deployment, documents_with, one, pods, render


def allowed(rules: list[Document]) -> set[tuple[int, str]]:
    return {(int(port["port"]), port.get("protocol", "TCP")) for rule in rules for port in rule.get("ports", [])}


@pytest.mark.parametrize("case", WORKLOADS)
def test_the_network_policy_denies_by_default_and_lets_in_what_the_mode_needs(case: str) -> None:
    policy = one(render(case), "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert all(rule.get("ports") for rule in [*policy["ingress"], *policy["egress"]])
    pod = deployment(case)
    served = {(port["containerPort"], "TCP") for c in pod.containers for port in c.get("ports", [])}
    assert allowed(policy["ingress"]) == served
    assert {(53, "UDP"), (53, "TCP")} <= allowed(policy["egress"])


def test_what_goes_out_is_what_the_policy_names() -> None:
    rules = one(render("standalone-full"), "NetworkPolicy")["spec"]["egress"]
    upstreams = {(8000, "TCP"), (8443, "TCP")}
    assert (
        allowed(rules)
        == {(53, "UDP"), (53, "TCP"), (4317, "TCP"), (5432, "TCP"), (443, "TCP"), (3128, "TCP")} | upstreams
    )
    assert {"ports": [{"port": 8443, "protocol": "TCP"}], "to": [{"ipBlock": {"cidr": "10.0.0.9/32"}}]} in rules
    assert allowed(one(render("extproc-istio"), "NetworkPolicy")["spec"]["egress"]) == {(53, "UDP"), (53, "TCP")}
    assert (443, "TCP") in allowed(one(render("packs-pull"), "NetworkPolicy")["spec"]["egress"])


def test_an_encoder_that_runs_elsewhere_is_reached() -> None:
    policy = one(render("standalone"), "ConfigMap", "pm-pointsman-policy")["data"]["policy.yaml"]
    found = documents_with(
        policy + "encoders: {vision: {pack: starter, remote: 'grpc://triton.models:8001', model: v}}\n"
    )
    assert (8001, "TCP") in allowed(one(found, "NetworkPolicy")["spec"]["egress"])


@pytest.mark.parametrize(
    ("endpoint", "protocol", "port"),
    [
        ("http://collector", "http/protobuf", 80),
        ("https://collector/otlp", "http/protobuf", 443),
        ("http://collector:4318/x", "http/protobuf", 4318),
        ("http://collector", "grpc", 443),
    ],
)
def test_a_collector_without_a_port_has_that_of_its_protocol(endpoint: str, protocol: str, port: int) -> None:
    found = render("extproc-istio", "--set", f"otel.endpoint={endpoint},otel.protocol={protocol}")
    assert allowed(one(found, "NetworkPolicy")["spec"]["egress"]) == {(53, "UDP"), (53, "TCP"), (port, "TCP")}


def test_the_test_pod_gets_in_where_peers_are_named() -> None:
    found = render("standalone-full")
    [requests, _] = one(found, "NetworkPolicy")["spec"]["ingress"]
    [labels] = [peer["podSelector"]["matchLabels"] for peer in requests["from"] if "podSelector" in peer]
    [test] = [pod for pod in pods(found) if pod.owner["kind"] == "Pod"]
    assert labels.items() <= test.labels.items()


def test_ingress_route_and_test_lead_to_the_service() -> None:
    found = render("standalone-full")
    service = one(found, "Service", "pm-pointsman")
    [port] = service["spec"]["ports"]
    [rule] = one(found, "HTTPRoute")["spec"]["rules"]
    assert rule["backendRefs"] == [{"name": "pm-pointsman", "port": port["port"]}]
    [[path]] = [rule["http"]["paths"] for rule in one(found, "Ingress")["spec"]["rules"]]
    assert path["backend"]["service"] == {"name": "pm-pointsman", "port": {"name": port["name"]}}
    [test] = [pod for pod in pods(found) if pod.owner["kind"] == "Pod"]
    url = urlsplit(test.container("decision")["command"][2])
    assert (url.hostname, url.port) == ("pm-pointsman.llm.svc", port["port"])
    assert test.container("decision")["command"][4] == "default"


@pytest.mark.parametrize("case", ["extproc-envoygateway", "extproc-istio", "extproc-gke", "extproc-inference"])
def test_bindings_ask_a_port_of_the_service(case: str) -> None:
    found = render(case)
    ports = {port["port"] for port in one(found, "Service", "pm-pointsman")["spec"]["ports"]}
    text = yaml.safe_dump([d for d in found if d["kind"].endswith(("Policy", "Extension", "Filter"))])
    asked = {int(port) for port in re.findall(r"\bport: (\d+)", text)} | {
        int(p) for p in re.findall(r"outbound\|(\d+)", text)
    }
    assert asked & ports == ports


@pytest.mark.parametrize(
    ("case", "last"),
    [
        ("extproc-envoygateway", "closed"),
        ("extproc-istio", "closed"),
        ("extproc-gke", "closed"),
        ("extproc-inference", "open"),
    ],
)
def test_what_was_not_judged_reaches_a_model_only_where_failures_are_open(case: str, last: str) -> None:
    *judged, rest = one(render(case), "HTTPRoute", "pm-pointsman-judged")["spec"]["rules"]
    for rule in judged:
        [match] = rule["matches"]
        [header] = match["headers"]
        assert header["name"] in {"x-pointsman-cluster", "x-pointsman-model"}
    assert "headers" not in rest["matches"][0]
    assert bool(rest.get("backendRefs")) is (last == "open")


def test_the_endpoint_pickers_own_headers_and_metadata_are_left_alone() -> None:
    text = yaml.safe_dump_all(render("extproc-inference"))
    assert "x-gateway-destination-endpoint" not in text
    assert "envoy.lb" not in text
    [small, large, _] = one(render("extproc-inference"), "HTTPRoute")["spec"]["rules"]
    assert [rule["backendRefs"][0]["kind"] for rule in (small, large)] == ["InferencePool", "InferencePool"]
    [change] = large["filters"]
    assert change["requestHeaderModifier"] == {"set": [{"name": "x-gateway-model-name", "value": "large"}]}
