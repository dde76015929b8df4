"""Fetches from hostile servers on loopback: a resolver that is injected sends every name there, or elsewhere."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import trustme
from tiny_tower import photo

from router.inference.fetching import ImageFetcher
from router.inference.remote_http import RemoteHttp
from router.request.errors import ImageError
from router.request.remote_url import RemoteImages
from router.request.view import ImagePart

PNG = photo(1)
PUBLIC = "93.184.215.14"


def response(body: bytes = PNG, status: str = "200 OK", length: int | None = None, **headers: str) -> bytes:
    lines = {"content-type": "image/png", "content-length": str(len(body) if length is None else length)}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return response(b"", status, location=location)


@dataclass
class Site:
    """A server that gives each path its bytes and then, where told so, goes on or stays silent."""

    pages: dict[str, bytes] = field(default_factory=lambda: {"/": response()})
    stays: bool = False
    endless: bool = False
    heads: list[str] = field(default_factory=list)
    sent: int = 0
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            writer.write(self.pages[head.split()[1].partition("?")[0]])
            await writer.drain()
            while self.endless:
                writer.write(b"\0" * 65_536)
                self.sent += 65_536
                await writer.drain()
            if self.stays:
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def header(self, name: str, index: int = -1) -> str | None:
        for line in self.heads[index].splitlines():
            key, _, value = line.partition(":")
            if key.lower() == name:
                return value.strip()
        return None


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    yield site
    server.close()
    await server.wait_closed()


class Names:
    """A name server under the tests' control; each name has a list of answers, of which the last one stays."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def lookup(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.answers.get(host.partition(".")[0], [["127.0.0.1"]])
        return answers[min(self.asked.count(host), len(answers)) - 1]


def rules_of(site: Site, **changes: object) -> RemoteImages:
    hosts = tuple(f"{name}.example.com:{site.port}" for name in ("images", "other", "inside"))
    rules = RemoteImages(hosts, ("http", "https"), bytes=100_000)
    return replace(rules, **changes)  # type: ignore[arg-type]


def loopback_or_public(address: str) -> bool:
    return address in ("127.0.0.1", PUBLIC)


@pytest.fixture
def http_of(site: Site) -> Callable[..., RemoteHttp]:
    def build(names: Names | None = None, **changes: object) -> RemoteHttp:
        return RemoteHttp(rules_of(site, **changes), (names or Names()).lookup, loopback_or_public)

    return build


async def refusal(http: RemoteHttp, url: str) -> str:
    with pytest.raises(ImageError) as caught:
        await http.get(url)
    assert "example" not in caught.value.reason
    assert caught.value.__cause__ is None
    return caught.value.reason


def url(site: Site, path: str = "/", host: str = "images") -> str:
    return f"http://{host}.example.com:{site.port}{path}"


