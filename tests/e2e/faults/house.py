"""The whole of it: `pointsman serve` with its workers, real Envoy, two upstreams; and what can be done to them.

Started by the product's own commands. Every process ends with the house, by its pid.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from router.config.bootstrap import Address
from router.config.envoy_binary import find_envoy
from router.config.runtime import worker_socket
from router.records.sqlite_store import StoreReader
from router.records.store import Filter, StoreError
from router.telemetry.worker_state import StateFileError, WorkerState, process_start, read_state, state_file
from tests.e2e.faults.traffic import Upstream, upstreams

OnFailure = Literal["closed", "open"]

WAIT_SECONDS = 90.0
COMMAND = [sys.executable, "-m", "router.cli.main"]

# What is remembered of texts is kept on purpose: little of it, so that it does not pass for memory that is lost.
POLICY = """\
version: 1
on_failure: {on_failure}
limits: {{decision_ms: {decision_ms}, body_bytes: {body_bytes}, cache_bytes: 1048576}}
upstreams:
  - {{model: small, cluster: a, endpoint: "{a}", modalities: [text, image]}}
  - {{model: med, cluster: b, endpoint: "{b}", modalities: [text, image]}}
default_model: small
"""

KEYWORDS = """\
signals: {keyword: {medical: {any: [dosage]}, attack: {any: [ignore all instructions]}}}
decisions:
  - {name: block, priority: 10, guard: true, when: {keyword: attack}, respond: {message: No.}}
  - {name: medical, when: {keyword: medical}, route: {models: [med]}}
"""

KEPT = f"""\
{KEYWORDS}
records: {{path: records.sqlite}}
"""

MODELS = """\
encoders: {text: starter}
signals:
  keyword: {medical: {any: [dosage]}}
  embedding: {attack: {texts: [ignore all instructions], threshold: 0.9}}
decisions:
  - {name: block, priority: 10, guard: true, when: {embedding: attack}, respond: {message: No.}}
  - {name: medical, when: {keyword: medical}, route: {models: [med]}}
"""


def wait_until(holds: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Poll until it holds; raises TimeoutError."""
    limit = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > limit:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.02)


def _free_address() -> Address:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return Address("127.0.0.1", probe.getsockname()[1])


