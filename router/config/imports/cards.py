"""`routing.modelCards`: what a model reads and gives, and what it is good at, as fields of an upstream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from router.config.imports.ledger import changed, lost
from router.config.imports.node import Node

MAX_CARD: Final = 4_000

_MODALITIES: Final[Mapping[str, dict[str, list[str]]]] = {
    "ar": {},
    "text": {},
    "omni": {"modalities": ["text", "image"]},
    "multimodal": {"modalities": ["text", "image"]},
    "vision": {"modalities": ["text", "image"]},
    "diffusion": {"outputs": ["image"]},
}
_SEES: Final = ("vision", "multimodal")
_KINDS: Final = ("text", "image", "audio", "file")


def read_kinds(fields: dict[str, Any], node: Node) -> None:
    """Kinds of content that the model reads and gives."""
    modality = node.text("modality")
    if modality is not None and modality.lower() in _MODALITIES:
        fields.update(_MODALITIES[modality.lower()])
    elif modality is not None:
        node.book("modality", lost("this kind of model is not known", "write `modalities` and `outputs`"))
    both = node.node("modalities")
    for theirs, ours, known in (("input", "modalities", _KINDS), ("output", "outputs", _KINDS[:3])):
        kinds = both.texts(theirs) if both else []
        for index, kind in enumerate(kinds):
            if both and kind not in known:
                both.book_item(theirs, index, lost(f"{ours} has only {', '.join(known)}"))
        kept = [kind for kind in dict.fromkeys(kinds) if kind in known]
        if kept:
            fields[ours] = kept


def read_words(fields: dict[str, Any], node: Node) -> None:
    """The card: description, capabilities and tags in words; some of the words tell that it reads or gives images."""
    described, able, tags = node.text("description"), node.texts("capabilities"), node.texts("tags")
    sentences = [
        described or "",
        f"Capabilities: {', '.join(able)}." if able else "",
        f"Tags: {', '.join(tags)}." if tags else "",
    ]
    card = " ".join(sentence for sentence in sentences if sentence)
    if len(card) > MAX_CARD:
        node.book("description", changed(f"a card has at most {MAX_CARD} characters; the rest is cut off"))
    if card:
        fields["card"] = card[:MAX_CARD]
    if "modalities" not in fields and any(word.lower() in _SEES for word in able):
        fields["modalities"] = ["text", "image"]
    if "outputs" not in fields and "image_generation" in able:
        fields["outputs"] = ["image"]
