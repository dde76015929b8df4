"""Makes a pack of a checkpoint, whole or not at all, and measures it on the way with the very code that serves.

A folder beside the target is filled, opened as a worker would open it, held against the reference and the parity gate,
and only then put in its place. Imports torch, by way of `checkpoints` and `graphs`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from io import BytesIO
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray
from PIL import Image
from pydantic import ValidationError

from router.export import golden
from router.export.checkpoint_files import weight_files
from router.export.checkpoints import ClassifierSide, Feed, ImageSide, Loaded, Side, TextSide, load
from router.export.errors import ExportError
from router.export.gates import COSINE_GATE, PROBABILITY_GATE, PROBABILITY_SLACK, SERVING_SLACK
from router.export.graphs import write_graph
from router.export.hub import Checkpoint, Progress
from router.export.images import Preprocessing, read_preprocessing
from router.export.kinds import Kind, Recognised, recognise
from router.export.placement import may_write, put_in_place, working_folder
from router.export.reference import ReferenceImages, ReferenceTokenizer
from router.export.smooth import smooth
from router.export.tokenizer_json import as_bytes, build_tokenizer
from router.inference.classifier_model import ClassifierModel
from router.inference.gate import Miss, check_classifier, check_text, check_vision
from router.inference.text_model import TextModel, WindowModel
from router.inference.vision_model import VisionModel
from router.packs.files import PackError, sha256_of
from router.packs.manifest import (
    ClassifierGolden,
    GoldenImage,
    Manifest,
    Source,
    TextClassifier,
    TextGolden,
    TextTower,
    VisionGolden,
    VisionTower,
)
from router.packs.parts import PackFile, Parity, Precision, WeightFile
from router.packs.store import MANIFEST, Pack, read_pack
from router.request.images import ImageLimits

_PROVISIONAL = 1e-6
_NO_DIGEST = "0" * 64

Figures = dict[str, Parity]


@dataclass(frozen=True, slots=True)
class Exported:
    """A pack that was written, and how near each of its parts is to the reference."""

    folder: Path
    kind: Kind
    parity: Figures


@dataclass(frozen=True, slots=True)
class _Making:
    """What every step needs to know."""

    folder: Path
    checkpoint: Path
    kind: Kind
    precision: Precision
    allow_drift: bool
    progress: Progress


def export_pack(
    checkpoint: Checkpoint, to: Path, precision: Precision, *, force: bool, allow_drift: bool, progress: Progress
) -> Exported:
    """Write the pack `to`. Raises ExportError; then `to` is as it was.

    With `allow_drift` a part that misses its gate is written all the same, and the manifest says so; one whose outputs
    are not finite is never written. Where `to` is a link, the folder that it leads to is written and the link stays.
    """
    may_write(to, force, checkpoint.folder)
    if to.is_symlink():
        progress(f"{to} is a link; what is written is {to.resolve()}")
    with working_folder(to, progress) as folder, _pack_errors_explained():
        recognised = recognise(checkpoint.folder)
        progress(f"{checkpoint.source} is a {recognised.kind}; loading its weights")
        loaded = load(recognised, checkpoint.folder)
        making = _Making(folder, checkpoint.folder, recognised.kind, precision, allow_drift, progress)
        manifest = _manifest(making, checkpoint, recognised, loaded)
        tree = manifest.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        head = f"# Written by `pointsman packs export` from {_name(checkpoint)}; export again rather than edit.\n"
        body = yaml.safe_dump({"format": 1, **tree}, sort_keys=False, allow_unicode=True, width=120)
        (folder / MANIFEST).write_text(head + body, encoding="utf-8")
        progress("opening the pack as a worker would")
        _hold_gate(read_pack(folder))
        put_in_place(folder, to, force)
    towers = {"text": manifest.text, "vision": manifest.vision, "classifier": manifest.classifier}
    parity = {name: tower.parity for name, tower in towers.items() if tower is not None and tower.parity is not None}
    return Exported(to, recognised.kind, parity)


def _manifest(making: _Making, checkpoint: Checkpoint, recognised: Recognised, loaded: Loaded) -> Manifest:
    name = _name(checkpoint)
    stamp = checkpoint.revision or sha256_of(weight_files(checkpoint.folder)[0])
    embeds = loaded.image is not None or loaded.text is not None
    notes = {
        Kind.MULTIMODAL_EMBED: " The checkpoint has no calibrated scale and bias: thresholds are for ranking, set them "
        "by measuring. Its audio side is left out.",
    }
    return Manifest(
        format=1,
        name=name,
        licence=checkpoint.licence or "unknown: see the checkpoint",
        description=f"{name}, exported as {recognised.kind}.{notes.get(recognised.kind, '')}",
        space=f"{name}@{stamp[:12]}" if embeds else "",
        source=Source(
            checkpoint=checkpoint.source if checkpoint.revision else name,
            revision=checkpoint.revision,
            kind=recognised.kind,
            exporter=", ".join(f"{each} {version(each)}" for each in ("torch", "transformers", "onnx", "onnxruntime")),
        ),
        text=_text(making, loaded.text) if loaded.text else None,
        vision=_vision(making, loaded.image) if loaded.image else None,
        classifier=_classifier(making, loaded.classifier) if loaded.classifier else None,
    )


def _name(checkpoint: Checkpoint) -> str:
    """A local folder's place on this machine is nobody's business. It stands in a comment, hence one line of text."""
    name = checkpoint.source.rsplit("/", 1)[-1] if checkpoint.revision else Path(checkpoint.source).resolve().name
    return "".join(each if each.isprintable() else "?" for each in name) or "checkpoint"


def _text(making: _Making, text: TextSide) -> TextTower:
    tokenizer = _write_tokenizer(making)
    reference = ReferenceTokenizer(making.checkpoint, making.kind, text.max_tokens, text.fixed_length)
    ids = [reference.ids(each) for each in golden.TEXTS]
    rows = np.concatenate(_reference(making, "text", text.side, [_row(text.side, each) for each in ids]))
    vectors = {"texts": list(golden.TEXTS), "token_ids": ids, "embeddings": _rounded(rows)}
    written = _write_json(making.folder / "golden" / "text.json", vectors)
    graph, weights = _write_graph(making, text.side, _text_batch(text.side, ids), "text_embeds", "text", reference)
    tower = TextTower(
        graph=graph,
        weights=weights,
        tokenizer=tokenizer,
        precision=making.precision,
        output="text_embeds",
        dimension=text.dimension,
        matryoshka=text.matryoshka,
        max_tokens=text.max_tokens,
        window_stride=_stride(text.max_tokens),
        pad_id=reference.pad_id,
        fixed_length=text.fixed_length,
        golden=TextGolden(path="golden/text.json", sha256=written.sha256, min_cosine=_PROVISIONAL),
    )
    model = TextModel(tower, making.folder)
    _same_ids(model, ids)
    ours = np.concatenate([model.forward([np.array(each, dtype=np.int32)]) for each in ids])
    parity = _cosine_parity(making, "text", ours, rows)
    least = _least_cosine(parity, making.precision)
    return tower.model_copy(update={"parity": parity, "golden": tower.golden.model_copy(update={"min_cosine": least})})


def _classifier(making: _Making, classifier: ClassifierSide) -> TextClassifier:
    tokenizer = _write_tokenizer(making)
    reference = ReferenceTokenizer(making.checkpoint, making.kind, classifier.max_tokens, fixed_length=False)
    ids = [reference.ids(each) for each in golden.TEXTS]
    side = classifier.side
    logits = [rows[0] for rows in _reference(making, "classifier", side, [_row(side, each) for each in ids])]
    graph, weights = _write_graph(making, side, _text_batch(side, ids), "logits", "classifier", reference)
    tower = TextClassifier(
        graph=graph,
        weights=weights,
        tokenizer=tokenizer,
        precision=making.precision,
        output="logits",
        max_tokens=classifier.max_tokens,
        window_stride=_stride(classifier.max_tokens),
        pad_id=reference.pad_id,
        level=classifier.level,
        labels=classifier.labels,
        activation=classifier.activation,
        temperature=classifier.temperature,
        golden=ClassifierGolden(path="golden/classifier.json", sha256=_NO_DIGEST, max_difference=_PROVISIONAL),
    )
    model = ClassifierModel(tower, making.folder)
    _same_ids(model, ids)
    expected = [model.activate(each) for each in logits]
    rows = [np.round(each, 8).tolist() for each in expected]
    vectors = {"texts": list(golden.TEXTS), "token_ids": ids, "probabilities": rows}
    written = _write_json(making.folder / "golden" / "classifier.json", vectors)
    found = [model.probabilities([np.array(each, dtype=np.int32)])[0] for each in ids]
    usable(found, "classifier", f"the {making.precision} graph", _advice(making.precision))
    off = [float(np.abs(ours - theirs).max()) for ours, theirs in zip(found, expected, strict=True)]
    parity = _probability_parity(making, off)
    slack = 0.0 if making.precision == "fp32" else PROBABILITY_SLACK
    most = max(PROBABILITY_GATE[making.precision], round(parity.worst + slack, 6))
    record = ClassifierGolden(path="golden/classifier.json", sha256=written.sha256, max_difference=min(most, 0.999))
    return tower.model_copy(update={"parity": parity, "golden": record})


def _vision(making: _Making, image: ImageSide) -> VisionTower:
    preprocessing = read_preprocessing(making.checkpoint, image.image_size, image.patches)
    reference = ReferenceImages(preprocessing, image.patches)
    files = golden.golden_images(one_shape=image.patches is not None)
    feeds = [reference.feed(Image.open(BytesIO(data)).convert("RGB")) for data in files.values()]
    rows = np.concatenate(_reference(making, "vision", image.side, feeds))
    example = {name: np.concatenate([feeds[0][name], feeds[1][name]]) for name in image.side.inputs}
    if making.precision == "int8":
        making.progress("smoothing the image tower's outliers")
        smooth(image.side, (reference.feed(each) for each in golden.calibration_images()))
    making.progress("tracing the image tower")
    graph, weights = _graph_files(making, image.side, example, "image_embeds", "vision")
    images = []
    for name, data in files.items():
        path = f"golden/{name}"
        images.append(GoldenImage(path=path, sha256=_write(making.folder / path, data).sha256))
    tower = _vision_tower(making, image, preprocessing, graph, weights, images)
    model = VisionModel(tower, making.folder, ImageLimits())
    pixels = np.stack([model.preprocess(data) for data in files.values()])
    _same_pixels(model, pixels, feeds)
    ours = np.concatenate([model.forward(each[None]) for each in pixels])
    parity = _cosine_parity(making, "vision", ours, rows)
    packed = BytesIO()
    np.savez_compressed(packed, pixels=pixels, embeddings=rows)
    written = _write(making.folder / "golden" / "vision.npz", packed.getvalue())
    record = tower.golden.model_copy(
        update={"sha256": written.sha256, "min_cosine": _least_cosine(parity, making.precision)}
    )
    return tower.model_copy(update={"parity": parity, "golden": record})


def _vision_tower(
    making: _Making,
    image: ImageSide,
    preprocessing: Preprocessing,
    graph: PackFile,
    weights: tuple[WeightFile, ...],
    images: Sequence[GoldenImage],
) -> VisionTower:
    return VisionTower(
        graph=graph,
        weights=weights,
        precision=making.precision,
        input="pixel_values",
        output="image_embeds",
        dimension=image.dimension,
        matryoshka=image.matryoshka,
        size=preprocessing.size,
        patches=image.patches,
        resample=preprocessing.resample,
        mean=preprocessing.mean,
        std=preprocessing.std,
        rescale=preprocessing.rescale,
        logit_scale=image.logit_scale,
        logit_bias=image.logit_bias,
        golden=VisionGolden(path="golden/vision.npz", sha256=_NO_DIGEST, images=tuple(images), min_cosine=_PROVISIONAL),
    )


def _write_graph(
    making: _Making, side: Side, example: Feed, output: str, stem: str, tokenizer: ReferenceTokenizer
) -> tuple[PackFile, tuple[WeightFile, ...]]:
    """A text side's graph, smoothed first where that is asked for and possible."""
    if making.precision == "int8":
        making.progress(f"smoothing the {stem} side's outliers")
        smooth(side, (_row(side, tokenizer.ids(each)) for each in golden.CALIBRATION_TEXTS))
    making.progress(f"tracing the {stem} side")
    return _graph_files(making, side, example, output, stem)


