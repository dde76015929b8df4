"""Envoy's bootstrap for a policy: `envoy/bootstrap.yaml.j2` filled in.

What routes, retries and timeouts are needed is the template's; this module brings the values and refuses those that no
Envoy could serve. It knows nothing of the policy's decisions.
"""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATE = "bootstrap.yaml.j2"
_PACKAGE = Path(__file__).parent
TEMPLATE_FOLDERS = (_PACKAGE / "templates", _PACKAGE.parent.parent / "envoy")
"""In an installed wheel, and in a checkout."""

OWN_CLUSTERS = ("pointsman_workers", "pointsman_again")
"""Clusters that the template brings."""

REPLACEMENT_BYTES = 64 * 1024
"""Envoy's buffer holds the replaced body too, which may be a little longer than the one that came."""

RESPONSE_HEADERS = ("x-pointsman-decision", "x-pointsman-model", "x-pointsman-record")


@dataclass(frozen=True, slots=True)
class Address:
    """A TCP address; `host` is a literal IP address, or, of a worker, a name."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class WorkerTls:
    """How Envoy knows workers, and they know it; paths as Envoy sees them.

    `ca_file` has the authorities of the workers' certificates, which must be for `name`, a host name or an IP address.
    `cert_file` and `key_file` are Envoy's own, where workers ask for it.
    """

    ca_file: str
    name: str
    cert_file: str | None = None
    key_file: str | None = None


@dataclass(frozen=True, slots=True)
class UpstreamCluster:
    """A cluster of Envoy's and where it is: `http://host:port` or `https://host:port`, no path."""

    name: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class BootstrapInputs:
    """What a bootstrap depends on; ValueError for what Envoy would not take.

    `worker_sockets` are absolute paths, one for each worker; `worker_addresses`, in their place, are for workers that
    listen on TCP, with `worker_tls` if that is to be used. `body_bytes` is the largest request body.
    `message_timeout` is in seconds and a little more than the time in which a worker decides. `response_headers` are
    copied from the request that goes to the upstream onto the response. With `read_responses` workers are shown copies
    of what the upstreams answer. `forwarded_metadata` are namespaces of dynamic metadata that workers are shown,
    `attributes` what they are told by Envoy's names. `ca_file` has the authorities that upstreams
    with https are checked against.
    """

    listen: Address
    worker_sockets: tuple[str, ...]
    clusters: tuple[UpstreamCluster, ...]
    default_cluster: str
    on_failure: Literal["closed", "open"]
    body_bytes: int
    message_timeout: float
    response_headers: tuple[str, ...] = RESPONSE_HEADERS
    gateway_api_inference: bool = False
    read_responses: bool = False
    forwarded_metadata: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    admin: Address | None = None
    ca_file: str = "/etc/ssl/certs/ca-certificates.crt"
    worker_addresses: tuple[Address, ...] = ()
    worker_tls: WorkerTls | None = None

    def __post_init__(self) -> None:
        names = [cluster.name for cluster in self.clusters]
        if bool(self.worker_sockets) == bool(self.worker_addresses):
            raise ValueError("at least one worker is needed, by its socket or by its address and not by both")
        if self.worker_tls is not None and not self.worker_addresses:
            raise ValueError("TLS goes with addresses of workers; their sockets are not on the network")
        if len({*OWN_CLUSTERS, *names}) != len(OWN_CLUSTERS) + len(names):
            raise ValueError(f"cluster names must differ from each other and from {', '.join(OWN_CLUSTERS)}")
        if self.on_failure == "open" and self.default_cluster not in names:
            raise ValueError(f"on_failure: open needs an endpoint for the default cluster {self.default_cluster}")


def render_bootstrap(inputs: BootstrapInputs) -> str:
    """The bootstrap as YAML; ValueError when an endpoint is no http(s) URL of a host."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATE_FOLDERS),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701  YAML, where every value goes through tojson
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # Jinja's own escapes quotes for HTML, which nobody could read here.
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.get_template(TEMPLATE).render(
        inputs=inputs,
        clusters=[_cluster(cluster) for cluster in inputs.clusters],
        workers=_workers(inputs),
        buffer_bytes=inputs.body_bytes + REPLACEMENT_BYTES,
        message_timeout=f"{inputs.message_timeout:.3f}s",
        not_judged=_error("server_error", "not_judged", "The request could not be judged, so it was not sent on."),
        local_errors=_local_errors(),
    )


def _cluster(cluster: UpstreamCluster) -> dict[str, Any]:
    url = urlsplit(cluster.endpoint)
    if (
        url.scheme not in ("http", "https")
        or not url.hostname
        or url.path not in ("", "/")
        or url.query
        or url.username
    ):
        raise ValueError(f"the endpoint of cluster {cluster.name} is not http(s)://host:port")
    literal = _is_address(url.hostname)
    return {
        "name": cluster.name,
        "host": url.hostname,
        "port": url.port or (443 if url.scheme == "https" else 80),
        "authority": url.netloc,
        "tls": url.scheme == "https",
        "discovery": "STATIC" if literal else "STRICT_DNS",
        "san_type": "IP_ADDRESS" if literal else "DNS",
    }


def _workers(inputs: BootstrapInputs) -> dict[str, Any]:
    literal = all(_is_address(address.host) for address in inputs.worker_addresses)
    tls = inputs.worker_tls
    return {
        "discovery": "STATIC" if literal else "STRICT_DNS",
        # A handshake may be waited for behind other work.
        "connect_timeout": "1s" if tls else "0.25s",
        "san_type": "IP_ADDRESS" if tls and _is_address(tls.name) else "DNS",
    }


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _local_errors() -> list[dict[str, str]]:
    """What Envoy says itself, by a CEL condition on its response; the first that holds."""
    wrong, ours = "invalid_request_error", "server_error"
    return [
        {"condition": condition, "body": _error(kind, code, message)}
        for condition, kind, code, message in (
            ("response.code == 413", wrong, "request_too_large", "The request body is larger than this gateway takes."),
            ("response.code == 408", wrong, "request_timeout", "The request did not arrive in time."),
            ("response.code < 500", wrong, "bad_request", "The request cannot be read as HTTP."),
            ("response.code == 504", ours, "upstream_timeout", "The model did not answer in time."),
            ("true", ours, "upstream_unavailable", "The model cannot be reached."),
        )
    ]


def _error(kind: str, code: str, message: str) -> str:
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})
