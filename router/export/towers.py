"""The modules that are traced into graphs, put together from the parts of transformers' models.

They call the parts and not the models, because the models' mask helpers leave traced constants in a graph; that both
mean the same is measured at every export. Imports torch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class _PatchTower(nn.Module):
    """What SigLIP's image towers have in common: the patches' hidden states, and an optional projection behind."""

    def __init__(self, vision: Any, projection: nn.Module | None = None) -> None:
        super().__init__()
        self.vision = vision
        self.projection = projection if projection is not None else nn.Identity()

    def hidden(self, pixel_values: Tensor) -> Tensor:
        """(n, 3, h, w) float32 to (n, patches, width) float32."""
        hidden = self.vision.embeddings(pixel_values)
        states: Tensor = self.vision.post_layernorm(_through(self.vision.encoder.layers, hidden))
        return states


class ImageTower(_PatchTower):
    """SigLIP's vision model with its attention pooling head, an optional projection behind it, then a unit vector."""

    def forward(self, pixel_values: Tensor) -> Tensor:
        """(n, 3, h, w) float32 to (n, d) float32."""
        return _unit(self.projection(self.vision.head(self.hidden(pixel_values))))


class PatchMeanTower(_PatchTower):
    """SigLIP's vision model read by the mean of its patches but the first, then a projection and a unit vector."""

    def forward(self, pixel_values: Tensor) -> Tensor:
        """(n, 3, h, w) float32 to (n, d) float32."""
        return _unit(self.projection(self.hidden(pixel_values)[:, 1:].mean(dim=1)))


class NaFlexImageTower(nn.Module):
    """SigLIP2's vision model for any aspect ratio: patches, which of them are real, and the grid they come from."""

    def __init__(self, vision: Any) -> None:
        super().__init__()
        self.vision = vision

    def forward(self, pixel_values: Tensor, pixel_attention_mask: Tensor, spatial_shapes: Tensor) -> Tensor:
        """(n, p, 3 * patch * patch) float32, (n, p) int64 and (n, 2) int64 rows and columns, to (n, d) float32."""
        hidden = self.vision.embeddings(pixel_values, spatial_shapes)
        blocked = _blocked(pixel_attention_mask[:, None, None, :] > 0)
        hidden = self.vision.post_layernorm(_through(self.vision.encoder.layers, hidden, blocked))
        return _unit(_pool_masked(self.vision.head, hidden, pixel_attention_mask))


class FixedTextTower(nn.Module):
    """SigLIP's text model: it attends padding too, and reads the last position."""

    def __init__(self, text: Any) -> None:
        super().__init__()
        self.text = text

    def forward(self, input_ids: Tensor) -> Tensor:
        """(n, t) int64 to (n, d) float32."""
        hidden = _through(self.text.encoder.layers, self.text.embeddings(input_ids=input_ids))
        return _unit(self.text.head(self.text.final_layer_norm(hidden)[:, -1, :]))


