"""What counting one request takes, in CPU time: `python -m tests.bench.measuring_cost`.

Requests under a policy with a dozen signals, counted as the teller's thread does, with the Prometheus reader attached.
"""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from pathlib import Path

from opentelemetry.sdk.metrics import MeterProvider

from router.config.load import load_policy
from router.extproc.head import RequestHead
from router.extproc.house import move_in
from router.extproc.telling.desk import Desk
from router.extproc.telling.handled import Handled
from router.extproc.telling.measures import admit, begin, measure
from router.extproc.telling.teller import Teller
from router.telemetry.histograms import Histograms
from router.telemetry.instruments import create_instruments
from router.telemetry.prometheus import Exposition, join
from router.telemetry.views import views

POLICY = Path(__file__).parents[2] / "examples/coding-agents/policy.yaml"
CHAT = RequestHead("POST", "/v1/chat/completions", {})
ROUNDS = 100


async def main() -> None:
    histograms = Histograms()
    exposition = Exposition(histograms)
    provider = MeterProvider([exposition.reader], views=views())
    instruments = create_instruments(provider.get_meter("pointsman"), histograms)
    loaded = load_policy(POLICY)
    begin(instruments)
    admit(instruments, loaded)
    told: list[Handled] = []
    teller = Teller((told.append,), instruments.telemetry_dropped)
    teller.start()
    house = await move_in(loaded, 1, desk=Desk(teller))
    for number in range(50):
        body = {"messages": [{"role": "user", "content": f"Fix the typo in line {number}"}]}
        await house.pipeline.judge(CHAT, json.dumps(body).encode())
    house.machinery.close()
    teller.close()
    signals = len(told[0].record.verdict.observations) if told[0].record else 0
    took = timed(lambda: [measure(instruments, handled) for handled in told * ROUNDS]) / (len(told) * ROUNDS)
    print(f"a request of {signals} signals: {took * 1e6:.0f} us")
    record = partial(instruments.signal_duration.record, 0.01, "keyword", "a", "observed")
    print(f"a point of a histogram: {timed(lambda: [record() for _ in range(5000)]) / 5000 * 1e6:.1f} us")
    add = partial(instruments.observations.add, "keyword", "a", "observed", "true")
    print(f"a count of a tally: {timed(lambda: [add() for _ in range(50000)]) / 50000 * 1e6:.2f} us")
    print(f"a worker's text: {timed(exposition.text) * 1e3:.0f} ms")
    text = exposition.text()
    print(f"the page of 8 workers: {timed(lambda: join(dict.fromkeys(range(8), text))) * 1e3:.0f} ms")
    provider.shutdown()


def timed(run: object) -> float:
    """CPU seconds."""
    assert callable(run)
    began = time.process_time()
    run()
    return time.process_time() - began


if __name__ == "__main__":
    asyncio.run(main())
