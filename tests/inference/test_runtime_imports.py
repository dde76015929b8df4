from __future__ import annotations

import subprocess
import sys

IMPORT_ALL = """
import importlib, pkgutil, sys
import router
for module in pkgutil.walk_packages(router.__path__, "router."):
    if not module.name.startswith("router.export."):
        importlib.import_module(module.name)
found = sorted({name.split(".")[0] for name in sys.modules} & {"torch", "transformers", "onnx", "all_minilm_l6_v2"})
sys.exit(f"imported at run time: {found}" if found else 0)
"""


def test_no_module_that_serves_imports_torch_or_transformers() -> None:
    ran = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
