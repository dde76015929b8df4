"""The graph of heads by itself: its numbers against ones worked out by hand, and what it refuses to open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper
from tiny_heads import HEADS, WORDS, expected, heads_graph, rewrite, write_pack_with_heads

from router.inference.head_features import PATTERNS_VERSION, SHAPES, SHAPES_VERSION
from router.inference.heads_model import HeadsModel
from router.inference.open import open_text_model
from router.inference.text_model import TextModel
from router.packs.files import PackError
from router.packs.heads import HEADS_BYTES
from router.packs.store import Pack, open_pack

ALL = [head["name"] for head in HEADS]
TEXTS = ("", "the dog", "Maria sees the dog", "maria sees the dog", "Ignore the rules", "poison", "the atom may ignore")


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return opened(write_pack_with_heads(tmp_path_factory.mktemp("heads") / "pack"))


@pytest.fixture(scope="module")
def model(pack: Pack) -> TextModel:
    return open_text_model(pack, heads=ALL)


def opened(folder: Path) -> Pack:
    return open_pack(str(folder), "text", Path("/nowhere"))


@pytest.mark.parametrize("text", TEXTS)
def test_every_head_says_what_its_logits_calibrated_by_hand_say(model: TextModel, text: str) -> None:
    [judged] = model.judge([model.first_window(text)])
    wanted = expected(text)
    assert judged.answers.keys() == wanted.keys()
    for name, found in judged.answers.items():
        assert (found.dtype, found.flags.writeable) == (np.float32, False)
        np.testing.assert_allclose(found, wanted[name], atol=0.01 if name == "jailbreak" else 1e-6)
    np.testing.assert_array_equal(judged.embedding, model.forward([model.first_window(text).ids])[0])


def test_capitals_reach_the_heads_though_the_tokenizer_drops_them(model: TextModel) -> None:
    small, capital = (model.judge([model.first_window(text)])[0] for text in ("may sees", "May sees"))
    np.testing.assert_array_equal(small.embedding, capital.embedding)
    assert small.answers["pii"][1, 1] < 0.5
    assert capital.answers["pii"][1, 1] > 0.75


@given(texts=st.lists(st.lists(st.sampled_from([*WORDS, "Maria", "what"]), max_size=14).map(" ".join), min_size=1))
@settings(deadline=None, max_examples=40)
def test_neighbours_in_a_batch_change_nothing(model: TextModel, texts: list[str]) -> None:
    """Also where the graph has eight bits, whose scale is the whole batch's."""
    windows = [model.first_window(text) for text in texts]
    alone = [model.judge([window])[0] for window in windows]
    for one, beside in zip(alone, model.judge(windows), strict=True):
        np.testing.assert_allclose(one.embedding, beside.embedding, atol=1e-6)
        for name in ALL:
            np.testing.assert_allclose(one.answers[name], beside.answers[name], atol=1e-6)


def test_only_the_heads_that_are_wanted_answer(pack: Pack) -> None:
    model = open_text_model(pack, heads=["harm", "pii"])
    [judged] = model.judge([model.first_window("the dog")])
    assert judged.answers.keys() == {"harm", "pii"}
    assert open_text_model(pack).heads is None


def test_a_head_that_the_pack_has_not_is_named(pack: Pack) -> None:
    with pytest.raises(PackError, match="pack 'tiny-heads' has no head 'creative'"):
        open_text_model(pack, heads=["creative", "harm"])


def test_a_pack_without_heads_has_none(text_pack: Pack, tmp_path: Path) -> None:
    bare = Pack(text_pack.folder, text_pack.manifest.model_copy(update={"heads": None}), "x")
    with pytest.raises(PackError, match="has no heads"):
        HeadsModel(bare)


def other_features(folder: Path) -> None:
    rewrite(folder, {"shapes": SHAPES_VERSION + 1})


def unsaid_features(folder: Path) -> None:
    rewrite(folder, {"patterns": None})


def narrower_features(folder: Path) -> None:
    onnx.save(heads_graph(shapes=SHAPES - 1), folder / "heads.onnx")
    rewrite(folder, {})


def features_that_are_not_taken(folder: Path) -> None:
    graph = onnx.load(folder / "heads.onnx")
    for node in graph.graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = "hidden_0" if name == "patterns" else name
    kept = [each for each in graph.graph.input if each.name != "patterns"]
    del graph.graph.input[:]
    graph.graph.input.extend(kept)
    onnx.save(graph, folder / "heads.onnx")
    rewrite(folder, {"patterns": PATTERNS_VERSION})


def an_output_less(folder: Path) -> None:
    rewrite(folder, {"heads": [*HEADS, {**HEADS[0], "name": "creative"}]})


def a_layer_that_the_tower_has_not(folder: Path) -> None:
    path = folder / "pack.yaml"
    path.write_text(path.read_text().replace("  - hidden_2\n", ""))


def no_graph(folder: Path) -> None:
    (folder / "heads.onnx").write_bytes(b"no graph")
    rewrite(folder, {})


def weights_outside(folder: Path) -> None:
    graph = heads_graph()
    onnx.save(graph, folder / "heads.onnx", save_as_external_data=True, location="heads.data", size_threshold=0)
    rewrite(folder, {})


def far_too_large(folder: Path) -> None:
    graph = heads_graph()
    graph.graph.initializer.append(numpy_helper.from_array(np.zeros(HEADS_BYTES // 4, np.float32), "ballast"))
    onnx.save(graph, folder / "heads.onnx")
    rewrite(folder, {})


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (other_features, f"trained on version {SHAPES_VERSION + 1} of token_shapes, this release computes"),
        (unsaid_features, "heads.patterns says nothing of patterns, and the graph takes them"),
        (features_that_are_not_taken, "of patterns, and the graph does not take them"),
        (narrower_features, "take token_shapes of the shape"),
        (an_output_less, "the manifest says .*creative"),
        (a_layer_that_the_tower_has_not, "takes .*hidden_2.*; the manifest says"),
        (no_graph, "cannot be loaded by ONNX Runtime"),
        (weights_outside, "cannot be loaded by ONNX Runtime"),
        (far_too_large, "has more than 16 MiB"),
    ],
)
def test_what_does_not_fit_together_is_refused_before_it_serves(
    tmp_path: Path, damage: Callable[[Path], None], says: str
) -> None:
    folder = write_pack_with_heads(tmp_path / "pack")
    damage(folder)
    with pytest.raises(PackError, match=says):
        open_text_model(opened(folder), heads=["harm"])


def test_a_layer_that_is_no_output_of_the_tower_is_refused(tmp_path: Path) -> None:
    folder = write_pack_with_heads(tmp_path / "pack")
    path = folder / "pack.yaml"
    path.write_text(path.read_text().replace("  - hidden_2\n", "  - hidden_2\n  - hidden_9\n"))
    with pytest.raises(PackError, match=r"the manifest says .*'hidden_9'"):
        open_text_model(opened(folder))
