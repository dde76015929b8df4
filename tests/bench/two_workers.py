"""What a second worker is worth: requests a second through Envoy with one worker and with two; in one paired run.

    python tests/bench/two_workers.py [--blocks 10]

Every request brings a picture that was never seen, so that the work is the image encoder's; each worker runs one model
call at a time. Two Envoys stand before the same upstream, and blocks of requests go to the two in turn, over four
connections. Needs two free cores. Goal: two workers at least 1.8 times one.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from paired import CLUSTER, HERE, HOST, Client, free_port, wait_for_port  # noqa: E402

from models.rendering import FIRST_UNSEEN_SEED, render  # noqa: E402
from router.config.bootstrap import Address, BootstrapInputs, UpstreamCluster, render_bootstrap  # noqa: E402
from router.config.envoy_binary import find_envoy  # noqa: E402

CONNECTIONS = 4
BLOCK = 48
"""Requests of a block, over all connections."""

POLICY = """\
version: 1
upstreams: [{{model: m, modalities: [text, image], cluster: local, endpoint: "http://127.0.0.1:{port}"}}]
default_model: m
encoders: {{text: starter, vision: starter}}
limits: {{decision_ms: 10000}}
signals: {{image: {{xray: {{concepts: [a chest x-ray], threshold: 0.999}}}}}}
decisions: [{{name: d, when: {{image: xray}}, route: {{models: [m]}}}}]
"""


class Pictures:
    """Requests with a picture each, no two alike."""

    def __init__(self) -> None:
        self._rng = random.Random(4)
        self._image = render("passport", FIRST_UNSEEN_SEED + 5).convert("RGB")
        self._image.thumbnail((512, 512))

    def body(self) -> bytes:
        rng, image = self._rng, self._image
        for _ in range(3):
            image.putpixel((rng.randrange(image.width), rng.randrange(image.height)), (rng.randrange(256), 0, 0))
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        url = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
        content = [{"type": "image_url", "image_url": {"url": url}}]
        return json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode()


def block_seconds(port: int, bodies: list[bytes]) -> float:
    """How long the bodies take, shared out among the connections."""

    def ask(mine: list[bytes]) -> None:
        for body in mine:
            Client(port, body).ask()

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        started = time.perf_counter()
        list(pool.map(ask, [bodies[index::CONNECTIONS] for index in range(CONNECTIONS)]))
        return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=10)
    blocks = parser.parse_args().blocks
    processes: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        run = Path(folder)

        def start(name: str, *arguments: str) -> None:
            log = (run / f"{name}.log").open("wb")
            processes.append(subprocess.Popen(arguments, stdout=log, stderr=log, cwd=ROOT))

        try:
            upstream = free_port()
            start("upstream", sys.executable, str(HERE / "echo_upstream.py"), str(upstream))
            policy = run / "policy.yaml"
            policy.write_text(POLICY.format(port=upstream))
            sockets = [run / f"worker-{index}.sock" for index in range(3)]
            for index, socket in enumerate(sockets):
                worker = [sys.executable, "-m", "router.extproc.worker", "--threads", "1"]
                start(f"worker-{index}", *worker, "--config", str(policy), "--socket", str(socket))
            ports = {1: free_port(), 2: free_port()}
            for count, port in ports.items():
                path = run / f"envoy-{count}.yaml"
                inputs = BootstrapInputs(
                    listen=Address(HOST, port),
                    worker_sockets=tuple(map(str, sockets[:1] if count == 1 else sockets[1:])),
                    clusters=(UpstreamCluster(CLUSTER, f"http://{HOST}:{upstream}"),),
                    default_cluster=CLUSTER,
                    on_failure="closed",
                    body_bytes=32 << 20,
                    message_timeout=15,
                )
                path.write_text(render_bootstrap(inputs))
                envoy = [str(find_envoy()), "-c", str(path), "--use-dynamic-base-id", "--concurrency", "1"]
                start(f"envoy-{count}", *envoy, "--log-level", "error")
            end = time.monotonic() + 60
            while not all('"ready"' in (run / f"worker-{index}.log").read_text() for index in range(3)):
                if time.monotonic() > end:
                    raise RuntimeError((run / "worker-0.log").read_text())
                time.sleep(0.1)
            for port in ports.values():
                wait_for_port(port)
            time.sleep(2)
            print(json.dumps(measure(ports, blocks), indent=2))
        finally:
            for process in reversed(processes):
                process.terminate()
            for process in processes:
                process.wait()


def measure(ports: dict[int, int], blocks: int) -> dict[str, object]:
    pictures = Pictures()
    rows = []
    for _ in range(blocks + 1):
        seconds = {}
        for count in random.sample([1, 2], 2):
            bodies = [pictures.body() for _ in range(BLOCK)]
            seconds[count] = block_seconds(ports[count], bodies)
        rows.append((seconds[1], seconds[2]))
    rows = rows[1:]
    return {
        "blocks": blocks,
        "requests_a_second": {
            "one": round(BLOCK / median(one for one, _ in rows), 1),
            "two": round(BLOCK / median(two for _, two in rows), 1),
        },
        "two_to_one": round(median(one / two for one, two in rows), 3),
    }


if __name__ == "__main__":
    main()
