"""A tokenizer of whole words for tiny packs: BERT's normaliser and template over a vocabulary of a few words."""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors


def word_tokenizer(vocabulary: Sequence[str]) -> Tokenizer:
    """Ids are places in the vocabulary, where [UNK] is somewhere, [CLS] at 2 and [SEP] at 3."""
    tokenizer = Tokenizer(models.WordPiece({word: index for index, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer
