"""What a request costs a worker in CPU time, and what a worker is in memory: `python tests/charts/sizing.py`.

The demo's policy, real Envoy, two workers, one request at a time, each with content that was never seen, so that no
cache helps. CPU time is the workers' own, from the kernel; on a busy machine it holds better than requests a second,
whose bound a core is its inverse. What docs/production.md says of sizes comes from here.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import random
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.demo.stack import Stack, running_stack
from models.rendering import BUNDLED_FONT, FIRST_UNSEEN_SEED, render

TICKS = os.sysconf("SC_CLK_TCK")
SETTLE_SECONDS = 3
WORDS = [
    "river",
    "station",
    "bridge",
    "winter",
    "signal",
    "copper",
    "garden",
    "letter",
    "window",
    "market",
    "engine",
    "harbour",
    "summer",
    "valley",
]


def text_of(number: int, words: int) -> str:
    """Text that no other number has."""
    chosen = random.Random(number)
    return f"Question {number}: " + " ".join(chosen.choice(WORDS) for _ in range(words))


def text_request(number: int, words: int) -> list[dict[str, object]]:
    return [{"role": "user", "content": text_of(number, words)}]


def image_request(number: int) -> list[dict[str, object]]:
    """A picture of 512 pixels or so and a few words."""
    buffer = io.BytesIO()
    render("landscape", FIRST_UNSEEN_SEED + 1000 + number, fonts=BUNDLED_FONT).save(buffer, "JPEG", quality=88)
    url = "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
    parts = [{"type": "text", "text": text_of(number, 8)}, {"type": "image_url", "image_url": {"url": url}}]
    return [{"role": "user", "content": parts}]


def workers(stack: Stack) -> list[int]:
    children = Path(f"/proc/{stack.supervisor_pid}/task/{stack.supervisor_pid}/children")
    return [int(pid) for pid in children.read_text().split()]


def cpu_seconds(pids: list[int]) -> float:
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def resident_mib(pid: int) -> float:
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def ask(stack: Stack, messages: list[dict[str, object]]) -> None:
    body = json.dumps({"model": "auto", "messages": messages}).encode()
    request = urllib.request.Request(f"{stack.url}/v1/chat/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def measured(stack: Stack, make: Callable[[int], list[dict[str, object]]], count: int, first: int) -> float:
    """CPU milliseconds of the workers, a request."""
    requests = [make(first + number) for number in range(count)]
    pids = workers(stack)
    before = cpu_seconds(pids)
    for messages in requests:
        ask(stack, messages)
    return (cpu_seconds(pids) - before) * 1000 / count


def rows(stack: Stack, count: int) -> Iterator[tuple[str, float]]:
    kinds: dict[str, Callable[[int], list[dict[str, object]]]] = {
        "text of 20 words": lambda number: text_request(number, 20),
        "text of 200 words": lambda number: text_request(number, 200),
        "an image and 8 words": image_request,
    }
    for place, (name, make) in enumerate(kinds.items()):
        measured(stack, make, 5, 900_000 + place * 1000)
        yield name, measured(stack, make, count, place * 10_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100, help="of each kind (default 100)")
    options = parser.parse_args()
    with running_stack(lambda line: print(line, file=sys.stderr)) as stack:
        # What starting took is given back a second after the start.
        time.sleep(SETTLE_SECONDS)
        idle = [resident_mib(pid) for pid in workers(stack)]
        for name, milliseconds in rows(stack, options.requests):
            print(
                f"{name:24} {milliseconds:7.2f} ms CPU, at most {1000 / milliseconds:6.1f} requests a second and core"
            )
        busy = [resident_mib(pid) for pid in workers(stack)]
        print("resident, MiB: at the start", [round(mib) for mib in idle], "after these", [round(mib) for mib in busy])


if __name__ == "__main__":
    main()
