"""Makes the policies of tests/policy and the worker of tests/extproc importable."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("policy", "extproc")]
