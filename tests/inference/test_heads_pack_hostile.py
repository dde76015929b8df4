"""Packs whose heads are not what they say: refused when they are opened or held back by the gate, and never served."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper
from tiny_heads import HEADS, digest, heads_graph, rewrite, write_pack_with_heads

from router.inference.cache import EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.gate import Miss, check_encoders
from router.inference.open import open_encoders
from router.packs.files import PackError
from router.packs.store import open_pack
from router.request.images import ImageLimits

Change = Callable[[onnx.ModelProto], None]


def what_comes_of(folder: Path, executor: InferenceExecutor) -> list[Miss]:
    """Misses of the gate, behind which nothing is served; raises PackError for what does not open."""
    pack = open_pack(str(folder), "text", Path("/nowhere"))
    cache = EmbeddingCache(1 << 20)
    heads = [head.name for head in pack.manifest.heads.heads] if pack.manifest.heads is not None else []
    return check_encoders(open_encoders(pack, None, executor, cache, ImageLimits(), heads=heads))


def instead(model: onnx.ModelProto, output: str, op: str, inputs: list[str], **attributes: Any) -> None:
    """What gives this output is another node."""
    for node in model.graph.node:
        if output in node.output:
            node.CopyFrom(helper.make_node(op, inputs, [output], **attributes))


def constant(model: onnx.ModelProto, name: str, value: Any, kind: Any = np.float32) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.array(value, kind), name))


def undeclared(model: onnx.ModelProto, output: str, kind: int = TensorProto.FLOAT) -> None:
    """The graph says nothing of the output's shape, so that it shows only when it runs."""
    kept = [each for each in model.graph.output if each.name != output]
    del model.graph.output[:]
    model.graph.output.extend([*kept, helper.make_tensor_value_info(output, kind, None)])


def spoil(model: onnx.ModelProto, name: str, value: float) -> None:
    for each in model.graph.initializer:
        if each.name == name:
            each.CopyFrom(numpy_helper.from_array(np.full_like(numpy_helper.to_array(each), value), name))


def more_labels(model: onnx.ModelProto) -> None:
    instead(model, "harm", "Concat", ["most", "most"], axis=1)
    undeclared(model, "harm")


def a_scalar(model: onnx.ModelProto) -> None:
    instead(model, "harm", "ReduceSum", ["most"], keepdims=0)
    undeclared(model, "harm")


def no_rows(model: onnx.ModelProto) -> None:
    constant(model, "nothing", np.zeros((0, 1)))
    instead(model, "harm", "Identity", ["nothing"])
    undeclared(model, "harm")


def a_text_for_each_token(model: onnx.ModelProto) -> None:
    instead(model, "harm", "Identity", ["of_words"])
    undeclared(model, "harm")


def one_for_all_tokens(model: onnx.ModelProto) -> None:
    instead(model, "pii", "ReduceMax", ["of_both"], axes=[1], keepdims=0)
    undeclared(model, "pii")


def a_huge_output(model: onnx.ModelProto) -> None:
    constant(model, "far", [1, 20_000_000], np.int64)
    constant(model, "zero_f", [[0.0]])
    instead(model, "harm", "Expand", ["zero_f", "far"])
    undeclared(model, "harm")


def words_for_numbers(model: onnx.ModelProto) -> None:
    instead(model, "harm", "Cast", ["most"], to=TensorProto.STRING)
    undeclared(model, "harm", TensorProto.STRING)


def nan_weights(model: onnx.ModelProto) -> None:
    spoil(model, "to_domain", np.nan)


def infinite_weights(model: onnx.ModelProto) -> None:
    spoil(model, "to_pii", np.inf)


def an_input_more(model: onnx.ModelProto) -> None:
    model.graph.input.append(helper.make_tensor_value_info("secret_input", TensorProto.FLOAT, ("n",)))
    model.graph.node.append(helper.make_node("Identity", ["secret_input"], ["unused"]))
    model.graph.output.append(helper.make_tensor_value_info("unused", TensorProto.FLOAT, ("n",)))


