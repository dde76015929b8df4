"""What the admin application answers, state by state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from told_insight import admin_app

from router.admin import health
from router.admin.machines import NOBODY
from router.telemetry.worker_state import Stage, state_file, state_of_this_process, write_state

Put = Callable[[Path], None]


def _said(state: Stage, *why: str) -> Put:
    return lambda file: write_state(file, state_of_this_process(0, state, why))


def _said_by_another(file: Path) -> None:
    write_state(file, replace(state_of_this_process(0, "ready"), process_start=1))


def _garbled(file: Path) -> None:
    file.write_bytes(b'{"state": "ready"')


def _nothing(file: Path) -> None:
    pass


async def ask(app: Any, path: str, method: str = "GET") -> httpx.Response:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.request(method, path)


def files(folder: Path, count: int) -> list[Path]:
    return [state_file(folder / f"worker-{index}.sock") for index in range(count)]


SILENT, GONE = "it has not said anything yet", "its process has ended and none has followed yet"
NO_STATE = "worker-0.state.json is not a worker's state"


@pytest.mark.parametrize(
    ("puts", "status", "workers"),
    [
        ([_said("ready")], 200, [("ready", [])]),
        ([_said("starting")], 503, [("starting", [])]),
        ([_said("not_ready", "a", "b")], 503, [("not_ready", ["a", "b"])]),
        ([_nothing], 503, [("missing", [SILENT])]),
        ([_garbled], 503, [("missing", [NO_STATE])]),
        ([Path.mkdir], 503, [("missing", ["worker-0.state.json: Is a directory"])]),
        ([_said_by_another], 503, [("ended", [GONE])]),
        ([_said_by_another, _said("ready")], 200, [("ended", [GONE]), ("ready", [])]),
        ([_said("ready"), _said("not_ready", "a")], 200, [("ready", []), ("not_ready", ["a"])]),
        (
            [_said("starting"), _said_by_another, _nothing],
            503,
            [("starting", []), ("ended", [GONE]), ("missing", [SILENT])],
        ),
    ],
)
async def test_readyz_is_200_when_a_worker_is_ready_and_tells_of_each(
    tmp_path: Path, puts: list[Put], status: int, workers: list[tuple[str, list[str]]]
) -> None:
    paths = files(tmp_path, len(puts))
    for put, path in zip(puts, paths, strict=True):
        put(path)
    answer = await ask(admin_app(paths), "/readyz")
    assert answer.status_code == status
    body = answer.json()
    assert body["ready"] is (status == 200)
    assert [(worker["state"], worker["why"]) for worker in body["workers"]] == workers
    assert [worker["worker"] for worker in body["workers"]] == list(range(len(puts)))
    assert all((worker["since"] is None) == (worker["state"] == "missing") for worker in body["workers"])


async def test_readyz_follows_what_the_workers_say(tmp_path: Path) -> None:
    [path] = files(tmp_path, 1)
    app = admin_app([path])
    seen = []
    for put in (_nothing, _said("starting"), _said("ready"), _said("not_ready", "it is draining"), Path.unlink):
        put(path)
        seen.append((await ask(app, "/readyz")).status_code)
    assert seen == [503, 503, 200, 503, 503]


def _serves(digest: str, stage: Stage = "ready", *refused: str) -> Put:
    return lambda file: write_state(file, state_of_this_process(0, stage, (), digest, refused))


@pytest.mark.parametrize(
    ("puts", "served", "refused"),
    [
        ([_serves("a")], ["a"], []),
        ([_serves("b"), _serves("a"), _serves("b")], ["a", "b"], []),
        ([_serves("a", "ready", "line 3: x", "line 9: y")], ["a"], ["line 3: x", "line 9: y"]),
        ([_serves("a", "ready", "same"), _serves("a", "ready", "same")], ["a"], ["same"]),
        ([_serves("a", "not_ready")], [], []),
        ([_said("starting"), _nothing, _garbled], [], []),
        ([_serves("a"), _said_by_another], ["a"], []),
    ],
)
async def test_policy_names_what_is_served_and_why_a_changed_file_is_not(
    tmp_path: Path, puts: list[Put], served: list[str], refused: list[str]
) -> None:
    paths = files(tmp_path, len(puts))
    for put, path in zip(puts, paths, strict=True):
        put(path)
    answer = await ask(admin_app(paths), "/policy")
    assert answer.status_code == 503
    assert answer.json() == {"served": served, "refused": refused, "error": NOBODY}


async def test_livez_does_not_ask_the_workers(tmp_path: Path) -> None:
    answer = await ask(admin_app(files(tmp_path, 2)), "/livez")
    assert (answer.status_code, answer.json()) == (200, {"live": True})


@pytest.mark.parametrize(
    "path", ["/livez/", "/readyz/", "/%2Freadyz", "/readyz/0", "/metrics/", "/worker-0.state.json", "/rewards"]
)
async def test_every_other_path_is_404(tmp_path: Path, path: str) -> None:
    answer = await ask(admin_app(files(tmp_path, 1)), path)
    assert (answer.status_code, answer.json()) == (404, {"error": "Not Found"})


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/policy"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "ANY"])
async def test_every_other_method_is_405(tmp_path: Path, path: str, method: str) -> None:
    answer = await ask(admin_app(files(tmp_path, 1)), path, method)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}


async def test_an_error_of_our_own_is_500_without_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(worker: int, file: Path) -> None:
        raise RuntimeError("what went wrong")

    monkeypatch.setattr(health, "report_on", fails)
    answer = await ask(admin_app(files(tmp_path, 1)), "/readyz")
    assert (answer.status_code, answer.json()) == (500, {"error": "Internal Server Error"})
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/livez"),
        ("GET", "/readyz"),
        ("HEAD", "/readyz"),
        ("GET", "/policy"),
        ("GET", "/nothing"),
        ("POST", "/livez"),
    ],
)
async def test_no_answer_is_kept_or_guessed_at(tmp_path: Path, method: str, path: str) -> None:
    answer = await ask(admin_app(files(tmp_path, 1)), path, method)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"] == "application/json"
