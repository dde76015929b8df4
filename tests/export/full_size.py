"""SigLIP at the size that is published (base-patch16-224) with seeded weights, and how near a pack of it comes.

The reference here is transformers alone: its own model, image processor and tokenizer, nothing of the exporter's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import checkpoint_makers as make
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from router.export.verify.images import corpus_files, read_image
from router.export.verify.isolate import FILE_LIMITS
from router.export.verify.texts import TEXTS
from router.inference.open import open_text_model, open_vision_model
from router.inference.text_model import TextModel
from router.inference.vision_model import VisionModel
from router.packs.store import open_pack

Floats = NDArray[np.float32]

OUTLIER_GAIN = 15
OUTLIER_CHANNELS = (7, 300, 611)


def write_siglip_base(folder: Path, *, outliers: bool = False, text_layers: int = 12) -> Path:
    """With `outliers` three channels of every LayerNorm before a block are much larger, as trained models have them.

    With fewer `text_layers` than published all goes faster, and the image tower is the same.
    """
    import torch
    import transformers

    make.siglip_tokenizer(folder)
    config = transformers.SiglipConfig(text_config={"num_hidden_layers": text_layers})
    with make.quiet():
        torch.manual_seed(11)
        model = transformers.SiglipModel(config).eval()
    with torch.no_grad():
        model.logit_scale.fill_(4.77)
        model.logit_bias.fill_(-16.5)
        if outliers:
            for layer in (*model.vision_model.encoder.layers, *model.text_model.encoder.layers):
                for norm in (layer.layer_norm1, layer.layer_norm2):
                    norm.weight[list(OUTLIER_CHANNELS)] *= OUTLIER_GAIN
    make.save(model, folder)
    make.write_json(folder / "preprocessor_config.json", make.siglip_pixels(224))
    return folder


class TorchSiglip:
    """The reference: every call takes one input."""

    def __init__(self, folder: Path) -> None:
        import transformers

        with make.quiet():
            self.model: Any = transformers.SiglipModel.from_pretrained(folder).eval()
            self.processor: Any = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
            self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)

    def pixels(self, image: Image.Image) -> Floats:
        """(1, 3, 224, 224) of an RGB image."""
        with make.quiet():
            pixels: Floats = self.processor(images=image, return_tensors="np")["pixel_values"]
        return pixels

    def ids(self, text: str) -> NDArray[np.int64]:
        """(1, 64)."""
        with make.quiet():
            encoded = self.tokenizer(text.lower(), padding="max_length", truncation=True, max_length=64)
        return np.array([encoded["input_ids"]], dtype=np.int64)

    def image(self, pixels: Floats) -> Floats:
        """A unit vector."""
        import torch

        with torch.no_grad():
            return unit(self.model.vision_model(pixel_values=torch.from_numpy(pixels)).pooler_output[0].numpy())

    def text(self, ids: NDArray[np.int64]) -> Floats:
        """A unit vector."""
        import torch

        with torch.no_grad():
            return unit(self.model.text_model(input_ids=torch.from_numpy(ids)).pooler_output[0].numpy())


@dataclass(frozen=True)
class Expected:
    """What the reference makes of the corpus: image files and texts."""

    files: Sequence[bytes] = field(repr=False)
    pixels: Sequence[Floats] = field(repr=False)
    ids: Sequence[NDArray[np.int64]] = field(repr=False)
    images: Floats = field(repr=False)
    texts: Floats = field(repr=False)


def expected_of(reference: TorchSiglip) -> Expected:
    """Over the twenty images and all texts that packs are verified with."""
    corpus = [read_image(path, path.name) for path in corpus_files()]
    pixels = [reference.pixels(each.upright) for each in corpus]
    ids = [reference.ids(text) for text in TEXTS]
    return Expected(
        [each.data for each in corpus],
        pixels,
        ids,
        np.stack([reference.image(each) for each in pixels]),
        np.stack([reference.text(each) for each in ids]),
    )


def open_towers(folder: Path) -> tuple[VisionModel, TextModel]:
    """A pack's towers as a worker opens them, each on one thread."""
    vision = open_vision_model(open_pack(str(folder), "vision", folder), FILE_LIMITS)
    return vision, open_text_model(open_pack(str(folder), "text", folder))


def image_cosines(vision: VisionModel, expected: Expected) -> Floats:
    """The whole pipeline from a file's bytes on, one cosine an image."""
    return cosines(np.stack([vision.encode(data) for data in expected.files]), expected.images)


def text_cosines(text: TextModel, expected: Expected) -> Floats:
    """The whole pipeline from a string on, the first window of each text."""
    rows = [text.forward([text.window(text.tokenise(each), 0)])[0] for each in TEXTS]
    return cosines(np.stack(rows), expected.texts)


def equal_pixels(vision: VisionModel, expected: Expected) -> int:
    """How many images reach the graph bit by bit as the reference's processor makes them."""
    served = [vision.feed(vision.preprocess(data)[None])["pixel_values"] for data in expected.files]
    return sum(np.array_equal(ours, theirs) for ours, theirs in zip(served, expected.pixels, strict=True))


def equal_ids(text: TextModel, expected: Expected) -> int:
    """How many texts get the reference's token ids."""
    served = [text.window(text.tokenise(each), 0) for each in TEXTS]
    return sum(np.array_equal(ours, theirs[0]) for ours, theirs in zip(served, expected.ids, strict=True))


def cosines(ours: Floats, theirs: Floats) -> Floats:
    """One a row, in double precision."""
    left, right = ours.astype(np.float64), theirs.astype(np.float64)
    result: Floats = (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
    return result


def unit(row: Floats) -> Floats:
    """Of length one."""
    result: Floats = row / np.linalg.norm(row)
    return result
