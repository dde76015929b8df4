from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights")


collect_ignore = [] if "POINTSMAN_DATA" in os.environ else ["test_starter_vision_figures.py"]


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Files of tests run side by side: what PyTorch's threads gain alone, they lose then in waiting for each other."""
    import torch

    torch.set_num_threads(1)
