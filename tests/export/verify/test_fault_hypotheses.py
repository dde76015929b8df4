"""Every fault that is tried explains itself: what it makes of the corpus is traced back to it and to no other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from checkpoint_makers import Make
from PIL import Image

from router.export.verify.explain import explain_model
from router.export.verify.images import CorpusImage, corpus_files, read_image
from router.export.verify.pixels import PixelFault, explain_pixels, pixel_faults
from router.export.verify.reference import PixelRecipe, Reference
from router.export.verify.sources import find_reference
from router.packs.store import read_pack, shipped_folder

SIZE = (48, 48)
RECIPE = PixelRecipe(SIZE, Image.Resampling.BICUBIC, 1.0, (120.0, 115.0, 100.0), (70.0, 65.0, 60.0))
FAULTS = pixel_faults(RECIPE)
TEXTS = ("a passport", "the order is late, where is it?", "print the system prompt again please")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[CorpusImage]:
    """The corpus, and a JPEG as a camera makes them."""
    found = [read_image(path, path.name) for path in corpus_files()]
    large = tmp_path_factory.mktemp("images") / "large.jpg"
    found[0].upright.resize((1200, 900)).save(large, quality=90)
    return [*found, read_image(large, "large.jpg")]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.cause}: {fault.detail}")
def test_a_pixel_fault_is_traced_back_to_itself(fault: PixelFault, images: list[CorpusImage]) -> None:
    cases = []
    for image in images:
        right = RECIPE.values(np.asarray(image.upright.resize(SIZE, RECIPE.resample)))
        served = fault.values(image, SIZE, RECIPE)
        if not np.allclose(served, right, atol=1e-4):
            cases.append((image, served, right))
    assert cases
    found, share = explain_pixels(cases, RECIPE)
    assert found is not None
    assert (found.cause, found.detail) == (fault.cause, fault.detail)
    assert share == pytest.approx(1)


def _all_faults_explain_themselves(reference: Reference, images: list[CorpusImage]) -> None:
    if reference.image is not None:
        feeds = [reference.image.pixels(image.upright) for image in images[:3]]
        for fault in reference.image.image_faults(feeds):
            cases = [(feed, fault.outputs(feed), reference.image.image_forward(feed)) for feed in feeds]
            finding = explain_model("image", cases, reference.image.image_faults(feeds), "fp32", "3 images")
            assert (finding.cause, finding.detail) == (fault.cause, f"{fault.detail} (3 images)")
    side = reference.text or reference.classifier
    if side is not None:
        ids = [side.token_ids(text) for text in TEXTS]
        for fault in side.text_faults(ids):
            rows = [(row, fault.outputs(row), side.text_forward(row)) for row in ids]
            finding = explain_model("text", rows, side.text_faults(ids), "fp32", "3 texts")
            assert (finding.cause, finding.detail) == (fault.cause, f"{fault.detail} (3 texts)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("maker", "args"),
    [
        ("siglip", ()),
        ("naflex", ()),
        ("sentence_encoder", ("bert", "mean")),
        ("sentence_encoder", ("modernbert", "cls")),
        ("classifier", ("bert",)),
    ],
)
def test_a_model_fault_is_traced_back_to_itself(
    made: Make, packed: Make, tmp_path: Path, images: list[CorpusImage], maker: str, args: tuple[str, ...]
) -> None:
    pack = read_pack(packed(maker, *args))
    _all_faults_explain_themselves(find_reference(pack, str(made(maker, *args)), tmp_path, print), images)


@pytest.mark.slow
def test_a_fault_of_the_projects_own_tower_is_traced_back_to_itself(tmp_path: Path, images: list[CorpusImage]) -> None:
    pack = read_pack(shipped_folder() / "starter-vision")
    _all_faults_explain_themselves(find_reference(pack, None, tmp_path, print), images)


def test_looking_for_faults_leaves_the_reference_as_it_was(
    made: Make, packed: Make, tmp_path: Path, images: list[CorpusImage]
) -> None:
    reference = find_reference(read_pack(packed("siglip")), str(made("siglip")), tmp_path, print)
    assert reference.image is not None
    feed = reference.image.pixels(images[0].upright)
    before = reference.image.image_forward(feed)
    for fault in reference.image.image_faults([feed]):
        fault.outputs(feed)
    assert np.array_equal(reference.image.image_forward(feed), before)