def _graph_files(
    making: _Making, side: Side, example: Feed, output: str, stem: str
) -> tuple[PackFile, tuple[WeightFile, ...]]:
    graph, weights = making.folder / f"{stem}.onnx", making.folder / f"{stem}.weights"
    write_graph(side, example, output, making.precision, graph, weights.name)
    carried = (WeightFile(path=weights.name, sha256=sha256_of(weights)),) if weights.is_file() else ()
    return PackFile(path=graph.name, sha256=sha256_of(graph)), carried


def _row(side: Side, ids: Sequence[int]) -> Feed:
    row = np.array([ids], dtype=np.int64)
    feed = {"input_ids": row, "attention_mask": np.ones_like(row)}
    return {name: feed[name] for name in side.inputs}


def _text_batch(side: Side, ids: Sequence[Sequence[int]]) -> Feed:
    """Two rows of different lengths, so that neither batch nor length is taken for a constant."""
    if "attention_mask" not in side.inputs:
        return {"input_ids": np.array([ids[0], ids[1]], dtype=np.int64)}
    short, long = sorted((list(row) for row in ids[1:4]), key=len)[:2]
    mask = [[1] * len(short) + [0] * (len(long) - len(short)), [1] * len(long)]
    rows = [short + [0] * (len(long) - len(short)), long]
    return {"input_ids": np.array(rows, dtype=np.int64), "attention_mask": np.array(mask, dtype=np.int64)}


