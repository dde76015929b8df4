"""What lazy evaluation saves: the same requests decided with `evaluation: lazy` and `full`, in one paired run.

    python tests/bench/lazy_saving.py [--rounds 3] [--policy examples/cost-tiers]

The policy is the demo's or an example's, without caches, so that every signal that is asked costs what it costs the
first time. The requests of the demo are mixed: the showcase, and as many plain texts, chats and pictures of everyday
things; those of an example are its cases. Model time is the time of the learned signals' stage; both decide alike, or
the run fails.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from examples.demo.showcase import Message, assistant, picture, showcase, user  # noqa: E402
from router.config.load import load_policy  # noqa: E402
from router.evaluation.cases import read_cases  # noqa: E402
from router.evaluation.requests import CaseRequest, request_of  # noqa: E402
from router.extproc.house import House, build_house, move_in  # noqa: E402
from router.records.record import DecisionRecord  # noqa: E402

DEMO = ROOT / "examples/demo"
NEVER_MS = 600_000
WORDS = "signal railway window patient summer contract engine river letter morning answer garden"


def corpus(folder: Path) -> list[CaseRequest]:
    """The folder's cases, without those that are no requests; the demo has a showcase instead, and its everyday."""
    if folder != DEMO:
        cases = (case for case in read_cases(folder / "cases.yaml") if case.file.expect.outcome != "unreadable")
        return [request_of(case) for case in cases]
    rng = random.Random(5)
    requests = [case.messages for case in showcase()]
    for index in range(6):
        words = " ".join(rng.choices(WORDS.split(), k=40))
        requests.append((user(f"Tell me about {words}."),))
        requests.append((user("Hello."), assistant(words), user(f"And what of {words[:60]}?")))
        requests.append((user("What is in this picture?", picture("landscape" if index % 2 else "receipt", index)),))
    return [chat(messages) for messages in requests]


def chat(messages: tuple[Message, ...]) -> CaseRequest:
    """A chat completion."""
    return CaseRequest("openai.chat", json.dumps({"model": "m", "messages": list(messages)}).encode())


def model_seconds(record: DecisionRecord) -> float:
    """Time of the learned signals' stage."""
    return sum(stage.seconds for stage in record.verdict.stages if stage.name == "learned")


async def run(folder: Path, rounds: int) -> dict[str, Any]:
    """Both totals, their ratio, and how many requests had any signal left out."""
    loaded = load_policy(folder / "policy.yaml")
    limits = loaded.limits.model_copy(update={"decision_ms": NEVER_MS, "cache_bytes": 0})
    lazy = replace(loaded, limits=limits, policy=replace(loaded.policy, evaluation="lazy"))
    full = replace(lazy, policy=replace(loaded.policy, evaluation="full"))
    requests = corpus(folder)
    async with build_house(lazy, threads=1) as house:
        other = await move_in(full, 1, house)
        totals = [await paired(house, other, requests) for _ in range(rounds)]
    return {
        "policy": folder.name,
        "requests": len(requests),
        "with_skipped": totals[0][2],
        "lazy_s": round(median(a for a, _, _ in totals), 3),
        "full_s": round(median(b for _, b, _ in totals), 3),
        "lazy_to_full": round(median(a / b for a, b, _ in totals), 3),
    }


async def paired(lazy: House, full: House, requests: Sequence[CaseRequest]) -> tuple[float, float, int]:
    """Model seconds of both over all requests, in changing order; and of how many requests a signal was skipped."""
    sums = {"lazy": 0.0, "full": 0.0}
    with_skipped = 0
    for index, request in enumerate(requests):
        decided = {}
        for name, house in (("lazy", lazy), ("full", full)) if index % 2 else (("full", full), ("lazy", lazy)):
            record = (await house.pipeline.judge_body(request.api, request.body, request.headers)).record
            sums[name] += model_seconds(record)
            decided[name] = record
        if decided["lazy"].decision != decided["full"].decision:
            raise SystemExit(f"request {index}: {decided['lazy'].decision} lazily, {decided['full'].decision} in full")
        with_skipped += bool(decided["lazy"].verdict.skipped)
    return sums["lazy"], sums["full"], with_skipped


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--policy", type=Path, default=DEMO, help="a folder with policy.yaml and cases.yaml")
    options = parser.parse_args()
    print(json.dumps(uvloop.run(run(options.policy.resolve(), options.rounds)), indent=2))


if __name__ == "__main__":
    main()
