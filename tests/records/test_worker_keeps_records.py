from __future__ import annotations

import hashlib
from pathlib import Path

from kept_records import kept
from running_worker import running_worker

from router.records.sqlite_store import Filter, StoreReader

POLICY = """\
version: 1
upstreams: [{model: a, cluster: x}]
default_model: a
"""
KEPT = POLICY + "records: {path: r.sqlite}\n"


async def test_a_worker_keeps_what_it_decided_and_follows_its_policy_to_another_store(tmp_path: Path) -> None:
    store = tmp_path / "r.sqlite"
    async with running_worker(tmp_path, POLICY) as worker:

        async def chat_under(policy: str) -> str:
            worker.config.write_text(policy)
            worker.reload.set()
            await worker.until_policy(hashlib.sha256(policy.encode()).hexdigest())
            _, headers = await worker.headers_of_a_chat()
            return headers["x-pointsman-record"]

        await worker.until(ready=True)
        assert await chat_under(POLICY + "# the same\n")
        one = await chat_under(KEPT)
        two = await chat_under(KEPT.replace("r.sqlite", "s.sqlite"))
    assert kept(store) == [one]
    assert kept(tmp_path / "s.sqlite") == [two]
    with StoreReader(store) as reader:
        [(stored, digest)] = reader.newest(Filter())
        assert stored.policy == hashlib.sha256(KEPT.encode()).hexdigest()
        assert reader.basis(digest).text == KEPT.encode()


async def test_records_that_cannot_be_kept_cost_no_request(tmp_path: Path) -> None:
    async with running_worker(tmp_path, POLICY + "records: {path: nowhere/r.sqlite}\n") as worker:
        await worker.until(ready=True)
        for _ in range(5):
            status, headers = await worker.headers_of_a_chat()
            assert (status, headers["x-pointsman-cluster"]) == (0, "x")
        while not worker.counted("pointsman.records.dropped"):
            await worker.health()
