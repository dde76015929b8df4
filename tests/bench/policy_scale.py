"""What a large policy costs: loading it, checking it, and deciding by it, signals not counted.

    python tests/bench/policy_scale.py [--decisions 200] [--signals 150]

The policy is made up: keyword, embedding and conversation signals, projections over them, and decisions whose trees mix
them. Deciding is timed with signals that answer at once, so that what remains is the engine's own work; it is told
beside the time of asking the same signals without an engine, from the same run. Loading and checking, done once, are
told in seconds of the processor as well, which a busy machine does not stretch.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from router.config.lint import lint
from router.config.load import LoadedPolicy, parse_policy
from router.policy.agenda import signals_below
from router.policy.engine import Engine
from router.request.view import RequestView
from router.signals.base import Cost, Observation, SignalName

ROUNDS = 2_000


def made_up(decisions: int, signals: int) -> str:
    """A policy of that size."""
    dice = random.Random(7)
    half = signals // 2
    rows = ["version: 1", "encoders: {text: starter}", "default_model: m0", "upstreams:"]
    rows += [f"  - {{model: m{index}, cluster: c{index}}}" for index in range(20)]
    rows += ["signals:", "  keyword:"]
    rows += [f"    k{index}: {{any: [word{index}, phrase number {index}]}}" for index in range(half)]
    rows += ["  embedding:"]
    rows += [f"    e{index}: {{texts: [a text about subject {index}]}}" for index in range(signals - half)]
    names = [f"keyword: k{index}" for index in range(half)] + [
        f"embedding: e{index}" for index in range(signals - half)
    ]
    members = ", ".join(f"embedding/e{index}" for index in range(8))
    inputs = ", ".join(f"{{keyword: k{index}, weight: 0.2}}" for index in range(6))
    rows += ["projections:", f"  partition: {{subject: {{of: [{members}]}}}}"]
    rows += [f"  score: {{risk: {{inputs: [{inputs}]}}}}"]
    rows += ["  band: {level: {of: risk, bands: {low: {lt: 0.5}, high: {gte: 0.5}}}}", "decisions:"]
    derived = ["partition: subject, label: e1", "band: level, label: high", "score: risk, gte: 0.4"]
    for index in range(decisions):
        picked = [dice.choice(names) for _ in range(3)] + ([dice.choice(derived)] if index % 5 == 0 else [])
        leaves = ", ".join(f"{{{name}}}" for name in dict.fromkeys(picked))
        guard = "guard: true, " if index % 10 == 0 else ""
        tree = f"{{{dice.choice(['all', 'any'])}: [{leaves}]}}"
        route = f"route: {{models: [m{index % 20}]}}"
        rows.append(f"  - {{name: d{index}, {guard}priority: {decisions - index}, when: {tree}, {route}}}")
    return "\n".join(rows)


class Ready:
    """Answers at once."""

    def __init__(self, name: SignalName, answer: Observation) -> None:
        self.name = name
        self.cost = Cost.HEURISTIC if name.family == "keyword" else Cost.TEXT_MODEL
        self.answer = answer

    async def prepare(self) -> None:
        """Nothing to do."""

    async def observe(self, view: RequestView) -> Observation:
        return self.answer


def clocks() -> tuple[float, float]:
    """The wall's and the processor's."""
    return time.perf_counter(), time.process_time()


def since(began: tuple[float, float], ended: tuple[float, float]) -> str:
    """Both, in seconds."""
    return f"{ended[0] - began[0]:8.3f} s, processor {ended[1] - began[1]:.3f} s"


async def seconds_each(work: Callable[[], Awaitable[object]]) -> float:
    """Median over the rounds."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


async def deciding(loaded: LoadedPolicy) -> tuple[float, float]:
    """Seconds of a decision, and of asking the same signals alone."""
    dice = random.Random(7)
    names = sorted(signals_below(loaded.policy))
    answers = {name: Observation("observed", dice.random() < 0.02, dice.random()) for name in names}
    signals = {name: Ready(name, answers[name]) for name in names}
    engine = Engine(loaded.policy, signals)
    view = RequestView("openai.chat", None, (), (), False, 0, None)
    asked = [name for name in (await engine.decide(view, 60.0)).observations if name in signals]

    async def ask() -> None:
        for name in asked:
            await signals[name].observe(view)

    return await seconds_each(lambda: engine.decide(view, 60.0)), await seconds_each(ask)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=200)
    parser.add_argument("--signals", type=int, default=150)
    options = parser.parse_args()
    text = made_up(options.decisions, options.signals).encode()
    began = clocks()
    loaded = parse_policy(text, Path("policy.yaml"))
    read = clocks()
    findings = lint(loaded)
    checked = clocks()
    engine, alone = asyncio.run(deciding(loaded))
    print(f"{options.decisions} decisions, {len(loaded.signals)} signals, {len(text)} bytes")
    print(f"load    {since(began, read)}")
    print(f"check   {since(read, checked)}, {len(findings)} findings")
    print(f"decide  {engine * 1000:8.3f} ms, of which asking {alone * 1000:.3f} ms")


if __name__ == "__main__":
    main()
