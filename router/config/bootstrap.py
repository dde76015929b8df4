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

from router.request.dialect import error_reply

TEMPLATE = "bootstrap.yaml.j2"
_PACKAGE = Path(__file__).parent
TEMPLATE_FOLDERS = (_PACKAGE / "templates", _PACKAGE.parent.parent / "envoy")
"""In an installed wheel, and in a checkout."""

OWN_CLUSTERS = ("pointsman_workers", "pointsman_again")
"""Clusters that the template brings."""

REPLACEMENT_BYTES = 64 * 1024
"""Envoy's buffer holds the replaced body too, which may be a little longer than the one that came."""

RESPONSE_HEADERS = ("x-pointsman-decision", "x-pointsman-model", "x-pointsman-record")

TOLD_OF_ANSWERS = (
    "request.path",
    "request.method",
    "response.code_details",
    *(f"request.headers['{name}']" for name in RESPONSE_HEADERS),
)
"""Attributes, CEL expressions among them, by which a worker knows whose answer it is shown."""

ANTHROPIC_PATHS = "(?i).*/v1/messages(/count_tokens)?/?"
"""Paths whose clients expect Anthropic's errors, without the query; the policy's own are not among them."""

OF_ANTHROPIC = f"request.url_path.matches('^{ANTHROPIC_PATHS}$')"

NOT_JUDGED = "The request could not be judged, so it was not sent on."


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
    copied from the request that goes to the upstream onto the response. `strip_from_clients` are removed from what
    clients send, before filters that set them. With `read_responses` workers are shown copies
    of what the upstreams answer, with `check_responses` they decide what of it goes on. `forwarded_metadata` are
    namespaces of dynamic metadata that workers are shown, `attributes` what they are told by Envoy's names. `ca_file`
    has the authorities that upstreams with https are checked against.
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
    strip_from_clients: tuple[str, ...] = ()
    read_responses: bool = False
    check_responses: bool = False
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
        not_judged=_error("server_error", "not_judged", NOT_JUDGED),
        anthropic_paths=ANTHROPIC_PATHS,
        anthropic_not_judged=_anthropic_error(503, "not_judged", NOT_JUDGED),
        local_errors=_local_errors(),
        told_of_answers=TOLD_OF_ANSWERS,
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
    rows = (
        ("response.code_details.startsWith('ext_proc')", 503, ours, "not_judged", NOT_JUDGED),
        (
            "response.code == 413",
            413,
            wrong,
            "request_too_large",
            "The request body is larger than this gateway takes.",
        ),
        ("response.code == 408", 408, wrong, "request_timeout", "The request did not arrive in time."),
        ("response.code < 500", 400, wrong, "bad_request", "The request cannot be read as HTTP."),
        ("response.code == 504", 504, ours, "upstream_timeout", "The model did not answer in time."),
        ("true", 503, ours, "upstream_unavailable", "The model cannot be reached."),
    )
    in_anthropics = [
        {"condition": f"{when} && {OF_ANTHROPIC}", "body": _anthropic_error(status, code, message)}
        for when, status, _, code, message in rows
    ]
    in_openais = [{"condition": when, "body": _error(kind, code, message)} for when, _, kind, code, message in rows]
    return [*in_anthropics, *in_openais]


def _anthropic_error(status: int, code: str, message: str) -> str:
    return error_reply("anthropic.messages", status, code, message).body.decode()


def _error(kind: str, code: str, message: str) -> str:
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})
