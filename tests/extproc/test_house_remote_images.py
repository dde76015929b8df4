"""A policy that lists hosts gets a fetcher; no other has one, or the library that it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from router.config.load import LoadedPolicy, parse_policy
from router.extproc.house import build_house, move_in
from router.extproc.machinery import SetupError
from router.request.remote_url import RemoteImages

POLICY = "version: 1\nupstreams: [{model: small, cluster: local}]\ndefault_model: small\n"
LISTED = "remote_images: {hosts: [images.example.com], timeout_ms: 250, bytes: 1000, redirects: 0}\n"


def loaded(more: str) -> LoadedPolicy:
    return parse_policy((POLICY + more).encode(), Path("p.yaml"))


async def test_a_fetcher_is_there_where_the_policy_lists_hosts() -> None:
    async with build_house(loaded(LISTED + "limits: {queue: 7}"), 1) as house:
        assert house.machinery.fetcher is not None
        assert house.machinery.needs.remote == RemoteImages(
            ("images.example.com",), ("https",), 0.25, 1000, concurrency=8, redirects=0, waiting=7
        )
    async with build_house(loaded(""), 1) as house:
        assert house.machinery.fetcher is None


async def test_other_hosts_are_another_machinery() -> None:
    first = await move_in(loaded(LISTED), 1)
    same = await move_in(loaded(LISTED + "\n# a word\n"), 1, first)
    other = await move_in(loaded(LISTED.replace("images.", "pictures.")), 1, first)
    assert same.machinery is first.machinery
    assert other.machinery is not first.machinery
    for house in (first, other):
        house.machinery.close()


async def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, "router.inference.remote_http", raising=False)
    with pytest.raises(SetupError, match=r"pointsman\[remote-images\]"):
        await move_in(loaded(LISTED), 1)


def test_nobody_else_loads_the_library() -> None:
    words = "import sys, router.extproc.house; sys.exit('aiohttp' in sys.modules)"
    subprocess.run([sys.executable, "-c", words], check=True, timeout=60)
