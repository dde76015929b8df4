"""Tensors as the Open Inference Protocol writes them, and embeddings read from an answer that may be anything.

It knows nothing of channels and retries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from router.inference.remote.errors import RemoteAnswerError, RemoteSetupError
from router.inference.remote.server import RemoteServer
from router.packs.manifest import TextTower, VisionTower
from router.proto import open_inference_pb2 as pb

Floats = NDArray[np.float32]
Feed = Mapping[str, NDArray[Any]]

_TYPES: Final[dict[str, np.dtype[Any]]] = {
    "INT64": np.dtype("<i8"),
    "INT32": np.dtype("<i4"),
    "FP64": np.dtype("<f8"),
    "FP32": np.dtype("<f4"),
    "FP16": np.dtype("<f2"),
}
_NAMES: Final = {kind: name for name, kind in _TYPES.items()}
_INTEGERS: Final = ("INT64", "INT32")
_FLOATS: Final = ("FP32", "FP16", "FP64")
"""What rows may come as; the parity gate says whether half the bits are enough."""


class Wording:
    """How one server calls a tower's tensors, and as which types it takes them."""

    def __init__(self, tower: TextTower | VisionTower, inputs: tuple[str, ...], server: RemoteServer) -> None:
        """`inputs` are the graph's names; raises RemoteSetupError where the policy renames others."""
        given = dict(server.inputs)
        if strange := sorted(given.keys() - set(inputs)):
            raise RemoteSetupError(f"inputs renames {strange[0]!r}; the pack's graph takes {', '.join(inputs)}")
        self.dimension = tower.dimension
        self._server = server
        self._inputs = {name: given.get(name, name) for name in inputs}
        self._output = server.output or tower.output
        self._types: dict[str, str] = {}

    def agree(self, told: pb.ModelMetadataResponse) -> None:
        """Take types from what the server says of its model; raises RemoteSetupError where it is another one.

        A server that says nothing of tensors is taken at our word: the golden vectors will tell.
        """
        if not told.inputs:
            return
        takes, gives = {each.name: each for each in told.inputs}, {each.name: each for each in told.outputs}
        wants = sorted(self._inputs.values())
        if sorted(takes) != wants:
            raise self._other(f"takes {_listed(takes)} where the pack gives {_listed(wants)}; see `inputs`")
        if gives and self._output not in gives:
            raise self._other(f"gives {_listed(gives)} and no {self._output!r}; see `output`")
        for name, each in takes.items():
            if each.datatype not in _TYPES:
                raise self._other(f"takes {name} as {_word(each.datatype)}; what can be sent is {', '.join(_TYPES)}")
        if gives:
            output = gives[self._output]
            last = output.shape[-1] if output.shape else -1
            if output.datatype not in _FLOATS or last not in (-1, self.dimension):
                raise self._other(
                    f"gives {self._output} as {_word(output.datatype)} {list(output.shape)}, "
                    f"not as rows of {self.dimension} floats"
                )
        self._types = {name: each.datatype for name, each in takes.items()}

    def request(self, feed: Feed) -> bytes:
        """The call for these tensors, whose first axis is the rows'."""
        call = pb.ModelInferRequest(model_name=self._server.model, model_version=self._server.version)
        for name, tensor in feed.items():
            called = self._inputs[name]
            kind = self._types.get(called) or _NAMES[tensor.dtype.newbyteorder("<")]
            call.inputs.add(name=called, datatype=kind, shape=tensor.shape)
            call.raw_input_contents.append(np.ascontiguousarray(tensor, dtype=_TYPES[kind]).tobytes())
        call.outputs.add(name=self._output)
        return call.SerializeToString()

    def rows(self, answer: pb.ModelInferResponse, count: int) -> Floats:
        """Unit vectors (count, d), read-only; raises RemoteAnswerError for an answer that has no such."""
        index = next((i for i, each in enumerate(answer.outputs) if each.name == self._output), None)
        if index is None:
            raise self._nonsense(f"no tensor {self._output!r}")
        output = answer.outputs[index]
        shape = tuple(output.shape)
        if shape != (count, self.dimension):
            raise self._nonsense(f"a tensor {list(shape[:8])} where {[count, self.dimension]} was asked for")
        if output.datatype not in _FLOATS:
            raise self._nonsense(f"{_word(output.datatype)} in place of floats")
        values = self._values(answer, index, _TYPES[output.datatype], math.prod(shape))
        with np.errstate(all="ignore"):
            rows = values.reshape(shape).astype(np.float32)
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            # Written so that a NaN is a miss.
            if not (np.isfinite(lengths).all() and (lengths > 0).all()):
                raise self._nonsense("numbers that are no vectors: NaN, infinite, or nothing but zeros")
            rows /= lengths
        rows.flags.writeable = False
        return rows

    def _values(self, answer: pb.ModelInferResponse, index: int, kind: np.dtype[Any], size: int) -> NDArray[Any]:
        if index < len(answer.raw_output_contents):
            raw = answer.raw_output_contents[index]
            if len(raw) != size * kind.itemsize:
                raise self._nonsense(f"{len(raw)} bytes where its shape needs {size * kind.itemsize}")
            return np.frombuffer(raw, dtype=kind)
        contents = answer.outputs[index].contents
        listed = contents.fp32_contents or contents.fp64_contents
        if len(listed) != size:
            raise self._nonsense(f"{len(listed)} numbers where its shape needs {size}")
        return np.array(listed, dtype=np.float64)

    def _nonsense(self, what: str) -> RemoteAnswerError:
        return RemoteAnswerError(f"{self._server.named} answers with {what}")

    def _other(self, what: str) -> RemoteSetupError:
        return RemoteSetupError(f"{self._server.named} {what}")


def _word(text: str) -> str:
    """A server's word for a type, short and printable."""
    return repr(text[:16])


def _listed(names: Mapping[str, Any] | list[str]) -> str:
    return ", ".join(repr(each[:64]) for each in sorted(names)[:8]) or "nothing"
