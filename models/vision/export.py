"""Make the pack from a training run: weights, graph, calibration, golden vectors, manifest.

    python -m models.vision.export RUN [average-N.pt ...] --data IMAGES/train [--out models/starter-vision]

One weights file serves both the reference and the served graph: the graph's initialisers point into
`vision.safetensors`. The folder is written beside its place and then swapped in, so that it is never half of one pack
and half of another.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import yaml
from onnx import TensorProto
from PIL import Image
from safetensors.torch import save_file

from models.rendering import BUNDLED_FONT, FIRST_UNSEEN_SEED, render
from models.rendering.art import Art
from models.rendering.nowhere import NOWHERE

from .augment import SIZE
from .bank import build
from .calibrate import calibrate
from .collection import KEPT_SHARE, collected
from .pack import PACK, Preprocessing, VisionPack, rgb, sha256
from .phrases import load
from .text import TextTower
from .tower import MEAN, STD, Tower
from .train import embed_images, normalised
from .weights import averaged

STRANGE = "blot"
"""A golden image of nothing known: on the others the gate does next to nothing, so that its drift would not show."""
GOLDEN = (("passport", "png"), ("chest_radiograph", "jpg"), ("code", "png"), ("car", "jpg"), ("landscape", "jpg"))
MIN_COSINE = 0.99999
DESCRIPTION = (
    "SigLIP-trained image tower: EfficientNet-Lite0 trunk, attention pooling head, a gate against strange images, "
    "in MiniLM's space"
)


def write_weights(tower: Tower, file: Path) -> None:
    """All float32 tensors under the names of the module."""
    tensors = {
        name: tensor.contiguous() for name, tensor in tower.state_dict().items() if tensor.dtype == torch.float32
    }
    save_file(tensors, str(file), metadata={"format": "pt"})
    file.chmod(0o644)


def _header(file: Path) -> tuple[dict[str, Any], int]:
    with file.open("rb") as opened:
        size = int.from_bytes(opened.read(8), "little")
        return json.loads(opened.read(size)), 8 + size


def write_graph(tower: Tower, weights: Path, file: Path, size: int) -> None:
    """Export without folding, then let every weight point into the safetensors file."""
    torch.onnx.export(
        tower.eval(),
        (torch.zeros(2, 3, size, size),),
        str(file),
        input_names=["pixel_values"],
        output_names=["image_embeds"],
        dynamic_axes={"pixel_values": {0: "n"}, "image_embeds": {0: "n"}},
        opset_version=17,
        do_constant_folding=False,
        dynamo=False,
        training=torch.onnx.TrainingMode.PRESERVE,
    )
    tower.eval()
    model = onnx.load(str(file))
    entries, start = _header(weights)
    inside = 0
    for tensor in model.graph.initializer:
        entry = entries.get(tensor.name)
        if entry is None:
            continue
        if list(tensor.dims) != entry["shape"] or tensor.data_type != TensorProto.FLOAT:
            raise ValueError(f"{tensor.name} differs between the graph and the weights file")
        first, last = entry["data_offsets"]
        tensor.ClearField("raw_data")
        tensor.ClearField("float_data")
        tensor.data_location = TensorProto.EXTERNAL
        del tensor.external_data[:]
        for key, value in (("location", weights.name), ("offset", start + first), ("length", last - first)):
            tensor.external_data.add(key=key, value=str(value))
        inside += 1
    if inside < len(entries) - 2:
        raise ValueError(f"only {inside} of {len(entries) - 1} tensors are used by the graph")
    onnx.save(model, str(file))


def _golden(kind: str, seed: int) -> Image.Image:
    if kind != STRANGE:
        return render(kind, seed, BUNDLED_FONT)
    return NOWHERE[kind](Art(random.Random(f"{kind}:{seed}"), BUNDLED_FONT)).convert("RGB")


def write_golden(tower: Tower, folder: Path, preprocessing: Preprocessing) -> list[str]:
    """Render the golden images and embed them with PyTorch; returns their names."""
    folder.mkdir()
    names = []
    for index, (kind, ending) in enumerate((*GOLDEN, (STRANGE, "jpg"))):
        image = _golden(kind, FIRST_UNSEEN_SEED + 500 + index)
        image.thumbnail((360, 360))
        file = folder / f"{index:03d}.{ending}"
        if ending == "jpg":
            image.save(file, quality=90)
        else:
            image.quantize(128).convert("RGB").save(file, optimize=True)
        names.append(file.name)
    names.sort()
    pixels = np.stack([preprocessing.pixels(rgb(folder / name)) for name in names])
    with torch.no_grad():
        embeddings = tower(torch.from_numpy(preprocessing.values(pixels))).numpy()
    np.savez_compressed(folder / "vision.npz", pixels=pixels, embeddings=embeddings.astype(np.float32))
    return names


def export(tower: Tower, data: Path, share: float, out: Path, size: int, cache: Path) -> None:
    """Make the pack and swap it in."""
    phrases = load()
    bank = build(phrases, cache)
    _, held_out = collected(data, share)
    images = embed_images(tower, held_out, size)
    labels = np.array([bank.names.index(item.label) for item in held_out])
    text = TextTower()
    kept = [
        (bank.names.index(name), phrase)
        for name in bank.names
        if name != "payment_card"
        for phrase in phrases.held_out[name]
    ]
    vectors = np.concatenate([bank.vectors[:, 0], text.embed([phrase for _, phrase in kept])])
    owners = np.concatenate([bank.group, np.array([index for index, _ in kept])])
    # Phrases that are true of some images of a class only would blur the fit.
    general = np.ones(len(owners), dtype=bool)
    general[list(bank.only_kinds)] = False
    fitted = calibrate(images, labels, vectors[general], owners[general])
    print("calibration", json.dumps(asdict(fitted)))

    preprocessing = Preprocessing((size, size), Image.Resampling.BICUBIC, (MEAN,) * 3, (STD,) * 3)
    with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
        folder = Path(temporary) / out.name
        folder.mkdir()
        write_weights(tower, folder / "vision.safetensors")
        write_graph(tower, folder / "vision.safetensors", folder / "vision.onnx", size)
        names = write_golden(tower, folder / "golden", preprocessing)
        manifest = {
            "format": 1,
            "name": out.name,
            "licence": "Apache-2.0",
            "description": DESCRIPTION,
            "space": "all-MiniLM-L6-v2",
            "vision": {
                "graph": {"path": "vision.onnx", "sha256": sha256(folder / "vision.onnx")},
                "weights": [{"path": "vision.safetensors", "sha256": sha256(folder / "vision.safetensors")}],
                "precision": "fp32",
                "input": "pixel_values",
                "output": "image_embeds",
                "dimension": 384,
                "size": [size, size],
                "resample": "bicubic",
                "mean": [MEAN] * 3,
                "std": [STD] * 3,
                "logit_scale": round(fitted.scale, 4),
                "logit_bias": round(fitted.bias, 4),
                "golden": {
                    "path": "golden/vision.npz",
                    "sha256": sha256(folder / "golden/vision.npz"),
                    "images": [
                        {"path": f"golden/{name}", "sha256": sha256(folder / "golden" / name)} for name in names
                    ],
                    "min_cosine": MIN_COSINE,
                },
            },
        }
        (folder / "pack.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False, width=120), encoding="utf-8")
        _prove(VisionPack(folder), tower, [folder / "golden" / name for name in names])
        card = out / "README.md"
        if card.is_file():
            shutil.copy2(card, folder / card.name)
        old = Path(temporary) / "old"
        if out.exists():
            out.rename(old)
        folder.rename(out)
    print(f"wrote {out}")


def _prove(pack: VisionPack, tower: Tower, files: list[Path]) -> None:
    pixels = np.stack([pack.preprocessing.pixels(rgb(file)) for file in files])
    with torch.no_grad():
        reference = tower(torch.from_numpy(pack.preprocessing.values(pixels))).numpy()
        trained = tower(normalised(pixels)).numpy()
    served = pack.embed(files)
    worst = min(float((reference * served).sum(1).min()), float((trained * served).sum(1).min()))
    print(f"smallest cosine between reference and served graph on the golden images: {worst:.8f}")
    if worst < MIN_COSINE:
        raise SystemExit("the exported graph does not mean what the reference means")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="+", help="runs, average-N.pt or .safetensors; their mean is taken")
    parser.add_argument("--data", type=Path, required=True, help="the collected images that the run used")
    parser.add_argument("--kept", type=float, default=KEPT_SHARE, help="share of them that the last stage held out")
    parser.add_argument("--out", type=Path, default=PACK)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--cache", type=Path, required=True, help="embeddings of the phrases")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tower = averaged(arguments.weights)
    export(tower, arguments.data, arguments.kept, arguments.out, arguments.size, arguments.cache)


if __name__ == "__main__":
    main()
