"""The pod of mode standalone, started as the chart says it, and what passes through."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator

import pytest
from chart_pod import LocalPod, local_pods, status_of
from chart_render import ROOT, Document, documents, pods, render_text
from e2e_harness import Child, wait_until

from examples.demo.rows import send_showcase
from examples.demo.stack import POLICY, Stack
from examples.demo.upstreams import StubServer, serve_stub
from router.config.load import load_policy

pytestmark = pytest.mark.slow


@pytest.fixture
def stubs() -> Iterator[dict[str, StubServer]]:
    """The demo's upstreams, by cluster, on free ports."""
    servers = {u.cluster: serve_stub(u.cluster, 0) for u in load_policy(POLICY).policy.upstreams}
    yield servers
    for server in servers.values():
        server.shutdown()
        server.server_close()


@pytest.fixture
def demo(stubs: dict[str, StubServer]) -> str:
    """The demo's policy with the stubs' ports."""
    text = POLICY.read_text()
    for upstream in load_policy(POLICY).policy.upstreams:
        port = str(upstream.endpoint).rpartition(":")[2]
        text = re.sub(rf":{port}\b", f":{stubs[upstream.cluster].server_address[1]}", text)
    return text


@pytest.fixture
def found(demo: str) -> list[Document]:
    return documents(render_text("--set-json", f"policy.text={json.dumps(demo)}", "--set", "drain.endpointSeconds=1"))


def stack_of(pod: LocalPod) -> Stack:
    serve = pod.running["pointsman"]
    address = pod.address(10000)
    url = f"http://{address.host}:{address.port}"
    return Stack(url, pod.folder / "policy" / "policy.yaml", serve.log, serve.pid, pod.folder / "run", True)


def test_the_showcase_passes_through_and_the_pod_ends_in_order(
    found: list[Document], start_process: Callable[..., Child]
) -> None:
    with local_pods(found, start_process) as make:
        pod = make()
        pod.run()
        rows = list(send_showcase(stack_of(pod)))
        [test] = [p for p in pods(found) if p.owner["kind"] == "Pod"]
        check_decision(pod, test.container("decision"))
        assert status_of(pod.address(9903), "/livez") == 200
        assert status_of(pod.address(9903), "/metrics") == 200
        pod.end()
        assert [child.process.returncode for child in pod.running.values()] == [0, 0]
    assert [row.misses for row in rows] == [()] * 9


def check_decision(pod: LocalPod, container: Document) -> None:
    """`helm test`, as its pod does it."""
    python, _, url, body, decision = container["command"]
    assert (python, url, decision) == ("python", "http://pm-pointsman.llm.svc:80", "")
    script = ROOT / "charts" / "pointsman" / "files" / "smoke.py"
    address = pod.address(10000)
    command = [str(pod.folder.parent / "bin" / "python"), str(script), f"http://{address.host}:{address.port}", body]
    assert subprocess.run([*command, "default"], check=False, timeout=60).returncode == 0
    assert subprocess.run([*command, "other"], check=False, timeout=60).returncode == 1


def test_a_changed_config_map_is_taken_up_and_a_bad_one_neither_there_nor_at_a_start(
    found: list[Document], demo: str, start_process: Callable[..., Child]
) -> None:
    with local_pods(found, start_process) as make:
        pod = make()
        pod.run()
        serve = pod.running["pointsman"]
        pod.fill(pod.folder / "policy", {"policy.yaml": demo.replace("passport number", "travel document")})
        wait_until(lambda: serve.log.read_bytes().count(b'"event":"policy taken over"') == 2, "the new policy", 60)
        pod.fill(pod.folder / "policy", {"policy.yaml": demo.replace("version: 1", "version: 1\ndecision: []")})
        wait_until(
            lambda: serve.log.read_bytes().count(b'"event":"policy refused, the former one goes on"') >= 2,
            "the refusal",
            60,
        )
        rows = list(send_showcase(stack_of(pod)))
        with pytest.raises(AssertionError, match="decision"):
            pod.run_to_end(pod.pod.container("check"))
    assert [row.misses for row in rows] == [()] * 9
