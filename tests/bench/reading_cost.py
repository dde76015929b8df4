"""What reading a body with an image in it takes of the processor, against the JSON parser alone on the same body.

    python tests/bench/reading_cost.py [--rounds 30]

A chat request with one picture, read as a worker reads it: JSON, duplicate keys, base64, the place of the model. Both
are measured in turns, in milliseconds of CPU time, the least of all rounds: what a busy machine adds is left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from paired import image_body

from router.request.apis import parse

SIZES = (100_000, 1_000_000, 8_000_000)


def cpu(run: Callable[[], object]) -> float:
    began = time.thread_time()
    run()
    return time.thread_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    report = {}
    for size in SIZES:
        body = image_body(size)
        pairs = [
            (cpu(partial(parse, "openai.chat", body)), cpu(partial(msgspec.json.decode, body))) for _ in range(rounds)
        ]
        read, parsed = (min(each) for each in zip(*pairs, strict=True))
        report[len(body)] = {"read_ms": round(read * 1000, 3), "json_alone_ms": round(parsed * 1000, 3)}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
