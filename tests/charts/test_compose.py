"""The compose file: against the Compose Specification's schema, and what it refers to. It is not run here."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from chart_render import ROOT

from router.config.load import load_policy

FOLDER = ROOT / "deploy"
COMPOSE_V1 = "docker-compose==1.29.2"
"""The last version in Python, which carries the specification's schema; newer keys are not used."""


@functools.cache
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / "compose.yaml").read_text()))


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("compose")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), COMPOSE_V1]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return dict(json.loads(archive.read("compose/config/compose_spec.json")))


def test_the_specification_takes_it(schema: dict[str, Any]) -> None:
    # `name` and `mem_limit` in its short form are of the specification; this copy is older than the first.
    given = {key: value for key, value in compose().items() if key != "name"}
    jsonschema.Draft201909Validator(schema).validate(given)


def test_files_that_are_mounted_are_there() -> None:
    named = [v.split(":")[0] for s in compose()["services"].values() for v in s.get("volumes", [])]
    files = [name for name in named if name.startswith("./")]
    assert files
    assert all((FOLDER / name).is_file() for name in files)
    assert {name for name in named if not name.startswith("./")} == set(compose()["volumes"])


def test_every_service_is_hardened_and_bounded() -> None:
    assert set(compose()["services"]) == {"pointsman", "envoy", "upstream", "collector"}
    for service in compose()["services"].values():
        assert service["user"] == "65532:65532"
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["mem_limit"]
        assert not service["image"].endswith("latest")


def test_only_loopback_is_published() -> None:
    published = [port for service in compose()["services"].values() for port in service.get("ports", [])]
    assert published == ["127.0.0.1:8080:10000"]


def test_its_policy_holds_and_leads_to_its_upstream() -> None:
    loaded = load_policy(FOLDER / "compose" / "policy.yaml")
    [upstream] = loaded.policy.upstreams
    assert upstream.endpoint == "http://upstream:8000"
    assert compose()["services"]["upstream"]["command"][-1] == "8000"


def test_its_collector_listens_where_pointsman_sends() -> None:
    collector = yaml.safe_load((FOLDER / "compose" / "collector.yaml").read_text())
    endpoint = collector["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"]
    sent = compose()["services"]["pointsman"]["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"]
    assert sent.rpartition(":")[2] == endpoint.rpartition(":")[2]


def test_what_it_stops_has_the_time_to_drain() -> None:
    from router.extproc.life import DRAIN_GRACE, DRAIN_NOTICE

    assert int(compose()["services"]["pointsman"]["stop_grace_period"].removesuffix("s")) > DRAIN_NOTICE + DRAIN_GRACE
    assert Path(FOLDER / "compose" / "upstream.py").read_text().startswith('"""')