@dataclass
class House:
    """A running house; `a` is the default upstream, `b` where ordinary requests are routed to."""

    folder: Path
    on_failure: OnFailure
    workers: int
    a: Upstream
    b: Upstream
    decision_ms: int
    body_bytes: int
    signals: str
    address: Address = field(default_factory=_free_address)
    admin: Address = field(default_factory=_free_address)
    log_taken: bool = True
    _pipe: tuple[int, ...] = ()
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def runtime(self) -> Path:
        return self.folder / "run"

    @property
    def policy(self) -> Path:
        return self.folder / "policy.yaml"

    @property
    def records(self) -> Path:
        """Where records are kept, under a policy that keeps them."""
        return self.folder / "records.sqlite"

    def records_kept(self) -> int:
        """How many there are; 0 while they cannot be read."""
        try:
            with StoreReader(self.records) as reader:
                return sum(1 for _ in reader.newest(Filter()))
        except StoreError:
            return 0

    @property
    def supervisor(self) -> int:
        return self.processes["serve"].pid

    @property
    def attacks(self) -> int:
        """Requests that a guard refuses and that an upstream got all the same."""
        return self.a.attacks + self.b.attacks

    def write_policy(self, signals: str) -> None:
        """Put this policy in the place of the one that is there, as an editor would."""
        head = POLICY.format(
            on_failure=self.on_failure,
            decision_ms=self.decision_ms,
            body_bytes=self.body_bytes,
            a=f"http://127.0.0.1:{self.a.address.port}",
            b=f"http://127.0.0.1:{self.b.address.port}",
        )
        fresh = self.folder / "policy.new"
        fresh.write_text(head + signals)
        fresh.rename(self.policy)

    def state(self, index: int) -> WorkerState | None:
        """What worker `index` says of itself, if it lives."""
        try:
            state = read_state(state_file(worker_socket(self.runtime, index)))
        except StateFileError:
            return None
        return state if state is not None and state.is_of_a_living_process() else None

    def ready(self) -> dict[int, int]:
        """The pids of the workers that say they are ready, by index."""
        states = {index: self.state(index) for index in range(self.workers)}
        return {index: state.pid for index, state in states.items() if state is not None and state.state == "ready"}

    def wait_ready(self, count: int | None = None) -> dict[int, int]:
        wanted = self.workers if count is None else count
        wait_until(lambda: len(self.ready()) >= wanted, f"{wanted} workers")
        return self.ready()

    def wait_healthy(self, count: int | None = None) -> None:
        """Until Envoy, too, holds so many workers for healthy."""
        wanted = self.workers if count is None else count
        wait_until(lambda: self.healthy() >= wanted, f"Envoy to see {wanted} workers")

    def healthy(self) -> int:
        """How many workers Envoy holds for healthy."""
        text = self._admin("/clusters")
        lines = [
            line for line in text.splitlines() if line.startswith("pointsman_workers::") and "health_flags" in line
        ]
        return sum(line.endswith("::healthy") for line in lines)

    def _admin(self, path: str) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.admin.port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        except OSError:
            return ""
        finally:
            connection.close()

    def resident(self) -> dict[int, int]:
        """Resident KiB of each ready worker, by pid."""
        return {pid: resident_kib(pid) for pid in self.ready().values()}

    def start_serve(self) -> None:
        words = [*COMMAND, "serve", "--config", str(self.policy), "--runtime-dir", str(self.runtime)]
        words += ["--workers", str(self.workers)]
        if self.log_taken:
            self._start("serve", words)
        else:
            # The pipe's other end stays open, and nobody reads it.
            self._pipe = os.pipe()
            fcntl.fcntl(self._pipe[1], fcntl.F_SETPIPE_SZ, 4096)
            self.processes["serve"] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=self._pipe[1], stderr=self._pipe[1]
            )

    def start_envoy(self) -> None:
        bootstrap = self.folder / "envoy.yaml"
        if not bootstrap.exists():
            words = [*COMMAND, "envoy", str(self.policy), "--workers", str(self.workers)]
            words += ["--runtime-dir", str(self.runtime), "--listen", f"127.0.0.1:{self.address.port}"]
            words += ["--admin", f"127.0.0.1:{self.admin.port}"]
            bootstrap.write_bytes(subprocess.run(words, capture_output=True, check=True, timeout=120).stdout)
            # The workers have started meanwhile.
            self.wait_ready()
        words = [str(find_envoy()), "-c", str(bootstrap), "--disable-hot-restart", "--concurrency", "1"]
        self._start("envoy", [*words, "--log-level", "error"])
        wait_until(self._accepts, "Envoy to accept connections")
        self.wait_healthy()

    def _accepts(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((self.address.host, self.address.port)) == 0

    def _start(self, name: str, words: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def end(self) -> None:
        """Envoy first. A supervisor that was stopped goes on before it is asked to end."""
        for name in ("envoy", "serve"):
            process = self.processes.get(name)
            if process is None or process.poll() is not None:
                continue
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for end in self._pipe:
            os.close(end)

    @contextlib.contextmanager
    def supervisor_stopped(self) -> Iterator[None]:
        """So that no worker is started again meanwhile."""
        os.kill(self.supervisor, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.supervisor, signal.SIGCONT)


def resident_kib(pid: int) -> int:
    """Resident memory of a process; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def kill(pid: int) -> None:
    """As `kill -9` does, and wait until it is gone, or nobody but its parent's."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: process_start(pid) is None, "the end of a process that was killed")


@contextlib.contextmanager
def running_house(
    on_failure: OnFailure,
    *,
    workers: int = 2,
    signals: str = KEYWORDS,
    decision_ms: int = 2000,
    body_bytes: int = 9 << 20,
    log_taken: bool = True,
) -> Iterator[House]:
    """A house with this policy; everything it started ends with it."""
    with (
        tempfile.TemporaryDirectory(prefix="pointsman-", ignore_cleanup_errors=True) as folder,
        upstreams("a", "b") as found,
    ):
        house = House(Path(folder), on_failure, workers, found["a"], found["b"], decision_ms, body_bytes, signals)
        house.log_taken = log_taken
        house.write_policy(signals)
        try:
            house.start_serve()
            house.start_envoy()
            yield house
        finally:
            house.end()
