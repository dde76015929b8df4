"""What a conversation costs when it is sent again, as chats do with every turn; in one process, each pair in a row.

    python tests/bench/resent_conversation.py [--rounds 20]

A conversation of ten turns with five images is decided twice under a policy that asks text and image encoders about
every turn. Model time is the time of the learned signals' stage. Goal: the second at most 5 % of the first.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import random
import sys
from pathlib import Path
from statistics import median

import uvloop

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from models.rendering import FIRST_UNSEEN_SEED, render  # noqa: E402
from router.config.load import parse_policy  # noqa: E402
from router.extproc.house import House, build_house  # noqa: E402

POLICY = b"""\
version: 1
upstreams: [{model: m, cluster: c, modalities: [text, image]}]
default_model: m
encoders: {text: starter, vision: starter}
evaluation: full
limits: {decision_ms: 60000}
signals:
  embedding: {topic: {texts: [side effects of a medication], over: all, threshold: 0.99}}
  image: {xray: {concepts: [a chest x-ray], threshold: 0.999}}
  jailbreak: {attack: {threshold: 0.99}}
decisions:
  - {name: a, priority: 3, when: {embedding: topic}, route: {models: [m]}}
  - {name: b, priority: 2, when: {image: xray}, route: {models: [m]}}
  - {name: c, priority: 1, when: {jailbreak: attack}, route: {models: [m]}}
"""
WORDS = "signal railway window patient summer contract engine river letter morning answer garden"
KINDS = ("passport", "receipt", "landscape", "chart", "terminal")
TURNS = 10


def picture(kind: str, rng: random.Random) -> dict[str, object]:
    image = render(kind, FIRST_UNSEEN_SEED + rng.randrange(1000)).convert("RGB")
    image.thumbnail((512, 512))
    image.putpixel((rng.randrange(image.width), rng.randrange(image.height)), (rng.randrange(256), 0, 0))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90)
    url = "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def conversation(rng: random.Random) -> bytes:
    messages = []
    for turn in range(TURNS):
        text = " ".join(rng.choices(WORDS.split(), k=60))
        content: list[dict[str, object]] = [{"type": "text", "text": text}]
        if turn % 2 == 0:
            content.append(picture(KINDS[turn // 2], rng))
        messages.append({"role": "user" if turn % 2 == 0 else "assistant", "content": content})
    return json.dumps({"model": "m", "messages": messages}).encode()


async def model_seconds(house: House, body: bytes) -> float:
    record = (await house.pipeline.judge_body("openai.chat", body)).record
    unanswered = [name for name, one in record.verdict.observations.items() if one.status != "observed"]
    if unanswered:
        raise RuntimeError(f"not observed: {unanswered}")
    return sum(stage.seconds for stage in record.verdict.stages if stage.name == "learned")


async def run(rounds: int) -> None:
    rng = random.Random(3)
    pairs = []
    async with build_house(parse_policy(POLICY, ROOT / "policy.yaml"), threads=1) as house:
        for _ in range(rounds + 1):
            body = conversation(rng)
            pairs.append((await model_seconds(house, body), await model_seconds(house, body)))
    firsts, seconds = zip(*pairs[1:], strict=True)
    report = {
        "rounds": rounds,
        "first_ms": round(median(firsts) * 1000, 2),
        "again_ms": round(median(seconds) * 1000, 2),
        "again_to_first": round(median(again / first for first, again in pairs[1:]), 4),
    }
    print(json.dumps(report, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    uvloop.run(run(parser.parse_args().rounds))


if __name__ == "__main__":
    main()
