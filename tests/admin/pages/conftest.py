"""A browser for the page's tests, and what the real pipeline decides about the showcase."""

from __future__ import annotations

import asyncio
import copy
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

sys.path.append(str(Path(__file__).parent))

from page_insight import PageInsight, demo_policy, parity_of, policy_of, showcase_records

from router.extproc.house import build_house
from tests.system_packages import chromium

MISSING = (
    "the page is tested in a real browser, and there is none: `make test` installs it; or apt-get install chromium, or "
    "name one with POINTSMAN_CHROMIUM"
)


@dataclass(frozen=True)
class Decided:
    """The demo's policy, its packs, and a record of each request of the showcase, in order."""

    policy: dict[str, Any]
    parity: dict[str, Any]
    records: list[dict[str, Any]]


@pytest.fixture(scope="session")
def decided() -> Decided:
    async def decide() -> Decided:
        loaded = demo_policy()
        async with build_house(loaded, threads=1) as house:
            return Decided(policy_of(loaded), parity_of(house), await showcase_records(house))

    # In a thread: Playwright has a loop of its own running in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(decide())).result()


@pytest.fixture
def insight(decided: Decided) -> PageInsight:
    """An insight that remembers the showcase, the last request as the newest."""
    made = PageInsight(copy.deepcopy(decided.policy), copy.deepcopy(decided.parity))
    for age, record in zip(range(90, 0, -10), copy.deepcopy(decided.records), strict=True):
        made.tell(record, age)
    return made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, headless; as root it has no sandbox of its own.

    For a module alone: as long as it lives a loop runs in this thread, and no test could have one of its own.
    """
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        try:
            launched = playwright.chromium.launch(executable_path=_chromium(), args=arguments)
        except Error as error:
            pytest.fail(f"Chromium does not start: {error}", pytrace=False)
        yield launched
        launched.close()


def _chromium() -> Path:
    found = chromium()
    if found is None:
        pytest.fail(MISSING, pytrace=False)
    return found
