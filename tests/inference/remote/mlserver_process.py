"""MLServer as a process, in its own environment: one model a folder, on free ports of the loopback."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from router.inference.remote.channel import SERVICE
from router.proto import open_inference_pb2 as pb
from tests.system_packages import mlserver_python


@dataclass(frozen=True)
class Model:
    name: str
    graph: Path
    inputs: tuple[dict[str, Any], ...] = ()
    outputs: tuple[dict[str, Any], ...] = ()

    def settings(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "implementation": "onnx_for_mlserver.OnnxModel",
            "parameters": {"uri": str(self.graph)},
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
        }


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@contextlib.contextmanager
def mlserver(folder: Path, *models: Model, settings: Mapping[str, Any] | None = None) -> Iterator[str]:
    """MLServer with these models, for as long as it is entered: its address, once they are all ready."""
    python = mlserver_python()
    grpc_port = free_port()
    document = {
        "host": "127.0.0.1",
        "grpc_port": grpc_port,
        "http_port": free_port(),
        "metrics_endpoint": None,
        "parallel_workers": 0,
        **(settings or {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(document))
    for model in models:
        (folder / model.name).mkdir()
        (folder / model.name / "model-settings.json").write_text(json.dumps(model.settings()))
    log = folder / "mlserver.log"
    keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [python, "-m", "mlserver.cli.main", "start", folder],
            env={**keep, "PYTHONPATH": str(Path(__file__).parent), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        address = f"127.0.0.1:{grpc_port}"
        for model in models:
            _await_ready(address, model.name, process, log)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


def _await_ready(address: str, model: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 90
    request = pb.ModelReadyRequest(name=model).SerializeToString()
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(f"/{SERVICE}/ModelReady")
        while process.poll() is None and time.monotonic() < deadline:
            try:
                if pb.ModelReadyResponse.FromString(call(request, timeout=5, wait_for_ready=True)).ready:
                    return
            except grpc.RpcError:
                pass
            time.sleep(0.2)
    raise AssertionError(f"MLServer is not ready: {log.read_text()[-4000:]}")
