"""Real Envoy, recording upstreams and small worker processes, all on loopback and all ended by their pid."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from e2e_harness import Child, Recorder, RunningEnvoy, Upstream, UpstreamServer, accepts, free_address, wait_until
from e2e_place import BODY_BYTES, Bootstrap, Place, add_second_processor

from router.config.bootstrap import Address, BootstrapInputs, UpstreamCluster, render_bootstrap
from router.config.envoy_binary import find_envoy


@pytest.fixture
def start_child(tmp_path: Path) -> Iterator[Callable[..., Child]]:
    """`start_child(argv, env={...})`; children still alive at teardown are ended.

    What they wrote is printed then, so that pytest shows it beside a failure.
    """
    children: list[Child] = []

    def start(argv: Sequence[str | Path], env: dict[str, str] | None = None) -> Child:
        log = tmp_path / f"child-{len(children)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [str(word) for word in argv],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
            )
        children.append(Child(process, log))
        return children[-1]

    yield start
    for child in children:
        child.ask_to_end()
    for child in children:
        child.hurry()
        print(f"--- {child.words} (pid {child.pid}, ended with {child.process.returncode})")
        print(child.log.read_text(errors="replace")[-8000:])


@pytest.fixture
def start_envoy(tmp_path: Path, start_child: Callable[..., Child]) -> Callable[..., RunningEnvoy]:
    """`start_envoy(bootstrap, address, admin=None)`: Envoy with this bootstrap (YAML), once it accepts connections.

    It accepts none before the first round of health checks is over. What it logs of requests is written at once, where
    Envoy by itself waits ten seconds.
    """

    def start(bootstrap: str, address: Address, admin: Address | None = None) -> RunningEnvoy:
        path = tmp_path / f"bootstrap-{address.port}.yaml"
        path.write_text(bootstrap)
        words = ["--disable-hot-restart", "--concurrency", "1", "--log-level", "warning"]
        child = start_child([find_envoy(), "-c", path, *words, "--file-flush-interval-msec", "50"])
        wait_until(lambda: not child.alive or accepts(address), "Envoy to accept connections")
        if not child.alive:
            pytest.fail(f"Envoy ended with {child.process.returncode}: {child.log.read_text()[-4000:]}")
        return RunningEnvoy(child, address, admin)

    return start


@pytest.fixture
def start_upstream() -> Iterator[Callable[[str], Upstream]]:
    """`start_upstream(name)`: a recording upstream on a free port."""
    servers: list[tuple[UpstreamServer, threading.Thread]] = []

    def start(name: str) -> Upstream:
        server = UpstreamServer(("127.0.0.1", 0), Recorder)
        server.upstream = Upstream(name, Address("127.0.0.1", server.server_address[1]))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        servers.append((server, thread))
        return server.upstream

    yield start
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def start_fake_worker(start_child: Callable[..., Child]) -> Callable[..., Child]:
    """`start_fake_worker(socket, behaviour, notice=0)`: fake_worker.py in a process of its own, which says `ready`."""

    def start(path: Path, behaviour: str, notice: float = 0.0, body_bytes: int = 1 << 20) -> Child:
        script = Path(__file__).with_name("fake_worker.py")
        return start_child([sys.executable, script, path, behaviour, str(notice), str(body_bytes)])

    return start


@pytest.fixture
def build_place(
    tmp_path: Path,
    start_envoy: Callable[..., RunningEnvoy],
    start_upstream: Callable[[str], Upstream],
    start_fake_worker: Callable[..., Child],
) -> Callable[..., Place]:
    """`build_place(change)`; `change` alters the bootstrap that is rendered. Of two `workers` the second is asked by a
    filter of its own, after the first.
    """

    def build(
        change: Callable[[Bootstrap], None] = lambda bootstrap: None,
        *,
        upstream: str = "",
        read_responses: bool = False,
        workers: int = 1,
        body_bytes: int = BODY_BYTES,
        strip_from_clients: tuple[str, ...] = (),
    ) -> Place:
        b = start_upstream("b")
        sockets = [tmp_path / "run" / f"w{index}.sock" for index in range(workers)]
        children = [start_fake_worker(path, "closed", 0.0, body_bytes) for path in sockets]
        wait_until(lambda: all(child.said("ready") or not child.alive for child in children), "the workers")
        inputs = BootstrapInputs(
            listen=free_address(),
            admin=free_address(),
            worker_sockets=(str(sockets[0]),),
            clusters=(UpstreamCluster("b", upstream or b.url),),
            default_cluster="b",
            on_failure="closed",
            body_bytes=body_bytes,
            message_timeout=2.0,
            read_responses=read_responses,
            strip_from_clients=strip_from_clients,
        )
        bootstrap = yaml.safe_load(render_bootstrap(inputs))
        if workers == 2:
            add_second_processor(bootstrap, sockets[1])
        change(bootstrap)
        return Place(start_envoy(yaml.safe_dump(bootstrap), inputs.listen, inputs.admin), children, b)

    return build
