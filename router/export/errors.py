"""What can go wrong between a checkpoint and a pack, said so that an operator knows what to do."""

from __future__ import annotations

import importlib.util

NEEDED = ("torch", "transformers", "huggingface_hub", "onnx", "safetensors", "sentencepiece")


class ExportError(Exception):
    """A pack that cannot be made, or a checkpoint that cannot be had. The message is for the operator."""


def require_extra() -> None:
    """Raises ExportError, with the command that helps, unless the extra `export` is installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ExportError(
            f'exporting needs {", ".join(missing)}, not installed here: pip install "pointsman[export]". '
            "Serving a pack needs none of it"
        )