def _same_ids(model: WindowModel, expected: Sequence[Sequence[int]]) -> None:
    for index, (text, ids) in enumerate(zip(golden.TEXTS, expected, strict=True)):
        if model.window(model.tokenise(text), 0).tolist() != list(ids):
            raise ExportError(
                f"golden text {index} gets other token ids than from the checkpoint's own tokenizer; this family's "
                "tokenizer is not supported"
            )


def _same_pixels(model: VisionModel, pixels: NDArray[np.uint8], expected: Sequence[Feed]) -> None:
    for index, (each, feed) in enumerate(zip(pixels, expected, strict=True)):
        ours = model.feed(each[None])
        if any(not np.array_equal(ours[name], feed[name]) for name in ours):
            raise ExportError(
                f"golden image {index} gets other pixels than from the checkpoint's own image processor; its "
                "preprocessing is not supported"
            )


def _cosine_parity(making: _Making, part: str, ours: NDArray[np.float32], reference: NDArray[np.float32]) -> Parity:
    if ours.shape != reference.shape:
        raise ExportError(f"the {part} graph gives {ours.shape}, the reference {reference.shape}")
    usable(ours, part, f"the {making.precision} graph", _advice(making.precision))
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(reference, axis=1)
    cosines = (ours.astype(np.float64) * reference).sum(axis=1) / lengths
    gate = COSINE_GATE[making.precision]
    held = bool(cosines.min() >= gate)
    _allowed_or_stop(making, held, f"{part}: least cosine {cosines.min():.6f}, at least {gate} is asked")
    return Parity(
        reference=_reference_versions(),
        inputs=len(cosines),
        measure="cosine",
        worst=round(min(float(cosines.min()), 1.0), 8),
        mean=round(min(float(cosines.mean()), 1.0), 8),
        gate=gate,
        drift_allowed=not held,
    )


