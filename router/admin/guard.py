"""Who is answered at the admin address, and the headers that every answer has.

At a loopback address whoever is on the machine is let in, but no page of another origin: neither by a name that it made
resolve to this machine, nor by a form that it sends. Anywhere else a token or a client's certificate is asked for.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from router.admin.bodies import media_type, read_body

logger = logging.getLogger(__name__)

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Of every answer. It is true for the moment only, is what it says it is, and nobody else's page shows or reads it."""

SAFE: Final = ("GET", "HEAD", "OPTIONS")
OPEN: Final = ("/livez",)
"""Answered without a token: it says nothing but that the address answers."""

AT_ONCE: Final = 32
"""Answers at a time; more are told to come again, but for those who ask whether the address answers."""

LOGINS: Final = 8
"""Sign-ins at a time of those; whoever has not shown the token yet leaves room for those who have."""

COOKIE: Final = "pointsman_session"
SESSION_SECONDS: Final = 12 * 3600
LOGIN: Final = "/login"
LOGIN_BYTES: Final = 4096
LOGIN_SECONDS: Final = 5.0

FORM: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Pointsman: sign in</title>
<main><h1>Pointsman</h1>{wrong}
<form method="post" action="/login"><p><label for="token">Admin token</label></p>
<p><input id="token" name="token" type="password" autocomplete="current-password" required autofocus></p>
<p><button>Sign in</button></p></form></main></html>"""
WRONG: Final = '<p role="alert">That is not the token.</p>'


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask. `hosts` are the names by which the address may be asked for, None: any.

    With a `token` it is asked for, whatever else is.
    """

    hosts: frozenset[str] | None
    token: bytes | None = field(default=None, repr=False)


def loopback_access(host: str, token: bytes | None = None) -> Access:
    """For a listener at this literal loopback address."""
    return Access(frozenset(("localhost", "127.0.0.1", "::1", str(ipaddress.ip_address(host)))), token)


class Guard:
    """Lets in who may ask, and gives every answer its headers; wraps an application."""

    def __init__(self, app: ASGIApp, access: Access, at_once: int = AT_ONCE) -> None:
        self._app = app
        self._access = access
        self._sessions = None if access.token is None else Sessions(access.token)
        self._at_once = at_once
        self._running = 0
        self._signing_in = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            return
        sending = _with_headers(send)
        request = Request(scope, receive)
        if request.url.path in OPEN:
            await self._answer(request, sending)
            return
        signs_in = self._sessions is not None and request.url.path == LOGIN
        if self._running >= self._at_once or (signs_in and self._signing_in >= LOGINS):
            busy = JSONResponse({"error": "too many ask at once; try again"}, 503, {"retry-after": "1"})
            await busy(scope, receive, sending)
            return
        self._running += 1
        self._signing_in += signs_in
        try:
            await self._answer(request, sending)
        finally:
            self._running -= 1
            self._signing_in -= signs_in

    async def _answer(self, request: Request, send: Send) -> None:
        refusal = await self._refusal(request)
        await (self._app if refusal is None else refusal)(request.scope, request.receive, send)

    async def _refusal(self, request: Request) -> Response | None:
        """What is answered in place of the application; None lets the request in."""
        problem = self._foreign(request.headers, request.method, request.url.scheme)
        if problem:
            return JSONResponse({"error": problem}, 403)
        if self._sessions is None or request.url.path in OPEN:
            return None
        if request.url.path == LOGIN:
            return await _login(request, self._sessions)
        if self._sessions.knows(request.headers):
            return None
        if request.method in SAFE and "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(LOGIN, 303)
        return JSONResponse({"error": "a token is needed"}, 401, {"www-authenticate": "Bearer"})

    def _foreign(self, headers: Headers, method: str, scheme: str) -> str:
        """Why a request comes from elsewhere; empty for one that does not."""
        hosts = headers.getlist("host")
        if self._access.hosts is not None and [host_of(each) in self._access.hosts for each in hosts] != [True]:
            return "the host must be a loopback name or the address itself"
        if method in SAFE:
            return ""
        origin = headers.get("origin")
        if origin is not None and (len(hosts) != 1 or origin.lower() != f"{scheme}://{hosts[0].lower()}"):
            return "only this page itself may send that"
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "only this page itself may send that"
        return ""


class Sessions:
    """Who has shown the token: with this request, or since this process began, as a cookie tells."""

    def __init__(self, token: bytes) -> None:
        self._token = hashlib.sha256(token).digest()
        self._key = secrets.token_bytes(32)

    def is_token(self, text: str) -> bool:
        """Whether this is the token; takes as long for any other."""
        return hmac.compare_digest(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), self._token)

    def knows(self, headers: Headers) -> bool:
        """Whether the request bears the token or a session of its."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.is_token(given.strip()):
            return True
        return any(self._holds(value) for value in _cookies(headers.getlist("cookie")))

    def begin(self) -> str:
        """A cookie's value for a new session."""
        return self._signed(str(int(time.time()) + SESSION_SECONDS))

    def _signed(self, end: str) -> str:
        return f"{end}.{hmac.new(self._key, end.encode(), hashlib.sha256).hexdigest()}"

    def _holds(self, value: str) -> bool:
        end, _, _ = value.partition(".")
        if not (end.isascii() and end.isdigit() and len(end) < 16 and value.isascii()):
            return False
        return hmac.compare_digest(value, self._signed(end)) and int(end) > time.time()


async def _login(request: Request, sessions: Sessions) -> Response:
    if request.method in ("GET", "HEAD"):
        return HTMLResponse(FORM.format(wrong=""))
    if request.method != "POST":
        return JSONResponse({"error": "Method Not Allowed"}, 405, {"allow": "GET, HEAD, POST"})
    if media_type(request) != "application/x-www-form-urlencoded":
        return JSONResponse({"error": "the form is sent as application/x-www-form-urlencoded"}, 415)
    try:
        data = await read_body(request, LOGIN_BYTES, LOGIN_SECONDS)
        [token] = parse_qs(data.decode(), max_num_fields=2).get("token", [""])[:1]
    except HTTPException as error:
        return JSONResponse({"error": error.detail}, error.status_code)
    except ValueError:
        token = ""
    if not sessions.is_token(token):
        logger.warning("admin login refused")
        return HTMLResponse(FORM.format(wrong=WRONG), 403)
    entered = RedirectResponse("/", 303)
    entered.set_cookie(
        COOKIE,
        sessions.begin(),
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return entered


def host_of(text: str) -> str:
    """The host of a Host header, lower case, an address in its shortest form; empty for what is none."""
    host, port = text.strip().lower(), ""
    if host.startswith("["):
        host, bracket, port = host[1:].partition("]")
        if not bracket or port[:1] not in ("", ":"):
            return ""
        port = port[1:]
    elif host.count(":") == 1:
        host, _, port = host.partition(":")
    if port and not (port.isascii() and port.isdigit()):
        return ""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host


def _cookies(given: Iterable[str]) -> Iterable[str]:
    for text in given:
        try:
            found = SimpleCookie(text).get(COOKIE)
        except CookieError:
            continue
        if found is not None:
            yield found.value


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return sending
