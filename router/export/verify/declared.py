"""What a manifest declares, held against what its graphs contain: precision, weights, and bounds that bind.

Golden vectors prove what a graph gives; they can't tell an fp32 graph that calls itself int8, weights that no digest
covers, or a bound so lax that anything passes. Reads graphs with the package onnx, and says so where that is missing.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from router.export.gates import greatest_bound, least_bound
from router.packs.files import Tower, inside, towers_of, undigested_images
from router.packs.manifest import TextClassifier
from router.packs.parts import Precision
from router.packs.store import Pack

_QUANTISED = frozenset(
    {
        "ConvInteger",
        "DequantizeLinear",
        "DynamicQuantizeLinear",
        "DynamicQuantizeLSTM",
        "DynamicQuantizeMatMul",
        "MatMulInteger",
        "MatMulIntegerToFloat",
        "MatMulNBits",
        "QAttention",
        "QGemm",
        "QuantizeLinear",
    }
)
_SHOWN = 3

HEADS_PRECISION: Final[Precision] = "int8"
"""What is let through of a graph of heads, parts of which may compute with eight bits."""


@dataclass(frozen=True, slots=True)
class Declared:
    """`misses` are declarations that do not hold, `notes` what an operator should know all the same."""

    misses: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """What a graph contains, subgraphs included."""

    quantised: Counter[str]
    """How many nodes of each operator that computes with eight bits or fewer."""
    half: int
    """Tensors of float16 or bfloat16."""
    outside: frozenset[str]
    """Files, relative to the graph's folder, that its tensors lie in."""


def check_declared(pack: Pack) -> Declared:
    """Every tower of a pack that has been opened, so that its graphs are known to load."""
    misses: list[str] = []
    notes: list[str] = []
    if bare := undigested_images(pack.manifest):
        notes.append(
            f"{len(bare)} golden images carry no sha256 in the manifest, as in packs of earlier exporters; export the "
            "pack anew to have a swapped image named"
        )
    readable = importlib.util.find_spec("onnx") is not None
    if not readable:
        notes.append('precision and weight files were not checked: they need onnx, pip install "pointsman[export]"')
    for tower in towers_of(pack.manifest):
        name = tower.graph.path
        lax = _lax(tower)
        if lax and tower.parity is not None and tower.parity.drift_allowed:
            notes.append(f"{name}: {lax}; drift was allowed when it was exported")
        elif lax:
            misses.append(f"{name}: {lax}; export the pack anew, with --allow-drift if it shall serve all the same")
        if readable:
            misses += [f"{name}: {each}" for each in _graph_misses(tower, inside(pack.folder, name))]
    heads = pack.manifest.heads
    if heads is not None and heads.golden.max_difference > greatest_bound(HEADS_PRECISION):
        misses.append(
            f"{heads.graph.path}: max_difference is {heads.golden.max_difference}, for heads at most "
            f"{greatest_bound(HEADS_PRECISION):.6g} is usual; train and export the heads anew"
        )
    return Declared(tuple(misses), tuple(notes))


def _lax(tower: Tower) -> str:
    """In what way the tower's bounds let through what no pack of its precision should be; empty if they don't."""
    precision, parity = tower.precision, tower.parity
    if isinstance(tower, TextClassifier):
        most = greatest_bound(precision)
        worst = max(tower.golden.max_difference, parity.gate if parity is not None else 0.0)
        return f"max_difference or gate is {worst}, for {precision} at most {most:.6g} is usual" if worst > most else ""
    least = least_bound(precision)
    worst = min(tower.golden.min_cosine, parity.gate if parity is not None else 1.0)
    return f"min_cosine or gate is {worst}, for {precision} at least {least:.6g} is usual" if worst < least else ""


def _graph_misses(tower: Tower, path: Path) -> list[str]:
    try:
        facts = read_graph(path)
    except Exception as error:  # protobuf raises its own types, and the graph has just been loaded by ONNX Runtime
        return [f"it cannot be read by onnx ({type(error).__name__})"]
    misses = []
    some = ", ".join(f"{count} {name}" for name, count in facts.quantised.most_common(_SHOWN))
    if tower.precision == "int8" and not facts.quantised:
        misses.append("precision is int8 in the manifest, and no operator of the graph is quantised")
    if tower.precision != "int8" and facts.quantised:
        misses.append(f"precision is {tower.precision} in the manifest, and the graph is quantised: {some}")
    if facts.half:
        misses.append(
            f"precision is {tower.precision} in the manifest, and {facts.half} tensors of the graph have 16 bits"
        )
    known = {str(PurePosixPath(file.path)) for file in tower.weights}
    folder = PurePosixPath(tower.graph.path).parent
    unknown = sorted(each for each in facts.outside if str(folder / each) not in known)
    if unknown:
        misses.append(f"its tensors lie in {', '.join(unknown[:_SHOWN])}, which the manifest's weights do not name")
    return misses


def read_graph(path: Path) -> GraphFacts:
    """What the graph in this file contains; raises what onnx raises."""
    import onnx  # noqa: PLC0415

    model = onnx.load(str(path), load_external_data=False)
    halves = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    quantised: Counter[str] = Counter()
    half = 0
    outside: set[str] = set()
    for part in (model.graph, *model.functions):
        for node, tensors in _walk(part):
            if node is not None and (node.op_type in _QUANTISED or node.op_type.startswith("QLinear")):
                quantised[node.op_type] += 1
            for tensor in tensors:
                half += tensor.data_type in halves
                if tensor.data_location == onnx.TensorProto.EXTERNAL:
                    outside |= {each.value for each in tensor.external_data if each.key == "location"}
    return GraphFacts(quantised, half, frozenset(outside))


def _walk(part: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Each node with the tensors in its attributes, and each graph's initializers under None; without recursion, as
    subgraphs may be nested to any depth."""
    waiting = [part]
    while waiting:
        graph = waiting.pop()
        initializers = list(getattr(graph, "initializer", ()))
        yield None, [*initializers, *(each.values for each in getattr(graph, "sparse_initializer", ()))]
        for node in graph.node:
            tensors = []
            for attribute in node.attribute:
                tensors += [attribute.t] if attribute.HasField("t") else []
                tensors += attribute.tensors
                waiting += [attribute.g] if attribute.HasField("g") else []
                waiting += attribute.graphs
            yield node, tensors
