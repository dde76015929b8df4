"""Tiny SigLIP checkpoints with seeded weights, and packs of them: faithful ones, and ones with a fault built in."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import transformers
import yaml
from onnxruntime.quantization import QuantType, quantize_dynamic
from PIL import Image
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor, nn

from router.export.verify.texts import TEXTS

SIZE, WIDTH, LENGTH = 64, 32, 64
PAD, END = "<pad>", "</s>"

Change = Callable[[Any], None]
Choose = Callable[[Any], Tensor]


def write_checkpoint(folder: Path, change: Change = lambda model: None) -> Path:
    """A SiglipModel of two layers, its image processor's settings and a tokenizer of single characters."""
    folder.mkdir(parents=True)
    size = {"hidden_size": WIDTH, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    tokenizer = character_tokenizer()
    config = transformers.SiglipConfig(
        text_config={
            **size,
            "vocab_size": tokenizer.get_vocab_size(),
            "max_position_embeddings": LENGTH,
            "projection_size": WIDTH,
            "pad_token_id": 0,
            "bos_token_id": None,
            "eos_token_id": 1,
        },
        vision_config={**size, "image_size": SIZE, "patch_size": 16},
    )
    torch.manual_seed(11)
    model = transformers.SiglipModel(config).eval()
    with torch.no_grad():
        # Fresh weights are so small that every image means nearly the same.
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3)
        change(model)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    words = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": PAD, "eos_token": END, "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({**words, "model_max_length": LENGTH}))
    pixels = {
        "image_processor_type": "SiglipImageProcessor",
        "do_resize": True,
        "size": {"height": SIZE, "width": SIZE},
        "resample": 3,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(pixels))
    return folder


def character_tokenizer(lower: bool = True) -> Tokenizer:
    characters = sorted({each for text in TEXTS for each in (text + text.lower() + text.upper())} - set(" \t\r\n"))
    pieces = [(PAD, 0.0), (END, 0.0), ("<unk>", 0.0), ("▁", -3.0), *((each, -4.0) for each in characters)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2, byte_fallback=False))
    if lower:
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, 1)])
    return tokenizer


def attention_head(out: Any) -> Tensor:
    return out.pooler_output


def mean_of_patches(out: Any) -> Tensor:
    return out.last_hidden_state.mean(1)


class _Vision(nn.Module):
    def __init__(self, model: Any, choose: Choose) -> None:
        super().__init__()
        self.vision, self.choose = model, choose

    def forward(self, pixel_values: Tensor) -> Tensor:
        return nn.functional.normalize(self.choose(self.vision(pixel_values=pixel_values)), dim=-1)


class _Text(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.text = model

    def forward(self, input_ids: Tensor) -> Tensor:
        return nn.functional.normalize(self.text(input_ids=input_ids).pooler_output, dim=-1)


def write_pack(
    checkpoint: Path,
    folder: Path,
    *,
    choose: Choose = attention_head,
    change: Change = lambda model: None,
    manifest_change: Change = lambda manifest: None,
    tokenizer: Tokenizer | None = None,
    int8: bool = False,
    min_cosine: float = 0.99999,
) -> Path:
    """A pack of the checkpoint. `change` is done to the exported model alone, not to that of the golden vectors."""
    (folder / "golden").mkdir(parents=True)
    right = transformers.SiglipModel.from_pretrained(checkpoint, attn_implementation="eager").eval()
    wrong = transformers.SiglipModel.from_pretrained(checkpoint, attn_implementation="eager").eval()
    with torch.no_grad():
        change(wrong)
    pixels, ids = torch.zeros(2, 3, SIZE, SIZE), torch.ones(2, LENGTH, dtype=torch.int64)
    _export(_Vision(wrong.vision_model, choose), pixels, folder / "vision.onnx", "pixel_values", "image_embeds", int8)
    _export(_Text(wrong.text_model), ids, folder / "text.onnx", "input_ids", "text_embeds", False)
    served = tokenizer or character_tokenizer()
    served.save(str(folder / "tokenizer.json"))

    def file(path: str) -> dict[str, Any]:
        return {"path": path, "sha256": hashlib.sha256((folder / path).read_bytes()).hexdigest()}

    manifest: dict[str, Any] = {
        "format": 1,
        "name": "tiny-siglip",
        "licence": "Apache-2.0",
        "description": "Seeded, for tests.",
        "space": "tiny-siglip",
        "vision": {
            "graph": file("vision.onnx"),
            "precision": "int8" if int8 else "fp32",
            "input": "pixel_values",
            "output": "image_embeds",
            "dimension": WIDTH,
            "size": [SIZE, SIZE],
            "resample": "bicubic",
            "rescale": 1 / 255,
            "mean": [0.5] * 3,
            "std": [0.5] * 3,
            "logit_scale": 1.0,
            "logit_bias": 0.0,
            "golden": {**_golden_images(right, folder, file), "min_cosine": min_cosine},
        },
        "text": {
            "graph": file("text.onnx"),
            "tokenizer": file("tokenizer.json"),
            "precision": "fp32",
            "output": "text_embeds",
            "dimension": WIDTH,
            "max_tokens": LENGTH,
            "window_stride": LENGTH // 2,
            "pad_id": 0,
            "fixed_length": True,
            "golden": {**_golden_texts(right, folder, file), "min_cosine": 0.99999},
        },
    }
    manifest_change(manifest)
    (folder / "pack.yaml").write_text(yaml.safe_dump(manifest))
    return folder


def _export(module: nn.Module, example: Tensor, path: Path, given: str, output: str, int8: bool) -> None:
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(),
            (example,),
            path,
            dynamo=False,
            opset_version=17,
            input_names=[given],
            output_names=[output],
            dynamic_axes={given: {0: "n"} | ({1: "t"} if example.ndim == 2 else {}), output: {0: "n"}},
        )
        if int8:
            whole = path.with_suffix(".fp32.onnx")
            path.rename(whole)
            quantize_dynamic(
                whole, path, op_types_to_quantize=["MatMul"], per_channel=True, weight_type=QuantType.QInt8
            )
            whole.unlink()
    onnx.checker.check_model(str(path))


def _golden_images(model: Any, folder: Path, file: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    names, pixels = [], []
    for index in range(3):
        noise = np.random.default_rng(index).integers(0, 256, (9, 11, 3), dtype=np.uint8)
        image = Image.fromarray(noise).resize((90, 70), Image.Resampling.BICUBIC)
        names.append(f"golden/{index}.png")
        image.save(folder / names[-1])
        pixels.append(np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BICUBIC)))
    stacked = np.stack(pixels)
    values = (torch.from_numpy(stacked).permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.5
    with torch.no_grad():
        rows = nn.functional.normalize(model.vision_model(pixel_values=values).pooler_output, dim=-1).numpy()
    np.savez(folder / "golden/vision.npz", pixels=stacked, embeddings=rows)
    return {**file("golden/vision.npz"), "images": names}


def _golden_texts(model: Any, folder: Path, file: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    texts = ["a passport", "code", "a chest x-ray"]
    tokenizer = character_tokenizer()
    ids = [tokenizer.encode(text).ids for text in texts]
    padded = [[*row, *[0] * (LENGTH - len(row))] for row in ids]
    with torch.no_grad():
        pooled = model.text_model(input_ids=torch.tensor(padded)).pooler_output
        rows = nn.functional.normalize(pooled, dim=-1).numpy()
    vectors = {"texts": texts, "token_ids": padded, "embeddings": rows.tolist()}
    (folder / "golden/text.json").write_text(json.dumps(vectors))
    return file("golden/text.json")
