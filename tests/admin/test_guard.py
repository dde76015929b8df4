"""Who is let in at the admin address, and what every answer bears."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from router.admin import guard
from router.admin.guard import COOKIE, HEADERS, Access, Guard, Sessions, host_of, loopback_access

TOKEN = "a-token-of-some-length"


async def inside(request: Request) -> Response:
    return PlainTextResponse("in")


def guarded(access: Access, at_once: int = 32) -> Guard:
    methods = ["GET", "POST", "DELETE"]
    routes = [Route("/", inside, methods=methods), Route("/livez", inside)]
    return Guard(Starlette(routes=routes), access, at_once)


async def ask(
    app: Any, path: str = "/", method: str = "GET", base: str = "http://127.0.0.1:9902", **more: Any
) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base) as client:
        return await client.request(method, path, **more)


LOOPBACK = loopback_access("127.0.0.1")
TOKENED = Access(None, TOKEN.encode())


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9902", 200),
        ("127.0.0.1", 200),
        ("localhost:9902", 200),
        ("LOCALHOST", 200),
        ("[::1]:9902", 200),
        ("[0:0:0:0:0:0:0:1]", 200),
        ("evil.example", 403),
        ("evil.example:9902", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("10.0.0.5", 403),
        ("127.0.0.1:9902@evil.example", 403),
        ("127.0.0.2", 403),
        ("[::1", 403),
        ("[::1]9902", 403),
        ("localhost:9902:1", 403),
        ("localhost:+1", 403),
        ("", 403),
    ],
)
async def test_a_loopback_address_answers_to_its_own_names_alone(host: str, status: int) -> None:
    assert (await ask(guarded(LOOPBACK), headers={"host": host})).status_code == status


@pytest.mark.parametrize("port", ["²", "٣", "1²"])
async def test_a_port_is_of_digits_that_are_ports(port: str) -> None:
    assert host_of(f"localhost:{port}") == host_of(f"[::1]:{port}") == ""
    headers = {"host": f"localhost:{port}".encode("latin-1", "ignore") + "²".encode("latin-1")}
    assert (await ask(guarded(LOOPBACK), headers=headers)).status_code == 403


async def test_another_loopback_address_answers_to_its_own_too() -> None:
    app = guarded(loopback_access("127.0.0.7"))
    assert (await ask(app, headers={"host": "127.0.0.7:1"})).status_code == 200


async def test_two_hosts_are_none() -> None:
    headers = [("host", "localhost"), ("host", "evil.example")]
    assert (await ask(guarded(LOOPBACK), headers=headers)).status_code == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://127.0.0.1:9902"}, 200),
        ({"origin": "http://127.0.0.1:9902", "sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "https://127.0.0.1:9902"}, 403),
        ({"origin": "http://127.0.0.1:9903"}, 403),
        ({"origin": "http://localhost:9902"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://127.0.0.1:9902", "sec-fetch-site": "cross-site"}, 403),
    ],
)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_pages_of_other_origins_can_send_nothing(method: str, headers: Mapping[str, str], status: int) -> None:
    assert (await ask(guarded(LOOPBACK), method=method, headers=headers)).status_code == status


@pytest.mark.parametrize(("path", "busy"), [("/", 503), ("/nothing", 503), ("/livez", 200)])
@pytest.mark.parametrize("access", [LOOPBACK, TOKENED])
async def test_every_answer_bears_the_headers(path: str, busy: int, access: Access) -> None:
    answers = [await ask(guarded(access), path), await ask(guarded(access, 0), path)]
    for answer in answers:
        assert {name: answer.headers[name] for name in HEADERS} == dict(HEADERS)
    assert answers[1].status_code == busy


@pytest.mark.parametrize(
    "given_header",
    [
        {},
        {"authorization": "Bearer"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": "Bearer ünïcode"},
        {"cookie": f"{COOKIE}={TOKEN}"},
        {"cookie": f"{COOKIE}=99999999999.{'0' * 64}"},
        {"cookie": f"{COOKIE}="},
        {"cookie": "\x00;;=;"},
    ],
)
async def test_without_the_token_nobody_gets_in(given_header: dict[str, str]) -> None:
    encoded = {name: value.encode("utf-8") for name, value in given_header.items()}
    answer = await ask(guarded(TOKENED), headers=encoded)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert TOKEN not in answer.text


async def test_the_token_lets_in_whatever_the_host_is() -> None:
    headers = {"authorization": f"bearer {TOKEN}", "host": "admin.example:9902"}
    assert (await ask(guarded(TOKENED), headers=headers)).text == "in"
    assert (await ask(guarded(TOKENED), "/livez")).status_code == 200


async def test_a_browser_signs_in_once() -> None:
    app = guarded(TOKENED)
    asked = await ask(app, headers={"accept": "text/html"})
    assert (asked.status_code, asked.headers["location"]) == (303, "/login")
    assert 'name="token"' in (await ask(app, "/login")).text
    wrong = await ask(app, "/login", "POST", data={"token": "another-token-of-some-length"})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (403, False)
    right = await ask(app, "/login", "POST", data={"token": TOKEN})
    assert (right.status_code, right.headers["location"]) == (303, "/")
    cookie = right.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "secure" not in cookie
    assert TOKEN not in cookie
    value = right.headers["set-cookie"].partition(";")[0]
    assert (await ask(app, headers={"cookie": f"other=1; {value}"})).text == "in"
    assert (await ask(app, headers={"cookie": value + "0"})).status_code == 401
    assert (await ask(guarded(TOKENED), headers={"cookie": value})).status_code == 401


async def test_over_tls_the_cookie_stays_there() -> None:
    answer = await ask(guarded(TOKENED), "/login", "POST", "https://admin.example", data={"token": TOKEN})
    assert "secure" in answer.headers["set-cookie"].lower()


async def test_a_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    app = guarded(TOKENED)
    value = (await ask(app, "/login", "POST", data={"token": TOKEN})).headers["set-cookie"].partition(";")[0]
    now = guard.time.time()
    monkeypatch.setattr(guard.time, "time", lambda: now + guard.SESSION_SECONDS + 1)
    assert (await ask(app, headers={"cookie": value})).status_code == 401


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"content": b"token=x", "headers": {"content-type": "text/plain"}}, 415),
        ({"data": {"token": "x" * 5000}}, 413),
        ({"data": {"other": "x"}}, 403),
        ({"content": b"\xff", "headers": {"content-type": "application/x-www-form-urlencoded"}}, 403),
        ({"data": {"token": TOKEN}, "headers": {"origin": "http://evil.example"}}, 403),
        ({"data": {"token": TOKEN}, "headers": {"sec-fetch-site": "cross-site"}}, 403),
    ],
)
async def test_what_is_no_login_is_refused(more: dict[str, Any], status: int) -> None:
    answer = await ask(guarded(TOKENED), "/login", "POST", **more)
    assert (answer.status_code, "set-cookie" in answer.headers) == (status, False)


async def test_login_is_nowhere_without_a_token() -> None:
    assert (await ask(guarded(LOOPBACK), "/login")).status_code == 404


def test_neither_token_nor_session_is_in_a_repr() -> None:
    assert TOKEN not in repr(TOKENED)
    assert TOKEN not in repr(Sessions(TOKEN.encode()))


@given(st.text(max_size=40))
def test_no_host_breaks_it_and_none_passes_for_another(text: str) -> None:
    found = host_of(text)
    assert found not in ("localhost",) or text.strip().lower().split(":")[0] == "localhost"


def slowly(begun: asyncio.Event) -> tuple[dict[str, Any], Any]:
    """A sign-in whose form does not come, and what it is received by."""
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/x-www-form-urlencoded")]
    scope = {"type": "http", "method": "POST", "path": "/login", "headers": headers, "query_string": b""}

    async def receive() -> Any:
        begun.set()
        await asyncio.Event().wait()

    return {**scope, "scheme": "http", "server": ("127.0.0.1", 80)}, receive


async def test_slow_sign_ins_keep_nobody_else_out() -> None:
    app = guarded(TOKENED)
    answers: list[int] = []

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            answers.append(message["status"])

    begun = [asyncio.Event() for _ in range(40)]
    slow = [asyncio.create_task(app(*slowly(one), sent)) for one in begun]
    await asyncio.gather(*(one.wait() for one in begun[: guard.LOGINS]))
    while len(answers) < 40 - guard.LOGINS:  # noqa: ASYNC110 - told by no event
        await asyncio.sleep(0)
    assert set(answers) == {503}
    assert (await ask(app, "/livez")).status_code == 200
    assert (await ask(app, headers={"authorization": f"Bearer {TOKEN}"})).status_code == 200
    for one in slow:
        one.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    assert (await ask(app, "/login", "POST", data={"token": TOKEN})).status_code == 303


async def test_liveness_is_told_however_many_ask() -> None:
    app = guarded(LOOPBACK, at_once=0)
    assert (await ask(app)).status_code == 503
    assert (await ask(app, "/livez")).status_code == 200
    assert (await ask(app, "/livez", headers={"host": "evil.example"})).status_code == 403
