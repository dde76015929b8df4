"""Makes the running workers of tests/extproc importable, also when this folder is tested alone."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
