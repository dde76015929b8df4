"""What a manifest says of its graphs and bounds, and does not hold."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper
from tiny_siglip import write_checkpoint, write_pack

from router.export.verify import declared
from router.export.verify.declared import check_declared
from router.packs.store import Pack, list_shipped, read_pack, shipped_folder

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoints") / "tiny")


def _graph(nodes: list[Any], initializers: list[Any]) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _plain() -> onnx.ModelProto:
    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    return _graph([helper.make_node("MatMul", ["x", "w"], ["y"])], [weight])


def _quantised() -> onnx.ModelProto:
    names = ["x8", "scale", "zero"]
    dequantised = helper.make_node("DequantizeLinear", names, ["y"])
    return _graph([helper.make_node("DynamicQuantizeLinear", ["x"], names), dequantised], [])


def _half() -> onnx.ModelProto:
    weight = numpy_helper.from_array(np.eye(4, dtype=np.float16), "w")
    wide = helper.make_node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT)
    return _graph([wide, helper.make_node("MatMul", ["x", "wide"], ["y"])], [weight])


def _quantised_in_a_branch() -> onnx.ModelProto:
    names = ["x8", "scale", "zero"]
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], names),
        helper.make_node("DequantizeLinear", names, ["b"]),
    ]
    branch = helper.make_graph(nodes, "b", [], [helper.make_tensor_value_info("b", TensorProto.FLOAT, ["n", 4])])
    yes = numpy_helper.from_array(np.array(True), "yes")
    return _graph([helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch)], [yes])


def _outside(location: str) -> onnx.ModelProto:
    model = _plain()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return model


def _pack(folder: Path, model: onnx.ModelProto, change: Change = lambda text: None) -> Pack:
    folder.mkdir()
    (folder / "text.onnx").write_bytes(model.SerializeToString())
    manifest = yaml.safe_load((shipped_folder() / "starter-text" / "pack.yaml").read_text())
    manifest["text"]["graph"]["sha256"] = hashlib.sha256((folder / "text.onnx").read_bytes()).hexdigest()
    change(manifest["text"])
    (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))
    return read_pack(folder)


def _is(precision: str, **more: Any) -> Change:
    def change(text: dict[str, Any]) -> None:
        text["precision"] = precision
        text["golden"].update(more)

    return change


@pytest.mark.parametrize(
    ("model", "precision", "says"),
    [
        (_plain(), "fp32", None),
        (_plain(), "bf16", None),
        (_quantised(), "int8", None),
        (_plain(), "int8", "precision is int8 in the manifest, and no operator of the graph is quantised"),
        (
            _quantised(),
            "fp32",
            "precision is fp32 in the manifest, and the graph is quantised: 1 DynamicQuantizeLinear",
        ),
        (_quantised(), "bf16", "precision is bf16 in the manifest, and the graph is quantised"),
        (_quantised_in_a_branch(), "fp32", "the graph is quantised"),
        (_half(), "fp32", "1 tensors of the graph have 16 bits"),
        (_outside("model.safetensors"), "fp32", None),
        (_outside("other.bin"), "fp32", "its tensors lie in other.bin, which the manifest's weights do not name"),
        (_outside("../../etc/shadow"), "fp32", "its tensors lie in ../../etc/shadow"),
    ],
)
def test_precision_and_weights_are_what_the_graph_contains(
    tmp_path: Path, model: onnx.ModelProto, precision: str, says: str | None
) -> None:
    misses = check_declared(_pack(tmp_path / "pack", model, _is(precision))).misses
    if says is None:
        assert misses == ()
        return
    [miss] = misses
    assert miss.startswith("text.onnx: ")
    assert says in miss


@pytest.mark.parametrize(("bound", "held"), [(0.99999, True), (0.9999, False), (1e-6, False)])
def test_a_bound_that_anything_passes_does_not_hold(tmp_path: Path, bound: float, held: bool) -> None:
    found = check_declared(_pack(tmp_path / "pack", _plain(), _is("fp32", min_cosine=bound)))
    assert (found.misses == ()) is held
    assert held or "at least 0.99999 is usual" in found.misses[0]


def test_a_lax_bound_of_a_pack_whose_drift_was_allowed_is_a_note(tmp_path: Path) -> None:
    def change(text: dict[str, Any]) -> None:
        figures = {"worst": 0.9, "mean": 0.95, "gate": 0.99999, "drift_allowed": True}
        text["parity"] = {"reference": "x", "inputs": 8, "measure": "cosine", **figures}
        text["golden"]["min_cosine"] = 0.8995

    found = check_declared(_pack(tmp_path / "pack", _plain(), change))
    assert found.misses == ()
    assert "drift was allowed when it was exported" in found.notes[0]


def test_without_onnx_the_notes_say_what_was_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = _pack(tmp_path / "pack", _plain(), _is("int8"))
    monkeypatch.setattr(declared.importlib.util, "find_spec", lambda name: None)
    found = check_declared(pack)
    assert found.misses == ()
    assert 'pip install "pointsman[export]"' in found.notes[0]


def test_the_shipped_packs_are_what_they_declare() -> None:
    for name in list_shipped():
        found = check_declared(read_pack(shipped_folder() / name))
        assert (found.misses, found.notes) == ((), ()), name


def test_an_int8_pack_of_a_true_layout_is_what_it_declares(checkpoint: Path, tmp_path: Path) -> None:
    pack = read_pack(write_pack(checkpoint, tmp_path / "pack", int8=True, min_cosine=0.998))
    found = check_declared(pack)
    assert found.misses == ()
    assert "3 golden images carry no sha256" in found.notes[0]
