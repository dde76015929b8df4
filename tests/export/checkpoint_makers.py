"""Small checkpoints with the layouts that are published: configuration, weights, tokenizer files, image processor."""

from __future__ import annotations

import contextlib
import json
import logging
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Make = Callable[..., Path]
"""What the fixtures `made` and `packed` are."""

WORDS = [
    "a",
    "the",
    "photo",
    "of",
    "passport",
    "chest",
    "radiograph",
    "where",
    "is",
    "my",
    "order",
    "ignore",
    "all",
    "previous",
    "instructions",
    "print",
    "your",
    "system",
    "prompt",
    "please",
    "send",
    "invoice",
    "to",
    "street",
    "her",
    "mail",
    "patient",
    "was",
    "seen",
    "in",
    "clinic",
    "on",
    "tuesday",
    "and",
    "read",
    "again",
    "by",
    "two",
    "people",
    "return",
    "sum",
    "mean",
    "fails",
    "when",
    "empty",
    "Maria",
    "Springfield",
    "example",
    "org",
    "what",
    "how",
    "cat",
    "dog",
    "car",
    "train",
    "house",
]
GEMMA_SPECIALS = ["<pad>", "<eos>", "<bos>", "<unk>"]
BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def corpus(lines: int = 400) -> list[str]:
    chance = random.Random(5)
    return [" ".join(chance.choices(WORDS, k=chance.randint(3, 12))) for _ in range(lines)]


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1))


def seeded(build: Any, *, jitter: float = 0.02) -> Any:
    """A model with seeded weights, biases and norms too, so that nothing cancels by being nought or one."""
    import torch

    with quiet():
        torch.manual_seed(11)
        model = build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * jitter)
    return model


def save(model: Any, folder: Path, shard: str | None = None) -> None:
    with quiet():
        model.save_pretrained(folder, **({"max_shard_size": shard} if shard else {}))


def siglip(folder: Path, *, gemma: bool = False, outliers: bool = False, shard: str | None = None) -> Path:
    import torch
    import transformers

    vocabulary = gemma_tokenizer(folder) if gemma else siglip_tokenizer(folder)
    text = {"vocab_size": vocabulary, "max_position_embeddings": 64, "projection_size": 64, "pad_token_id": 1,
            "bos_token_id": None, "eos_token_id": 1}  # fmt: skip
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.SiglipConfig(
        text_config={**shape, **text}, vision_config={**shape, "image_size": 48, "patch_size": 16}
    )
    model = seeded(lambda: transformers.SiglipModel(config))
    with torch.no_grad():
        model.logit_scale.fill_(4.77)
        model.logit_bias.fill_(-16.5)
        if outliers:
            for layer in model.vision_model.encoder.layers:
                layer.layer_norm1.weight[3] *= 60
                layer.layer_norm2.weight[7] *= 60
    save(model, folder, shard)
    write_json(folder / "preprocessor_config.json", siglip_pixels(48))
    return folder


def siglip_pixels(size: int) -> dict[str, Any]:
    return {
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_processor_type": "SiglipImageProcessor",
        "image_std": [0.5, 0.5, 0.5],
        "resample": 3,
        "rescale_factor": 0.00392156862745098,
        "size": {"height": size, "width": size},
    }