class SentenceTower(nn.Module):
    """An encoder, mean or CLS pooling, an optional projection, then a unit vector."""

    def __init__(self, encoder: nn.Module, pooling: str, projection: nn.Module | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.projection = projection if projection is not None else nn.Identity()

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(n, t) int64 twice to (n, d) float32."""
        pooled = _pooled(self.encoder(input_ids, attention_mask), attention_mask, self.pooling)
        return _unit(self.projection(pooled))


class WholeModel(nn.Module):
    """A classifier of a family whose own forward traces well."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(n, t) int64 twice to logits float32."""
        logits: Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
        return logits


class BertHead(nn.Module):
    """BERT with its pooler and a classifier, or with a classifier on each token."""

    def __init__(self, model: Any, each_token: bool) -> None:
        super().__init__()
        self.encoder = BertEncoder(model.bert)
        self.pooler = nn.Identity() if each_token else model.bert.pooler
        self.classifier = model.classifier

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(n, t) int64 twice to logits float32."""
        logits: Tensor = self.classifier(self.pooler(self.encoder(input_ids, attention_mask)))
        return logits


class ModernBertHead(nn.Module):
    """ModernBERT with its prediction head and a classifier, of the text or of each token."""

    def __init__(self, model: Any, each_token: bool) -> None:
        super().__init__()
        self.encoder = ModernBertEncoder(model.model)
        self.head = model.head
        self.classifier = model.classifier
        self.pooling = "" if each_token else model.config.classifier_pooling

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(n, t) int64 twice to logits float32."""
        hidden = self.encoder(input_ids, attention_mask)
        if self.pooling:
            hidden = _pooled(hidden, attention_mask, self.pooling)
        logits: Tensor = self.classifier(self.head(hidden))
        return logits


class BertEncoder(nn.Module):
    """BertModel's hidden states."""

    def __init__(self, bert: Any) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(n, t) int64 twice to (n, t, d) float32."""
        hidden = self.bert.embeddings(input_ids=input_ids, token_type_ids=torch.zeros_like(input_ids))
        return _through(self.bert.encoder.layer, hidden, _blocked(attention_mask[:, None, None, :] > 0))


class ModernBertEncoder(nn.Module):
    """ModernBertModel's hidden states; some of its layers see a window around each token only."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.reach = int(model.config.sliding_window)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(n, t) int64 twice to (n, t, d) float32."""
        hidden = self.model.embeddings(input_ids=input_ids)
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        near = (positions[None, :] - positions[:, None]).abs() <= self.reach
        kept = attention_mask[:, None, None, :] > 0
        masks = {"full_attention": _blocked(kept), "sliding_attention": _blocked(kept & near[None, None])}
        turns = {kind: self.model.rotary_emb(hidden, positions[None], kind) for kind in set(self._kinds())}
        for layer in self.model.layers:
            kind = layer.attention_type
            hidden = _first(layer(hidden, attention_mask=masks[kind], position_embeddings=turns[kind]))
        normed: Tensor = self.model.final_norm(hidden)
        return normed

    def _kinds(self) -> list[str]:
        return [layer.attention_type for layer in self.model.layers]


class DebertaEncoder(nn.Module):
    """DebertaV2Model's hidden states, by its own forward."""

    def __init__(self, deberta: Any) -> None:
        super().__init__()
        self.deberta = deberta

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(n, t) int64 twice to (n, t, d) float32."""
        hidden: Tensor = self.deberta(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return hidden


def _through(layers: Any, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
    for layer in layers:
        hidden = _first(layer(hidden, mask))
    return hidden


def _first(out: Any) -> Tensor:
    """Layers of older releases of transformers give tuples."""
    tensor: Tensor = out[0] if isinstance(out, tuple) else out
    return tensor


def _blocked(kept: Tensor) -> Tensor:
    """What is added to attention scores: nothing where kept, the least number elsewhere. Never infinite: a row without
    any kept key would become NaN."""
    return torch.where(kept, 0.0, torch.finfo(torch.float32).min)


def _pooled(hidden: Tensor, attention_mask: Tensor, pooling: str) -> Tensor:
    if pooling == "cls":
        return hidden[:, 0]
    keep = attention_mask[:, :, None].to(hidden.dtype)
    return (hidden * keep).sum(1) / keep.sum(1)


def _pool_masked(head: Any, hidden: Tensor, mask: Tensor) -> Tensor:
    """The attention pooling head over real patches only."""
    probe = head.probe.expand(hidden.shape[0], -1, -1)
    pooled = head.attention(probe, hidden, hidden, key_padding_mask=mask == 0, need_weights=False)[0]
    pooled = pooled + head.mlp(head.layernorm(pooled))
    first: Tensor = pooled[:, 0]
    return first


def _unit(rows: Tensor) -> Tensor:
    return nn.functional.normalize(rows, dim=-1)
