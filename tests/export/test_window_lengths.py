"""How many tokens a window of an exported text model has: the least that the checkpoint's files name."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from router.export.checkpoints import LONGEST_WINDOW, _window


@pytest.mark.parametrize(
    ("positions", "tokenizer", "sentences", "window"),
    [
        (512, None, None, 512),
        (512, 128, None, 128),
        (512, 512, 256, 256),
        (512, 1e30, 256, 256),
        (128, 512, 256, 128),
        (512, None, 4, 512),
        (512, None, "256", 512),
        (1 << 20, None, None, LONGEST_WINDOW),
    ],
)
def test_the_least_of_what_the_files_name_is_taken(
    tmp_path: Path, positions: int, tokenizer: Any, sentences: Any, window: int
) -> None:
    if tokenizer is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": tokenizer}))
    if sentences is not None:
        (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": sentences}))
    assert _window(SimpleNamespace(max_position_embeddings=positions), tmp_path) == window
