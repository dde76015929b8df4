"""Classifier packs of one table, for tests: each word has its logits, and a text those of its strongest words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import yaml
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tiny_tokenizer import word_tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
MAX_TOKENS, STRIDE = 18, 8
GOLDEN = ("hello", "you idiot", "Maria Silva sees the idiot", "a " * 30)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_classifier_pack(
    folder: Path,
    words: Mapping[str, str],
    labels: Sequence[str],
    *,
    level: Literal["text", "token"] = "text",
    logit: float = 6.0,
    drift_allowed: bool = False,
) -> Path:
    """A word of `words` has its label with this logit; any other word the first label with 1. All else is 0.

    Words that are not in the table fall into pieces of the table that begin with ##, as in `words={"##ov": "I-PER"}`.
    """
    (folder / "golden").mkdir(parents=True)
    vocabulary = [*SPECIALS, *dict.fromkeys(word.lower() for word in words)]
    table = np.zeros((len(vocabulary), len(labels)), dtype=np.float32)
    table[:, 0] = 1.0
    for word, label in words.items():
        row = table[vocabulary.index(word.lower())]
        row[0] = 0.0
        row[list(labels).index(label)] = logit
    table[0] = -50.0
    tokenizer = word_tokenizer(vocabulary)
    tokenizer.save(str(folder / "tokenizer.json"))
    onnx.save(_graph(table, level), folder / "classifier.onnx")
    rows = [tokenizer.encode(text).ids for text in GOLDEN]
    ids = [row if len(row) <= MAX_TOKENS else [*row[: MAX_TOKENS - 1], 3] for row in rows]
    vectors = {
        "texts": list(GOLDEN),
        "token_ids": ids,
        "probabilities": [_probabilities(table[row], level).tolist() for row in ids],
    }
    (folder / "golden/classifier.json").write_text(json.dumps(vectors))
    manifest: dict[str, Any] = {
        "format": 1,
        "name": folder.name,
        "licence": "Apache-2.0",
        "description": "A table for tests.",
        "classifier": {
            "graph": {"path": "classifier.onnx", "sha256": digest(folder / "classifier.onnx")},
            "tokenizer": {"path": "tokenizer.json", "sha256": digest(folder / "tokenizer.json")},
            "precision": "fp32",
            "output": "logits",
            "max_tokens": MAX_TOKENS,
            "window_stride": STRIDE,
            "pad_id": 0,
            "level": level,
            "labels": list(labels),
            "activation": "softmax",
            "golden": {
                "path": "golden/classifier.json",
                "sha256": digest(folder / "golden/classifier.json"),
                "max_difference": 0.0001,
            },
            "parity": {
                "reference": "numpy",
                "inputs": len(GOLDEN),
                "measure": "probability difference",
                "worst": 0.2 if drift_allowed else 0.0,
                "mean": 0.0,
                "gate": 0.01,
                "drift_allowed": drift_allowed,
            },
        },
    }
    (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))
    return folder


def _graph(table: NDArray[np.float32], level: str) -> onnx.ModelProto:
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["logits" if level == "token" else "each"])]
    shape: list[Any] = ["n", "t", table.shape[1]]
    if level == "text":
        nodes.append(helper.make_node("ReduceMax", ["each"], ["logits"], axes=[1], keepdims=0))
        shape = ["n", table.shape[1]]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["n", "t"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["n", "t"]),
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(table, "table")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _probabilities(rows: NDArray[np.float32], level: str) -> NDArray[np.float64]:
    logits = rows.astype(np.float64) if level == "token" else rows.astype(np.float64).max(axis=0)
    exponents = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: NDArray[np.float64] = exponents / exponents.sum(axis=-1, keepdims=True)
    return shares