def _probability_parity(making: _Making, off: Sequence[float]) -> Parity:
    gate = PROBABILITY_GATE[making.precision]
    held = max(off) <= gate
    _allowed_or_stop(making, held, f"classifier: a probability is off by {max(off):.6f}, at most {gate} is asked")
    return Parity(
        reference=_reference_versions(),
        inputs=len(off),
        measure="probability difference",
        worst=round(max(off), 8),
        mean=round(sum(off) / len(off), 8),
        gate=gate,
        drift_allowed=not held,
    )


def _allowed_or_stop(making: _Making, held: bool, miss: str) -> None:
    if held:
        making.progress(f"{making.precision} holds its gate")
        return
    if not making.allow_drift:
        raise ExportError(
            f"{making.precision} is too far from the reference, so no pack was written. {miss}. "
            f"{_advice(making.precision)}. --allow-drift writes it all the same, and its manifest will say so: "
            "`pointsman packs verify` then names the stage that drifts"
        )
    making.progress(f"{miss}; written all the same, as --allow-drift asks")


def _advice(precision: Precision) -> str:
    if precision == "fp32":
        return (
            "Nothing is rounded in fp32, so no other precision will do better: the graph does not mean what this "
            "checkpoint means. Look whether config.json and weights are of one checkpoint, or take another one"
        )
    return "Export fp32"


