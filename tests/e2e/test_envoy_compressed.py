"""Compressed bodies through real Envoy and real workers: what the upstream gets describes itself truly."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import brotli
import pytest
from e2e_harness import Child, RunningEnvoy, Upstream, ask, free_address, wait_until

from router.config.bootstrap import BootstrapInputs, UpstreamCluster, render_bootstrap
from router.config.load import load_policy
from router.telemetry.worker_state import read_state, state_file

pytestmark = pytest.mark.slow

LENGTH = 300_000
BODY = json.dumps({"model": "auto", "messages": [{"role": "user", "content": "a" * LENGTH}]}).encode()
REWRITTEN = BODY.replace(b'"auto"', b'"Org/small"')
STACKED = brotli.compress(gzip.compress(BODY, mtime=0))


@dataclass(frozen=True)
class Stand:
    """Envoy, one worker and the upstream behind them."""

    envoy: RunningEnvoy
    upstream: Upstream


def worker_is_ready(socket: Path) -> bool:
    state = read_state(state_file(socket))
    return state is not None and state.state == "ready"


@pytest.fixture
def start(
    tmp_path: Path,
    start_envoy: Callable[..., RunningEnvoy],
    start_upstream: Callable[[str], Upstream],
    start_child: Callable[..., Child],
) -> Callable[[str], Stand]:
    """`start(lines)`: with these lines of the policy."""

    def build(lines: str) -> Stand:
        upstream = start_upstream("a")
        config = tmp_path / "policy.yaml"
        config.write_text(
            "version: 1\n"
            f'upstreams: [{{model: small, cluster: a, endpoint: "{upstream.url}", rewrite_model: Org/small}}]\n'
            f"default_model: small\n{lines}\n"
        )
        socket = tmp_path / "run" / "w0.sock"
        worker = start_child([sys.executable, "-m", "router.extproc.worker", "--config", config, "--socket", socket])
        wait_until(lambda: not worker.alive or worker_is_ready(socket), "the worker")
        inputs = BootstrapInputs(
            listen=free_address(),
            worker_sockets=(str(socket),),
            clusters=(UpstreamCluster("a", upstream.url),),
            default_cluster="a",
            on_failure="closed",
            body_bytes=load_policy(config).limits.wire_bytes,
            message_timeout=5.0,
        )
        return Stand(start_envoy(render_bootstrap(inputs), inputs.listen), upstream)

    return build


def test_a_rewritten_body_arrives_decoded_with_its_exact_length_and_no_coding(start: Callable[[str], Stand]) -> None:
    # The packed body is within a bound that the decoded one is not: Envoy's buffer must hold both.
    stand = start("limits: {body_bytes: 10000, decoded_bytes: 400000}")
    answer = ask(stand.envoy, STACKED, {"content-type": "application/json", "content-encoding": "gzip, br"})
    assert answer.status == 200
    (seen,) = stand.upstream.seen
    assert seen.body == REWRITTEN
    assert seen.header("content-length") == str(len(REWRITTEN))
    assert seen.header("content-encoding") is None
    assert seen.header("transfer-encoding") is None
    refused = ask(stand.envoy, BODY[:20_000], {"content-type": "application/json"})
    assert (refused.status, refused.json["error"]["code"]) == (413, "request_too_large")
    bomb = ask(stand.envoy, brotli.compress(bytes(600_000)), {"content-encoding": "br"})
    assert (bomb.status, bomb.json["error"]["code"]) == (413, "request_too_large")
    assert len(stand.upstream.seen) == 1


def test_or_packed_again_under_the_same_coding(start: Callable[[str], Stand]) -> None:
    stand = start("encodings: {rewrite: reencode}")
    assert ask(stand.envoy, STACKED, {"content-encoding": "gzip, br"}).status == 200
    (seen,) = stand.upstream.seen
    assert seen.header("content-encoding") == "gzip, br"
    assert seen.header("content-length") == str(len(seen.body))
    assert gzip.decompress(brotli.decompress(seen.body)) == REWRITTEN


def test_a_body_that_is_not_changed_arrives_as_it_was_sent(start: Callable[[str], Stand]) -> None:
    stand = start("")
    sent = gzip.compress(REWRITTEN)
    assert ask(stand.envoy, sent, {"content-encoding": "gzip"}).status == 200
    (seen,) = stand.upstream.seen
    assert (seen.body, seen.header("content-encoding")) == (sent, "gzip")
    broken = ask(stand.envoy, sent[:-1], {"content-encoding": "gzip"})
    assert (broken.status, broken.json["error"]["code"]) == (400, "invalid_content_encoding")
    unknown = ask(stand.envoy, sent, {"content-encoding": "compress"})
    assert (unknown.status, unknown.json["error"]["code"]) == (415, "unsupported_content_encoding")
    assert len(stand.upstream.seen) == 1
