from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from router.config.load import LoadedPolicy, parse_policy
from router.config.problems import PolicyError

UPSTREAMS = """\
version: 1
upstreams:
  - {model: small, cluster: local}
  - {model: large, cluster: remote, endpoint: "http://127.0.0.1:8000", rewrite_model: Big/Large}
default_model: small
"""


@pytest.fixture
def load() -> Callable[[str], LoadedPolicy]:
    def parse(text: str) -> LoadedPolicy:
        return parse_policy((UPSTREAMS + dedent(text)).encode(), Path("policy.yaml"))

    return parse


@pytest.fixture
def refused(load: Callable[[str], LoadedPolicy]) -> Callable[[str], list[str]]:
    """The error lines of a policy that must not load; line 6 is the text's first."""

    def lines(text: str) -> list[str]:
        with pytest.raises(PolicyError) as caught:
            load(text)
        return caught.value.lines()

    return lines
