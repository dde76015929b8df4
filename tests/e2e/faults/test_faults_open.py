"""What clients see of each fault where failures are open."""

from __future__ import annotations

import pytest

from tests.e2e.faults.rows import Rows

pytestmark = pytest.mark.slow


class TestFailuresOpen(Rows):
    on_failure = "open"
