"""What exporting promises at the size of a published checkpoint; `tests/bench/precisions.py` measures how well.

The text tower is cut to two layers, which saves a quarter of the time; the bench has it whole.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from full_size import (
    Expected,
    TorchSiglip,
    equal_ids,
    equal_pixels,
    expected_of,
    image_cosines,
    open_towers,
    text_cosines,
    write_siglip_base,
)

from router.export.hub import fetch
from router.export.pack import export_pack
from router.packs.parts import Precision

pytestmark = pytest.mark.slow


def runs_bf16() -> bool:
    """Whether OpenVINO is installed and the processor has bfloat16."""
    if importlib.util.find_spec("openvino") is None:
        return False
    import openvino

    return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


LEAST: dict[Precision, float] = {"fp32": 0.99999, "int8": 0.999} | ({"bf16": 0.9995} if runs_bf16() else {})


@pytest.fixture(scope="module")
def checkpoint() -> Iterator[Path]:
    """Not in pytest's folder, which keeps gigabytes of the last runs."""
    with TemporaryDirectory(prefix="siglip-base-") as folder:
        yield write_siglip_base(Path(folder) / "siglip-base", text_layers=2)


@pytest.fixture(scope="module")
def expected(checkpoint: Path) -> Expected:
    return expected_of(TorchSiglip(checkpoint))


@pytest.mark.parametrize("precision", LEAST)
def test_the_whole_pipeline_means_what_pytorch_means_by_every_image_and_text_of_the_corpus(
    checkpoint: Path, expected: Expected, precision: Precision
) -> None:
    source, pack = fetch(str(checkpoint), None, lambda step: None), checkpoint.with_name(precision)
    export_pack(source, pack, precision, force=False, allow_drift=False, progress=lambda step: None)
    vision, text = open_towers(pack)
    assert equal_pixels(vision, expected) == len(expected.files) == 20
    assert equal_ids(text, expected) == len(expected.ids)
    assert image_cosines(vision, expected).min() >= LEAST[precision]
    assert text_cosines(text, expected).min() >= LEAST[precision]
