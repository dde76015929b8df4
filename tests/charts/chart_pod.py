"""A rendered pod as processes of this machine: its containers' own words, files, environment and order.

Paths of the pod lie in a folder, ports are free ones on loopback, commands are those of this environment; nothing else
is changed. Users, control groups and the network policy are not there.
"""

from __future__ import annotations

import http.client
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chart_render import ROOT, Document, Pod, one, pods
from e2e_harness import Child, accepts, free_address, wait_until

from router.config.bootstrap import Address
from router.config.envoy_binary import find_envoy

Start = Callable[..., Child]


@dataclass
class LocalPod:
    """A pod in a folder. `ports` gives for each port of the pod the one that stands for it."""

    pod: Pod
    found: list[Document]
    folder: Path
    start: Start
    ports: dict[int, int] = field(default_factory=dict)
    running: dict[str, Child] = field(default_factory=dict)

    def address(self, port: int) -> Address:
        return Address("127.0.0.1", self.ports[port])

    def lay_out(self) -> None:
        """The volumes, as the kubelet fills them; links as it makes them of ConfigMaps."""
        numbers = {port["containerPort"] for c in self.pod.containers for port in c.get("ports", [])} | {9901, 9902}
        for number in numbers:
            self.ports[number] = free_address().port
        for volume in self.pod.spec["volumes"]:
            place = self.folder / volume["name"]
            place.mkdir()
            sources = volume.get("projected", {}).get("sources", [volume])
            for source in sources:
                if "configMap" in source:
                    self.fill(place, one(self.found, "ConfigMap", source["configMap"]["name"])["data"])

    @staticmethod
    def fill(place: Path, data: dict[str, str]) -> None:
        """Files behind a link that is replaced as a whole when the ConfigMap changes."""
        version = Path(tempfile.mkdtemp(prefix="..", dir=place))
        for name, text in data.items():
            (version / name).write_text(text)
            if not (place / name).is_symlink():
                (place / name).symlink_to(Path("..data") / name)
        fresh = place / "..data_tmp"
        fresh.symlink_to(version.name)
        fresh.replace(place / "..data")

    def words(self, command: list[str]) -> list[str]:
        """The command on this machine."""
        # Of all containers: one may write down a path for another.
        mounts = [mount for each in self.pod.containers for mount in each.get("volumeMounts", [])]
        places = {mount["mountPath"]: str(self.folder / mount["name"]) for mount in mounts}
        return [self._here(word, places) for word in command]

    def _here(self, word: str, places: dict[str, str]) -> str:
        # At once: a place may have a path of the pod in it.
        paths = "|".join(re.escape(path) for path in sorted(places, key=len, reverse=True))
        word = re.sub(rf"(?<![\w/.-])({paths})(?=[/\s]|$)", lambda match: places[match[1]], word)
        for number, ours in self.ports.items():
            word = ours_for(word, number, ours)
        return word.replace("0.0.0.0:", "127.0.0.1:")

    def environment(self, container: Document) -> dict[str, str]:
        """As rendered; what the kubelet would know stands for itself."""
        known = {"metadata.name": "pm-0", "metadata.namespace": "llm"}
        found: dict[str, str] = {}
        for variable in container.get("env", []):
            value = variable.get("value")
            if value is None:
                value = known[variable["valueFrom"]["fieldRef"]["fieldPath"]]
            for name, earlier in found.items():
                value = value.replace(f"$({name})", earlier)
            found[variable["name"]] = value
        return found | {
            "PATH": f"{self.folder.parent / 'bin'}:{os.environ['PATH']}",
            "TMPDIR": str(self.folder / "tmp"),
        }

    def run(self) -> None:
        """Everything in its order, each after the one before has ended or is started as its probe says."""
        for container in self.pod.spec["initContainers"]:
            if container.get("restartPolicy") == "Always":
                self._start(container)
            else:
                self.run_to_end(container)
        for container in self.pod.spec["containers"]:
            self._start(container)

    def run_to_end(self, container: Document) -> None:
        words = self.words(container["command"])
        environment = {**os.environ, **self.environment(container)}
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, check=False, cwd=ROOT, timeout=180
        )
        assert done.returncode == 0, f"{container['name']}: {done.stdout}{done.stderr}"

    def _start(self, container: Document) -> None:
        child = self.start(self.words(container["command"]), self.environment(container))
        self.running[container["name"]] = child
        probe = container.get("startupProbe", container["readinessProbe"])
        wait_until(lambda: not child.alive or self.probed(container, probe), f"{container['name']} to be started", 180)
        assert child.alive, child.log.read_text()[-2000:]

    def probed(self, container: Document, probe: Document) -> bool:
        """What a kubelet would find, for probes that speak HTTP, gRPC or only connect."""
        if "grpc" in probe:
            return serving(self.address(probe["grpc"]["port"]), probe["grpc"]["service"])
        kind = "httpGet" if "httpGet" in probe else "tcpSocket"
        names = {port["name"]: port["containerPort"] for port in container["ports"]}
        address = self.address(names[probe[kind]["port"]])
        if kind == "tcpSocket":
            return accepts(address)
        return status_of(address, probe["httpGet"]["path"]) == 200

    def end(self) -> None:
        """As a kubelet does: preStop, SIGTERM, wait; native sidecars after the containers."""
        for container in (*self.pod.spec["containers"], *reversed(self.pod.spec["initContainers"])):
            child = self.running.get(container["name"])
            if child is None:
                continue
            self.pre_stop(container)
            child.ask_to_end()
            child.process.wait(self.pod.spec["terminationGracePeriodSeconds"])

    def pre_stop(self, container: Document) -> None:
        hook = container.get("lifecycle", {}).get("preStop", {})
        if "sleep" in hook:
            subprocess.run(["sleep", str(hook["sleep"]["seconds"])], check=True, timeout=60)
        elif "exec" in hook:
            subprocess.run(self.words(hook["exec"]["command"]), check=True, timeout=120)


