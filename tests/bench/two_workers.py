"""What a second worker is worth: requests a second through Envoy with one worker and with two; in one paired run.

    python tests/bench/two_workers.py [--blocks 10] [--pictures-alone]

Every request brings a picture and a page of text that were never seen, under signals that read both, so that the work
is the encoders' and little of it the moving of bytes (`--pictures-alone` leaves the text and its signals out); each
worker runs one model call at a time. Two Envoys stand before the same
upstream, and blocks of requests go to the two in turn, four at a time. Bodies are made, and connections opened, before
a block's clock starts; sending and reading is the client's work, and has to share the cores with Envoy and the workers.
How much of the cores each of them took is told, so that it can be seen what was left for a second worker. Needs two
free cores. Goal: two workers at least 1.8 times one.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
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

from paired import CLUSTER, HERE, HOST, Client, cpu_seconds, free_port, wait_for_port  # noqa: E402

from models.rendering import FIRST_UNSEEN_SEED, render  # noqa: E402
from router.config.bootstrap import Address, BootstrapInputs, UpstreamCluster, render_bootstrap  # noqa: E402
from router.config.envoy_binary import find_envoy  # noqa: E402
from router.extproc.supervisor import ALLOCATOR  # noqa: E402

CONNECTIONS = 4
BLOCK = 48
"""Requests of a block, over all connections."""

POLICY = """\
version: 1
upstreams: [{{model: m, modalities: [text, image], cluster: local, endpoint: "http://127.0.0.1:{port}"}}]
default_model: m
encoders: {{text: starter, vision: starter}}
limits: {{decision_ms: 10000}}
signals:
  image: {{xray: {{concepts: [a chest x-ray], threshold: 0.999}}}}
{text}
decisions:
  - {{name: d, when: {{image: xray}}, route: {{models: [m]}}}}
{decisions}
"""
OF_TEXT = {
    "text": "  domain: {field: {over: latest}}\n  jailbreak: {attack: {threshold: 0.999}}",
    "decisions": """\
  - {name: law, when: {all: [{domain: field, label: law}, {jailbreak: attack}]}, route: {models: [m]}}
  - {name: attack, when: {jailbreak: attack}, route: {models: [m]}}""",
}
WORDS = ("signal", "railway", "window", "patient", "summer", "contract", "engine", "river", "letter", "morning")
WORDS_OF_A_PAGE = 180


class Pictures:
    """Requests with a picture each and so many `words` about it, no two alike."""

    def __init__(self, words: int) -> None:
        self._words = words
        self._random = random.Random(1)
        self._number = 0
        self._image = render("passport", FIRST_UNSEEN_SEED + 5).convert("RGB")
        self._image.thumbnail((512, 512))

    def body(self) -> bytes:
        self._number += 1
        buffer = io.BytesIO()
        # Other bytes each time, whatever the codec makes of a pixel.
        self._image.save(buffer, "JPEG", quality=90, comment=f"picture {self._number}")
        url = "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
        text = " ".join((f"Picture {self._number}.", *self._random.choices(WORDS, k=self._words)))
        content = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
        return json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode()


def block_seconds(port: int, bodies: list[bytes]) -> float:
    """How long the bodies take, shared out among the connections."""

    def ask(mine: list[Client]) -> None:
        for client in mine:
            client.ask()

    clients = [Client(port, body) for body in bodies]
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        started = time.perf_counter()
        list(pool.map(ask, [clients[index::CONNECTIONS] for index in range(CONNECTIONS)]))
        return time.perf_counter() - started


def spent_by(pids: dict[str, int]) -> dict[str, float]:
    """CPU seconds up to now."""
    return {
        "workers": sum(cpu_seconds(pid) for name, pid in pids.items() if name.startswith("worker")),
        "envoys": sum(cpu_seconds(pid) for name, pid in pids.items() if name.startswith("envoy")),
        "upstream": cpu_seconds(pids["upstream"]),
        "client": time.process_time(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--pictures-alone", action="store_true", help="no text, and no signals that read some")
    options = parser.parse_args()
    asked = dict.fromkeys(OF_TEXT, "") if options.pictures_alone else OF_TEXT
    pictures = Pictures(0 if options.pictures_alone else WORDS_OF_A_PAGE)
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        run = Path(folder)

        def start(name: str, *arguments: str) -> None:
            log = (run / f"{name}.log").open("wb")
            environment = {**os.environ, **ALLOCATOR}
            processes[name] = subprocess.Popen(arguments, stdout=log, stderr=log, cwd=ROOT, env=environment)

        try:
            upstream = free_port()
            start("upstream", sys.executable, str(HERE / "echo_upstream.py"), str(upstream))
            policy = run / "policy.yaml"
            policy.write_text(POLICY.format(port=upstream, **asked))
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
            pids = {name: process.pid for name, process in processes.items()}
            print(json.dumps(measure(ports, options.blocks, pids, pictures), indent=2))
        finally:
            for process in reversed(processes.values()):
                process.terminate()
            for process in processes.values():
                process.wait()


def measure(ports: dict[int, int], blocks: int, pids: dict[str, int], pictures: Pictures) -> dict[str, object]:
    rows = []
    spent = {count: dict.fromkeys(("workers", "envoys", "upstream", "client"), 0.0) for count in ports}
    for number in range(blocks + 1):
        seconds = {}
        for count in random.sample([1, 2], 2):
            bodies = [pictures.body() for _ in range(BLOCK)]
            before = spent_by(pids)
            seconds[count] = block_seconds(ports[count], bodies)
            if number:
                spent[count] = {name: spent[count][name] + now - before[name] for name, now in spent_by(pids).items()}
        rows.append((seconds[1], seconds[2]))
    rows = rows[1:]
    return {
        "blocks": blocks,
        "body_bytes": len(pictures.body()),
        "cores_taken": {
            count: {
                name: round(all_of / sum(row[count - 1] for row in rows), 3) for name, all_of in spent[count].items()
            }
            for count in ports
        },
        "requests_a_second": {
            "one": round(BLOCK / median(one for one, _ in rows), 1),
            "two": round(BLOCK / median(two for _, two in rows), 1),
        },
        "two_to_one": round(median(one / two for one, two in rows), 3),
    }


if __name__ == "__main__":
    main()
