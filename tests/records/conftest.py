"""Makes the policies of tests/policy and the worker of tests/extproc importable; a PostgreSQL server where one is asked
for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import Server, running

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("policy", "extproc")]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with running() as server:
        yield server
