"""Hidden states of all-MiniLM-L6-v2, window by window, from the official weights.

The weights are those that `models/starter-text/recipe.py` checks; PyTorch exports them once, onnxruntime runs them.
Windows are cut as the served tower cuts them: 254 tokens of text, one every 222.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

BODY = 254
STRIDE = 222
LAYERS = (0, 2, 4, 6)
CLS, SEP = 101, 102
WIDTH = 384

Hidden = dict[int, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens of a stretch of text: `ids` (t,) without special ones, their character `ranges` (t, 2) in `text`."""

    text: str = field(repr=False)
    ids: NDArray[np.int32] = field(repr=False)
    ranges: NDArray[np.int32] = field(repr=False)

    @property
    def characters(self) -> str:
        """What the window's tokens stand for."""
        return self.text[self.ranges[0, 0] : self.ranges[-1, 1]] if len(self.ids) else self.text

    def crop(self, start: int, end: int) -> Window:
        """Some of its tokens."""
        return Window(self.text, self.ids[start:end], self.ranges[start:end])


def starter_recipe() -> ModuleType:
    """The pack's own recipe, whose folder is no package."""
    path = Path(__file__).parents[1] / "starter-text" / "recipe.py"
    spec = importlib.util.spec_from_file_location("starter_text_recipe", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _WithHidden(nn.Module):
    def __init__(self, bert: nn.Module) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        hidden = self.bert.embeddings(input_ids=input_ids, token_type_ids=torch.zeros_like(input_ids))
        blocked = (1.0 - attention_mask.to(hidden.dtype))[:, None, None, :] * torch.finfo(hidden.dtype).min
        given = [hidden]
        for layer in self.bert.encoder.layer:
            out = layer(given[-1], blocked)
            given.append(out[0] if isinstance(out, tuple) else out)
        return tuple(given[layer] for layer in LAYERS)


class Encoder:
    """Tokenizer and graph; `work` is where the weights are unpacked once."""

    def __init__(self, work: Path) -> None:
        folder = work / "encoder"
        graph = folder / "hidden.onnx"
        if not graph.exists():
            folder.mkdir(parents=True, exist_ok=True)
            recipe = starter_recipe()
            recipe.unpack(folder)
            _export(recipe.load_reference(folder), graph)
        self.folder = folder
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = ort.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def whole(self, text: str) -> Window:
        """All tokens of a text."""
        encoding = self._tokenizer.encode(text.encode("utf-8", "replace").decode(), add_special_tokens=False)
        ranges = np.array(encoding.offsets, np.int32).reshape(-1, 2)
        return Window(text, np.array(encoding.ids, np.int32), ranges)

    def word_pieces(self) -> list[str]:
        """Pieces of the vocabulary that are written in Latin letters, in order of their ids."""
        vocabulary = self._tokenizer.get_vocab()
        kept = (
            piece for piece in vocabulary if piece.removeprefix("##").isascii() and piece.removeprefix("##").isalpha()
        )
        return sorted(kept, key=vocabulary.__getitem__)

    def windows(self, text: str) -> list[Window]:
        """The windows that the served tower reads."""
        whole = self.whole(text)
        count = 1 + -(-max(len(whole.ids) - BODY, 0) // STRIDE)
        return [whole.crop(index * STRIDE, index * STRIDE + BODY) for index in range(count)]

    def hidden(self, windows: Sequence[Window], batch_tokens: int = 2048) -> Iterator[tuple[int, Hidden]]:
        """Each window's index and hidden states (t + 2, 384) by layer; shortest first."""
        order = sorted(range(len(windows)), key=lambda index: len(windows[index].ids))
        start = 0
        while start < len(order):
            end = start + 1
            while end < len(order) and (len(windows[order[end]].ids) + 2) * (end + 1 - start) <= batch_tokens:
                end += 1
            some = order[start:end]
            yield from zip(some, self._run([windows[index].ids for index in some]), strict=True)
            start = end

    def _run(self, rows: Sequence[NDArray[np.int32]]) -> list[Hidden]:
        longest = max(map(len, rows)) + 2
        ids = np.zeros((len(rows), longest), np.int64)
        mask = np.zeros_like(ids)
        for index, row in enumerate(rows):
            ids[index, : len(row) + 2] = [CLS, *row, SEP]
            mask[index, : len(row) + 2] = 1
        given = self._session.run(None, {"input_ids": ids, "attention_mask": mask})
        return [
            {layer: states[index, : len(row) + 2] for layer, states in zip(LAYERS, given, strict=True)}
            for index, row in enumerate(rows)
        ]


def _export(bert: nn.Module, out: Path) -> None:
    ids = torch.tensor([[101, 7592, 2088, 102], [101, 7592, 102, 0]])
    names = [f"hidden_{layer}" for layer in LAYERS]
    axes = {name: {0: "n", 1: "t"} for name in ("input_ids", "attention_mask", *names)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _WithHidden(bert).eval(),
            (ids, (ids > 0).long()),
            out,
            dynamo=False,
            opset_version=17,
            input_names=["input_ids", "attention_mask"],
            output_names=names,
            dynamic_axes=axes,
        )
