"""Configurations in the public v0.3 format, made for these tests, and ways to look at their leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from router.config.imports.vsr import Imported, import_vsr
from router.config.load import LoadedPolicy, parse_policy
from router.config.problems import Location, dotted

WHOLE = Path(__file__).parent / "whole.yaml"
"""A configuration that has something of everything."""

MODELS = """\
version: v0.3
providers:
  defaults: {default_model: small}
  models:
    - {name: small, backend_refs: [{endpoint: "10.0.0.1:8000"}]}
    - {name: large, backend_refs: [{endpoint: "10.0.0.2:8000"}]}
"""


def imported(text: str, name: str = "config.yaml") -> Imported:
    return import_vsr(Path(name), text.encode())


def routing(text: str) -> Imported:
    """Two models, and what stands under `routing`."""
    body = dedent(text)
    return imported(MODELS + "routing:\n" + "".join(f"  {line}\n" for line in body.splitlines()))


def plain(result: Imported) -> Any:
    """The policy as data."""
    return yaml.safe_load(result.text)


def loaded(result: Imported) -> LoadedPolicy:
    return parse_policy(result.text.encode(), Path("policy.yaml"))


def told(result: Imported, kind: str) -> dict[str, str]:
    """Key -> why, for one kind of finding."""
    return {dotted(each.location): each.reason.why for each in result.findings if each.reason.kind == kind}


def leaves(data: Any, location: Location = ()) -> Iterator[tuple[Location, Any]]:
    if isinstance(data, dict) and data:
        for key, value in data.items():
            yield from leaves(value, (*location, key))
    elif isinstance(data, list) and data:
        for index, value in enumerate(data):
            yield from leaves(value, (*location, index))
    elif data not in ({}, []):
        yield location, data


def unaccounted(data: Any, result: Imported) -> list[Location]:
    """Leaves that are neither carried nor listed."""
    listed = {each.location for each in result.findings if each.reason.kind != "changed"}
    changed = {each.location for each in result.findings if each.reason.kind == "changed"}
    return [
        location
        for location, _ in leaves(data)
        if location not in result.carried
        and location not in changed
        and not any(location[:length] in listed for length in range(len(location) + 1))
    ]
