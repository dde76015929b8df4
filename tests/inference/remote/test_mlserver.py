"""Encoders of the starter packs through MLServer, which runs the same graphs: equal to our own, or refused."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from mlserver_process import Model, mlserver
from onnx import numpy_helper
from tiny_tower import photo

from router.inference.cache import EmbeddingCache
from router.inference.canary import Canary
from router.inference.executor import InferenceExecutor
from router.inference.gate import check_encoders
from router.inference.ledger import Ledger
from router.inference.open import open_encoders, open_remote, open_vision_model
from router.inference.remote.errors import RemoteError, RemoteSetupError
from router.inference.remote.server import RemoteServer
from router.inference.text_model import TextModel
from router.packs.layout import lay_out
from router.packs.store import Pack, open_pack
from router.proto import open_inference_pb2
from router.request.images import ImageLimits
from router.request.view import ImagePart
from tests.system_packages import mlserver_python

pytestmark = pytest.mark.slow

TOKENS = (
    {"name": "input_ids", "datatype": "INT64", "shape": [-1, -1]},
    {"name": "attention_mask", "datatype": "INT64", "shape": [-1, -1]},
)
SHORT = ({"name": "text_embeds", "datatype": "FP32", "shape": [-1, 768]},)


@pytest.fixture(scope="module")
def starter_vision() -> Pack:
    return open_pack("starter", "vision", Path("/nowhere"))


@pytest.fixture(scope="module")
def address(text_pack: Pack, starter_vision: Pack, weights: Path, tmp_path_factory: Any) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("mlserver")
    text = lay_out(text_pack, "text", weights) / "text.onnx"
    models = (
        Model("starter-text", text, TOKENS),
        Model("starter-vision", starter_vision.folder / "vision.onnx"),
        Model("drifted-vision", drifted(starter_vision.folder, folder / "drifted")),
        Model("other-text", text, TOKENS, SHORT),
    )
    with mlserver(folder, *models) as served:
        yield served


def drifted(pack: Path, folder: Path) -> Path:
    """The tower with its last matrix turned a little, as another training run would have it."""
    folder.mkdir()
    model = onnx.load(pack / "vision.onnx")
    weights = [each for each in model.graph.initializer if len(each.dims) == 2]
    last = weights[-1]
    values = numpy_helper.to_array(last)
    noise = np.random.default_rng(1).normal(size=values.shape).astype(values.dtype) * values.std() * 0.05
    last.CopyFrom(numpy_helper.from_array(values + noise, last.name))
    onnx.save(model, folder / "vision.onnx")
    return folder / "vision.onnx"


def server(address: str, model: str) -> RemoteServer:
    return RemoteServer(address, False, model, timeout=60.0)


async def test_embeddings_through_the_wire_are_those_of_our_own_sessions(
    address: str, text_pack: Pack, starter_vision: Pack, text_model: TextModel, weights: Path
) -> None:
    loop = asyncio.get_running_loop()
    executor, ledger = InferenceExecutor(2, 64), Ledger()
    remotes = {
        "text": await asyncio.to_thread(open_remote, text_pack, "text", server(address, "starter-text"), loop),
        "vision": await asyncio.to_thread(
            open_remote, starter_vision, "vision", server(address, "starter-vision"), loop
        ),
    }
    encoders = open_encoders(
        text_pack, starter_vision, executor, EmbeddingCache(1 << 22), ImageLimits(), weights=weights, remotes=remotes
    )
    assert await asyncio.to_thread(check_encoders, encoders, ledger) == []
    assert {each.tower for each in ledger.last()} == {"text", "vision"}
    assert all(each.cosine is not None and each.cosine >= 0.99999 for each in ledger.last())
    assert await Canary(encoders, executor, 600).round(0) == []

    texts = [f"A question about number {index}, {'and its neighbours ' * index}" for index in range(12)]
    assert encoders.text is not None
    rows = await encoders.text.embed(texts)
    own = [text_model.forward([text_model.window(text_model.tokenise(text), 0)])[0] for text in texts]
    assert min(float(a @ b) for a, b in zip(rows, own, strict=True)) >= 0.99999

    assert encoders.vision is not None
    image = photo(3, size=(300, 200))
    row = await encoders.vision.embed(ImagePart("/messages/0", "inline", image))
    assert float(row @ open_vision_model(starter_vision, ImageLimits()).encode(image)) >= 0.99999
    for remote in encoders.remotes:
        assert set(remote.client.ends) == {"answered"}
        await remote.client.close()
    executor.close()


async def test_a_drifted_model_behind_it_is_refused(address: str, starter_vision: Pack) -> None:
    loop = asyncio.get_running_loop()
    executor = InferenceExecutor(1, 4)
    remote = await asyncio.to_thread(open_remote, starter_vision, "vision", server(address, "drifted-vision"), loop)
    encoders = open_encoders(
        None, starter_vision, executor, EmbeddingCache(1 << 20), ImageLimits(), remotes={"vision": remote}
    )
    misses = await asyncio.to_thread(check_encoders, encoders)
    assert {miss.stage for miss in misses} == {"embeddings"}
    await remote.client.close()
    executor.close()


async def test_a_model_that_says_it_is_another_is_refused_before_it_is_asked(address: str, text_pack: Pack) -> None:
    loop = asyncio.get_running_loop()
    with pytest.raises(RemoteSetupError, match=r"\[-1, 768\], not as rows of 384 floats"):
        await asyncio.to_thread(open_remote, text_pack, "text", server(address, "other-text"), loop)


async def test_a_model_that_is_not_there_is_told_of(address: str, text_pack: Pack) -> None:
    loop = asyncio.get_running_loop()
    with pytest.raises(RemoteError, match="model 'nobody'"):
        await asyncio.to_thread(open_remote, text_pack, "text", server(address, "nobody"), loop)


COMPARE = """
import json, sys
from mlserver.grpc import dataplane_pb2 as published
ours, found = json.load(sys.stdin), {}
for name, fields in ours.items():
    message = published.DESCRIPTOR.message_types_by_name[name.split(".")[0]]
    for part in name.split(".")[1:]:
        message = message.nested_types_by_name[part]
    theirs = {each.name: [each.number, each.type, each.is_repeated] for each in message.fields}
    found[name] = [field for field, facts in fields.items() if theirs.get(field) != facts]
json.dump(found, sys.stdout)
"""


def test_our_subset_of_the_protocol_is_the_published_one_on_the_wire() -> None:
    ours: dict[str, dict[str, list[Any]]] = {}

    def take(message: Any, prefix: str = "") -> None:
        name = f"{prefix}{message.name}"
        ours[name] = {each.name: [each.number, each.type, each.is_repeated] for each in message.fields}
        for nested in message.nested_types:
            take(nested, f"{name}.")

    for message in open_inference_pb2.DESCRIPTOR.message_types_by_name.values():
        take(message)
    command = [mlserver_python(), "-c", COMPARE]
    run = subprocess.run(command, input=json.dumps(ours), capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert len(found) > 12
    assert all(not differing for differing in found.values()), found
