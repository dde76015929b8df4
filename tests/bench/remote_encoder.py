"""What the way to a server costs an encoder: one text window and one image, here and through MLServer on the loopback.

    python tests/bench/remote_encoder.py [--rounds 100]

Prints medians in milliseconds, and the machine's load, without which they say little. Both sides share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np

sys.path += [str(Path(__file__).parents[2] / each) for each in ("", "tests/inference", "tests/inference/remote")]

from mlserver_process import Model, mlserver
from tiny_tower import photo

from router.inference.cache import EmbeddingCache
from router.inference.encoders import Encoders
from router.inference.executor import InferenceExecutor
from router.inference.open import open_encoders, open_remote
from router.inference.remote.server import RemoteServer
from router.packs.layout import lay_out
from router.packs.store import Pack, open_pack
from router.request.images import ImageLimits
from router.request.view import ImagePart

ROOT = Path(__file__).parents[2]
WORDS = ("how", "do", "I", "read", "the", "result", "of", "a", "blood", "test", "near", "the", "limit")


async def median_ms(rounds: int, ask: Callable[[int], Awaitable[object]]) -> float:
    """Of asking for something new each time, one after the other; the first few do not count."""
    taken = []
    for index in range(rounds + 5):
        began = time.perf_counter()
        await ask(index)
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken[5:])


async def measure(encoders: Encoders, rounds: int) -> dict[str, float]:
    text, vision = encoders.text, encoders.vision
    assert text is not None
    assert vision is not None
    images = [photo(index, "JPEG", (640, 480)) for index in range(rounds + 5)]

    async def words(count: int, index: int) -> object:
        return await text.embed([" ".join([*np.resize(WORDS, count), str(index)])])

    return {
        "a text of some 20 tokens": await median_ms(rounds, lambda index: words(16, index)),
        "a window of some 450 tokens": await median_ms(rounds, lambda index: words(440, index)),
        "an image of 640 x 480": await median_ms(
            rounds, lambda index: vision.embed(ImagePart("/p", "inline", images[index]))
        ),
    }


async def compare(address: str, packs: dict[str, Pack], rounds: int) -> None:
    loop = asyncio.get_running_loop()
    executor = InferenceExecutor(1, 64)

    def opened(remotes: dict[str, object]) -> Encoders:
        cache = EmbeddingCache(1 << 24)
        return open_encoders(packs["text"], packs["vision"], executor, cache, ImageLimits(), remotes=remotes)

    remotes = {
        kind: await asyncio.to_thread(open_remote, pack, kind, RemoteServer(address, False, kind, timeout=60.0), loop)
        for kind, pack in packs.items()
    }
    here, there = await measure(opened({}), rounds), await measure(opened(remotes), rounds)
    for what in here:
        print(f"{what:30} here {here[what]:7.1f} ms   through MLServer {there[what]:7.1f} ms")
    print("load average", *(f"{each:.1f}" for each in os.getloadavg()), f"on {os.cpu_count()} cores")
    for remote in remotes.values():
        await remote.client.close()
    executor.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    rounds = parser.parse_args().rounds
    packs = {kind: open_pack("starter", kind, ROOT) for kind in ("text", "vision")}
    models = [Model(kind, lay_out(pack, kind) / f"{kind}.onnx") for kind, pack in packs.items()]
    with tempfile.TemporaryDirectory() as folder, mlserver(Path(folder), *models) as address:
        asyncio.run(compare(address, packs, rounds))


if __name__ == "__main__":
    main()
