"""Tensors on their way to a server, and whatever may come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_in import TYPES, metadata_of

from router.inference.remote.errors import RemoteAnswerError, RemoteSetupError
from router.inference.remote.server import RemoteServer
from router.inference.remote.tensors import Wording
from router.inference.vision_model import vision_inputs
from router.packs.manifest import VisionTower
from router.packs.store import Pack
from router.proto import open_inference_pb2 as pb

SERVER = RemoteServer("127.0.0.1:1", False, "tower", version="3")
D = 8


@pytest.fixture(scope="module")
def tower(vision_pack: Pack) -> VisionTower:
    assert vision_pack.manifest.vision is not None
    return vision_pack.manifest.vision


@pytest.fixture(scope="module")
def wording(tower: VisionTower) -> Wording:
    return Wording(tower, vision_inputs(tower), SERVER)


def pixels(count: int = 2) -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).normal(size=(count, 3, 4, 5)).astype(np.float32)


def answer(rows: np.ndarray[Any, Any], datatype: str = "FP32", **change: Any) -> pb.ModelInferResponse:
    said = pb.ModelInferResponse()
    said.outputs.add(name=change.get("name", "image_embeds"), datatype=datatype, shape=change.get("shape", rows.shape))
    said.raw_output_contents.append(change.get("raw", rows.tobytes()))
    return said


def unit(count: int) -> np.ndarray[Any, Any]:
    rows = np.random.default_rng(2).normal(size=(count, D)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_call_says_which_model_and_carries_the_tensor_to_the_bit(wording: Wording) -> None:
    call = pb.ModelInferRequest.FromString(wording.request({"pixel_values": pixels()}))
    assert (call.model_name, call.model_version) == ("tower", "3")
    [tensor] = call.inputs
    assert (tensor.name, tensor.datatype, list(tensor.shape)) == ("pixel_values", "FP32", [2, 3, 4, 5])
    assert call.raw_input_contents[0] == pixels().tobytes()
    assert [each.name for each in call.outputs] == ["image_embeds"]


def test_a_tensor_that_is_no_contiguous_block_is_sent_row_after_row(wording: Wording) -> None:
    turned = pixels().transpose(0, 2, 3, 1).transpose(0, 3, 1, 2)
    call = pb.ModelInferRequest.FromString(wording.request({"pixel_values": turned}))
    assert call.raw_input_contents[0] == pixels().tobytes()


def test_names_are_the_servers_where_the_policy_says_so(tower: VisionTower) -> None:
    server = RemoteServer("h:1", False, "m", inputs=(("pixel_values", "INPUT__0"),), output="OUTPUT__0")
    wording = Wording(tower, vision_inputs(tower), server)
    call = pb.ModelInferRequest.FromString(wording.request({"pixel_values": pixels()}))
    assert (call.inputs[0].name, call.outputs[0].name) == ("INPUT__0", "OUTPUT__0")
    assert wording.rows(answer(unit(1), name="OUTPUT__0"), 1).shape == (1, D)


def test_a_name_that_the_graph_does_not_have_is_refused(tower: VisionTower) -> None:
    server = RemoteServer("h:1", False, "m", inputs=(("pixels", "INPUT__0"),))
    with pytest.raises(RemoteSetupError, match=r"renames 'pixels'; the pack's graph takes pixel_values"):
        Wording(tower, vision_inputs(tower), server)


@pytest.mark.parametrize("datatype", ["FP32", "FP16"])
def test_tensors_go_as_the_server_says_that_it_takes_them(tower: VisionTower, datatype: str) -> None:
    wording = Wording(tower, vision_inputs(tower), SERVER)
    wording.agree(metadata_of({"pixel_values": (datatype, [-1, 3, 4, 5])}, {"image_embeds": ("FP32", [-1, D])}))
    call = pb.ModelInferRequest.FromString(wording.request({"pixel_values": pixels()}))
    assert call.inputs[0].datatype == datatype
    assert call.raw_input_contents[0] == pixels().astype(TYPES[datatype]).tobytes()


def test_a_server_that_says_nothing_of_tensors_is_taken_at_our_word(tower: VisionTower) -> None:
    Wording(tower, vision_inputs(tower), SERVER).agree(pb.ModelMetadataResponse(name="tower"))


OTHERS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"image": ("FP32", [-1])}, {}, r"takes 'image' where the pack gives 'pixel_values'; see `inputs`"),
    ({"pixel_values": ("BYTES", [-1])}, {}, r"takes pixel_values as 'BYTES'"),
    ({"pixel_values": ("FP32", [-1])}, {"logits": ("FP32", [-1, D])}, r"gives 'logits' and no 'image_embeds'"),
    ({"pixel_values": ("FP32", [-1])}, {"image_embeds": ("FP32", [-1, 9])}, r"\[-1, 9\], not as rows of 8 floats"),
    ({"pixel_values": ("FP32", [-1])}, {"image_embeds": ("INT64", [-1, D])}, r"'INT64' .* not as rows of 8 floats"),
]


@pytest.mark.parametrize(("inputs", "outputs", "told"), OTHERS)
def test_another_model_is_told_before_anything_is_sent(
    tower: VisionTower, inputs: dict[str, Any], outputs: dict[str, Any], told: str
) -> None:
    with pytest.raises(RemoteSetupError, match=told):
        Wording(tower, vision_inputs(tower), SERVER).agree(metadata_of(inputs, outputs))


@pytest.mark.parametrize("datatype", ["FP32", "FP16", "FP64"])
def test_rows_are_unit_vectors_whatever_their_length_was(wording: Wording, datatype: str) -> None:
    kind = {"FP32": np.float32, "FP16": np.float16, "FP64": np.float64}[datatype]
    rows = wording.rows(answer((5 * unit(3)).astype(kind), datatype), 3)
    assert rows.dtype == np.float32
    assert not rows.flags.writeable
    np.testing.assert_allclose(rows, unit(3), atol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


def test_numbers_in_a_list_are_read_as_well(wording: Wording) -> None:
    said = pb.ModelInferResponse()
    said.outputs.add(name="image_embeds", datatype="FP32", shape=[1, D]).contents.fp32_contents.extend(unit(1)[0])
    np.testing.assert_allclose(wording.rows(said, 1), unit(1), atol=1e-6)


def test_the_tensor_is_found_by_its_name(wording: Wording) -> None:
    said = answer(unit(2), name="hidden")
    said.MergeFrom(answer(unit(1)))
    np.testing.assert_allclose(wording.rows(said, 1), unit(1), atol=1e-6)


NONSENSE: dict[str, tuple[pb.ModelInferResponse, str]] = {
    "nothing": (pb.ModelInferResponse(), "no tensor 'image_embeds'"),
    "another tensor": (answer(unit(2), name="logits"), "no tensor"),
    "too few rows": (answer(unit(1)), r"\[1, 8\] where \[2, 8\]"),
    "too long rows": (answer(np.ones((2, 9), np.float32)), r"\[2, 9\] where \[2, 8\]"),
    "one axis": (answer(np.ones(16, np.float32)), r"\[16\] where"),
    "whole numbers": (answer(np.ones((2, D), np.int64), "INT64"), "'INT64' in place of floats"),
    "words": (answer(np.ones((2, D), np.float32), "BYTES"), "'BYTES'"),
    "no type": (answer(np.ones((2, D), np.float32), ""), "''"),
    "too few bytes": (answer(unit(2), raw=b"\0" * 12), "12 bytes where its shape needs 64"),
    "too many bytes": (answer(unit(2), raw=b"\0" * 65), "65 bytes"),
    "no bytes": (answer(unit(2), raw=b""), "0 bytes"),
    "NaN": (answer(np.full((2, D), np.nan, np.float32)), "NaN"),
    "one NaN": (answer(np.where(np.arange(16).reshape(2, D) == 9, np.nan, unit(2)).astype(np.float32)), "NaN"),
    "infinite": (answer(np.full((2, D), np.inf, np.float32)), "infinite"),
    "so large that squares overflow": (answer(np.full((2, D), 3e38, np.float32)), "infinite"),
    "zeros": (answer(np.zeros((2, D), np.float32)), "zeros"),
    "too large for float32": (answer(np.full((2, D), 1e300), "FP64"), "infinite"),
}


@pytest.mark.parametrize("which", NONSENSE)
def test_an_answer_without_embeddings_is_told_as_such(wording: Wording, which: str) -> None:
    said, told = NONSENSE[which]
    with pytest.raises(RemoteAnswerError, match=told):
        wording.rows(said, 2)


def test_an_answer_whose_numbers_are_missing_is_told_as_such(wording: Wording) -> None:
    said = pb.ModelInferResponse()
    said.outputs.add(name="image_embeds", datatype="FP32", shape=[2, D]).contents.fp32_contents.extend([1.0] * 3)
    with pytest.raises(RemoteAnswerError, match="3 numbers where its shape needs 16"):
        wording.rows(said, 2)


@given(
    name=st.sampled_from(["image_embeds", "other"]),
    datatype=st.sampled_from(["FP32", "FP16", "FP64", "INT64", "BYTES", ""]) | st.text(max_size=40),
    shape=st.lists(st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, 2, 8]), max_size=10),
    raw=st.lists(st.binary(max_size=160), max_size=3),
    numbers=st.lists(st.floats(width=32), max_size=20),
)
def test_whatever_a_server_says_is_unit_vectors_or_refused(
    wording: Wording, name: str, datatype: str, shape: list[int], raw: list[bytes], numbers: list[float]
) -> None:
    said = pb.ModelInferResponse()
    said.outputs.add(name=name, datatype=datatype, shape=shape).contents.fp32_contents.extend(numbers)
    said.raw_output_contents.extend(raw)
    try:
        rows = wording.rows(said, 2)
    except RemoteAnswerError as error:
        assert str(error).isprintable()
        assert len(str(error)) < 400
    else:
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-3)
