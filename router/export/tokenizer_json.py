"""Makes the `tokenizer.json` that serves, so that tokenising needs neither transformers nor sentencepiece at run time.

SigLIP ships a sentencepiece model and Python code around it; here that becomes one file that the library `tokenizers`
reads. The result is held against the reference tokenizer at every export.
"""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

from sentencepiece import sentencepiece_model_pb2  # type: ignore[import-not-found,import-untyped,unused-ignore]
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer

from router.export.checkpoint_files import AGAIN, read_json_if_there, require_tokenizer
from router.export.errors import ExportError, one_line
from router.export.kinds import Kind

# What Python's \s matches; the regular expressions of tokenizers leave out the four separators 1C to 1F.
_WHITE = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_META = "\u2581"


def build_tokenizer(folder: Path, kind: Kind) -> Tokenizer:
    """The checkpoint's tokenizer for a tower of this kind; raises ExportError."""
    require_tokenizer(folder)
    if kind is Kind.SIGLIP and (folder / "spiece.model").is_file():
        return from_sentencepiece((folder / "spiece.model").read_bytes(), str(folder / "spiece.model"))
    tokenizer = _as_shipped(folder)
    if kind in (Kind.SIGLIP, Kind.SIGLIP2_NAFLEX):
        return _gemma(tokenizer, read_json_if_there(folder / "tokenizer_config.json"))
    return tokenizer


def from_sentencepiece(model: bytes, place: str = "spiece.model") -> Tokenizer:
    """SigLIP's tokenizer: lower case, no ASCII punctuation, one blank between words, unigram pieces, `</s>` behind.

    A `</s>` that a user wrote is text here; the reference would take it for the end. Raises ExportError,
    which names `place`.
    """
    proto = sentencepiece_model_pb2.ModelProto()
    try:
        proto.ParseFromString(model)
    except Exception as error:  # protobuf's DecodeError has moved between its releases
        raise ExportError(f"{place} is not a sentencepiece model; {AGAIN}") from error
    if not proto.pieces:
        raise ExportError(f"{place} holds no pieces; {AGAIN}")
    if proto.trainer_spec.model_type != 1 or proto.trainer_spec.byte_fallback:
        raise ExportError(f"{place} is not a unigram model without byte fallback, as SigLIP's is")
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    ids = {piece: index for index, (piece, _) in enumerate(pieces)}
    if "</s>" not in ids:
        raise ExportError(f"{place} has no </s>, which ends every text of SigLIP's")
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=proto.trainer_spec.unk_id, byte_fallback=False))
    charsmap = proto.normalizer_spec.precompiled_charsmap
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(_META, " "),
            *_lowercase(),
            normalizers.Replace(Regex(f"[{_escaped(string.punctuation)}]"), ""),
            normalizers.Replace(Regex(f"[{_WHITE}]+"), " "),
            normalizers.Strip(),
            *([normalizers.Precompiled(charsmap)] if charsmap else []),
            normalizers.Replace(Regex(" +"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=_META, prepend_scheme="always", split=False)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", ids["</s>"])])
    return tokenizer


def _as_shipped(folder: Path) -> Tokenizer:
    path = folder / "tokenizer.json"
    if path.is_file():
        try:
            return Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise ExportError(
                f"{path} is not a tokenizer.json that this version of tokenizers reads; {AGAIN}"
            ) from error
    return _converted(folder)


def _converted(folder: Path) -> Tokenizer:
    """What transformers makes of a vocabulary or a sentencepiece model; raises ExportError."""
    try:
        loaded: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # transformers raises whatever its parts raise
        raise ExportError(
            f"{folder} has no tokenizer.json, and its tokenizer cannot be converted to one ({one_line(error)}); put "
            "the tokenizer.json of its publisher there"
        ) from error
    return Tokenizer.from_str(loaded.backend_tokenizer.to_str())


def _gemma(tokenizer: Tokenizer, config: dict[str, Any]) -> Tokenizer:
    """SigLIP2's: it was trained on lower-cased text with `<eos>` behind, which its files may leave to transformers."""
    before = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
    tokenizer.normalizer = normalizers.Sequence([*_lowercase(), *before])
    if tokenizer.post_processor is not None:
        return tokenizer
    first = ["<bos>"] if config.get("add_bos_token", False) else []
    last = ["<eos>"] if config.get("add_eos_token", True) else []
    ids = [(token, tokenizer.token_to_id(token)) for token in (*first, *last)]
    if any(number is None for _, number in ids):
        raise ExportError("tokenizer.json has no <bos> or <eos>, which Gemma's has")
    tokenizer.post_processor = processors.TemplateProcessing(single=" ".join([*first, "$A", *last]), special_tokens=ids)
    return tokenizer


def _lowercase() -> list[Any]:
    """As Python's str.lower, which writes a capital sigma at a word's end in its final form."""
    cased = r"[\p{Lu}\p{Ll}\p{Lt}]"
    ignored = r"[\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}'.:·’‧]"
    # Lookbehind has a fixed length, so at most two marks may stand between.
    behind = "|".join(f"(?<={cased}{ignored * marks})" for marks in range(3))
    return [
        normalizers.Replace(Regex(f"(?:{behind})Σ(?!{ignored}*{cased})"), "ς"),
        normalizers.Lowercase(),
    ]


def _escaped(characters: str) -> str:
    return "".join(f"\\{character}" for character in characters)


def as_bytes(tokenizer: Tokenizer) -> bytes:
    """The file's bytes, without the lengths that published files bake in: the run time pads and truncates."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return (json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n").encode()
