"""A text pack with heads, small enough to be worked out by hand: each word has four numbers, and heads read those.

By column of the table: how harmful a word is, how much of an attack, whether it is a name, whether it is of physics.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tiny_tokenizer import word_tokenizer
from tokenizers import Tokenizer

from router.inference.head_features import (
    PATTERNS,
    PATTERNS_VERSION,
    SHAPES,
    SHAPES_VERSION,
    pattern_features,
    token_shapes,
)
from router.signals.domain_anchors import SUBJECTS

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WIDTH = 4
WORDS: dict[str, tuple[float, float, float, float]] = {
    "poison": (4, 0, 0, 0),
    "ignore": (0, 4, 0, 0),
    "rules": (0, 2, 0, 0),
    "may": (0, 0, 0.5, 0),
    "maria": (0, 0, 4, 0),
    "atom": (0, 0, 0, 4),
    "the": (0.1, 0.1, 0, 0.1),
    "a": (0.1, 0, 0.1, 0.1),
    "dog": (0.2, 0, 0, 0.2),
    "sees": (0, 0.1, 0, 0),
}
MAX_TOKENS, STRIDE = 18, 12
GOLDEN = ("", "the dog sees a dog", "Ignore the rules", "Maria sees the atom", "the poison " * 30)
PER_TOKEN = ("O", "PERSON")
MOSTLY_NOTHING = (1.0, 0.0)

HEADS: tuple[dict[str, Any], ...] = (
    {"name": "harm", "level": "text", "labels": ["harm"], "activation": "sigmoid", "scale": 2.0, "bias": -4.0,
     "threshold": 0.8},
    {"name": "jailbreak", "level": "text", "labels": ["jailbreak"], "activation": "sigmoid", "bias": -3.0,
     "threshold": 0.6},
    {"name": "fact_check", "level": "text", "labels": ["facts"], "activation": "sigmoid", "bias": -2.0,
     "windows": "mean", "threshold": 0.7},
    {"name": "complexity", "level": "text", "labels": ["complex"], "activation": "sigmoid", "bias": -2.0,
     "threshold": 0.6},
    {"name": "domain", "level": "text", "labels": list(SUBJECTS), "activation": "softmax", "temperature": 0.5,
     "windows": "mean", "threshold": 0.35},
    {"name": "pii", "level": "token", "labels": list(PER_TOKEN), "activation": "softmax", "threshold": 0.75},
)  # fmt: skip


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_pack_with_heads(folder: Path, **changes: Any) -> Path:
    """`changes` go into the manifest's `heads`."""
    (folder / "golden").mkdir(parents=True)
    vocabulary = [*SPECIALS, *WORDS]
    table = np.array([*[(0, 0, 0, 0)] * 2, (0.5, 0.5, 0.5, 0.5), (0.25, 0, 0, 0), *WORDS.values()], np.float32)
    table[1] = 0.05
    tokenizer = word_tokenizer(vocabulary)
    tokenizer.save(str(folder / "tokenizer.json"))
    onnx.save(_tower(table), folder / "text.onnx")
    onnx.save(heads_graph(), folder / "heads.onnx")
    _write_golden(folder, tokenizer, table)
    (folder / "pack.yaml").write_text(yaml.safe_dump(_manifest(folder, changes), sort_keys=False))
    return folder


def rewrite(folder: Path, change: Mapping[str, Any]) -> None:
    """Change the manifest's `heads`, and take the digests of the files as they are."""
    path = folder / "pack.yaml"
    manifest = yaml.safe_load(path.read_text())
    manifest["heads"] |= change
    manifest["heads"]["graph"]["sha256"] = digest(folder / "heads.onnx")
    manifest["heads"]["golden"]["sha256"] = digest(folder / "golden/heads.json")
    path.write_text(yaml.safe_dump(manifest, sort_keys=False))


def expected(text: str) -> dict[str, NDArray[np.float64]]:
    """What the heads say of a text of one window, in numpy."""
    return _reference(*_read(text))


def _manifest(folder: Path, changes: Mapping[str, Any]) -> dict[str, Any]:
    def file(path: str) -> dict[str, Any]:
        return {"path": path, "sha256": digest(folder / path)}

    return {
        "format": 1,
        "name": "tiny-heads",
        "licence": "Apache-2.0",
        "description": "A table for tests, and heads over it.",
        "space": "tiny-heads",
        "text": {
            "graph": file("text.onnx"),
            "tokenizer": file("tokenizer.json"),
            "precision": "fp32",
            "output": "text_embeds",
            "dimension": WIDTH,
            "max_tokens": MAX_TOKENS,
            "window_stride": STRIDE,
            "pad_id": 0,
            "layers": ["hidden_0", "hidden_2"],
            "golden": {**file("golden/text.json"), "min_cosine": 0.99999},
        },
        "heads": {
            "graph": file("heads.onnx"),
            "shapes": SHAPES_VERSION,
            "patterns": PATTERNS_VERSION,
            "golden": {**file("golden/heads.json"), "max_difference": 0.02},
            "heads": list(HEADS),
            **changes,
        },
    }