def wrong_width(model: onnx.ModelProto) -> None:
    for each in model.graph.input:
        if each.name == "hidden_2":
            each.type.tensor_type.shape.dim[2].dim_value = 5


def whole_numbers_for_states(model: onnx.ModelProto) -> None:
    for each in model.graph.input:
        if each.name == "hidden_2":
            each.type.tensor_type.elem_type = TensorProto.DOUBLE
    undeclared(model, "fact_check", TensorProto.DOUBLE)
    for node in model.graph.node:
        if "most_2" in node.input:
            node.output[0] = "fact_check"


@pytest.mark.parametrize(
    "change",
    [
        more_labels,
        a_scalar,
        no_rows,
        a_text_for_each_token,
        one_for_all_tokens,
        a_huge_output,
        words_for_numbers,
        nan_weights,
        infinite_weights,
        an_input_more,
        wrong_width,
        whole_numbers_for_states,
    ],
)
@pytest.mark.filterwarnings("default::RuntimeWarning")
async def test_a_graph_that_is_not_what_the_manifest_says_is_not_served(
    tmp_path: Path, executor: InferenceExecutor, change: Change
) -> None:
    folder = write_pack_with_heads(tmp_path / "pack")
    model = heads_graph()
    change(model)
    onnx.save(model, folder / "heads.onnx")
    rewrite(folder, {})
    try:
        misses = what_comes_of(folder, executor)
    except PackError as error:
        assert "heads.onnx" in str(error)
    else:
        assert misses
        assert all(str(miss) for miss in misses)


def heads_with(name: str, /, **change: Any) -> list[dict[str, Any]]:
    return [{**head, **change} if head["name"] == name else dict(head) for head in HEADS]


@pytest.mark.parametrize(
    "heads",
    [
        heads_with("harm", scale=0),
        heads_with("harm", scale=-1.0),
        heads_with("harm", scale=float("inf")),
        heads_with("harm", scale=float("nan")),
        heads_with("harm", bias=float("inf")),
        heads_with("harm", bias=float("nan")),
        heads_with("domain", temperature=0),
        heads_with("domain", temperature=float("inf")),
        heads_with("harm", threshold=1.5),
        heads_with("harm", threshold=-0.1),
        heads_with("harm", threshold=float("nan")),
        heads_with("harm", threshold=None),
        heads_with("harm", labels=[]),
        heads_with("harm", labels=["harm", "harm"]),
        heads_with("harm", labels=["\x1b[2J"]),
        heads_with("harm", labels=["harm", ""]),
        heads_with("harm", labels=[""]),
        heads_with("harm", level="image"),
        heads_with("harm", name="__class__"),
        heads_with("harm", name="../harm"),
        heads_with("harm", name="domain"),
        heads_with("harm", activation="softmax"),
        heads_with("pii", labels=["PERSON", "PLACE"]),
        [],
    ],
)
async def test_a_manifest_that_cannot_hold_is_refused(
    tmp_path: Path, executor: InferenceExecutor, heads: list[dict[str, Any]]
) -> None:
    folder = write_pack_with_heads(tmp_path / "pack")
    rewrite(folder, {"heads": heads})
    with pytest.raises(PackError, match=r"pack\.yaml is not a manifest"):
        what_comes_of(folder, executor)


@pytest.mark.parametrize(
    "heads",
    [
        heads_with("harm", scale=1e300),
        heads_with("harm", scale=1e-300),
        heads_with("harm", bias=1e300),
        heads_with("domain", temperature=1e-300),
        heads_with("domain", temperature=1e300),
        heads_with("harm", labels=["harm", "other"]),
        heads_with("pii", labels=["O", "B-PERSON", "I-PERSON"]),
        heads_with("domain", level="token", labels=["O", *[f"l{n}" for n in range(13)]]),
        heads_with("pii", level="text"),
        heads_with("harm", level="token", labels=["O"]),
    ],
)
@pytest.mark.filterwarnings("default::RuntimeWarning")
async def test_calibration_and_labels_that_are_not_the_graphs_are_held_back(
    tmp_path: Path, executor: InferenceExecutor, heads: list[dict[str, Any]]
) -> None:
    folder = write_pack_with_heads(tmp_path / "pack")
    rewrite(folder, {"heads": heads})
    assert what_comes_of(folder, executor)


