"""Opens sessions the one way that suits a sidecar: one thread each, no spinning, named providers.

Everything runs on ONNX Runtime but bfloat16, which OpenVINO runs. Measured on two cores: more threads inside a session
make two models at once slower, and spinning doubles the CPU spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import onnxruntime as ort

from router.inference.openvino_session import PROVIDER, OpenVinoSession, open_openvino
from router.inference.remote.session import RemoteSession
from router.packs.files import PackError
from router.packs.parts import Precision

PROVIDERS = ("CPUExecutionProvider",)
_ERRORS_ONLY = 3

Session: TypeAlias = "ort.InferenceSession | OpenVinoSession"
SessionAnywhere: TypeAlias = "Session | RemoteSession"


def providers_of(precision: Precision) -> tuple[str, ...]:
    """What a graph of this precision has to run on."""
    return (PROVIDER,) if precision == "bf16" else PROVIDERS


def open_session(graph: Path, precision: Precision = "fp32") -> Session:
    """A session on the CPU. Weights outside the graph are mapped, hence shared by all workers of a machine.

    Raises PackError when the graph cannot be loaded or another provider came up than the one asked for.
    """
    if precision == "bf16":
        session: Session = open_openvino(graph)
        require_providers(session, graph, providers_of(precision))
        return session
    return _open(str(graph), graph)


def open_carried(data: bytes, graph: Path) -> ort.InferenceSession:
    """A session on the CPU of a graph's bytes, which carry all its weights; `graph` is where they were read.

    Raises PackError as `open_session` does, and where weights lie outside.
    """
    return _open(data, graph)


def _open(model: str | bytes, graph: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.log_severity_level = _ERRORS_ONLY
    try:
        session = ort.InferenceSession(model, options, providers=list(PROVIDERS))
    except Exception as error:  # ONNX Runtime raises a dozen unrelated types
        raise PackError(
            f"{graph} cannot be loaded by ONNX Runtime {ort.__version__}: {type(error).__name__}"
        ) from error
    require_providers(session, graph)
    return session


def share_arena() -> None:
    """Let all sessions that are opened from here on draw from one arena.

    Call it before the first one: under load on two threads, a text and an image tower keep 40 MB less than with an
    arena each.
    """
    memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(memory, ort.OrtArenaCfg({"max_mem": 0}))


def require_providers(session: Session, graph: Path, asked: tuple[str, ...] = PROVIDERS) -> None:
    """Raises PackError unless the session runs on exactly the providers asked for; some fall back in silence."""
    found = tuple(session.get_providers())
    if found != asked:
        raise PackError(f"{graph} runs on {', '.join(found)}, not on {', '.join(asked)}")


def require_io(session: Session, graph: Path, inputs: Sequence[str], *outputs: str) -> None:
    """Raises PackError unless the graph takes and gives tensors of these names."""
    takes = sorted(each.name for each in session.get_inputs())
    gives = [each.name for each in session.get_outputs()]
    if takes != sorted(inputs) or not set(outputs) <= set(gives):
        said = ", ".join(map(repr, outputs))
        raise PackError(f"{graph} takes {takes} and gives {gives}; the manifest says {sorted(inputs)} and {said}")
