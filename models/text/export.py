"""Puts the trained heads into one graph with its golden probabilities: `python -m models.text.export --work DIR`.

The jailbreak head's own encoder layer and the domain head's neighbours get weights of seven bits, which never overflow
on processors without VNNI; everything else stays float32. Beside the graph it writes `heads.yaml`, which the pack's own
recipe puts into `pack.yaml`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch
import yaml
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn

from models.text.branch import Branch
from models.text.calibrate import sigmoid, softmax
from models.text.domain_head import DomainHead
from models.text.encoder import LAYERS, WIDTH, Encoder, Hidden, Window
from models.text.golden import TEXTS
from models.text.pii_data import LABELS
from models.text.tagger import Tagger
from router.inference.head_features import (
    PATTERNS,
    PATTERNS_VERSION,
    SHAPES,
    SHAPES_VERSION,
    pattern_features,
    token_shapes,
)
from router.signals.domain_anchors import SUBJECTS

PACK = Path(__file__).parents[1] / "starter-text"
BINARY = ("harm", "creative", "fact_check", "complexity")
LABEL = {
    "jailbreak": "jailbreak",
    "harm": "harm",
    "creative": "creative",
    "fact_check": "facts",
    "complexity": "complex",
}
WINDOWS = {"domain": "mean", "creative": "mean", "fact_check": "mean"}
INPUTS = (*(f"hidden_{layer}" for layer in LAYERS), "token_shapes", "patterns")


class Heads(nn.Module):
    """All heads; inputs and outputs as `pack.yaml` names them."""

    def __init__(self, binary: list[str], places: int) -> None:
        super().__init__()
        self.binary_names = binary
        self.domain = DomainHead(places)
        self.jailbreak = Branch()
        self.binary = nn.Linear(2 * WIDTH, len(binary))
        self.pii = Tagger(len(LABELS))

    @property
    def names(self) -> list[str]:
        """Of the outputs, in order."""
        return ["domain", "jailbreak", "pii", *self.binary_names]

    def forward(
        self, h0: Tensor, h2: Tensor, h4: Tensor, h6: Tensor, shapes: Tensor, patterns: Tensor
    ) -> tuple[Tensor, ...]:
        """Logits by head, of one window: without padding there is nothing to leave out, which would cost as much as a
        head."""
        last, fourth = h6.mean(1), h4.mean(1)
        embedding = unit(last)
        asked = self.binary(torch.cat([embedding, unit(fourth)], 1))
        jailbreak = self.jailbreak(paired(h4), last, patterns)
        tags = self.pii([h0, h2, h4, h6], shapes, torch.ones(1, 1))
        return self.domain(embedding), jailbreak, tags, *asked.split(1, 1)


def unit(rows: Tensor) -> Tensor:
    """Rows of length one."""
    return rows / rows.norm(dim=1, keepdim=True)


def paired(states: Tensor) -> Tensor:
    """Means of two tokens each, (1, p, 384) of (1, t, 384); an odd one at the end stays alone."""
    padded = torch.cat([states, states[:, -1:]], 1)
    seconds = padded[:, 1::2]
    return (padded[:, : 2 * seconds.shape[1] : 2] + seconds) / 2


def load(work: Path) -> Heads:
    """The heads as they were trained."""
    names = [name for name in BINARY if (work / "binary" / f"{name}.pt").exists()]
    domain = torch.load(work / "domain" / "head.pt")
    heads = Heads(names, len(domain["neighbours"]) // len(SUBJECTS)).eval()
    heads.domain.load_state_dict(domain)
    heads.jailbreak.load_state_dict(torch.load(work / "jailbreak" / "head.pt"))
    heads.pii.load_state_dict(torch.load(work / "pii" / "head.pt"))
    layers = [torch.load(work / "binary" / f"{name}.pt") for name in names]
    for kind in ("weight", "bias"):
        getattr(heads.binary, kind).data.copy_(torch.cat([layer[kind] for layer in layers]))
    return heads


def feed(hidden: Hidden, window: Window) -> dict[str, np.ndarray[Any, Any]]:
    """What the graph takes for one window."""
    size = len(window.ids)
    shapes = np.zeros((1, size + 2, SHAPES), np.float32)
    own = window.characters
    begin = int(window.ranges[0, 0]) if size else 0
    shapes[0, 1 : size + 1] = token_shapes(own, window.ranges - np.int32(begin))
    given = {f"hidden_{layer}": states[None] for layer, states in hidden.items()}
    return {**given, "token_shapes": shapes, "patterns": pattern_features(own)[None]}


def write_graph(heads: Heads, out: Path) -> None:
    """Trace, then seven bits for the products of the jailbreak head's layer."""
    t = 8
    example = (*(torch.randn(1, t, WIDTH) for _ in LAYERS), torch.rand(1, t, SHAPES), torch.rand(1, PATTERNS))
    axes = {name: {1: "t"} for name in (*INPUTS[:-1], "pii")}
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = Path(scratch) / "whole.onnx"
        torch.onnx.export(
            heads, example, whole, dynamo=False, opset_version=17,
            input_names=list(INPUTS), output_names=heads.names, dynamic_axes=axes,
        )  # fmt: skip
        products = [node.name for node in onnx.load(whole).graph.node if _in_seven_bits(node)]
        quantize_dynamic(
            whole, out, op_types_to_quantize=["MatMul"], nodes_to_quantize=products, per_channel=True,
            reduce_range=True, weight_type=QuantType.QInt8, extra_options={"MatMulConstBOnly": True},
        )  # fmt: skip