def _reference(making: _Making, part: str, side: Side, feeds: Sequence[Feed]) -> list[NDArray[np.float32]]:
    """The model's own outputs, all usable."""
    try:
        rows = [side.reference(feed) for feed in feeds]
    except IndexError as error:
        raise ExportError(
            f"{part}: the tokenizer gives ids beyond the model's vocabulary; tokenizer and weights are not of one "
            f"checkpoint. Put the tokenizer files of these weights into {making.checkpoint}"
        ) from error
    blame = "Its weights are damaged, or not of this config.json: fetch the checkpoint again, or take another one"
    usable(rows, part, "PyTorch's own model", blame)
    return rows


def usable(outputs: Iterable[NDArray[np.float32]], part: str, whose: str, advice: str) -> None:
    """Raises ExportError unless every output is finite and, for an embedding, has a direction.

    Neither can be compared with anything, so that no gate and no --allow-drift lets it through.
    """
    for index, each in enumerate(outputs):
        fault = ""
        if not np.isfinite(each).all():
            fault = "numbers that are not finite"
        elif part != "classifier" and not np.linalg.norm(each) > 0:
            fault = "an embedding of length nought"
        if fault:
            raise ExportError(
                f"{part}: {whose} gives {fault} for golden input {index}, so no pack was written, nor is it with "
                f"--allow-drift. {advice}"
            )


def _least_cosine(parity: Parity, precision: Precision) -> float:
    if precision == "fp32" and not parity.drift_allowed:
        return parity.gate
    return max(math.floor((parity.worst - SERVING_SLACK) * 1e6) / 1e6, _PROVISIONAL)


def _reference_versions() -> str:
    return f"PyTorch {version('torch')}, transformers {version('transformers')}"


def _write_tokenizer(making: _Making) -> WeightFile:
    written = _write(making.folder / "tokenizer.json", as_bytes(build_tokenizer(making.checkpoint, making.kind)))
    return WeightFile(path="tokenizer.json", sha256=written.sha256)


def _stride(max_tokens: int) -> int:
    """Neighbouring windows share about an eighth, and two tokens are special."""
    return max(1, (max_tokens - 2) * 7 // 8)


def _rounded(rows: NDArray[np.float32]) -> list[list[float]]:
    return [[round(float(value), 8) for value in row] for row in rows]


def _write_json(path: Path, value: object) -> PackFile:
    return _write(path, (json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n").encode())


def _write(path: Path, data: bytes) -> PackFile:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return PackFile(path=path.name, sha256=hashlib.sha256(data).hexdigest())


def _hold_gate(pack: Pack) -> None:
    misses: list[Miss] = []
    if pack.manifest.text is not None:
        misses += check_text(pack, TextModel(pack.manifest.text, pack.folder))
    if pack.manifest.vision is not None:
        misses += check_vision(pack, VisionModel(pack.manifest.vision, pack.folder, ImageLimits()))
    if pack.manifest.classifier is not None:
        misses += check_classifier(pack, ClassifierModel(pack.manifest.classifier, pack.folder))
    if misses:
        raise ExportError(f"the pack would not become ready: {'; '.join(str(miss) for miss in misses)}")


@contextmanager
def _pack_errors_explained() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        keys = ", ".join(sorted({".".join(str(key) for key in each["loc"]) for each in error.errors()}))
        raise ExportError(f"the checkpoint gives values that no pack can carry: {keys}") from error
    except PackError as error:
        raise ExportError(f"the pack that was made cannot be opened: {error}") from error
    except OSError as error:
        where = f" at {error.filename}" if error.filename else ""
        raise ExportError(f"the pack cannot be written: {error.strerror or error}{where}") from error
