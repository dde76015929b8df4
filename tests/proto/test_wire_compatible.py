"""Our subset of Envoy's API is the API's on the wire, message by message."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from router.extproc.service import SERVICE_NAME
from router.proto import ext_proc_pb2
from tests.system_packages import xds_python

NAMES = [*ext_proc_pb2.DESCRIPTOR.message_types_by_name, "ExternalProcessor"]


@pytest.fixture(scope="module")
def problems() -> dict[str, list[str]]:
    """What differs, by message."""
    script = Path(__file__).with_name("compare_with_xds.py")
    python = xds_python()
    assert python is not None, "`python -m tests.system_packages`, as `make test` runs it, makes what this needs"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    run = subprocess.run([python, script], env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_every_message_is_compared(problems: dict[str, list[str]]) -> None:
    assert set(problems) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_message_is_the_published_one_on_the_wire(problems: dict[str, list[str]], name: str) -> None:
    assert problems[name] == []


def test_the_service_is_served_under_envoys_name_from_a_package_of_our_own() -> None:
    assert SERVICE_NAME == "envoy.service.ext_proc.v3.ExternalProcessor"
    assert ext_proc_pb2.DESCRIPTOR.package.startswith("pointsman.")