def _in_seven_bits(node: onnx.NodeProto) -> bool:
    """Products of the jailbreak head's layer with its weights, and of an embedding with the domain head's neighbours.

    Those between activations, which the layer has too, stay as they are (`MatMulConstBOnly`).
    """
    return node.op_type == "MatMul" and (node.name.startswith("/jailbreak/layer/") or node.name == "/domain/MatMul")


def session(path: Path) -> ort.InferenceSession:
    """As it serves: one thread."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def described(work: Path, names: list[str]) -> list[dict[str, Any]]:
    """What `pack.yaml` says of each head."""
    found = []
    for name in names:
        folder = work / "binary" / f"{name}.json" if name in BINARY else work / name / "calibration.json"
        numbers = json.loads(folder.read_text())
        head: dict[str, Any] = {"name": name, "level": "token" if name == "pii" else "text"}
        if name in ("domain", "pii"):
            head |= {"labels": list(SUBJECTS if name == "domain" else LABELS), "activation": "softmax"}
            head["temperature"] = numbers["temperature"]
        else:
            head |= {
                "labels": [LABEL[name]],
                "activation": "sigmoid",
                "scale": numbers["scale"],
                "bias": numbers["bias"],
            }
        head |= {"windows": WINDOWS.get(name, "max"), "threshold": numbers["threshold"]}
        found.append(head)
    return found


def probabilities(head: dict[str, Any], logits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As they are served."""
    if head["activation"] == "sigmoid":
        return sigmoid(head["scale"] * logits.astype(np.float64) + head["bias"])
    scaled = logits.astype(np.float64) / head["temperature"]
    return softmax(scaled)


def write_golden(heads: Heads, about: list[dict[str, Any]], encoder: Encoder, graph: Path, out: Path) -> float:
    """PyTorch's probabilities for a few texts; gives the greatest difference of the graph's."""
    found = session(graph)
    golden: dict[str, Any] = {
        "texts": list(TEXTS),
        "token_ids": [],
        "probabilities": {name: [] for name in heads.names},
    }
    worst = 0.0
    for text in TEXTS:
        window = encoder.windows(text)[0]
        ((_, hidden),) = encoder.hidden([window])
        given = feed(hidden, window)
        with torch.no_grad():
            reference = heads(*(torch.from_numpy(given[name]) for name in INPUTS))
        served = found.run(heads.names, given)
        golden["token_ids"].append([101, *window.ids.tolist(), 102])
        for head, wanted, got in zip(about, reference, served, strict=True):
            wanted_p, got_p = probabilities(head, wanted[0].numpy()), probabilities(head, got[0])
            worst = max(worst, float(np.abs(wanted_p - got_p).max()))
            golden["probabilities"][head["name"]].append(np.round(wanted_p, 6).tolist())
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n", encoding="utf-8")
    return worst


def main() -> None:
    """Graph, golden probabilities, and the manifest's part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--pack", type=Path, default=PACK)
    given = parser.parse_args()
    torch.set_num_threads(1)
    heads = load(given.work)
    graph, golden = given.pack / "heads.onnx", given.pack / "golden" / "heads.json"
    write_graph(heads, graph)
    about = described(given.work, heads.names)
    worst = write_golden(heads, about, Encoder(given.work), graph, golden)
    # Other processors round sums of eight bits otherwise; a wrong feature or weight shows by far more.
    bound = max(0.02, round(2 * worst, 3))

    def file(path: Path) -> dict[str, str]:
        return {
            "path": path.relative_to(given.pack).as_posix(),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }

    part = {
        "graph": file(graph),
        "shapes": SHAPES_VERSION,
        "patterns": PATTERNS_VERSION,
        "golden": {**file(golden), "max_difference": bound},
        "heads": about,
    }
    text = "# Written by models/text/export.py; edit that, not this.\n"
    text += yaml.safe_dump({"heads": part}, sort_keys=False, width=120)
    for place in (given.pack / "heads.yaml", given.work / "manifest_heads.yaml"):
        place.write_text(text, encoding="utf-8")
    print(f"{graph}: {graph.stat().st_size:,} bytes; greatest difference from PyTorch {worst:.4f}")


if __name__ == "__main__":
    main()
