from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import checkpoint_makers
import pytest
from checkpoint_makers import Make
from stand_in_hub import StandInHub, serving


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """`made("siglip", gemma=True)`: the folder of a small checkpoint, made once a session. Not to be changed."""
    folders: dict[str, Path] = {}

    def make(name: str, *args: Any, **kwargs: Any) -> Path:
        key = f"{name}{args}{sorted(kwargs.items())}"
        if key not in folders:
            folders[key] = getattr(checkpoint_makers, name)(
                tmp_path_factory.mktemp("checkpoint") / name, *args, **kwargs
            )
        return folders[key]

    return make


@pytest.fixture(scope="session")
def packed(made: Make, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """`packed("siglip", precision="int8")`: the folder of the pack that is exported from `made`. Not to be changed."""
    from router.export.hub import fetch
    from router.export.pack import export_pack

    folders: dict[str, Path] = {}

    def make(name: str, *args: Any, precision: Any = "fp32", allow_drift: bool = False, **kwargs: Any) -> Path:
        key = f"{name}{args}{sorted(kwargs.items())}{precision}"
        if key not in folders:
            checkpoint = fetch(str(made(name, *args, **kwargs)), None, lambda step: None)
            to = tmp_path_factory.mktemp("pack") / f"{name}-{precision}"
            export_pack(checkpoint, to, precision, force=False, allow_drift=allow_drift, progress=lambda step: None)
            folders[key] = to
        return folders[key]

    return make
