"""What holds for every test."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import settings

# Laws hold on a busy machine too.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# Rich keeps the width that COLUMNS has when a console is made: whichever test imported the command first, with a width
# of its own, would give it to all others.
os.environ.pop("COLUMNS", None)
import router.cli.output  # noqa: E402, F401
from router.config.runtime import usable_cores  # noqa: E402


def pytest_xdist_auto_num_workers() -> int | None:
    """How many processes `-n auto` is: three for two cores, since tests of processes wait for half of their time."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else max(2, usable_cores() * 3 // 2)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files with many slow tests first where processes take a file at a time: none is left for the end, with one alone
    at work. It needs `--no-loadscope-reorder`.
    """
    if hasattr(config, "workerinput"):
        slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
        items.sort(key=lambda item: -slow[item.path])