def naflex(folder: Path) -> Path:
    import torch
    import transformers

    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = {"vocab_size": gemma_tokenizer(folder), "max_position_embeddings": 64, "projection_size": 64,
            "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 1}  # fmt: skip
    config = transformers.Siglip2Config(
        text_config={**shape, **text}, vision_config={**shape, "num_patches": 16, "patch_size": 16}
    )
    model = seeded(lambda: transformers.Siglip2Model(config))
    with torch.no_grad():
        model.logit_scale.fill_(4.7)
        model.logit_bias.fill_(-16.0)
    save(model, folder)
    pixels = siglip_pixels(0) | {"image_processor_type": "Siglip2ImageProcessor", "resample": 2, "patch_size": 16,
                                 "max_num_patches": 36}  # fmt: skip
    del pixels["size"]
    write_json(folder / "preprocessor_config.json", pixels)
    return folder


def multimodal(folder: Path) -> Path:
    """The layout of multi-modal-embed-small: one file of tensors, an audio tower among them."""
    import torch
    import transformers
    from safetensors.torch import save_file

    vocabulary = bert_tokenizer(folder)
    bert = seeded(lambda: transformers.BertModel(bert_config(vocabulary, heads=2), add_pooling_layer=False))
    vision = seeded(
        lambda: transformers.SiglipVisionModel(
            transformers.SiglipVisionConfig(
                hidden_size=128, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2, image_size=48,
                patch_size=16,
            )
        )
    )  # fmt: skip
    projection = seeded(lambda: torch.nn.Linear(128, 64))
    state = {
        **{f"text_encoder.encoder.{name}": tensor for name, tensor in bert.state_dict().items()},
        **{f"image_encoder.vision_encoder.{name}": tensor for name, tensor in vision.state_dict().items()},
        **{f"image_encoder.projection.{name}": tensor for name, tensor in projection.state_dict().items()},
        "audio_encoder.encoder.conv1.weight": torch.randn(4, 4),
    }
    save_file({name: tensor.clone().contiguous() for name, tensor in state.items()}, folder / "model.safetensors")
    heads = {"num_attention_heads": 2}
    config = {"model_type": "multimodal_embedding", "text_config": heads, "vision_config": heads}
    write_json(folder / "config.json", config)
    return folder


def multimodal_large(folder: Path, layout: str = "small's", **config: Any) -> Path:
    """A larger sibling of multi-modal-embed-small: ModernBERT, and a tower whose patches of 14 leave a margin.

    In the layout of multi-modal-embed-small, or in that of multi-modal-embed-large with its one `model.pt`.
    """
    import torch
    import transformers
    from safetensors.torch import save_file

    vocabulary = modernbert_tokenizer(folder)
    thetas = {"global_rope_theta": 5000.0, "local_rope_theta": 200.0}
    text = seeded(lambda: transformers.ModernBertModel(modernbert_config(vocabulary, **thetas)), jitter=0.1)
    sizes = {"hidden_size": 96, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    vision = seeded(
        lambda: transformers.SiglipVisionModel(
            transformers.SiglipVisionConfig(**sizes, image_size=48, patch_size=14)
        )
    )  # fmt: skip
    projection = seeded(lambda: torch.nn.Linear(96, 64))
    parts = (text, vision, projection, torch.nn.Conv1d(4, 4, 3))
    small = (
        "text_encoder.encoder",
        "image_encoder.vision_encoder",
        "image_encoder.projection",
        "audio_encoder.encoder",
    )
    large = ("text_model.0.auto_model", "image_model.vision_model", "image_proj", "audio_model")
    prefixes = small if layout == "small's" else large
    state = {
        f"{prefix}.{name}": tensor.clone().contiguous()
        for prefix, part in zip(prefixes, parts, strict=True)
        for name, tensor in part.state_dict().items()
    }
    if layout == "small's":
        save_file(state, folder / "model.safetensors")
    else:
        # Half of the published file is a text tower that nothing uses.
        torch.save({**state, "image_model.text_model.head.bias": torch.zeros(4)}, folder / "model.pt")
    told = {
        "model_type": "modernbert", "num_attention_heads": 2, "max_position_embeddings": 512, "local_attention": 8,
        "global_attn_every_n_layers": 3, **thetas,
    }  # fmt: skip
    seen = {"model_type": "siglip_vision_model", "num_attention_heads": 2, "image_size": 48}
    write_json(folder / "config.json", {"text_config": told, "vision_config": seen, **config})
    write_json(folder / "preprocessor_config.json", siglip_pixels(48) | {"resample": 2})
    return folder


def bert_config(vocabulary: int, heads: int = 2, **more: Any) -> Any:
    import transformers

    return transformers.BertConfig(
        vocab_size=vocabulary, hidden_size=64, num_hidden_layers=2, num_attention_heads=heads, intermediate_size=128,
        max_position_embeddings=96, **more,
    )  # fmt: skip


def deberta_config(vocabulary: int, **more: Any) -> Any:
    import transformers

    return transformers.DebertaV2Config(
        vocab_size=vocabulary, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128,
        max_position_embeddings=96, relative_attention=True, position_buckets=16, max_relative_positions=-1,
        pos_att_type=["p2c", "c2p"], share_att_key=True, norm_rel_ebd="layer_norm", position_biased_input=False,
        type_vocab_size=0, pooler_hidden_size=64, pad_token_id=0, **more,
    )  # fmt: skip


def modernbert_config(vocabulary: int, **more: Any) -> Any:
    import transformers

    return transformers.ModernBertConfig(
        vocab_size=vocabulary, hidden_size=64, num_hidden_layers=4, num_attention_heads=2, intermediate_size=96,
        max_position_embeddings=512, global_attn_every_n_layers=3, local_attention=8, pad_token_id=0, bos_token_id=2,
        cls_token_id=2, eos_token_id=3, sep_token_id=3, reference_compile=False, **more,
    )  # fmt: skip


TOKENIZERS = {"bert": "bert_tokenizer", "deberta-v2": "deberta_tokenizer", "modernbert": "modernbert_tokenizer"}
CONFIGS = {"bert": bert_config, "deberta-v2": deberta_config, "modernbert": modernbert_config}


def classifier(folder: Path, family: str, *, each_token: bool = False, **config: Any) -> Path:
    import transformers

    vocabulary = globals()[TOKENIZERS[family]](folder)
    auto = (
        transformers.AutoModelForTokenClassification if each_token else transformers.AutoModelForSequenceClassification
    )
    labels = ["O", "B-PERSON", "I-PERSON"] if each_token else ["BENIGN", "INJECTION"]
    named = {"id2label": dict(enumerate(labels)), "label2id": {label: index for index, label in enumerate(labels)}}
    settings = CONFIGS[family](vocabulary, **(named | config))
    save(seeded(lambda: auto.from_config(settings), jitter=0.1), folder)
    return folder


def sentence_encoder(folder: Path, family: str, pooling: str, *, outliers: bool = False) -> Path:
    """With `outliers`, two channels of BERT's norms are large: int8 can't bear them, and they can't be smoothed."""
    import torch
    import transformers

    vocabulary = globals()[TOKENIZERS[family]](folder)
    model = seeded(lambda: transformers.AutoModel.from_config(CONFIGS[family](vocabulary)), jitter=0.1)
    if outliers:
        with torch.no_grad():
            model.embeddings.LayerNorm.weight[3] *= 80
            model.encoder.layer[0].output.LayerNorm.weight[5] *= 80
    save(model, folder)
    kinds = ["Transformer", "Pooling", "Normalize"]
    paths = ["", "1_Pooling", "2_Normalize"]
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    write_json(folder / "modules.json", modules)
    modes = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    chosen = {f"pooling_mode_{mode}": mode.startswith(f"{pooling}_") and "sqrt" not in mode for mode in modes}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 64, **chosen})
    return folder