async def test_an_image_is_fetched_with_a_plain_request(
    site: Site, http_of: Callable[..., RemoteHttp], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine images.example.com login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    assert await http_of().get(url(site, "/?size=1%2F2")) == PNG
    assert site.heads[0].startswith("GET /?size=1%2F2 HTTP/1.1\r\n")
    assert site.header("host") == f"images.example.com:{site.port}"
    assert site.header("accept-encoding") == "identity"
    for name in ("cookie", "authorization", "proxy-authorization", "referer"):
        assert site.header(name) is None


async def test_cookies_do_not_live_from_one_fetch_or_hop_to_the_next(
    site: Site, http_of: Callable[..., RemoteHttp]
) -> None:
    site.pages = {
        "/": response(b"", "302 Found", location="/b", set_cookie="a=1; Path=/"),
        "/b": response(set_cookie="c=2"),
    }
    http = http_of()
    for _ in range(2):
        assert await http.get(url(site)) == PNG
    assert all(site.header("cookie", index) is None for index in range(4))


@pytest.mark.parametrize(
    "addresses",
    [["10.0.0.1"], ["169.254.169.254"], ["::1"], ["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["fe80::1%lo"]],
)
async def test_a_name_with_one_address_inside_is_not_connected_to(
    site: Site, http_of: Callable[..., RemoteHttp], addresses: list[str]
) -> None:
    assert await refusal(http_of(Names(images=[addresses])), url(site)) == "not fetched: address is not public"
    assert site.heads == []


async def test_the_range_check_is_the_default(site: Site) -> None:
    http = RemoteHttp(rules_of(site), Names().lookup)
    assert await refusal(http, url(site)) == "not fetched: address is not public"
    assert site.heads == []


async def test_the_address_is_checked_once_more_where_the_socket_is_made(site: Site) -> None:
    answers = iter([True, False])
    http = RemoteHttp(rules_of(site), Names().lookup, lambda _: next(answers))
    assert await refusal(http, url(site)) == "not fetched: address is not public"
    assert site.heads == []


async def test_a_name_is_asked_for_once_so_that_a_second_answer_changes_nothing(
    site: Site, http_of: Callable[..., RemoteHttp]
) -> None:
    names = Names(images=[["127.0.0.1"], ["10.0.0.1"]])
    assert await http_of(names).get(url(site)) == PNG
    assert names.asked == ["images.example.com"]


async def test_a_redirect_to_the_same_name_is_checked_anew(site: Site, http_of: Callable[..., RemoteHttp]) -> None:
    site.pages = {"/": redirect("/again"), "/again": response()}
    names = Names(images=[["127.0.0.1"], ["10.0.0.1"]])
    assert await refusal(http_of(names), url(site)) == "not fetched: address is not public"
    assert len(site.heads) == 1


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 T", "308 P"])
async def test_a_redirect_to_a_listed_host_is_followed(
    site: Site, http_of: Callable[..., RemoteHttp], status: str
) -> None:
    site.pages = {"/": redirect(url(site, "/b", "other"), status), "/b": response()}
    assert await http_of().get(url(site)) == PNG
    assert site.header("host") == f"other.example.com:{site.port}"
    assert site.header("referer") is None


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://evil.example.org/", "host is not listed"),
        ("http://images.example.com/", "host is not listed"),
        ("http://169.254.169.254/latest/meta-data/", "URL is not plain"),
        ("http://[::1]/", "URL is not plain"),
        ("http://127.0.0.1:{port}/", "URL is not plain"),
        ("//evil.example.org/", "host is not listed"),
        ("http://user@images.example.com:{port}/", "URL is not plain"),
        ("http://images.example.com:{port}\\@evil.example.org/", "URL is not plain"),
        ("file:///etc/passwd", "URL is not plain"),
        ("gopher://images.example.com:{port}/", "URL is not plain"),
        ("data:image/png;base64,AAAA", "URL is not plain"),
        ("http://inside.example.com:{port}/", "address is not public"),
        ("http://images.example.com:{port}/b#c", "URL is not plain"),
        ("\x00", "URL is not plain"),
    ],
)
async def test_a_hostile_redirect_is_not_followed(
    site: Site, http_of: Callable[..., RemoteHttp], location: str, reason: str
) -> None:
    site.pages = {"/": redirect(location.format(port=site.port)), "/b": response()}
    assert reason in await refusal(http_of(Names(inside=[["10.0.0.1"]])), url(site)) or "\x00" in location
    assert len(site.heads) == 1


async def test_redirects_are_counted(site: Site, http_of: Callable[..., RemoteHttp]) -> None:
    site.pages = {"/": redirect("/"), "/1": redirect("/2"), "/2": redirect("/3"), "/3": response()}
    assert await http_of().get(url(site, "/1")) == PNG
    assert await refusal(http_of(redirects=1), url(site, "/1")) == "not fetched: too many redirects"
    assert await refusal(http_of(redirects=0), url(site, "/2")) == "not fetched: too many redirects"
    site.heads.clear()
    assert await refusal(http_of(), url(site)) == "not fetched: too many redirects"
    assert len(site.heads) == 3


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (response(status="404 Not Found"), "not fetched: server refused"),
        (response(status="206 Partial"), "not fetched: server refused"),
        (response(content_type="text/html"), "not fetched: not an image"),
        (response(content_type="image/svg+xml"), "not fetched: not an image"),
        (response(b"<svg/>"), "not fetched: not an image"),
        (response(b""), "not fetched: not an image"),
        (response(content_encoding="gzip"), "not fetched: encoded"),
        (response(length=100_001), "too many bytes"),
        (response(PNG + bytes(100_000)), "too many bytes"),
        (response(PNG + bytes(100_000), content_length="", connection="close"), "too many bytes"),
        (response(length=len(PNG) + 1), "not fetched: connection failed"),
        (b"HTTP/1.1 200 OK\r\n" + b"x-a: b\r\n" * 100_000 + b"\r\n", "not fetched: connection failed"),
        (b"HTTP/1.1 200 OK\r\nx-a: " + b"b" * 1_000_000, "not fetched: connection failed"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "not fetched: connection failed"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
            "not fetched: connection failed",
        ),
        (b"\x15\x03\x01\x00\x02\x02\x46", "not fetched: connection failed"),
        (b"", "not fetched: connection failed"),
    ],
)
async def test_what_is_not_a_whole_image_within_bounds_is_refused(
    site: Site, http_of: Callable[..., RemoteHttp], page: bytes, reason: str
) -> None:
    site.pages = {"/": page}
    assert await refusal(http_of(), url(site)) == reason


