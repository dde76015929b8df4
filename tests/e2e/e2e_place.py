"""Envoy before one fake worker, or before two in a chain, and changes of its bootstrap for tests of its modes."""

from __future__ import annotations

import copy
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e_harness import Child, RunningEnvoy, Upstream

BODY_BYTES = 9 << 20
Bootstrap = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Envoy before one worker, or two in a chain, and an upstream `b`."""

    envoy: RunningEnvoy
    workers: list[Child]
    b: Upstream

    def said(self, key: str, worker: int = 0) -> list[Any]:
        """What a worker printed under this key."""
        lines = self.workers[worker].log.read_text().splitlines()
        rows = [json.loads(line) for line in lines if line.startswith("{")]
        return [row if key == "judged" else row[key] for row in rows if key in row]


def manager(bootstrap: Bootstrap) -> Any:
    """The connection manager of the listener that clients reach; the other one shares its filters."""
    return bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]


def processors(bootstrap: Bootstrap) -> list[Any]:
    filters = manager(bootstrap)["http_filters"]
    return [one["typed_config"] for one in filters if one["typed_config"]["@type"].endswith("ExternalProcessor")]


def add_second_processor(bootstrap: Bootstrap, path: Path) -> None:
    filters = manager(bootstrap)["http_filters"]
    second = copy.deepcopy(filters[0])
    second["name"] = "second"
    second["typed_config"]["grpc_service"]["envoy_grpc"]["cluster_name"] = "second_workers"
    filters.insert(1, second)
    clusters = bootstrap["static_resources"]["clusters"]
    cluster = copy.deepcopy(next(one for one in clusters if one["name"] == "pointsman_workers"))
    cluster["name"] = cluster["load_assignment"]["cluster_name"] = "second_workers"
    cluster["load_assignment"]["endpoints"][0]["lb_endpoints"] = [
        {"endpoint": {"address": {"pipe": {"path": str(path)}}}}
    ]
    clusters.append(cluster)


def with_trailers(bootstrap: Bootstrap, upstream: str = "b") -> None:
    """Envoy takes trailers of HTTP/1.1 from clients and from the upstream, and passes them on."""
    manager(bootstrap)["http_protocol_options"] = {"enable_trailers": True}
    options = {"explicit_http_config": {"http_protocol_options": {"enable_trailers": True}}}
    (found,) = [one for one in bootstrap["static_resources"]["clusters"] if one["name"] == upstream]
    kind = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    found["typed_extension_protocol_options"] = {kind: {"@type": f"type.googleapis.com/{kind}", **options}}


def exchange_raw(place: Place, request: bytes) -> bytes:
    """Bytes to Envoy and all that comes back until it closes."""
    with socket.create_connection((place.envoy.address.host, place.envoy.address.port), timeout=30) as client:
        client.sendall(request)
        answer = b""
        while piece := client.recv(65536):
            answer += piece
        return answer