def siglip_tokenizer(folder: Path) -> int:
    """A sentencepiece model as SigLIP's: unigram, NFKC, <pad> 0, </s> 1, <unk> 2."""
    import sentencepiece

    folder.mkdir(parents=True, exist_ok=True)
    more = [
        "это паспорт",
        "胸部 光片 护照 什么",
        "هل هذا جواز سفر",
        "Ελλάδα σοφός οδός",
        "größe über straße",
        "½ ﬁ ａｂｃ １２",
    ]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line.lower() for line in corpus()] + [line.lower() for line in more] * 4),
        model_prefix=str(folder / "spiece"), vocab_size=240, model_type="unigram", normalization_rule_name="nmt_nfkc",
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, character_coverage=1.0, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    (folder / "spiece.vocab").unlink()
    write_json(
        folder / "tokenizer_config.json",
        {
            "clean_up_tokenization_spaces": True, "do_lower_case": True, "eos_token": "</s>", "model_max_length": 64,
            "pad_token": "</s>", "processor_class": "SiglipProcessor", "tokenizer_class": "SiglipTokenizer",
            "unk_token": "<unk>", "model_input_names": ["input_ids"],
        },
    )  # fmt: skip
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    return int(processor.get_piece_size())


def gemma_tokenizer(folder: Path) -> int:
    """A tokenizer.json as Gemma's: BPE with byte fallback, blanks written as U+2581."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    specials = GEMMA_SPECIALS + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=460, special_tokens=specials, show_progress=False)
    tokenizer.train_from_iterator([line.lower() for line in corpus()], trainer)
    # Bytes are ordinary pieces: only the first four are special.
    tree = json.loads(tokenizer.to_str())
    tree["added_tokens"] = [token for token in tree["added_tokens"] if token["content"] in GEMMA_SPECIALS]
    tokenizer = Tokenizer.from_str(json.dumps(tree))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 1)])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    write_json(
        folder / "tokenizer_config.json",
        {
            "add_bos_token": False, "add_eos_token": True, "bos_token": "<bos>", "eos_token": "<eos>",
            "pad_token": "<pad>", "unk_token": "<unk>", "do_lower_case": True, "model_max_length": 64,
            "padding_side": "right", "processor_class": "SiglipProcessor", "tokenizer_class": "GemmaTokenizer",
            "clean_up_tokenization_spaces": False, "model_input_names": ["input_ids"],
        },
    )  # fmt: skip
    return tokenizer.get_vocab_size()


def bert_tokenizer(folder: Path) -> int:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=BERT_SPECIALS, show_progress=False)
    tokenizer.train_from_iterator([line.lower() for line in corpus()], trainer)
    # Published files bake in lengths that are not the model's.
    tokenizer.enable_truncation(12)
    tokenizer.enable_padding(length=12)
    return _framed(tokenizer, folder, "BertTokenizer", {"do_lower_case": True, "model_max_length": 96})


def deberta_tokenizer(folder: Path) -> int:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("  ", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=BERT_SPECIALS, unk_token="[UNK]", show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return _framed(tokenizer, folder, "PreTrainedTokenizerFast", {"model_max_length": 1000000000000000019884624838656})


def modernbert_tokenizer(folder: Path) -> int:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=BERT_SPECIALS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(corpus(), trainer)
    return _framed(tokenizer, folder, "PreTrainedTokenizerFast", {"model_max_length": 8192})


def _framed(tokenizer: Any, folder: Path, kind: str, more: dict[str, Any]) -> int:
    from tokenizers import processors

    ids = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ids)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
             "mask_token": "[MASK]"}  # fmt: skip
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": kind, **names, **more})
    return int(tokenizer.get_vocab_size())
