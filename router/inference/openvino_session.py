"""Runs a graph in bfloat16 through OpenVINO, on processors that have it: about twice as fast as float32 for an image.

It answers the calls of an ONNX Runtime session that towers make. OpenVINO is an extra and is imported only here, when a
pack asks for it.
"""

from __future__ import annotations

import importlib
import os
import queue
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from router.packs.files import PackError

PROVIDER = "OpenVINO CPU bfloat16"


@dataclass(frozen=True, slots=True)
class Port:
    """An input or an output, by name."""

    name: str


class OpenVinoSession:
    """One compiled graph; `run` may be called in several threads at once, each of which gets a stream of its own."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def run(self, outputs: Sequence[str], feed: Mapping[str, NDArray[Any]]) -> list[NDArray[np.float32]]:
        """The named outputs, float32."""
        try:
            request = self._idle.get_nowait()
        except queue.Empty:
            request = self._compiled.create_infer_request()
        found = request.infer(dict(feed))
        # The arrays belong to the request, which another thread may take next.
        rows = [np.array(found[name], dtype=np.float32) for name in outputs]
        self._idle.put(request)
        return rows

    def get_inputs(self) -> list[Port]:
        """Inputs by their names in the graph."""
        return _ports(self._compiled.inputs)

    def get_outputs(self) -> list[Port]:
        """Outputs by their names in the graph."""
        return _ports(self._compiled.outputs)

    def get_providers(self) -> list[str]:
        """What it really runs on, and in which precision."""
        devices = ",".join(self._compiled.get_property("EXECUTION_DEVICES"))
        precision = self._compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        return [f"OpenVINO {devices} {_PRECISIONS.get(precision, precision)}"]


_PRECISIONS = {"bf16": "bfloat16"}


def open_openvino(graph: Path) -> OpenVinoSession:
    """A session on the CPU, one thread a stream; raises PackError where OpenVINO or bfloat16 is not to be had."""
    try:
        openvino: Any = importlib.import_module("openvino")
    except ImportError as error:
        raise PackError(f'{graph} runs in bfloat16, which needs OpenVINO: pip install "pointsman[openvino]"') from error
    core = openvino.Core()
    if "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        raise PackError(
            f"{graph} runs in bfloat16, which this processor does not have (avx512_bf16 or amx_bf16); export the "
            "checkpoint as fp32 or int8 for it"
        )
    streams = len(os.sched_getaffinity(0))
    settings = {
        "INFERENCE_PRECISION_HINT": "bf16",
        "INFERENCE_NUM_THREADS": streams,
        "NUM_STREAMS": streams,
        "ENABLE_CPU_PINNING": False,
    }
    try:
        compiled = core.compile_model(str(graph), "CPU", settings)
    except Exception as error:  # OpenVINO raises bare RuntimeError, and others
        raise PackError(
            f"{graph} cannot be loaded by OpenVINO {openvino.__version__}: {type(error).__name__}"
        ) from error
    return OpenVinoSession(compiled)


def _ports(found: Sequence[Any]) -> list[Port]:
    """OpenVINO adds names of its own; the graph's is the one without a slash."""
    names = [sorted(port.get_names(), key=lambda name: ("/" in name, name)) for port in found]
    return [Port(each[0]) for each in names if each]
