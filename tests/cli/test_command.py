from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from router.cli.main import app

POLICY = """\
version: 1
upstreams:
  - {model: small, cluster: local, endpoint: "http://127.0.0.1:8001"}
  - {model: med, cluster: medical, endpoint: "http://127.0.0.1:8002", rewrite_model: x/med}
default_model: small
signals:
  keyword: {medical: {any: [dosage]}}
decisions:
  - {name: medical, priority: 3, when: {any: [{keyword: medical}, {conversation: has_images}]}, route: {models: [med]}}
  - {name: tools, guard: true, when: {conversation: has_tools}, respond: {message: No tools here.}}
"""


def run(*arguments: str | Path, given: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], input=given)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


def request_of(content: str, **rest: object) -> str:
    return json.dumps({"model": "any", "messages": [{"role": "user", "content": content}], **rest})


def test_version_is_the_packages() -> None:
    assert run("--version").stdout == f"pointsman {version('pointsman')}\n"


def test_check_of_a_sound_policy_is_fine(policy: Path) -> None:
    result = run("check", policy)
    assert result.exit_code == 0
    assert "2 decisions (1 guards), 2 models" in result.stdout


def test_check_of_a_broken_policy_exits_1_and_says_where(policy: Path) -> None:
    policy.write_text(POLICY.replace("dosage]", "dosage], methd: exact"))
    result = run("check", policy)
    assert result.exit_code == 1
    assert (
        'policy.yaml:7:38: signals.keyword.medical.methd: unknown key "methd"; did you mean "method"?' in result.stderr
    )


def test_check_speaks_json(policy: Path) -> None:
    assert json.loads(run("check", policy, "--json").stdout)["holds"] is True
    policy.write_text("version: 2\n")
    answer = json.loads(run("check", policy, "--json").stdout)
    assert answer["holds"] is False
    assert {"line", "column", "key", "message"} == set(answer["problems"][0])


def test_check_names_a_pack_that_is_not_there(policy: Path) -> None:
    policy.write_text(POLICY + "encoders: {text: ./nowhere}\n")
    result = run("check", policy)
    assert result.exit_code == 1
    assert "nowhere" in result.stderr


@pytest.mark.parametrize("verb", [["check"], ["explain"], ["envoy"]])
def test_a_policy_that_is_no_file_is_wrong_use(tmp_path: Path, verb: list[str]) -> None:
    rest = ["-"] if verb == ["explain"] else []
    result = run(*verb, tmp_path / "none.yaml", *rest, given="{}")
    assert result.exit_code == 2
    assert "no such file" in result.stderr


def test_an_unknown_verb_is_wrong_use() -> None:
    assert run("frobnicate").exit_code == 2


def test_explain_draws_every_decision_and_marks_the_winner(policy: Path) -> None:
    result = run("explain", policy, "-", given=request_of("Which dosage is safe?"))
    assert result.exit_code == 0
    assert "medical (priority), to med on medical" in result.stdout
    assert "medical route 3: matched <- wins" in result.stdout
    assert "keyword/medical: yes" in result.stdout
    assert "safe" not in result.stdout


def test_explain_gives_the_record_as_json(policy: Path, tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text(request_of("hello", tools=[{"type": "function", "function": {"name": "f"}}]))
    record = json.loads(run("explain", policy, request, "--json").stdout)
    assert (record["decision"], record["outcome"]) == ("tools", "refuse")
    assert record["signals"]["conversation/has_tools"]["matched"] is True
    assert [d["name"] for d in record["decisions"]] == ["medical", "tools"]


@pytest.mark.parametrize("given", ["", "{", "[]", '{"model":"a"}', '{"model":"a","messages":[]}'])
def test_explain_of_what_is_no_request_exits_1(policy: Path, given: str) -> None:
    result = run("explain", policy, "-", given=given)
    assert result.exit_code == 1
    assert "the client would get 400" in result.stderr


def test_explain_of_a_path_that_is_none_of_ours_is_wrong_use(policy: Path) -> None:
    assert run("explain", policy, "-", "--path", "/metrics", given="{}").exit_code == 2


def test_envoy_prints_a_bootstrap_with_a_socket_for_each_worker(policy: Path) -> None:
    result = run("envoy", policy, "--listen", "127.0.0.1:10001", "--workers", "3", "--runtime-dir", "/run/x")
    assert result.exit_code == 0
    text = result.stdout
    assert yaml.safe_load(text)["static_resources"]["listeners"][0]["address"]["socket_address"]["port_value"] == 10001
    assert [n for n in range(5) if f"/run/x/worker-{n}.sock" in text] == [0, 1, 2]


def test_envoy_prints_a_bootstrap_with_a_port_for_each_worker(policy: Path) -> None:
    result = run("envoy", policy, "--workers", "2", "--workers-at", "judges.internal:9000", "--workers-ca", "/e/ca.crt")
    assert result.exit_code == 0
    found = yaml.safe_load(result.stdout)["static_resources"]["clusters"]
    (workers,) = [cluster for cluster in found if cluster["name"] == "pointsman_workers"]
    ends = workers["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert [end["endpoint"]["address"]["socket_address"]["port_value"] for end in ends] == [9000, 9001]
    assert workers["transport_socket"]["typed_config"]["sni"] == "judges.internal"


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--workers-at", "nowhere"], "a host and a port"),
        (["--workers-at", "h:0"], "a host and a port"),
        (["--workers-at", "10.0.0.7:65535", "--workers", "2"], "the last one is 65535"),
        (["--workers-ca", "/e/ca.crt"], "go with --workers-at"),
        (["--workers-at", "h:1", "--workers-name", "x"], "with --workers-ca"),
        (["--workers-at", "h:1", "--workers-ca", "/e/ca.crt", "--workers-cert", "/e/tls.crt"], "go together"),
        (["--workers-at", "h:1", "--workers-ca", "ca.crt"], "a full path"),
    ],
)
def test_envoy_refuses_places_of_workers_that_cannot_be_meant(policy: Path, flags: list[str], why: str) -> None:
    result = run("envoy", policy, *flags)
    assert result.exit_code == 2
    assert why in result.stderr


