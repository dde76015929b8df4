"""What telling of requests costs on the request path: the judge alone, without an exporter and with one that drops all.

    python tests/bench/telling_cost.py [--rounds 3000]

Three pipelines under one policy judge the same requests in turns, the order changing with every round: requests told in
the log at once (`inline`), told by the teller and not traced (`told`), told and traced with every span made (`traced`),
where `null` drops what is exported. The teller runs beside, as in a worker: its work counts where it gets in the way.
Times are of `judge`, in microseconds: by the clock, and of the processor in the thread that judges, which a busy
machine disturbs less.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import logging
import random
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import uvloop
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import DEFAULT_ON
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from router.config.load import LoadedPolicy, parse_policy  # noqa: E402
from router.extproc.head import RequestHead  # noqa: E402
from router.extproc.house import House, move_in  # noqa: E402
from router.extproc.telling.desk import Desk  # noqa: E402
from router.extproc.telling.lines import write_line  # noqa: E402
from router.extproc.telling.spans import Spans  # noqa: E402
from router.extproc.telling.teller import Teller  # noqa: E402
from router.telemetry.context import Joiner  # noqa: E402
from router.telemetry.instruments import create_instruments  # noqa: E402
from router.telemetry.names import Names  # noqa: E402
from router.telemetry.propagation import W3C  # noqa: E402
from router.telemetry.sink import Sink  # noqa: E402

POLICY = b"""\
version: 1
upstreams: [{model: small, cluster: a}, {model: med, cluster: b}]
default_model: small
signals:
  keyword:
    medical: {any: [radiograph, diagnosis, dosage], over: all}
    attack: {any: [ignore all instructions], over: all}
    code: {any: [traceback, compile error], over: all}
  context: {long: {min_tokens: 32000}}
projections: {score: {risk: {inputs: [{keyword: attack, weight: 0.7}, {keyword: code, weight: 0.3}]}}}
decisions:
  - {name: block, guard: true, when: {keyword: attack}, respond: {status: 403, code: no, message: No.}}
  - {name: risky, priority: 9, when: {score: risk, gte: 0.6}, route: {models: [small]}}
  - {name: medical, priority: 5, when: {keyword: medical}, route: {models: [med]}}
  - {name: long, priority: 4, when: {context: long}, route: {models: [med]}}
"""
WORDS = "signal railway window patient summer contract engine river letter morning answer garden dosage"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
WARMUP = 200


class Null(SpanExporter):
    """Drops what it is given, and counts it."""

    def __init__(self) -> None:
        self.spans = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += len(spans)
        return SpanExportResult.SUCCESS


class Nowhere(logging.Handler):
    """Takes lines as the log's queue does, and writes none."""

    def emit(self, record: logging.LogRecord) -> None:
        pass


def body(rng: random.Random) -> bytes:
    turns = [{"role": "user", "content": " ".join(rng.choices(WORDS.split(), k=80))} for _ in range(3)]
    return json.dumps({"model": "small", "messages": turns}).encode()


@contextlib.asynccontextmanager
async def house(loaded: LoadedPolicy, desk: Desk | None) -> AsyncIterator[House]:
    built = await move_in(loaded, 1, desk=desk)
    if desk is not None:
        desk.teller.start()
    try:
        yield built
    finally:
        if desk is not None:
            desk.teller.close()
        built.machinery.close()


def desks(null: Null) -> tuple[Desk, Desk, BatchSpanProcessor]:
    dropped = create_instruments().telemetry_dropped
    processor, ids = BatchSpanProcessor(null, max_queue_size=100_000), RandomIdGenerator()
    joiner = Joiner(DEFAULT_ON, ids, W3C(), "bench")
    sink = Sink([processor], ids, Resource({}), InstrumentationScope("bench"))
    spans = Spans(sink, joiner, Names())
    return Desk(Teller((write_line,), dropped)), Desk(Teller((write_line, spans.tell), dropped), joiner), processor


async def run(rounds: int) -> dict[str, Any]:
    loaded, null, rng = parse_policy(POLICY, Path("bench.yaml")), Null(), random.Random(7)
    told, traced, processor = desks(null)
    head = RequestHead("POST", "/v1/chat/completions", {"traceparent": PARENT, "tracestate": "v=1"})
    async with house(loaded, None) as a, house(loaded, told) as b, house(loaded, traced) as c:
        sides = {"inline": a.pipeline, "told": b.pipeline, "traced": c.pipeline}
        took: dict[str, list[float]] = {name: [] for name in sides}
        worked: dict[str, list[float]] = {name: [] for name in sides}
        gc.collect()
        gc.freeze()
        for number in range(-WARMUP, rounds):
            sent = body(rng)
            for name in rng.sample(list(sides), len(sides)):
                began, at_work = time.perf_counter(), time.thread_time()
                await sides[name].judge(head, sent)
                if number >= 0:
                    worked[name].append(time.thread_time() - at_work)
                    took[name].append(time.perf_counter() - began)
            # A worker has pauses, in which the threads beside it work.
            await asyncio.sleep(0.001)
    processor.shutdown()
    return {
        "rounds": rounds,
        "spans": null.spans,
        **{f"{name}_us": percentiles(times) for name, times in took.items()},
        **{f"{name}_cpu_us": percentiles(times) for name, times in worked.items()},
        "told_over_inline_cpu_us": paired(worked["told"], worked["inline"]),
        "traced_over_told_cpu_us": paired(worked["traced"], worked["told"]),
    }


def paired(one: list[float], other: list[float]) -> float:
    """The median of what each round's pair differs by."""
    return round(1e6 * median(x - y for x, y in zip(one, other, strict=True)), 1)


def percentiles(times: list[float]) -> dict[str, float]:
    cuts = quantiles(times, n=100)
    return {f"p{number}": round(1e6 * cuts[number - 1], 1) for number in (50, 90, 99)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3000)
    logging.getLogger().handlers[:] = [Nowhere()]
    logging.getLogger().setLevel(logging.INFO)
    print(json.dumps(uvloop.run(run(parser.parse_args().rounds)), indent=2))


if __name__ == "__main__":
    main()
