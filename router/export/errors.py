"""What can go wrong between a checkpoint and a pack, said so that an operator knows what to do."""

from __future__ import annotations

import importlib.util

NEEDED = ("torch", "transformers", "huggingface_hub", "onnx", "safetensors", "sentencepiece")


class ExportError(Exception):
    """A pack that cannot be made, or a checkpoint that cannot be had. The message is for the operator."""


class WrongUseError(ExportError):
    """What was asked for cannot be meant: a source or target that is not there, or is something else."""


def require_extra() -> None:
    """Raises ExportError, with the command that helps, unless the extra `export` is installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ExportError(
            f'exporting needs {", ".join(missing)}, not installed here: pip install "pointsman[export]". '
            "Serving a pack needs none of it"
        )


def one_line(error: BaseException, most: int = 300) -> str:
    """A library's error as part of a sentence: its type, and its message in one line of at most `most` characters."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text if len(text) <= most else text[:most] + '...'}"
