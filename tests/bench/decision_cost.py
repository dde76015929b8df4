"""What a decision costs beside the bare forward pass that it rests on; all in one paired run.

    python tests/bench/decision_cost.py [--rounds 200]

Text: a policy with one embedding signal, against tokenising and the text tower's forward pass. Image: a policy with one
image signal, against decode, resize and the vision tower's forward pass. Content is new in
every round, so no cache helps. Goal: a decision at most 1.15 times the forward pass.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from models.rendering import FIRST_UNSEEN_SEED, render  # noqa: E402
from router.config.load import parse_policy  # noqa: E402
from router.extproc.house import House, build_house  # noqa: E402

POLICY = """\
version: 1
upstreams: [{model: m, cluster: c, modalities: [text, image]}]
default_model: m
encoders: {text: starter, vision: starter}
"""
TEXT = """\
signals: {embedding: {topic: {texts: [side effects of a medication], threshold: 0.99}}}
decisions: [{name: d, when: {embedding: topic}, route: {models: [m]}}]
"""
IMAGE = """\
signals: {image: {xray: {concepts: [a chest x-ray], threshold: 0.999}}}
decisions: [{name: d, when: {image: xray}, route: {models: [m]}}]
"""
WORDS = "signal railway window patient summer contract engine river letter morning answer garden"

WARMUP = 10

Decide = Callable[[int], Awaitable[float]]
Bare = Callable[[int], tuple[float, float]]
"""Seconds with preprocessing, and of the forward pass alone."""


def text_body(rng: random.Random) -> tuple[bytes, str]:
    text = " ".join(rng.choices(WORDS.split(), k=60))
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode(), text


def image_body(rng: random.Random, image: Any) -> tuple[bytes, bytes]:
    image.putpixel((rng.randrange(image.width), rng.randrange(image.height)), (rng.randrange(256), 0, 0))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    data = buffer.getvalue()
    url = "data:image/jpeg;base64," + base64.b64encode(data).decode()
    content = [{"type": "image_url", "image_url": {"url": url}}]
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}).encode(), data


async def paired(rounds: int, decide: Decide, bare: Bare) -> dict[str, Any]:
    """Medians of both, taken in turns; the order within a round changes. Ratios are of each round's pair."""
    rows = []
    for number in range(-WARMUP, rounds):
        if number % 2:
            whole, forward = bare(number)
            decision = await decide(number)
        else:
            decision = await decide(number)
            whole, forward = bare(number)
        if number >= 0:
            rows.append((decision, whole, forward))
    decisions, wholes, forwards = zip(*rows, strict=True)
    return {
        "decision_ms": round(median(decisions) * 1000, 3),
        "preprocess_and_forward_ms": round(median(wholes) * 1000, 3),
        "forward_ms": round(median(forwards) * 1000, 3),
        "decision_to_preprocess_and_forward": round(median(d / w for d, w, _ in rows), 3),
        "decision_to_forward": round(median(d / f for d, _, f in rows), 3),
    }


async def timed_decision(house: House, body: bytes) -> float:
    started = time.perf_counter()
    await house.pipeline.judge_body("openai.chat", body)
    return time.perf_counter() - started


async def measure_text(house: House, rounds: int) -> dict[str, Any]:
    rng = random.Random(1)
    bodies = [text_body(rng) for _ in range(rounds + WARMUP)]
    assert house.machinery.encoders.text is not None
    model = house.machinery.encoders.text.model

    def bare(number: int) -> tuple[float, float]:
        started = time.perf_counter()
        windows = [model.window(model.tokenise(bodies[number][1]), 0)]
        prepared = time.perf_counter()
        model.forward(windows)
        ended = time.perf_counter()
        return ended - started, ended - prepared

    return await paired(rounds, lambda number: timed_decision(house, bodies[number][0]), bare)


async def measure_image(house: House, rounds: int) -> dict[str, Any]:
    rng = random.Random(2)
    picture = render("passport", FIRST_UNSEEN_SEED + 77).convert("RGB")
    picture.thumbnail((512, 512))
    bodies = [image_body(rng, picture) for _ in range(rounds + WARMUP)]
    assert house.machinery.encoders.vision is not None
    model = house.machinery.encoders.vision.model

    def bare(number: int) -> tuple[float, float]:
        started = time.perf_counter()
        pixels = model.preprocess(bodies[number][1])[None]
        prepared = time.perf_counter()
        model.forward(pixels)
        ended = time.perf_counter()
        return ended - started, ended - prepared

    return await paired(rounds, lambda number: timed_decision(house, bodies[number][0]), bare)


async def run(rounds: int) -> None:
    report = {}
    for name, signals, measure in (("text", TEXT, measure_text), ("image", IMAGE, measure_image)):
        loaded = parse_policy((POLICY + signals).encode(), ROOT / "policy.yaml")
        async with build_house(loaded, threads=1) as house:
            report[name] = await measure(house, rounds)
    print(json.dumps(report, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    uvloop.run(run(parser.parse_args().rounds))


if __name__ == "__main__":
    main()
