"""bfloat16 needs an extra and a processor that has it; whatever this machine is, there is one right answer."""

from __future__ import annotations

import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from checkpoint_makers import Make

from router.export.errors import ExportError
from router.export.hub import fetch
from router.export.pack import Exported, export_pack
from router.inference.gate import check_text
from router.inference.open import open_text_model
from router.packs.store import open_pack


def export(made: Make, to: Path) -> Exported:
    checkpoint = fetch(str(made("sentence_encoder", "modernbert", "mean")), None, lambda step: None)
    return export_pack(checkpoint, to, "bf16", force=False, allow_drift=False, progress=lambda step: None)


def obstacle() -> str:
    """What the error says that is expected on this machine; empty where bfloat16 runs."""
    if importlib.util.find_spec("openvino") is None:
        return r"pip install \"pointsman\[openvino\]\""
    import openvino

    capabilities = openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    return "" if "BF16" in capabilities else "which this processor does not have"


def test_bf16_serves_what_its_reference_means_or_says_what_it_lacks(made: Make, tmp_path: Path) -> None:
    if expected := obstacle():
        with pytest.raises(ExportError, match=expected):
            export(made, tmp_path / "pack")
        assert list(tmp_path.iterdir()) == []
        return
    parity = export(made, tmp_path / "pack").parity["text"]
    assert parity.worst >= parity.gate == 0.9995
    assert parity.worst < 0.9999999, "float32 would be nearer: bfloat16 was not used"
    pack = open_pack(str(tmp_path / "pack"), "text", Path("/nowhere"))
    model = open_text_model(pack)
    assert model.providers == ("OpenVINO CPU bfloat16",)
    assert check_text(pack, model) == []
    windows = [
        model.window(model.tokenise(f"a photo of {word} and a train"), 0) for word in ("cats", "my house", "dogs")
    ]
    alone = [model.forward([window])[0] for window in windows]
    with ThreadPoolExecutor(3) as threads:
        rows = list(threads.map(lambda index: model.forward([windows[index % 3]])[0], range(30)))
    assert all(np.array_equal(row, alone[index % 3]) for index, row in enumerate(rows))


def test_a_processor_without_bfloat16_is_told_which_precisions_it_can_run(
    made: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Core:
        def get_property(self, *_: Any) -> list[str]:
            return ["FP32", "INT8"]

    monkeypatch.setitem(sys.modules, "openvino", SimpleNamespace(Core=Core))
    with pytest.raises(ExportError, match=r"this processor does not have .* as fp32 or int8"):
        export(made, tmp_path / "pack")
