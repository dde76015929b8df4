"""Traces a module into an ONNX graph, and quantises a graph. Weights lie in a file of their own beside it.

Outside the graph they are mapped, hence shared by all workers of a machine, and a tower may be larger than the 2 GB of
one protobuf message. Imports torch.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path

import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic

from router.export.checkpoints import Feed, Side
from router.export.errors import ExportError, one_line
from router.export.reference import quiet
from router.packs.parts import Precision

OPSET = 17
# Smaller tensors stay in the graph: shape inference reads them there.
_OUTSIDE_FROM_BYTES = 1024


def write_graph(side: Side, example: Feed, output: str, precision: Precision, graph: Path, weights: str) -> None:
    """Write `graph`, and its weights into the file `weights` beside it.

    `example` holds every input with at least two rows; axis 0 becomes free, and axis 1 of token ids and masks. Raises
    ExportError, OSError.
    """
    with tempfile.TemporaryDirectory(dir=graph.parent) as scratch:
        traced = Path(scratch) / "traced.onnx"
        _trace(side, example, output, traced)
        if precision == "int8":
            quantised = Path(scratch) / "int8.onnx"
            _quantise(traced, quantised)
            traced = quantised
        model = onnx.load(traced)
    onnx.save(
        model,
        graph,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=weights,
        size_threshold=_OUTSIDE_FROM_BYTES,
        convert_attribute=False,
    )


def _trace(side: Side, example: Feed, output: str, path: Path) -> None:
    axes: dict[str, dict[int, str]] = {output: {0: "n"}}
    for name in side.inputs:
        axes[name] = {0: "n"} | ({1: "t"} if name in ("input_ids", "attention_mask") and len(side.inputs) > 1 else {})
    inputs = tuple(torch.from_numpy(example[name]) for name in side.inputs)
    try:
        with torch.no_grad(), _silent():
            torch.onnx.export(
                side.module,
                inputs,
                path,
                dynamo=False,
                opset_version=OPSET,
                input_names=list(side.inputs),
                output_names=[output],
                dynamic_axes=axes,
            )
    except OSError:
        raise
    except Exception as error:  # the tracer raises a dozen unrelated types
        raise ExportError(f"the model cannot be traced ({one_line(error)})") from error
    finally:
        side.module.eval()


def _quantise(path: Path, out: Path) -> None:
    """Weights int8 per channel, activations int8 by what each pass brings; only MatMul, the rest stays float32."""
    try:
        with _silent():
            quantize_dynamic(
                path,
                out,
                op_types_to_quantize=["MatMul"],
                per_channel=True,
                weight_type=QuantType.QInt8,
                use_external_data_format=True,
            )
    except OSError:
        raise
    except Exception as error:  # onnx and onnxruntime raise unrelated types
        raise ExportError(f"the graph cannot be quantised ({one_line(error)}); export fp32") from error


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Both libraries print advice that is for their own developers."""
    with quiet(), contextlib.redirect_stdout(io.StringIO()):
        yield
