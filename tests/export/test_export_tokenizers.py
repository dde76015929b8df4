from __future__ import annotations

import itertools
import random
import string
import unicodedata
from collections.abc import Callable
from pathlib import Path

import checkpoint_makers as make
import pytest

from router.export.errors import ExportError
from router.export.kinds import Kind
from router.export.reference import ReferenceTokenizer
from router.export.tokenizer_json import as_bytes, build_tokenizer, from_sentencepiece

STRINGS = 3_000
LENGTH = 64

# Ranges that a caption or a chat may hold: scripts with and without case, marks, signs, controls, white space, emoji.
RANGES = (
    (0x20, 0x7E), (0x00, 0x1F), (0x7F, 0xA0), (0xA1, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF),
    (0x531, 0x587), (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x10A0, 0x10FF), (0x1100, 0x11FF),
    (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x218F), (0x2190, 0x23FF), (0x2460, 0x24FF), (0x2500, 0x26FF),
    (0x3000, 0x30FF), (0x3300, 0x33FF), (0x4E00, 0x4FFF), (0xAC00, 0xAD00), (0xFB00, 0xFB4F), (0xFE00, 0xFE0F),
    (0xFF00, 0xFFEF), (0x1D400, 0x1D4FF), (0x1F300, 0x1F6FF), (0x1F900, 0x1F9FF), (0xE0020, 0xE007F),
)  # fmt: skip
ODD = [
    "\u2581", "\u2581\u2581", "  ", "\t", "\n\n", "\x1c", "\x85", "\u3000", "\u200d", "\ufeff", "ΣΟΦΟΣ", "ΟΔΟΣ.", "Σ",
    "İ", "ǅ", "ß", "ﬁ", "½", "①", "e\u0301", "👩🏽‍⚕️", "🇩🇪", "[CLS]", "[SEP]", "<0x0A>", "<s>", "##a", "don't", "a.b,c!",
]  # fmt: skip


def strings(specials: list[str], count: int = STRINGS) -> list[str]:
    chance = random.Random(20)
    made = ["", " ", "a", *ODD, *specials, *(f"{odd}{odd}" for odd in ODD)]

    def some(pieces: Callable[[], str]) -> str:
        return "".join(pieces() for _ in range(chance.randint(1, 24)))

    def anywhere() -> str:
        low, high = chance.choice(RANGES)
        return chr(chance.randint(low, high))

    while len(made) < count:
        low, high = chance.choice(RANGES)
        words = " ".join(chance.choices(make.WORDS, k=chance.randint(1, 40)))
        made += [
            some(lambda low=low, high=high: chr(chance.randint(low, high))),  # type: ignore[misc]
            some(anywhere),
            some(lambda: chance.choice([*ODD, *make.WORDS, " ", anywhere()])),
            words,
            words.upper() + chance.choice(string.punctuation),
            words.title() + chance.choice(ODD) + (chance.choice(specials) if specials else ""),
        ]
    return made[:count]


def differing(folder: Path, kind: Kind, fixed: bool, texts: list[str]) -> list[str]:
    """Texts whose ids differ between the reference and the file that serves, both cut and padded to LENGTH."""
    from tokenizers import Tokenizer

    ours = Tokenizer.from_str(as_bytes(build_tokenizer(folder, kind)).decode())
    theirs = ReferenceTokenizer(folder, kind, LENGTH, fixed)
    ours.enable_truncation(LENGTH)
    if fixed:
        ours.enable_padding(length=LENGTH, pad_id=theirs.pad_id)
    return [text for text in texts if ours.encode(text).ids != theirs.ids(text)]


def stacked(text: str) -> bool:
    """A mark or joiner behind another one, or behind a sign that NFKC spells out: tokenizers normalises such a cluster
    as a whole, sentencepiece from left to right."""
    return any(
        unicodedata.category(mark) in ("Mn", "Me", "Mc", "Cf")
        and (unicodedata.category(base) in ("Mn", "Me", "Mc", "Cf") or unicodedata.normalize("NFKC", base) != base)
        for base, mark in itertools.pairwise(unicodedata.normalize("NFD", text))
    )


def test_siglip_gets_the_ids_of_its_sentencepiece_tokenizer(tmp_path: Path) -> None:
    make.siglip_tokenizer(tmp_path)
    make.write_json(tmp_path / "config.json", {"model_type": "siglip"})
    texts = strings([], 4_500)
    plain = [text for text in texts if not stacked(text)]
    assert len(plain) >= 3_000
    assert differing(tmp_path, Kind.SIGLIP, True, plain) == []
    assert len(differing(tmp_path, Kind.SIGLIP, True, texts)) < 0.005 * len(texts)


def test_special_tokens_written_by_a_user_are_text_for_siglip(tmp_path: Path) -> None:
    make.siglip_tokenizer(tmp_path)
    tokenizer = build_tokenizer(tmp_path, Kind.SIGLIP)
    for text in ("stop </s> now", "</s></s>", "a <unk> b"):
        assert tokenizer.encode(text).ids.count(1) == 1
        assert tokenizer.encode(text).ids[-1] == 1


def test_siglip2_gets_the_ids_of_its_gemma_tokenizer(tmp_path: Path) -> None:
    make.gemma_tokenizer(tmp_path)
    make.write_json(tmp_path / "config.json", {"model_type": "siglip"})
    assert differing(tmp_path, Kind.SIGLIP, True, strings(["<eos>", "<pad>", "<bos>", "<unk>"])) == []


@pytest.mark.parametrize("family", list(make.TOKENIZERS))
def test_text_families_get_the_ids_of_their_own_tokenizers(family: str, tmp_path: Path) -> None:
    getattr(make, make.TOKENIZERS[family])(tmp_path)
    make.write_json(tmp_path / "config.json", {"model_type": family})
    assert differing(tmp_path, Kind.SENTENCE_ENCODER, False, strings(["[CLS]", "[SEP]", "[PAD]", "[MASK]"])) == []


def test_baked_in_lengths_are_left_out(tmp_path: Path) -> None:
    make.bert_tokenizer(tmp_path)
    tokenizer = build_tokenizer(tmp_path, Kind.SENTENCE_ENCODER)
    assert tokenizer.truncation is not None
    as_bytes(tokenizer)
    assert len(tokenizer.encode("a photo of " * 30).ids) > 60


def test_what_is_no_sentencepiece_model_is_refused() -> None:
    with pytest.raises(ExportError, match=r"spiece\.model"):
        from_sentencepiece(b"\xff\xff\xff")
