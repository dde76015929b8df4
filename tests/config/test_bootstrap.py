"""The bootstrap that is rendered, and that real Envoy takes it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from router.config.bootstrap import (
    OWN_CLUSTERS,
    REPLACEMENT_BYTES,
    Address,
    BootstrapInputs,
    UpstreamCluster,
    WorkerTls,
    render_bootstrap,
)
from router.config.envoy_binary import find_envoy
from router.extproc.mutations import METADATA_NAMESPACE

INPUTS = BootstrapInputs(
    listen=Address("127.0.0.1", 10000),
    worker_sockets=("/run/pointsman/worker-0.sock", "/run/pointsman/worker-1.sock"),
    clusters=(
        UpstreamCluster("local", "http://10.0.0.5:8000"),
        UpstreamCluster("named", "http://vllm.internal"),
        UpstreamCluster("secure", "https://api.example.com"),
        UpstreamCluster("secure-port", "https://api.example.com:8443/"),
        UpstreamCluster("secure-ip", "https://[2001:db8::1]"),
    ),
    default_cluster="local",
    on_failure="closed",
    body_bytes=32 << 20,
    message_timeout=2.5,
)

TCP = replace(INPUTS, worker_sockets=(), worker_addresses=(Address("10.0.0.7", 9000), Address("10.0.0.7", 9001)))
MUTUAL = WorkerTls("/etc/p/ca.crt", "judges.internal", "/etc/p/tls.crt", "/etc/p/tls.key")

VARIANTS = {
    "closed": INPUTS,
    "open": replace(INPUTS, on_failure="open"),
    "admin": replace(INPUTS, admin=Address("127.0.0.1", 9901)),
    "gateway api": replace(INPUTS, gateway_api_inference=True),
    "strips from clients": replace(INPUTS, strip_from_clients=("x-team", "x-user")),
    "reads responses": replace(INPUTS, read_responses=True),
    "checks responses": replace(INPUTS, check_responses=True, read_responses=True),
    "asks who it is": replace(INPUTS, forwarded_metadata=("some.filter",), attributes=("source.address",)),
    "IPv6": replace(INPUTS, listen=Address("::", 10000)),
    "one worker, no upstreams": replace(INPUTS, worker_sockets=("/w.sock",), clusters=()),
    "TCP": TCP,
    "TCP by name": replace(TCP, worker_addresses=(Address("judges.internal", 9000),)),
    "TLS": replace(TCP, worker_tls=WorkerTls("/etc/ssl/certs/ca-certificates.crt", "10.0.0.7")),
    "no response headers": replace(INPUTS, response_headers=()),
    "odd names": replace(
        INPUTS,
        worker_sockets=('/run/it\'s {{ "odd" }}: #1/w.sock',),
        clusters=(UpstreamCluster("it's: {odd} #1 \"'&<é", "http://10.0.0.5"),),
    ),
}


def render(inputs: BootstrapInputs) -> Any:
    return yaml.safe_load(render_bootstrap(inputs))


def listener(bootstrap: Any, name: str = "pointsman") -> Any:
    """A listener's connection manager."""
    (found,) = [one for one in bootstrap["static_resources"]["listeners"] if one["name"] == name]
    return found["filter_chains"][0]["filters"][0]["typed_config"]


def clusters(bootstrap: Any) -> dict[str, Any]:
    return {cluster["name"]: cluster for cluster in bootstrap["static_resources"]["clusters"]}


def routes(bootstrap: Any, name: str) -> Any:
    return listener(bootstrap, name)["route_config"]["virtual_hosts"][0]["routes"]


def endpoint(cluster: Any) -> Any:
    return cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_envoy_takes_it(tmp_path: Path, variant: str) -> None:
    path = tmp_path / "bootstrap.yaml"
    path.write_text(render_bootstrap(VARIANTS[variant]))
    command = [find_envoy(), "--mode", "validate", "-c", path, "--log-level", "warning"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    assert "deprecated" not in run.stderr.lower()


def test_every_worker_is_an_endpoint_of_its_own() -> None:
    workers = clusters(render(INPUTS))["pointsman_workers"]["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert [one["endpoint"]["address"]["pipe"]["path"] for one in workers] == list(INPUTS.worker_sockets)


def test_every_worker_on_tcp_is_an_endpoint_of_its_own_and_in_the_clear_unless_tls_is_asked_for() -> None:
    workers = clusters(render(TCP))["pointsman_workers"]
    assert workers["type"] == "STATIC"
    assert "transport_socket" not in workers
    ends = workers["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert [one["endpoint"]["address"]["socket_address"] for one in ends] == [
        {"address": "10.0.0.7", "port_value": 9000},
        {"address": "10.0.0.7", "port_value": 9001},
    ]


def test_workers_by_name_are_resolved() -> None:
    assert clusters(render(VARIANTS["TCP by name"]))["pointsman_workers"]["type"] == "STRICT_DNS"


def test_workers_with_tls_are_known_by_their_authority_and_their_name_and_know_envoy() -> None:
    tls = clusters(render(replace(TCP, worker_tls=MUTUAL)))["pointsman_workers"]["transport_socket"]["typed_config"]
    assert tls["sni"] == "judges.internal"
    common = tls["common_tls_context"]
    assert common["alpn_protocols"] == ["h2"]
    assert common["tls_certificates"] == [
        {"certificate_chain": {"filename": "/etc/p/tls.crt"}, "private_key": {"filename": "/etc/p/tls.key"}}
    ]
    assert common["validation_context"] == {
        "trusted_ca": {"filename": "/etc/p/ca.crt"},
        "match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": "judges.internal"}}],
    }