def changed_graph(folder: Path) -> None:
    (folder / "heads.onnx").write_bytes((folder / "heads.onnx").read_bytes() + b"\0")


def changed_golden(folder: Path) -> None:
    (folder / "golden/heads.json").write_text("{}")


def no_graph(folder: Path) -> None:
    (folder / "heads.onnx").unlink()


def a_pipe(folder: Path) -> None:
    (folder / "heads.onnx").unlink()
    os.mkfifo(folder / "heads.onnx")


def a_link_out(folder: Path) -> None:
    (folder / "heads.onnx").rename(folder.parent / "heads.onnx")
    (folder / "heads.onnx").symlink_to(folder.parent / "heads.onnx")


def a_loop(folder: Path) -> None:
    (folder / "heads.onnx").unlink()
    (folder / "heads.onnx").symlink_to("heads.onnx")


def a_path_out(folder: Path) -> None:
    (folder / "heads.onnx").rename(folder.parent / "heads.onnx")
    path = folder / "pack.yaml"
    path.write_text(path.read_text().replace("path: heads.onnx", "path: ../heads.onnx"))


@pytest.mark.parametrize(
    "damage",
    [changed_graph, changed_golden, no_graph, a_pipe, a_link_out, a_loop, a_path_out],
    ids=lambda d: d.__name__,
)
async def test_files_that_are_not_the_manifests_are_refused(
    tmp_path: Path, executor: InferenceExecutor, damage: Callable[[Path], None]
) -> None:
    folder = write_pack_with_heads(tmp_path / "pack")
    damage(folder)
    with pytest.raises(PackError):
        what_comes_of(folder, executor)


@pytest.mark.parametrize("absolute", [False, True])
async def test_weights_outside_the_graph_are_not_fetched_from_where_the_process_stands(
    tmp_path: Path, executor: InferenceExecutor, monkeypatch: pytest.MonkeyPatch, absolute: bool
) -> None:
    folder = write_pack_with_heads(tmp_path / "pack")
    model = heads_graph()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    onnx.save(model, elsewhere / "x.onnx", save_as_external_data=True, location="heads.data", size_threshold=0)
    outside = onnx.load(elsewhere / "x.onnx", load_external_data=False)
    if absolute:
        for each in outside.graph.initializer:
            for entry in each.external_data:
                if entry.key == "location":
                    entry.value = str(elsewhere / "heads.data")
    (folder / "heads.onnx").write_bytes(outside.SerializeToString())
    rewrite(folder, {})
    with pytest.raises(PackError, match="cannot be loaded by ONNX Runtime"):
        what_comes_of(folder, executor)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "null", '"x"', "[]", "{}"])
async def test_golden_vectors_of_no_numbers_are_a_miss(tmp_path: Path, executor: InferenceExecutor, value: str) -> None:
    folder = write_pack_with_heads(tmp_path / "pack")
    path = folder / "golden/heads.json"
    vectors = json.loads(path.read_text())
    vectors["probabilities"]["harm"][1] = ["@"]
    path.write_text(json.dumps(vectors).replace('"@"', value))
    rewrite(folder, {})
    assert what_comes_of(folder, executor)


@pytest.mark.parametrize("difference", [0, 1, -1, float("nan"), 2])
async def test_a_bound_that_lets_all_pass_is_refused(
    tmp_path: Path, executor: InferenceExecutor, difference: float
) -> None:
    folder = write_pack_with_heads(tmp_path / "pack")
    path = folder / "pack.yaml"
    manifest = yaml.safe_load(path.read_text())
    manifest["heads"]["golden"] |= {"max_difference": difference, "sha256": digest(folder / "golden/heads.json")}
    path.write_text(yaml.safe_dump(manifest))
    with pytest.raises(PackError, match=r"heads\.golden\.max_difference"):
        what_comes_of(folder, executor)