@pytest.mark.parametrize(
    ("flags", "code", "why"),
    [
        (["--listen", "0.0.0.0:9000"], 2, "say --insecure"),
        (["--listen", "[2001:db8::1]:9000"], 2, "say --insecure"),
        (["--listen", "127.0.0.1:65535", "--workers", "2"], 2, "the last one is 65535"),
        (["--listen", "127.0.0.1:9000", "--tls-cert", "a.crt"], 2, "go together"),
        (["--listen", "127.0.0.1:9000", "--tls-client-ca", "ca.crt"], 2, "with both"),
        (["--tls-cert", "a.crt", "--tls-key", "a.key"], 2, "go with --listen"),
        (["--insecure"], 2, "go with --listen"),
        (["--listen", "0.0.0.0:9000", "--tls-cert", "/no/a.crt", "--tls-key", "/no/a.key"], 1, "/no/a.crt"),
    ],
)
def test_serve_refuses_a_place_to_listen_that_cannot_be_meant(
    policy: Path, tmp_path: Path, flags: list[str], code: int, why: str
) -> None:
    result = run("serve", "-c", policy, "--runtime-dir", tmp_path / "run", *flags)
    assert result.exit_code == code
    assert why in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "flags",
    [["--listen", "nowhere:1"], ["--listen", "127.0.0.1"], ["--listen", "127.0.0.1:0"], ["--workers", "none"]],
)
def test_envoy_refuses_flags_that_envoy_would(policy: Path, flags: list[str]) -> None:
    result = run("envoy", policy, *flags)
    assert result.exit_code == 2
    assert flags[0] in result.stderr


def test_serve_refuses_a_policy_that_does_not_hold_before_it_starts_anything(policy: Path, tmp_path: Path) -> None:
    policy.write_text("version: 1\n")
    result = run("serve", "-c", policy, "--runtime-dir", tmp_path / "run")
    assert result.exit_code == 1
    assert not (tmp_path / "run").exists()


def test_serve_says_when_the_runtime_dir_is_too_long_for_a_socket(policy: Path, tmp_path: Path) -> None:
    result = run("serve", "-c", policy, "--runtime-dir", tmp_path / ("x" * 120))
    assert result.exit_code == 2
    assert "too long for a unix socket" in result.stderr


def test_packs_lists_what_is_shipped() -> None:
    names = [pack["name"] for pack in json.loads(run("packs", "list", "--json").stdout)]
    assert names == ["starter-text", "starter-vision"]
    assert "starter-text" in run("packs", "list").stdout


def test_packs_lists_the_catalogue_when_asked() -> None:
    entries = json.loads(run("packs", "list", "--catalogue", "--json").stdout)
    assert {"name", "hub", "kind", "licence", "size_mb", "use"} <= set(entries[0])
    assert "siglip-base-224" in [entry["name"] for entry in entries]
    assert "siglip-base-224" in run("packs", "list", "--catalogue").stdout


def test_a_shipped_pack_that_is_broken_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from router.cli import packs

    (tmp_path / "starter").mkdir()
    (tmp_path / "starter" / "pack.yaml").write_text("[")
    monkeypatch.setattr(packs, "shipped_folder", lambda: tmp_path)
    monkeypatch.setattr(packs, "list_shipped", lambda: ("starter",))
    result = run("packs", "list")
    assert result.exit_code == 1
    assert "pack.yaml is not YAML" in result.stderr


def test_a_traceback_shows_no_values() -> None:
    """They may be what a request says."""
    for typer_app in (app, *(group.typer_instance for group in app.registered_groups)):
        assert typer_app is not None
        assert not typer_app.pretty_exceptions_show_locals
    script = """
import sys
from router.cli import main

@main.packs_app.command("break")
def break_it(text: str) -> None:
    raise RuntimeError("broken")

sys.argv = ["pointsman", "packs", "break", "pass" + "port C01X00T47"]
main.app()
"""
    broken = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert broken.returncode == 1
    assert "RuntimeError" in broken.stderr
    assert "C01X00T47" not in broken.stderr.replace("\n", "").replace(script, "")


def test_serve_lets_grpc_write_nothing_past_the_log(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []

    def run_serve(*_: object) -> int:
        seen.append(os.environ.get("GRPC_VERBOSITY"))
        return 0

    monkeypatch.setattr("router.cli.serve.run_serve", run_serve)
    # What is set in here is undone after the test.
    monkeypatch.setattr(os, "environ", {**os.environ, "GRPC_VERBOSITY": "ERROR"})
    assert run("serve", "-c", policy).exit_code == 0
    del os.environ["GRPC_VERBOSITY"]
    assert run("serve", "-c", policy).exit_code == 0
    assert seen == ["ERROR", "NONE"]