def test_workers_that_ask_for_no_certificate_get_none() -> None:
    tls = clusters(render(VARIANTS["TLS"]))["pointsman_workers"]["transport_socket"]["typed_config"]
    assert "sni" not in tls
    assert "tls_certificates" not in tls["common_tls_context"]
    (san,) = tls["common_tls_context"]["validation_context"]["match_typed_subject_alt_names"]
    assert san == {"san_type": "IP_ADDRESS", "matcher": {"exact": "10.0.0.7"}}


def test_own_clusters_are_the_ones_whose_names_are_refused() -> None:
    assert set(clusters(render(replace(INPUTS, clusters=())))) == set(OWN_CLUSTERS)


@pytest.mark.parametrize("name", ["pointsman", "pointsman_again"])
def test_both_listeners_strip_our_headers_and_ask_the_workers(name: str) -> None:
    manager = listener(render(INPUTS), name)
    mutations = manager["early_header_mutation_extensions"][0]["typed_config"]["mutations"]
    assert mutations == [{"remove_on_match": {"key_matcher": {"prefix": "x-pointsman-", "ignore_case": True}}}]
    processor = manager["http_filters"][0]["typed_config"]
    assert processor["message_timeout"] == "2.500s"
    assert processor["processing_mode"]["request_body_mode"] == "BUFFERED"


@pytest.mark.parametrize("name", ["pointsman", "pointsman_again"])
def test_workers_are_shown_responses_only_where_the_policy_asks_and_then_only_copies(name: str) -> None:
    assert len(listener(render(INPUTS), name)["http_filters"]) == 2
    judge, responses, _router = (
        one["typed_config"] for one in listener(render(VARIANTS["reads responses"]), name)["http_filters"]
    )
    skipped = {"response_header_mode": "SKIP", "response_body_mode": "NONE", "response_trailer_mode": "SKIP"}
    assert judge["processing_mode"].items() >= skipped.items()
    assert "observability_mode" not in judge
    assert responses["observability_mode"] is True
    assert responses["processing_mode"]["request_body_mode"] == "NONE"


def test_workers_may_tell_access_logs_of_decisions() -> None:
    judge = listener(render(INPUTS))["http_filters"][0]["typed_config"]
    assert judge["metadata_options"] == {"receiving_namespaces": {"untyped": [METADATA_NAMESPACE]}}


def test_what_clients_may_not_set_is_stripped_before_the_filters_and_only_there() -> None:
    config = render(VARIANTS["strips from clients"])
    first, again = (
        listener(config, name)["early_header_mutation_extensions"] for name in ("pointsman", "pointsman_again")
    )
    assert [each["typed_config"]["mutations"] for each in first[1:]] == [[{"remove": "x-team"}, {"remove": "x-user"}]]
    # A filter of the first listener has set them by then.
    assert again == first[:1]


def test_the_gateway_apis_header_is_stripped_where_it_is_used() -> None:
    manager = listener(render(VARIANTS["gateway api"]))
    mutations = manager["early_header_mutation_extensions"][0]["typed_config"]["mutations"]
    assert {"remove": "x-gateway-model-name"} in mutations


def test_what_was_not_judged_is_tried_again_before_the_last_route() -> None:
    judged, rest = routes(render(INPUTS), "pointsman")
    assert judged["route"]["cluster_header"] == "x-pointsman-cluster"
    assert rest["route"]["cluster"] == "pointsman_again"


def test_the_last_route_refuses_when_failure_is_closed() -> None:
    judged, in_anthropics, rest = routes(render(INPUTS), "pointsman_again")
    assert judged["route"]["cluster_header"] == "x-pointsman-cluster"
    for last in (in_anthropics, rest):
        assert last["direct_response"]["status"] == 503
        assert "route" not in last
    told = [json.loads(last["direct_response"]["body"]["inline_string"]) for last in (in_anthropics, rest)]
    assert [one.get("type") for one in told] == ["error", None]
    assert [one["error"]["code"] for one in told] == ["not_judged"] * 2
    pattern = in_anthropics["match"]["safe_regex"]["regex"]
    assert re.fullmatch(pattern, "/v1/messages") and re.fullmatch(pattern, "/x/v1/messages/count_tokens/")
    assert not re.fullmatch(pattern, "/v1/messages/batches") and not re.fullmatch(pattern, "/v1/chat/completions")


