"""A house that keeps records in a folder, and what there is in its store once it was closed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from router.config.load import load_policy
from router.extproc.head import RequestHead
from router.extproc.house import House, move_in
from router.extproc.telling.desk import Desk
from router.extproc.telling.measures import admit
from router.extproc.telling.teller import Teller
from router.records.capture import Content, content_of
from router.records.sealing import Keys
from router.records.sqlite_store import StoreReader
from router.records.store import Filter
from router.records.stored import StoredRecord
from router.records.writer import RecordWriter
from router.telemetry.instruments import create_instruments

STORE = "r.sqlite"


@dataclass
class Keeping:
    """The house, and its metrics."""

    house: House
    metrics: InMemoryMetricReader

    async def chat(self, content: Any, path: str = "/v1/chat/completions", **rest: Any) -> dict[str, str]:
        """Send a question; the headers of what is done."""
        headers = rest.pop("headers", {})
        body = {"model": "any", "messages": [{"role": "user", "content": content}], **rest}
        answer = await self.house.pipeline.judge(RequestHead("POST", path, headers), json.dumps(body).encode())
        await self.house.beside.settled()
        return dict(answer.headers)

    def counted(self, name: str) -> dict[tuple[str, ...], int]:
        """Values of a counter by its labels' values."""
        data = self.metrics.get_metrics_data()
        every = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics] if data else []
        found = [m for m in every if m.name == name]
        return {tuple(map(str, p.attributes.values())): p.value for m in found for p in m.data.data_points if p.value}


@asynccontextmanager
async def keeping_house(policy: Path) -> AsyncIterator[Keeping]:
    metrics = InMemoryMetricReader()
    provider = MeterProvider([metrics])
    instruments = create_instruments(provider.get_meter("test"))
    writer = RecordWriter(instruments.records_dropped, pause=0.01)
    teller = Teller((), instruments.telemetry_dropped)
    teller.start()
    house = await move_in(load_policy(policy), 1, records=writer, desk=Desk(teller), instruments=instruments)
    admit(instruments, house.loaded)
    try:
        yield Keeping(house, metrics)
    finally:
        house.close()
        teller.close()
        await asyncio.to_thread(writer.close)
        provider.shutdown()


def kept_in(folder: Path) -> list[StoredRecord]:
    """The oldest first."""
    with StoreReader(folder / STORE) as reader:
        return [stored for stored, _ in reader.newest(Filter())][::-1]


def content_in(folder: Path, record: str, keys: Keys | None = None) -> Content | None:
    with StoreReader(folder / STORE) as reader:
        return content_of(reader, record, keys or Keys())
