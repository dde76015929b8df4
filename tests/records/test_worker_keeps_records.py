from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from kept_records import kept
from postgres_server import Server
from running_worker import running_worker

from router.records.capture import captured
from router.records.postgres_reader import PostgresReader
from router.records.sealing import read_keys
from router.records.sqlite_store import StoreReader
from router.records.store import Filter, StoreError

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


async def test_a_worker_keeps_records_in_a_database_with_their_content(
    tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = postgres.database()
    monkeypatch.setenv("TEST_DSN", dsn)
    monkeypatch.setenv("TEST_KEYS", "ab" * 32)
    policy = POLICY + "records: {store: postgres, dsn_env: TEST_DSN, capture: {decisions: all, key_env: TEST_KEYS}}\n"
    async with running_worker(tmp_path, policy + "signals: {secret: {any_key: {}}}\n") as worker:
        await worker.until(ready=True)
        _, headers = await worker.headers_of_a_chat(messages=[{"role": "user", "content": "one particular word"}])
        name = headers["x-pointsman-record"]
        while not await asyncio.to_thread(_kept_with_content, dsn, name):
            await worker.health()
    with PostgresReader(dsn) as reader:
        assert captured(reader, name, read_keys("ab" * 32)) == {"text": ["one particular word"], "images": []}


def _kept_with_content(dsn: str, name: str) -> bool:
    try:
        with PostgresReader(dsn) as reader:
            return [stored.content for stored, _ in reader.find(name)] == ["kept"]
    except StoreError:
        return False


async def test_a_worker_without_the_connection_string_says_so_and_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_DSN", raising=False)
    async with running_worker(tmp_path, POLICY + "records: {store: postgres, dsn_env: TEST_DSN}\n") as worker:
        state = await worker.until(ready=False)
        assert "the environment variable TEST_DSN is not set" in str(state)


async def test_records_that_cannot_be_kept_cost_no_request(tmp_path: Path) -> None:
    async with running_worker(tmp_path, POLICY + "records: {path: nowhere/r.sqlite}\n") as worker:
        await worker.until(ready=True)
        for _ in range(5):
            status, headers = await worker.headers_of_a_chat()
            assert (status, headers["x-pointsman-cluster"]) == (0, "x")
        while not worker.counted("pointsman.records.dropped"):
            await worker.health()