@pytest.mark.parametrize("media_type", ["image/png; x=y", "IMAGE/JPEG", "application/octet-stream", ""])
async def test_a_type_that_stores_give_is_taken(
    site: Site, http_of: Callable[..., RemoteHttp], media_type: str
) -> None:
    site.pages = {"/": response(content_type=media_type)}
    assert await http_of().get(url(site)) == PNG


async def test_an_endless_body_ends_at_the_cap(site: Site, http_of: Callable[..., RemoteHttp]) -> None:
    site.pages = {"/": b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\n" + PNG}
    site.endless = True
    assert await refusal(http_of(), url(site)) == "too many bytes"
    # The cap, and what the sockets hold.
    assert site.sent < 16 << 20


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\ncontent-type: image/png\r\n\r\n" + PNG[:20],
        redirect("/"),
    ],
)
async def test_a_server_that_stays_silent_is_left_at_the_deadline(
    site: Site, http_of: Callable[..., RemoteHttp], page: bytes
) -> None:
    site.pages, site.stays = {"/": page}, True
    http = http_of(redirects=10)
    fetcher = ImageFetcher(rules_of(site, timeout=0.2, redirects=10), http.get, http.close)
    found = await fetcher.inline(ImagePart("/p", "not_fetched", url=url(site)))
    assert found.status == "malformed"
    assert found.reason in ("not fetched: timed out", "not fetched: too many redirects")
    fetcher.close()


async def test_a_silent_name_server_is_left_at_the_deadline(site: Site) -> None:
    async def lookup(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return ()

    http = RemoteHttp(rules_of(site), lookup, loopback_or_public)
    fetcher = ImageFetcher(rules_of(site, timeout=0.05), http.get)
    found = await fetcher.inline(ImagePart("/p", "not_fetched", url=url(site)))
    assert found.reason == "not fetched: timed out"


async def test_a_name_without_addresses_and_a_closed_port_fail(site: Site, http_of: Callable[..., RemoteHttp]) -> None:
    assert await refusal(http_of(Names(images=[[]])), url(site)) == "not fetched: connection failed"
    closed = RemoteHttp(RemoteImages(("images.example.com:9",), ("http",)), Names().lookup, loopback_or_public)
    assert await refusal(closed, "http://images.example.com:9/") == "not fetched: connection failed"


async def test_the_systems_resolver_is_asked_in_threads_of_its_own() -> None:
    http = RemoteHttp(RemoteImages(("nowhere.invalid",), ("http",)))
    assert await refusal(http, "http://nowhere.invalid/") == "not fetched: connection failed"
    http.close()


async def test_tls_is_for_the_name_and_not_for_the_address() -> None:
    authority = trustme.CA()
    site = Site()
    named: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("images.example.com").configure_cert(context)
    context.sni_callback = lambda _socket, name, _context: named.append(name)
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=context)
    site.port = server.sockets[0].getsockname()[1]
    trusted = ssl.create_default_context()
    authority.configure_trust(trusted)
    https = f"https://images.example.com:{site.port}/"
    http = RemoteHttp(rules_of(site), Names().lookup, loopback_or_public, trusted)
    assert await http.get(https) == PNG
    assert named == ["images.example.com"]
    site.pages = {"/": redirect(url(site))}
    assert await refusal(http, https) == "not fetched: redirect away from https"
    assert await refusal(http, https.replace("images", "other")) == "not fetched: connection failed"
    stranger = RemoteHttp(rules_of(site), Names().lookup, loopback_or_public)
    assert await refusal(stranger, https) == "not fetched: connection failed"
    server.close()
    await server.wait_closed()
