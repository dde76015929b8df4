"""The reference's side of text and pixels: token ids and image arrays as transformers makes them. Imports transformers.

Models are `checkpoints.py`'s business.
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import transformers
from numpy.typing import NDArray
from PIL import Image
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
from transformers.models.siglip2.image_processing_pil_siglip2 import Siglip2ImageProcessorPil

from router.export.checkpoint_files import read_json_if_there, require_tokenizer
from router.export.errors import ExportError, one_line
from router.export.images import Preprocessing
from router.export.kinds import Kind
from router.packs.manifest import PatchGrid


class ReferenceTokenizer:
    """The checkpoint's own tokenizer."""

    def __init__(self, folder: Path, kind: Kind, max_tokens: int, fixed_length: bool) -> None:
        """Raises ExportError when there is none, or transformers cannot load it."""
        require_tokenizer(folder)
        try:
            with quiet():
                self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
                    folder, local_files_only=True, trust_remote_code=False
                )
        except Exception as error:  # transformers raises whatever its parts raise
            raise ExportError(_why(folder, error)) from error
        self._lower = kind in (Kind.SIGLIP, Kind.SIGLIP2_NAFLEX)
        self._padding = "max_length" if fixed_length else False
        self._max_tokens = max_tokens

    @property
    def pad_id(self) -> int:
        """The id of padding."""
        pad = self._tokenizer.pad_token_id
        if pad is None:
            raise ExportError("the checkpoint's tokenizer has no padding token")
        return int(pad)

    def ids(self, text: str) -> list[int]:
        """Token ids with special tokens, truncated, and padded for a tower of fixed length.

        SigLIP's texts are lower-cased first, as its training did; SigLIP2's tokenizer leaves that to its caller.
        """
        with quiet():
            encoded = self._tokenizer(
                text.lower() if self._lower else text,
                truncation=True,
                max_length=self._max_tokens,
                padding=self._padding,
            )
        return [int(number) for number in encoded["input_ids"]]


def _why(folder: Path, error: Exception) -> str:
    said = read_json_if_there(folder / "tokenizer_config.json").get("tokenizer_class")
    if said in ("SiglipTokenizer", "T5Tokenizer") and not (folder / "spiece.model").is_file():
        return (
            f"{folder / 'spiece.model'} is missing, the sentencepiece model that its tokenizer is ({said} in "
            "tokenizer_config.json); put the one of its publisher there"
        )
    return f"{folder}: the checkpoint's own tokenizer cannot be loaded ({one_line(error)}); fetch its files again"


class ReferenceImages:
    """The checkpoint's own image processor, the one that resizes with Pillow."""

    def __init__(self, preprocessing: Preprocessing, patches: PatchGrid | None) -> None:
        """Made from what the checkpoint's preprocessor_config.json says."""
        with quiet():
            config = preprocessing.config
            if patches is None:
                self._processor: Any = SiglipImageProcessorPil(**config)
                return
            del config["size"]
            config |= {"patch_size": patches.patch, "max_num_patches": patches.max_patches}
            self._processor = Siglip2ImageProcessorPil(**config)

    def feed(self, image: Image.Image) -> dict[str, NDArray[Any]]:
        """What the model takes for an RGB image, one row each."""
        with quiet():
            batch = self._processor(images=image, return_tensors="np")
        feed = {str(key): np.asarray(value) for key, value in batch.items()}
        return {key: value.astype(np.float32 if key == "pixel_values" else np.int64) for key, value in feed.items()}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Transformers advises its own developers on standard error, and draws bars there."""
    advice: Any = transformers.utils.logging
    bars = advice.is_progress_bar_enabled()
    advice.disable_progress_bar()
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
        if bars:
            advice.enable_progress_bar()
