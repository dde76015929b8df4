"""Workers on TCP with mutual TLS, by the product's own commands and before real Envoy, while certificates change."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from e2e_harness import Child, RunningEnvoy, Upstream, ask, free_address
from e2e_product import start_product_envoy, start_serve

from router.config.bootstrap import Address

pytestmark = pytest.mark.slow

POLICY = """
version: 1
upstreams: [{{model: small, cluster: a, endpoint: "{a}"}}]
default_model: small
signals: {{keyword: {{attack: {{any: [ignore all instructions]}}}}}}
decisions: [{{name: block, guard: true, when: {{keyword: attack}}, respond: {{message: No.}}}}]
"""
BODY = json.dumps({"model": "any", "messages": [{"role": "user", "content": "hello"}]}).encode()


def put(leaf: trustme.LeafCert, cert: Path, key: Path) -> None:
    leaf.private_key_pem.write_to_path(key)
    cert.write_bytes(leaf.cert_chain_pems[0].bytes())


def two_ports() -> Address:
    """A free address whose next port is free too."""
    while True:
        first = free_address()
        with socket.socket() as probe:
            if first.port < 65535 and probe.connect_ex((first.host, first.port + 1)) != 0:
                return first


@dataclass(frozen=True)
class Pair:
    """Certificates of both sides, a `serve` with two workers, and how an Envoy before it is made."""

    folder: Path
    ca: trustme.CA
    workers: Address
    start_envoy: Callable[[Sequence[str]], RunningEnvoy]
    a: Upstream

    def flags(self, *names: str) -> list[str]:
        return [word for name in names for word in (f"--workers-{name}", str(self.folder / f"envoy.{name}"))]

    def shown_certificate(self, worker: int) -> bytes:
        """What a worker shows to a new connection."""
        context = ssl.create_default_context(cafile=str(self.folder / "envoy.ca"))
        context.load_cert_chain(self.folder / "envoy.cert", self.folder / "envoy.key")
        context.set_alpn_protocols(["h2"])
        with (
            socket.create_connection((self.workers.host, self.workers.port + worker), timeout=20) as plain,
            context.wrap_socket(plain, server_hostname=self.workers.host) as secure,
        ):
            return secure.getpeercert(binary_form=True) or b""


@pytest.fixture
def pair(
    tmp_path: Path,
    start_child: Callable[..., Child],
    start_envoy: Callable[..., RunningEnvoy],
    start_upstream: Callable[[str], Upstream],
) -> Pair:
    ca, a, at = trustme.CA(), start_upstream("a"), two_ports()
    ca.cert_pem.write_to_path(tmp_path / "envoy.ca")
    put(ca.issue_cert("envoy"), tmp_path / "envoy.cert", tmp_path / "envoy.key")
    put(ca.issue_cert(at.host), tmp_path / "tls.crt", tmp_path / "tls.key")
    policy, runtime = tmp_path / "policy.yaml", tmp_path / "run"
    policy.write_text(POLICY.format(a=a.url))
    place = f"{at.host}:{at.port}"
    tls = ["--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key")]
    start_serve(
        start_child, policy, runtime, 2, ["--listen", place, *tls, "--tls-client-ca", str(tmp_path / "envoy.ca")]
    )

    def start(flags: Sequence[str]) -> RunningEnvoy:
        return start_product_envoy(start_envoy, policy, runtime, 2, ["--workers-at", place, *flags])

    return Pair(tmp_path, ca, at, start, a)


def test_envoy_asks_both_workers_over_mutual_tls(pair: Pair) -> None:
    envoy = pair.start_envoy(pair.flags("ca", "cert", "key"))
    for _ in range(20):
        answer = ask(envoy, BODY, {"content-type": "application/json"})
        assert (answer.status, answer.headers["x-pointsman-model"]) == (200, "small")
    assert len(pair.a.seen) == 20
    assert envoy.counter("cluster.pointsman_workers.ssl.handshake") >= 2
    assert envoy.gauge("cluster.pointsman_workers.membership_healthy") == 2
    assert envoy.counter("failure_mode_allowed") == 0


def test_nobody_is_answered_whom_the_other_side_does_not_know(pair: Pair) -> None:
    elsewhere = [*pair.flags("ca", "cert", "key"), "--workers-name", "elsewhere.internal"]
    for flags in (pair.flags("ca"), [], elsewhere):
        envoy = pair.start_envoy(flags)
        assert ask(envoy, BODY, {"content-type": "application/json"}).status == 503
    assert pair.a.seen == []


def test_certificates_are_replaced_while_requests_go_on(pair: Pair) -> None:
    envoy = pair.start_envoy(pair.flags("ca", "cert", "key"))
    before = pair.shown_certificate(0)
    assert ask(envoy, BODY, {"content-type": "application/json"}).status == 200
    put(pair.ca.issue_cert(pair.workers.host), pair.folder / "tls.crt", pair.folder / "tls.key")
    for worker in range(2):
        shown = pair.shown_certificate(worker)
        assert shown != before
        assert ssl.DER_cert_to_PEM_cert(shown).encode().strip() == (pair.folder / "tls.crt").read_bytes().strip()
    for _ in range(20):
        assert ask(envoy, BODY, {"content-type": "application/json"}).status == 200
    # An Envoy that comes later is shown the new ones from the start.
    later = pair.start_envoy(pair.flags("ca", "cert", "key"))
    assert ask(later, BODY, {"content-type": "application/json"}).status == 200
    assert later.counter("failure_mode_allowed") == envoy.counter("failure_mode_allowed") == 0