def ours_for(word: str, number: int, ours: int) -> str:
    """A port as a word of its own or at the end of an address."""
    if word == str(number):
        return str(ours)
    parts = word.split(f":{number}")
    return parts[0] + "".join(f":{number}{p}" if p[:1].isdigit() else f":{ours}{p}" for p in parts[1:])


def status_of(address: Address, path: str) -> int:
    """0 when nobody answers."""
    connection = http.client.HTTPConnection(address.host, address.port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def serving(address: Address, service: str) -> bool:
    """Whether gRPC health says SERVING."""
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    with grpc.insecure_channel(f"{address.host}:{address.port}") as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service=service), timeout=5
            )
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


@contextmanager
def local_pods(found: list[Document], start: Start) -> Iterator[Callable[[], LocalPod]]:
    """`make()`: one more pod of the Deployment among these documents, laid out and not yet started."""
    [template] = [pod for pod in pods(found) if pod.owner["kind"] == "Deployment"]
    # Short: a unix socket's path has a limit.
    with tempfile.TemporaryDirectory(prefix="pm-", ignore_cleanup_errors=True) as home:
        commands = Path(home) / "bin"
        commands.mkdir()
        (commands / "envoy").symlink_to(find_envoy())
        for name, words in (("pointsman", ["-m", "router.cli.main"]), ("python", [])):
            script = commands / name
            script.write_text(
                f'#!/bin/sh\ncd {shlex.quote(str(ROOT))}\nexec {shlex.join([sys.executable, *words])} "$@"\n'
            )
            script.chmod(0o755)
        made: list[LocalPod] = []

        def make() -> LocalPod:
            folder = Path(home) / str(len(made))
            folder.mkdir()
            made.append(LocalPod(template, found, folder, start))
            made[-1].lay_out()
            return made[-1]

        try:
            yield make
        finally:
            # Before their folder goes.
            for child in (child for pod in made for child in reversed(pod.running.values())):
                child.hurry(20)


def data_of(found: list[Document], name: str) -> dict[str, Any]:
    """A ConfigMap's data."""
    return dict(one(found, "ConfigMap", name)["data"])
