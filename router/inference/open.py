"""Turns packs into encoders: weights laid out, digests checked, sessions open, here or at another server."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path

from router.inference.cache import EmbeddingCache
from router.inference.classifier import Classifier
from router.inference.classifier_model import ClassifierModel
from router.inference.encoders import Encoders
from router.inference.executor import InferenceExecutor
from router.inference.fetching import ImageFetcher
from router.inference.head import TextHead
from router.inference.heads_model import HeadsModel
from router.inference.matryoshka import require_dimension
from router.inference.remote.server import RemoteServer
from router.inference.remote.session import RemoteSession
from router.inference.sessions import share_arena
from router.inference.text import TextEncoder
from router.inference.text_model import TextModel, text_inputs
from router.inference.vision import VisionEncoder
from router.inference.vision_model import VisionModel, vision_inputs
from router.packs.files import PackError, TowerKind, tower_of
from router.packs.layout import lay_out
from router.packs.manifest import TextTower, VisionTower
from router.packs.store import Pack
from router.request.images import ImageLimits


def open_encoders(
    text: Pack | None,
    vision: Pack | None,
    executor: InferenceExecutor,
    cache: EmbeddingCache,
    image_limits: ImageLimits,
    *,
    classifiers: Mapping[str, Pack] | None = None,
    heads: Collection[str] = (),
    weights: Path | None = None,
    dimension: int | None = None,
    fetcher: ImageFetcher | None = None,
    remotes: Mapping[TowerKind, RemoteSession] | None = None,
) -> Encoders:
    """Encoders of these packs, not yet held against their golden vectors: see `gate.py`.

    Blocks for a fraction of a second, so call it before the loop serves. `classifiers` are packs by the references that
    ask for them, `heads` those of the text pack that are asked, none where another server has the tower. `weights` is
    the folder that weights are laid into, None for the user's cache. `dimension` shortens both towers' embeddings, None
    leaves them as they are. `fetcher` brings images behind URLs. Of `remotes`, another server has the model. Raises
    PackError.
    """
    remote_text, remote_vision = (remotes or {}).get("text"), (remotes or {}).get("vision")
    if dimension is not None:
        if text is not None:
            require_dimension(text, "text", dimension)
        if vision is not None:
            require_dimension(vision, "vision", dimension)
    share_arena()
    encoder = None
    if text is not None:
        model = open_text_model(text, weights, remote_text, heads)
        encoder = TextEncoder(text, model, executor, cache, dimension, remote_text)
    return Encoders(
        text=encoder,
        vision=VisionEncoder(
            vision,
            open_vision_model(vision, image_limits, weights, remote_vision),
            executor,
            cache,
            dimension,
            fetcher,
            remote_vision,
        )
        if vision
        else None,
        classifiers=_open_classifiers(classifiers or {}, executor, cache, weights),
        heads=text_heads(encoder, executor) if encoder is not None else {},
    )


def text_heads(encoder: TextEncoder, executor: InferenceExecutor) -> dict[str, TextHead]:
    """The heads that the encoder's model has, by their names."""
    model = encoder.model.heads
    return {} if model is None else {head.name: TextHead(encoder, head, executor) for head in model.heads}


def _open_classifiers(
    packs: Mapping[str, Pack], executor: InferenceExecutor, cache: EmbeddingCache, weights: Path | None
) -> dict[str, Classifier]:
    """Each pack opened once, however often it is named; raises PackError."""
    opened: dict[str, Classifier] = {}
    for pack in packs.values():
        if pack.digest not in opened:
            opened[pack.digest] = Classifier(pack, open_classifier_model(pack, weights), executor, cache)
    return {reference: opened[pack.digest] for reference, pack in packs.items()}


def open_text_model(
    pack: Pack, weights: Path | None = None, remote: RemoteSession | None = None, heads: Collection[str] = ()
) -> TextModel:
    """The pack's text tower with these heads; raises PackError."""
    if pack.manifest.text is None:
        raise PackError(f"pack {pack.manifest.name!r} has no text tower")
    folder = lay_out(pack, "text", weights, remote is not None)
    return TextModel(pack.manifest.text, folder, remote, HeadsModel(pack, heads) if heads else None)


def open_vision_model(
    pack: Pack, limits: ImageLimits, weights: Path | None = None, remote: RemoteSession | None = None
) -> VisionModel:
    """The pack's vision tower; raises PackError."""
    if pack.manifest.vision is None:
        raise PackError(f"pack {pack.manifest.name!r} has no vision tower")
    return VisionModel(pack.manifest.vision, lay_out(pack, "vision", weights, remote is not None), limits, remote)


def open_remote(pack: Pack, kind: TowerKind, server: RemoteServer, loop: asyncio.AbstractEventLoop) -> RemoteSession:
    """The server that has the pack's tower of this kind, known to be ready; blocks. `loop` is the one that serves.

    Raises PackError, RemoteSetupError and RemoteError.
    """
    tower = tower_of(pack.manifest, kind)
    if isinstance(tower, TextTower):
        session = RemoteSession(tower, text_inputs(tower), server, loop)
    elif isinstance(tower, VisionTower):
        session = RemoteSession(tower, vision_inputs(tower), server, loop)
    else:
        raise PackError(f"pack {pack.manifest.name!r}: another server can run encoders, and no classifier")
    try:
        session.introduce()
    except BaseException:
        session.close()
        raise
    return session


def open_classifier_model(pack: Pack, weights: Path | None = None) -> ClassifierModel:
    """The pack's classifier; raises PackError."""
    if pack.manifest.classifier is None:
        raise PackError(f"pack {pack.manifest.name!r} has no classifier")
    return ClassifierModel(pack.manifest.classifier, lay_out(pack, "classifier", weights))
