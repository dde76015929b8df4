"""One image fetched over HTTP, by rules that hold against a hostile URL, name server and server.

Every address that a name resolves to must be public, and the connection goes to exactly these addresses; each redirect
is a new URL under the same rules. No proxy, cookie, credential or kept connection. Deadlines and how much is fetched at
a time are `fetching.py`'s.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from router.request.errors import ImageError
from router.request.image_containers import sniff
from router.request.public_address import is_public
from router.request.remote_url import RemoteImages, RemoteUrl, read_remote_url

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
"""The literal addresses of a host name; OSError where it has none."""

_REDIRECTS: Final = (301, 302, 303, 307, 308)
_HEADERS: Final = {"accept": "image/png, image/jpeg, image/webp, image/gif, image/bmp", "accept-encoding": "identity"}
# Object stores give the last two, or none, to what was uploaded without a type.
_TYPES: Final = frozenset(
    {
        *("image/png", "image/jpeg", "image/jpg", "image/webp", "image/gif", "image/bmp", "image/x-ms-bmp"),
        *("application/octet-stream", "binary/octet-stream", ""),
    }
)


class RemoteHttp:
    """Fetches by one set of rules. `close` it when nothing is fetched any more.

    `lookup` and `allowed` stand in for the system's resolver and for `is_public`, `tls` for the trusted authorities.
    """

    def __init__(
        self,
        rules: RemoteImages,
        lookup: Lookup | None = None,
        allowed: Callable[[str], bool] = is_public,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._rules = rules
        self._allowed = allowed
        self._tls = tls or True
        # Of our own: a name server that is silent must not take the threads that others wait for.
        self._threads = ThreadPoolExecutor(rules.concurrency, thread_name_prefix="lookup")
        self._resolver = _Pinning(lookup or self._lookup, allowed)

    async def get(self, url: str) -> bytes:
        """The bytes of the image; ImageError, and nothing else, with the reason why there are none."""
        target = read_remote_url(url, self._rules)
        for _ in range(self._rules.redirects + 1):
            try:
                found = await self._ask(target)
            except ImageError:
                raise
            except Exception:
                # No shorter list is complete for what a hostile server makes a client stumble over. The texts of these
                # have the URL in them.
                raise ImageError("not fetched: connection failed") from None
            if isinstance(found, bytes):
                return found
            target = found
        raise ImageError("not fetched: too many redirects")

    def close(self) -> None:
        """Take no more work."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, target: RemoteUrl) -> bytes | RemoteUrl:
        """The image, or where the server says that it is."""
        connector = aiohttp.TCPConnector(
            resolver=self._resolver, use_dns_cache=False, force_close=True, limit=1, socket_factory=self._socket
        )
        async with (
            aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                headers=_HEADERS,
                auto_decompress=False,
                trust_env=False,
            ) as session,
            session.get(URL(target.url, encoded=True), allow_redirects=False, ssl=self._tls) as response,
        ):
            if response.status in _REDIRECTS:
                return self._redirected(target, response.headers.get("location", ""))
            if response.status != 200:
                raise ImageError("not fetched: server refused")
            if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
                raise ImageError("not fetched: encoded")
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if media_type not in _TYPES:
                raise ImageError("not fetched: not an image")
            return await self._read(response)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        if (response.content_length or 0) > self._rules.bytes:
            raise ImageError("too many bytes")
        pieces: list[bytes] = []
        size = 0
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > self._rules.bytes:
                raise ImageError("too many bytes")
            pieces.append(piece)
        data = b"".join(pieces)
        if sniff(data) is None:
            raise ImageError("not fetched: not an image")
        return data

    def _redirected(self, target: RemoteUrl, location: str) -> RemoteUrl:
        following = read_remote_url(urljoin(target.url, location), self._rules)
        if target.scheme == "https" and following.scheme != "https":
            raise ImageError("not fetched: redirect away from https")
        return following

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        """The last word before a connection, whatever resolved the name; also for a literal address."""
        family, kind, protocol, _, address = info
        if not self._allowed(address[0]):
            raise ImageError("not fetched: address is not public")
        return socket.socket(family=family, type=kind, proto=protocol)

    async def _lookup(self, host: str, port: int) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _system_lookup, host, port)
        return tuple(dict.fromkeys(str(address[0]) for _, _, _, _, address in found))


def _system_lookup(host: str, port: int) -> list[tuple[Any, ...]]:
    # The final dot keeps the search list of resolv.conf out: only the name itself is meant.
    return socket.getaddrinfo(f"{host}.", port, type=socket.SOCK_STREAM)


class _Pinning(AbstractResolver):
    """Asks once for each connection, and gives only addresses that have been checked."""

    def __init__(self, lookup: Lookup, allowed: Callable[[str], bool]) -> None:
        self._lookup = lookup
        self._allowed = allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Addresses that may be connected to; one that may not spoils the others: a mix is how rebinding works."""
        addresses = await self._lookup(host, port)
        if not addresses:
            raise OSError("no address")
        if not all(map(self._allowed, addresses)):
            raise ImageError("not fetched: address is not public")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Nothing to close: it outlives each connection."""
