"""What a small request takes of a worker's processor, beside the gRPC layer: judged, answered, and told of.

    python tests/bench/request_cost.py [--requests 2000]

An exchange from its two messages to its answer under the keyword policy of the other benchmarks (`answered`), and what
the threads beside it do about it: a line of the log, measures, the list of the page (`told`). Microseconds of CPU time,
the least of some rounds each, so that other work of the machine does not count.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import logging
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import uvloop
from opentelemetry.sdk.metrics import MeterProvider

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from paired import POLICY, request_body

from router.config.load import load_policy
from router.extproc.exchange import Exchange
from router.extproc.house import move_in
from router.extproc.inspection.ring import Ring
from router.extproc.telling.desk import Desk
from router.extproc.telling.handled import Handled
from router.extproc.telling.lines import write_line
from router.extproc.telling.measures import admit, begin, measure
from router.extproc.telling.teller import Teller
from router.proto import ext_proc_pb2 as pb
from router.telemetry.histograms import Histograms
from router.telemetry.instruments import create_instruments
from router.telemetry.log import JsonFormatter, LineWriter, QueuedHandler
from router.telemetry.prometheus import Exposition
from router.telemetry.views import views

ROUNDS = 8
HEADERS = {
    ":method": "POST",
    ":path": "/v1/chat/completions",
    ":authority": "x",
    ":scheme": "http",
    "content-length": "1024",
    "x-forwarded-proto": "http",
    "x-request-id": "4d1d4d4c-8a2b-4f5c-8f0c-9f0f0f0f0f0f",
}


def messages(body: bytes) -> tuple[bytes, bytes]:
    """As Envoy sends them."""
    pairs = [pb.HeaderValue(key=key, raw_value=value.encode()) for key, value in HEADERS.items()]
    head = pb.ProcessingRequest(request_headers=pb.HttpHeaders(headers=pb.HeaderMap(headers=pairs)))
    whole = pb.ProcessingRequest(request_body=pb.HttpBody(body=body, end_of_stream=True))
    return head.SerializeToString(), whole.SerializeToString()


async def run(requests: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.yaml"
        path.write_text(POLICY.format(port=1))
        loaded = load_policy(path)
    histograms = Histograms()
    exposition = Exposition(histograms)
    provider = MeterProvider([exposition.reader], views=views())
    instruments = create_instruments(provider.get_meter("pointsman"), histograms)
    begin(instruments)
    admit(instruments, loaded)
    told: list[Handled] = []
    # Not started: what it is given is told below, on its own clock.
    teller = Teller((), instruments.telemetry_dropped, limit=0)
    house = await move_in(loaded, 1, desk=Desk(teller), instruments=instruments)
    collecting = await move_in(loaded, 1, desk=Desk(_Collecting(told, instruments.telemetry_dropped)))
    head, body = messages(request_body(1024))

    async def wire() -> AsyncIterator[pb.ProcessingRequest]:
        yield pb.ProcessingRequest.FromString(head)
        yield pb.ProcessingRequest.FromString(body)

    async def exchange(judge: object) -> None:
        async for answer in Exchange(judge, 2.5, instruments, 1 << 25).answers(wire()):  # type: ignore[arg-type]
            answer.SerializeToString()

    for _ in range(requests // ROUNDS):
        await exchange(collecting.pipeline)
    gc.collect()
    gc.freeze()
    answered, afterwards = [], []
    ring = Ring()
    tellings = (write_line, partial(measure, instruments), ring.take)
    lines = QueuedHandler(LineWriter(io.StringIO()).write, limit=1 << 20, pause=3600)
    lines.setFormatter(JsonFormatter())
    logging.getLogger().handlers[:] = [lines]
    logging.getLogger().setLevel(logging.INFO)
    for _ in range(ROUNDS):
        began = time.thread_time()
        for _ in range(requests // ROUNDS):
            await exchange(house.pipeline)
        answered.append((time.thread_time() - began) / (requests // ROUNDS))
        began = time.thread_time()
        for handled in told:
            for tell in tellings:
                tell(handled)
        afterwards.append((time.thread_time() - began) / len(told))
    house.close()
    collecting.close()
    provider.shutdown()
    return {"answered_us": round(min(answered) * 1e6, 1), "told_us": round(min(afterwards) * 1e6, 1)}


class _Collecting(Teller):
    """Keeps what it is told."""

    def __init__(self, told: list[Handled], dropped: object) -> None:
        super().__init__((), dropped)  # type: ignore[arg-type]
        self._told = told

    def tell(self, handled: Handled) -> None:
        self._told.append(handled)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    requests = parser.parse_args().requests
    logging.getLogger().setLevel(logging.ERROR)
    print(json.dumps(uvloop.run(run(requests)), indent=2))


if __name__ == "__main__":
    # Not found out for every line, as in a worker.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    main()
