"""Which image URLs may be fetched: those of the schemes and hosts that the policy lists, written so that every parser
reads the same host. Nothing is resolved or fetched here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from router.request.errors import ImageError

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
LONGEST_URL: Final = 8_192
"""Signed URLs of object stores take about two thousand characters."""

_LONGEST_HOST = 255
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
# The last label begins with a letter: what ends in a number is an IPv4 address to URL parsers (WHATWG URL).
_NAME = rf"(?:{_LABEL}\.)+[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?"
_HOST_ENTRY = re.compile(rf"(?:\*\.)?{_NAME}(?::([0-9]{{1,5}}))?\Z")
# No user, no fragment, no backslash, no white space, nothing beyond ASCII (a dotless i is an i to Unicode's ignorance
# of case): what parsers read differently.
_URL = re.compile(rf"(https?)://({_NAME})(?::([0-9]{{1,5}}))?(?:[/?][!\"$-\[\]-~]*)?\Z", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class RemoteImages:
    """What may be fetched, and what that may cost.

    `timeout` in seconds for one image with its redirects and its wait, `bytes` of a file, `concurrency` fetches at a
    time and `waiting` more in a worker, `redirects` in a row.
    """

    hosts: tuple[str, ...]
    schemes: tuple[str, ...] = ("https",)
    timeout: float = 1.0
    bytes: int = 10 * 2**20
    concurrency: int = 8
    redirects: int = 2
    waiting: int = 64


@dataclass(frozen=True, slots=True)
class RemoteUrl:
    """A URL that may be fetched; `host` is in lower case."""

    url: str = field(repr=False)
    scheme: str
    host: str = field(repr=False)
    port: int


def is_host_entry(entry: str) -> bool:
    """Whether the policy may list it: a name in lower case with a dot in it, or its subdomains (`*.`), and a port where
    it is another than the scheme's."""
    found = _HOST_ENTRY.match(entry) if len(entry) <= _LONGEST_HOST else None
    return found is not None and (found[1] is None or 0 < int(found[1]) < 65_536)


def read_remote_url(url: str, rules: RemoteImages) -> RemoteUrl:
    """The URL, if it may be fetched; raises ImageError with the reason if not."""
    found = _URL.match(url) if len(url) <= LONGEST_URL else None
    if found is None:
        raise ImageError("not fetched: URL is not plain")
    scheme, host = found[1].lower(), found[2].lower()
    if scheme not in rules.schemes:
        raise ImageError("not fetched: scheme is not listed")
    port = int(found[3]) if found[3] else DEFAULT_PORTS[scheme]
    if not any(_lists(entry, host, port, DEFAULT_PORTS[scheme]) for entry in rules.hosts):
        raise ImageError("not fetched: host is not listed")
    return RemoteUrl(url, scheme, host, port)


def _lists(entry: str, host: str, port: int, default_port: int) -> bool:
    name, _, listed = entry.partition(":")
    if port != (int(listed) if listed else default_port):
        return False
    return host.endswith(name[1:]) if name.startswith("*.") else host == name
