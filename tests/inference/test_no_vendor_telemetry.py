from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
from pathlib import Path
from router.inference.open import open_text_model
from router.packs.store import open_pack
open_text_model(open_pack("starter", "text", Path("/nowhere")), Path.home() / "weights")
"""


def test_opening_a_model_leaves_nothing_of_the_run_times_vendor_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    environment.pop("XDG_CACHE_HOME", None)
    subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["weights"]
