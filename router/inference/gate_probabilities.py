"""The part of the parity gate for what answers with probabilities: classifiers, and the heads of a text tower.

A head's window goes the whole way that it goes while serving: tokens, features, the tower's layers, the heads' graph.
"""

from __future__ import annotations

from typing import Final

from router.inference.classifier_model import ClassifierModel
from router.inference.comparing import TOGETHER, Miss, Stage, equally_likely, golden_tokens_miss, providers_miss
from router.inference.golden import GoldenClasses, GoldenError, GoldenHeads, read_golden_classes, read_golden_heads
from router.inference.heads_model import HeadsModel, Judged
from router.inference.ledger import Saw, unseen
from router.inference.text_model import TextModel
from router.packs.store import Pack

GRAPH_PRECISION: Final = "fp32"
"""The graph of heads runs where fp32 does, whatever it computes with."""


def check_classifier(pack: Pack, model: ClassifierModel, saw: Saw = unseen) -> list[Miss]:
    """Misses of a classifier: token ids must be equal, probabilities near, alone and beside a neighbour."""
    name = pack.manifest.name
    bound = model.tower.golden
    try:
        golden = read_golden_classes(pack, model.tower)
    except GoldenError as error:
        return [Miss(name, "golden", str(error))]
    misses = providers_miss(name, model.providers, model.tower.precision)
    ids, reference = golden.ids, golden.probabilities
    for index in range(len(ids)):
        misses += check_golden_class(name, model, golden, index, saw)
    short = sorted(range(len(ids)), key=lambda index: len(ids[index]))[:TOGETHER]
    together = model.probabilities([ids[index] for index in short])
    for index, found in zip(short, together, strict=True):
        own = found[: len(ids[index])] if model.tower.level == "token" else found
        misses += equally_likely(name, "batch", index, own, reference[index], bound)
    return misses


def check_golden_class(
    name: str, model: ClassifierModel, golden: GoldenClasses, index: int, saw: Saw = unseen
) -> list[Miss]:
    """Misses over one golden text of the classifier of this name; takes as long as one text's forward pass."""
    misses = golden_tokens_miss(name, model, golden, index)
    found = model.probabilities([golden.ids[index]])[0]
    reference, bound = golden.probabilities[index], model.tower.golden
    return misses + equally_likely(name, "embeddings", index, found, reference, bound, saw)


def check_heads(pack: Pack, model: TextModel, saw: Saw = unseen) -> list[Miss]:
    """Misses of the heads that the tower's model has: probabilities must be near, alone and beside a neighbour."""
    name, heads = pack.manifest.name, model.heads
    if heads is None:
        return []
    try:
        golden = read_golden_heads(pack, heads.part, model.tower.max_tokens)
    except GoldenError as error:
        return [Miss(name, "golden", str(error))]
    misses = providers_miss(name, heads.providers, GRAPH_PRECISION)
    for index in range(len(golden.texts)):
        misses += check_golden_heads(name, model, heads, golden, index, saw)
    short = sorted(range(len(golden.ids)), key=lambda index: len(golden.ids[index]))[:TOGETHER]
    windows = [model.first_window(golden.texts[index]) for index in short]
    for index, judged in zip(short, model.judge(windows), strict=True):
        misses += _as_likely("batch", name, heads, golden, index, judged)
    return misses


def check_golden_heads(
    name: str, model: TextModel, heads: HeadsModel, golden: GoldenHeads, index: int, saw: Saw = unseen
) -> list[Miss]:
    """Misses of heads over one golden text of the pack of this name; takes as long as one text's forward pass."""
    misses = golden_tokens_miss(name, model, golden, index)
    [judged] = model.judge([model.first_window(golden.texts[index])])
    return misses + _as_likely("embeddings", name, heads, golden, index, judged, saw)


def _as_likely(
    stage: Stage,
    name: str,
    heads: HeadsModel,
    golden: GoldenHeads,
    index: int,
    judged: Judged,
    saw: Saw = unseen,
) -> list[Miss]:
    misses: list[Miss] = []
    for head in heads.heads:
        found, reference = judged.answers[head.name], golden.probabilities[head.name][index]
        misses += equally_likely(name, stage, index, found, reference, heads.part.golden, saw, f"head {head.name!r}, ")
    return misses
