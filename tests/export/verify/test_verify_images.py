"""The corpus: what it holds, and that it is decoded here as it is served."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from router.export.verify.images import CORPUS, corpus_files, read_image
from router.export.verify.pixels import resize_without_antialias
from router.request.images import ImageLimits, decode

NAMES = [path.name for path in corpus_files()]


def test_there_are_twenty_files_of_less_than_a_megabyte() -> None:
    assert len(NAMES) == 20
    whole = sum(path.stat().st_size for path in CORPUS.parent.rglob("*") if path.is_file())
    assert whole < 1_000_000


def test_every_format_and_mode_that_clients_send_is_there() -> None:
    opened = {}
    for path in corpus_files():
        with Image.open(path) as image:
            opened[path.name] = (image.format, image.mode, image.getexif().get(0x0112, 1))
    assert {each[0] for each in opened.values()} == {"PNG", "JPEG", "WEBP", "GIF"}
    assert {"RGB", "RGBA", "L", "LA", "P", "1", "CMYK", "I;16"} <= {each[1] for each in opened.values()}
    assert {each[2] for each in opened.values()} == {1, 6}


@pytest.mark.parametrize("name", NAMES)
def test_what_verifies_and_what_serves_decode_alike(name: str) -> None:
    image = read_image(CORPUS / name, name)
    served = decode(image.data, ImageLimits(frames=1_000))
    assert image.upright.mode == "RGB"
    assert np.array_equal(np.asarray(image.upright), np.asarray(served))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_a_resize_without_antialias_is_what_tensors_get(mode: str) -> None:
    import torch

    path: Path = CORPUS / NAMES[0]
    with Image.open(path) as image:
        tensor = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].double()
        theirs = torch.nn.functional.interpolate(tensor, (37, 61), mode=mode, align_corners=False)
        ours = resize_without_antialias(image, (37, 61), Image.Resampling[mode.upper()])
    assert np.allclose(ours, theirs[0].permute(1, 2, 0).clamp(0, 255).numpy(), atol=1e-3)
