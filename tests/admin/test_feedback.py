"""What the feedback endpoints take, and what they make of everything else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from told_insight import admin_app

from router.admin import feedback as feedback_module
from router.admin.feedback import MAX_BODY, MAX_EVENTS, Feedback
from router.admin.known import KnownNames
from router.selection import keeper as keeper_module
from router.selection.keeper import Keeper
from router.selection.state_file import FILE_NAME

NAMES = {"": {"a", "b", "c"}, "one": {"a", "b"}}
REWARD = {"record": "0190-x", "decision": "one", "model": "a", "reward": 0.5}
Post = Callable[..., Any]


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    with Keeper(tmp_path / FILE_NAME, 3600.0).running() as running:
        yield running


@pytest.fixture
async def client(keeper: Keeper) -> AsyncIterator[httpx.AsyncClient]:
    app = admin_app(feedback=Feedback(keeper, lambda: NAMES))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9902") as made:
        yield made


async def test_a_reward_is_taken_once(client: httpx.AsyncClient, keeper: Keeper) -> None:
    first = await client.post("/rewards", json=REWARD)
    assert (first.status_code, first.json()) == (200, {"received": 1, "new": 1})
    assert (await client.post("/rewards", json=REWARD)).json() == {"received": 1, "new": 0}
    assert keeper.snapshot.arm("one", "a").rewards == 1
    assert first.headers["cache-control"] == "no-store"


async def test_a_list_is_taken_as_a_whole(client: httpx.AsyncClient, keeper: Keeper) -> None:
    rows = [{**REWARD, "record": f"r{n}"} for n in range(5)] + [{**REWARD, "against": "b", "reward": 1}]
    assert (await client.post("/rewards", json=rows)).json() == {"received": 6, "new": 6}
    assert (keeper.snapshot.arm("one", "a").rewards, keeper.snapshot.arm("one", "b").comparisons) == (5, 1)
    bad = await client.post("/rewards", json=[{**REWARD, "record": "new"}, {**REWARD, "model": "c"}])
    assert bad.status_code == 422
    assert keeper.snapshot.version == 6


async def test_measurements_are_taken_for_every_model_of_the_policy(client: httpx.AsyncClient, keeper: Keeper) -> None:
    rows = [{"model": "c", "ttft_ms": 12.5}, {"model": "a", "latency_ms": 80, "load": 1}, {"model": "c", "load": 0}]
    assert (await client.post("/measurements", json=rows)).json() == {"received": 3, "new": 3}
    assert (keeper.snapshot.speed("c").ttft, keeper.snapshot.speed("c").load) == ((12.5,), 0)


@pytest.mark.parametrize(
    "change",
    [
        {"reward": -0.01},
        {"reward": 1.01},
        {"reward": "1"},
        {"reward": None},
        {"record": ""},
        {"record": "x" * 65},
        {"record": "a\nb"},
        {"record": "a\n"},
        {"decision": "another"},
        {"decision": ""},
        {"model": "c"},
        {"model": "x" * 5000},
        {"against": "a"},
        {"against": "c"},
        {"SECRET": 1},
    ],
)
async def test_a_reward_that_does_not_hold_is_refused_and_not_repeated(
    client: httpx.AsyncClient, keeper: Keeper, change: dict[str, Any]
) -> None:
    answer = await client.post("/rewards", json={**REWARD, **change})
    assert answer.status_code == 422
    assert set(answer.json()) == {"error"}
    assert "SECRET" not in answer.text
    assert keeper.snapshot.version == 0


@pytest.mark.parametrize(
    "row",
    [
        {"model": "a"},
        {"model": "z", "ttft_ms": 1},
        {"model": "a", "ttft_ms": -1},
        {"model": "a", "latency_ms": 1e12},
        {"model": "a", "load": 1.5},
        {"model": "a", "tftt_ms": 1},
        {"ttft_ms": 1},
    ],
)
async def test_a_measurement_that_does_not_hold_is_refused(
    client: httpx.AsyncClient, keeper: Keeper, row: dict[str, Any]
) -> None:
    assert (await client.post("/measurements", json=row)).status_code == 422
    assert keeper.snapshot.version == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"7",
        b'"x"',
        b"[7]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"record":"r","decision":"one","model":"a","reward":NaN}',
        b'{"record":"r","decision":"one","model":"a","reward":1e999}',
    ],
)
async def test_what_is_no_reward_is_refused(client: httpx.AsyncClient, keeper: Keeper, body: bytes) -> None:
    answer = await client.post("/rewards", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert keeper.snapshot.version == 0


async def test_no_rows_are_no_events(client: httpx.AsyncClient) -> None:
    assert (await client.post("/rewards", json=[])).json() == {"received": 0, "new": 0}


async def test_too_much_is_refused(client: httpx.AsyncClient, keeper: Keeper) -> None:
    many = [{**REWARD, "record": str(n)} for n in range(MAX_EVENTS + 1)]
    assert (await client.post("/rewards", json=many)).status_code == 413
    padded = json.dumps(REWARD).encode() + b" " * MAX_BODY
    answer = await client.post("/rewards", content=padded, headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert keeper.snapshot.version == 0


async def test_a_body_that_does_not_come_is_not_waited_for(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    monkeypatch.setattr(feedback_module, "BODY_SECONDS", 0.01)

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    answer = await client.post("/rewards", content=never(), headers={"content-type": "application/json"})
    assert answer.status_code == 408


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonp"])
async def test_what_a_page_could_send_unasked_is_refused(client: httpx.AsyncClient, keeper: Keeper, kind: str) -> None:
    answer = await client.post("/rewards", content=json.dumps(REWARD), headers={"content-type": kind})
    assert answer.status_code == 415
    assert keeper.snapshot.version == 0


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example:9902", 403),
        ("10.0.0.5", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost:9902", 200),
        ("[::1]:9902", 200),
        ("127.0.0.1", 200),
    ],
)
async def test_a_name_that_was_pointed_here_is_refused(client: httpx.AsyncClient, host: str, status: int) -> None:
    assert (await client.post("/rewards", json=REWARD, headers={"host": host})).status_code == status


@pytest.mark.parametrize("path", ["/rewards", "/measurements"])
async def test_there_is_nothing_to_get(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 405


async def test_without_feedback_there_is_no_such_endpoint() -> None:
    transport = httpx.ASGITransport(admin_app())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.post("/rewards", json=REWARD)).status_code == 404


async def test_a_full_state_says_so(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_module, "MAX_ARMS", 0)
    assert (await client.post("/rewards", json=REWARD)).status_code == 507


POLICY = """\
version: 1
upstreams: [{model: a, cluster: x}, {model: b, cluster: y}]
default_model: a
decisions:
  - {name: NAME, when: {conversation: has_images}, route: {models: [b]}}
  - {name: no, when: {conversation: has_tools}, respond: {message: No.}}
"""


def test_known_names_follow_the_policy_file_and_outlive_a_broken_one(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    known = KnownNames(file)
    assert known() == {"": frozenset()}
    file.write_text(POLICY.replace("NAME", "first"))
    assert known() == {"": {"a", "b"}, "first": {"b"}}
    file.write_text(POLICY.replace("NAME", "second-name"))
    assert set(known()) == {"", "second-name"}
    file.write_text("version: 7\n")
    assert set(known()) == {"", "second-name"}
    file.unlink()
    assert set(known()) == {"", "second-name"}