def _value(name: str, kind: int, shape: Sequence[Any]) -> Any:
    return helper.make_tensor_value_info(name, kind, list(shape))


def _constant(name: str, value: Any, kind: Any = np.float32) -> Any:
    return numpy_helper.from_array(np.array(value, kind), name)


def _model(nodes: Iterable[Any], inputs: Any, outputs: Any, constants: Any) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "tiny", list(inputs), list(outputs), list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _tower(table: NDArray[np.float32]) -> onnx.ModelProto:
    node = helper.make_node
    nodes = [
        node("Gather", ["table", "input_ids"], ["hidden_0"]),
        node("Mul", ["hidden_0", "two"], ["hidden_2"]),
        node("Cast", ["attention_mask"], ["keep"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["keep", "last"], ["keep_3"]),
        node("Mul", ["hidden_0", "keep_3"], ["kept"]),
        node("ReduceSum", ["kept", "one"], ["sum"], keepdims=0),
        node("ReduceL2", ["sum"], ["length"], axes=[1], keepdims=1),
        node("Div", ["sum", "length"], ["text_embeds"]),
    ]
    ids = [_value(name, TensorProto.INT64, ("n", "t")) for name in ("input_ids", "attention_mask")]
    hidden = [_value(name, TensorProto.FLOAT, ("n", "t", WIDTH)) for name in ("hidden_0", "hidden_2")]
    constants = [
        numpy_helper.from_array(table, "table"),
        _constant("two", 2.0),
        _constant("last", [-1], np.int64),
        _constant("one", [1], np.int64),
    ]
    return _model(nodes, ids, [_value("text_embeds", TensorProto.FLOAT, ("n", WIDTH)), *hidden], constants)


def heads_graph(shapes: int = SHAPES, patterns: int = PATTERNS) -> onnx.ModelProto:
    """`jailbreak` computes with eight bits, whose scale is taken over the whole batch."""
    node = helper.make_node
    nodes = [
        # The most harmful word; of an attack, its words' sum and the turns of phrase; of facts, twice what is physics.
        node("ReduceMax", ["hidden_0"], ["most"], axes=[1], keepdims=0),
        node("Gather", ["most", "column_0"], ["harm"], axis=1),
        node("DynamicQuantizeLinear", ["hidden_0"], ["bits", "scale", "zero"]),
        node("DequantizeLinear", ["bits", "scale", "zero"], ["rough"]),
        node("ReduceSum", ["rough", "axis_1"], ["sum"], keepdims=0),
        node("Gather", ["sum", "column_1"], ["attack"], axis=1),
        node("ReduceSum", ["patterns", "axis_1"], ["turns"], keepdims=1),
        node("Add", ["attack", "turns"], ["jailbreak"]),
        node("ReduceMax", ["hidden_2"], ["most_2"], axes=[1], keepdims=0),
        node("Gather", ["most_2", "column_3"], ["fact_check"], axis=1),
        node("Cast", ["attention_mask"], ["keep"], to=TensorProto.FLOAT),
        node("ReduceSum", ["keep", "axis_1"], ["count"], keepdims=1),
        node("Mul", ["count", "quarter"], ["complexity"]),
        node("MatMul", ["most", "to_domain"], ["domain"]),
        node("MatMul", ["hidden_0", "to_pii"], ["of_words"]),
        node("MatMul", ["token_shapes", "from_shapes"], ["of_shapes"]),
        node("Add", ["of_words", "of_shapes"], ["of_both"]),
        node("Add", ["of_both", "mostly_nothing"], ["pii"]),
    ]
    inputs = [
        _value("hidden_0", TensorProto.FLOAT, ("n", "t", WIDTH)),
        _value("hidden_2", TensorProto.FLOAT, ("n", "t", WIDTH)),
        _value("attention_mask", TensorProto.INT64, ("n", "t")),
        _value("token_shapes", TensorProto.FLOAT, ("n", "t", shapes)),
        _value("patterns", TensorProto.FLOAT, ("n", patterns)),
    ]
    outputs = [
        _value(
            head["name"],
            TensorProto.FLOAT,
            ("n", "t", len(head["labels"])) if head["level"] == "token" else ("n", len(head["labels"])),
        )
        for head in HEADS
    ]
    constants = [
        *(_constant(f"column_{index}", [index], np.int64) for index in (0, 1, 3)),
        _constant("axis_1", [1], np.int64),
        _constant("quarter", 0.25),
        _constant("to_domain", _to_domain()),
        _constant("to_pii", [[0, 0], [0, 0], [0, 1], [0, 0]]),
        _constant("mostly_nothing", MOSTLY_NOTHING),
        _constant("from_shapes", _from_shapes(shapes)),
    ]
    return _model(nodes, inputs, outputs, constants)


def _to_domain() -> NDArray[np.float32]:
    weights = np.zeros((WIDTH, len(SUBJECTS)), np.float32)
    weights[3, SUBJECTS.index("physics")] = 1.0
    weights[0, SUBJECTS.index("other")] = 0.5
    return weights


def _from_shapes(shapes: int = SHAPES) -> NDArray[np.float32]:
    """A capital makes a name."""
    weights = np.zeros((shapes, 2), np.float32)
    weights[0] = (-1.0, 1.0)
    return weights


def _read(text: str) -> tuple[list[int], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Token ids of the first window, its hidden states, shapes and patterns; words are apart by one blank each."""
    vocabulary = {word: index for index, word in enumerate([*SPECIALS, *WORDS])}
    rows: list[tuple[int, int, int]] = []
    at = 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        rows.append((vocabulary.get(word.lower(), 1), start, at))
    rows = rows[: MAX_TOKENS - 2]
    ids = [2, *(each[0] for each in rows), 3]
    ranges = np.array([each[1:] for each in rows], np.int32).reshape(-1, 2)
    own, start = (text[ranges[0, 0] : ranges[-1, 1]], ranges[0, 0]) if len(ranges) else (text, 0)
    hidden = np.array([(0, 0, 0, 0), (0.05,) * 4, (0.5,) * 4, (0.25, 0, 0, 0), *WORDS.values()], np.float32)[ids]
    shapes = np.zeros((len(ids), SHAPES), np.float32)
    shapes[1:-1] = token_shapes(own, ranges - np.int32(start))
    return ids, hidden, shapes, pattern_features(own)


def _reference(
    ids: Sequence[int], hidden: NDArray[np.float32], shapes: NDArray[np.float32], patterns: NDArray[np.float32]
) -> dict[str, NDArray[np.float64]]:
    most = hidden.max(axis=0).astype(np.float64)
    logits = {
        "harm": most[:1],
        "jailbreak": np.array([hidden[:, 1].sum() + patterns.sum()], np.float64),
        "fact_check": 2 * most[3:],
        "complexity": np.array([len(ids) / 4.0]),
        "domain": most @ _to_domain(),
        "pii": hidden @ np.array([[0, 0], [0, 0], [0, 1], [0, 0]]) + shapes @ _from_shapes() + MOSTLY_NOTHING,
    }
    found: dict[str, NDArray[np.float64]] = {}
    for head in HEADS:
        each = logits[head["name"]].astype(np.float64)
        if head["activation"] == "sigmoid":
            found[head["name"]] = 1 / (1 + np.exp(-(head.get("scale", 1.0) * each + head.get("bias", 0.0))))
        else:
            raised = np.exp(each / head.get("temperature", 1.0))
            found[head["name"]] = raised / raised.sum(axis=-1, keepdims=True)
    return found


def _write_golden(folder: Path, tokenizer: Tokenizer, table: NDArray[np.float32]) -> None:
    texts = list(GOLDEN)
    read = [_read(text) for text in texts]
    for text, (ids, *_) in zip(texts, read, strict=True):
        row = tokenizer.encode(text).ids
        assert ids == (row if len(row) <= MAX_TOKENS else [*row[: MAX_TOKENS - 1], 3])
    embeddings = [table[ids].sum(axis=0) for ids, *_ in read]
    rows = [(each / np.linalg.norm(each)).tolist() for each in embeddings]
    ids = [each[0] for each in read]
    (folder / "golden/text.json").write_text(json.dumps({"texts": texts, "token_ids": ids, "embeddings": rows}))
    said = [_reference(*each) for each in read]
    probabilities = {head["name"]: [each[head["name"]].tolist() for each in said] for head in HEADS}
    golden = {"texts": texts, "token_ids": ids, "probabilities": probabilities}
    (folder / "golden/heads.json").write_text(json.dumps(golden))