def test_answers_are_checked_by_a_filter_that_lets_nothing_pass_by_itself() -> None:
    filters = listener(render(replace(INPUTS, check_responses=True, read_responses=True)))["http_filters"]
    assert [one["name"] for one in filters][1:] == [
        "pointsman.answers",
        "pointsman.responses",
        "envoy.filters.http.router",
    ]
    answers = filters[1]["typed_config"]
    assert answers["failure_mode_allow"] is False
    assert answers["processing_mode"] == {
        "request_header_mode": "SKIP",
        "request_body_mode": "NONE",
        "request_trailer_mode": "SKIP",
        "response_header_mode": "SEND",
        "response_body_mode": "FULL_DUPLEX_STREAMED",
        "response_trailer_mode": "SEND",
    }
    judged, *_ = routes(render(replace(INPUTS, check_responses=True)), "pointsman")
    assert judged["request_headers_to_remove"] == ["accept-encoding"]
    assert "request_headers_to_remove" not in routes(render(INPUTS), "pointsman")[0]


def test_the_last_route_is_the_default_cluster_when_failure_is_open() -> None:
    _, rest = routes(render(VARIANTS["open"]), "pointsman_again")
    assert rest["route"]["cluster"] == "local"
    assert "direct_response" not in rest


def test_bodies_may_grow_a_little_while_they_are_judged() -> None:
    for one in render(INPUTS)["static_resources"]["listeners"]:
        assert one["per_connection_buffer_limit_bytes"] == INPUTS.body_bytes + REPLACEMENT_BYTES


def test_there_is_no_admin_address_unless_it_is_asked_for() -> None:
    assert "admin" not in render(INPUTS)
    admin = render(VARIANTS["admin"])["admin"]
    assert admin == {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 9901}}}


@pytest.mark.parametrize(
    ("name", "host", "port", "kind"),
    [
        ("local", "10.0.0.5", 8000, "STATIC"),
        ("named", "vllm.internal", 80, "STRICT_DNS"),
        ("secure", "api.example.com", 443, "STRICT_DNS"),
        ("secure-port", "api.example.com", 8443, "STRICT_DNS"),
        ("secure-ip", "2001:db8::1", 443, "STATIC"),
    ],
)
def test_an_endpoint_becomes_an_address(name: str, host: str, port: int, kind: str) -> None:
    cluster = clusters(render(INPUTS))[name]
    assert endpoint(cluster)["address"]["socket_address"] == {"address": host, "port_value": port}
    assert cluster["type"] == kind


@pytest.mark.parametrize(
    ("name", "authority", "sni", "san"),
    [
        ("secure", "api.example.com", "api.example.com", ("DNS", "api.example.com")),
        ("secure-port", "api.example.com:8443", "api.example.com", ("DNS", "api.example.com")),
        ("secure-ip", "[2001:db8::1]", None, ("IP_ADDRESS", "2001:db8::1")),
    ],
)
def test_https_is_checked_against_the_systems_authorities_and_the_name(
    name: str, authority: str, sni: str | None, san: tuple[str, str]
) -> None:
    cluster = clusters(render(INPUTS))[name]
    assert endpoint(cluster)["hostname"] == authority
    tls = cluster["transport_socket"]["typed_config"]
    assert tls.get("sni") == sni
    validation = tls["common_tls_context"]["validation_context"]
    assert validation["trusted_ca"] == {"filename": "/etc/ssl/certs/ca-certificates.crt"}
    assert validation["match_typed_subject_alt_names"] == [{"san_type": san[0], "matcher": {"exact": san[1]}}]


@pytest.mark.parametrize("name", ["local", "named"])
def test_http_upstreams_have_no_tls_and_keep_the_clients_host(name: str) -> None:
    cluster = clusters(render(INPUTS))[name]
    assert "transport_socket" not in cluster
    assert "hostname" not in endpoint(cluster)


WRONG: dict[str, Callable[[], BootstrapInputs]] = {
    "at least one worker": lambda: replace(INPUTS, worker_sockets=()),
    "by its socket or by its address": lambda: replace(INPUTS, worker_addresses=TCP.worker_addresses),
    "their sockets are not on the network": lambda: replace(INPUTS, worker_tls=MUTUAL),
    "must differ": lambda: replace(INPUTS, clusters=(INPUTS.clusters[0], INPUTS.clusters[0])),
    "must differ from each other and from pointsman_workers": lambda: replace(
        INPUTS, clusters=(UpstreamCluster("pointsman_workers", "http://h"),)
    ),
    "open needs an endpoint for the default cluster other": lambda: replace(
        INPUTS, on_failure="open", default_cluster="other"
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_inputs_that_no_envoy_could_serve_are_refused(message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WRONG[message]()


@pytest.mark.parametrize("url", ["ftp://h", "http://", "h:80", "https://h/v1", "https://h?x=1", "https://user:pw@h"])
def test_endpoints_that_are_no_host_are_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(ValueError, match=r"^the endpoint of cluster wrong is not http\(s\)://host:port$"):
        render_bootstrap(replace(INPUTS, clusters=(UpstreamCluster("wrong", url),)))
