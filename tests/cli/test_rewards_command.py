from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from router.admin.app import build_intake
from router.admin.feedback import Feedback
from router.admin.guard import Access, Guard
from router.admin.server import Front, listen, serving
from router.cli.main import app
from router.selection.keeper import Keeper
from router.selection.learning import Measurement, Reward
from router.selection.state_file import FILE_NAME, load

POLICY = """\
version: 1
upstreams: [{model: a, cluster: x}, {model: b, cluster: y}]
default_model: a
decisions:
  - {name: one, when: {conversation: has_images}, route: {models: [a, b], select: SELECT}}
  - {name: lone, when: {conversation: has_tools}, route: {models: [b]}}
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["rewards", *map(str, arguments)])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Policy, log and rewards."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("SELECT", "static"))
    return policy, tmp_path / "log.jsonl", tmp_path / "rewards.jsonl"


def logged(record: str, model: str, propensities: dict[str, float], **rest: object) -> str:
    candidates = [{"model": name, "propensity": share} for name, share in propensities.items()]
    selection = {"by": "weighted", "from": "route", "candidates": candidates, **rest}
    return json.dumps(
        {"event": "decision", "record": record, "decision": "one", "model": model, "selection": selection}
    )


def rewarded(record: str, model: str, reward: float) -> str:
    return json.dumps({"record": record, "decision": "one", "model": model, "reward": reward})


def estimate(files: tuple[Path, Path, Path], *flags: str) -> Result:
    policy, log, rewards = files
    return run("estimate", "--policy", policy, "--log", log, "--rewards", rewards, *flags)


def write_traffic(files: tuple[Path, Path, Path], propensities: dict[str, float], count: int = 600) -> None:
    chance = random.Random(3)
    log, rewards = [], []
    for n in range(count):
        model = chance.choices(list(propensities), list(propensities.values()))[0]
        log.append(logged(str(n), model, propensities))
        rewards.append(rewarded(str(n), model, float(chance.random() < (0.2 if model == "a" else 0.9))))
    files[1].write_text("\n".join(log))
    files[2].write_text("\n".join(rewards))


def test_an_estimate_says_what_the_bandit_would_have_earned(files: tuple[Path, Path, Path]) -> None:
    write_traffic(files, {"a": 0.8, "b": 0.2})
    result = estimate(files)
    assert result.exit_code == 0
    assert "one: 600 rewarded requests in the log" in result.stdout
    assert "bandit, SNIPS" in result.stdout
    found = json.loads(estimate(files, "--json").stdout)
    assert set(found) == {"one"}
    assert found["one"]["supported"] is True
    assert found["one"]["snips"]["low"] < 0.9 < found["one"]["snips"]["high"] + 0.05
    assert found["one"]["logged"]["value"] == pytest.approx(0.34, abs=0.06)


def test_a_static_log_has_no_support_and_the_command_says_what_to_do(files: tuple[Path, Path, Path]) -> None:
    write_traffic(files, {"a": 1.0, "b": 0.0})
    result = estimate(files)
    assert result.exit_code == 1
    said = " ".join(result.stdout.split())
    assert "no support" in said
    assert "b never took one" in said
    assert "sticky: request" in said
    assert "SNIPS" not in said


def test_what_is_no_reward_or_no_decision_is_passed_over(files: tuple[Path, Path, Path]) -> None:
    even = {"a": 0.5, "b": 0.5}
    lines = [
        "12:00 not json",
        "7",
        "null",
        json.dumps({"event": "ready"}),
        logged("r1", "a", even),
        logged("r1", "a", even),
        logged("r2", "a", {"b": 1.0}),
        logged("r3", "a", even, **{"from": "fallback"}),
        json.dumps({"record": "r4", "decision": "one", "model": "a", "selection": {"from": "route", "candidates": 7}}),
        logged("r5", "b", even),
    ]
    rows = [
        *(rewarded(f"r{n}", "a", 1.0) for n in (1, 2, 3, 4)),
        "{",
        json.dumps({"record": "r5", "decision": "one", "model": "b", "reward": "many"}),
        json.dumps({"record": "r5", "decision": "one", "model": "b", "reward": 1.0, "against": "a"}),
        rewarded("r5", "a", 1.0),
    ]
    files[1].write_text("\n".join(lines))
    files[2].write_text("\n".join(rows))
    assert json.loads(estimate(files, "--json").stdout)["one"]["requests"] == 1


def test_an_empty_log_says_nothing_and_exits_1(files: tuple[Path, Path, Path]) -> None:
    for file in files[1:]:
        file.write_text("")
    result = estimate(files)
    assert result.exit_code == 1
    assert "nothing can be said" in result.stdout


def test_a_decision_that_is_not_there_or_has_one_model_is_wrong_use(files: tuple[Path, Path, Path]) -> None:
    write_traffic(files, {"a": 1.0}, 1)
    for name in ("none", "lone"):
        assert estimate(files, "--decision", name).exit_code == 2
    files[1].unlink()
    assert estimate(files).exit_code == 2


def test_a_log_in_another_charset_is_wrong_use(files: tuple[Path, Path, Path]) -> None:
    files[1].write_bytes(b"\xff\xfe\xff")
    files[2].write_text("")
    assert estimate(files).exit_code == 2


def test_show_gives_what_was_learnt(tmp_path: Path) -> None:
    with Keeper(tmp_path / FILE_NAME, 3600).running() as keeper:
        keeper.take(
            [Reward("r", "one", "a", 1.0), Reward("s", "one", "a", 1.0, "b"), Measurement("a", 5.0, None, 0.25)]
        )
    result = run("show", "--state", tmp_path)
    assert result.exit_code == 0
    assert "1508" in result.stdout
    found: dict[str, Any] = json.loads(run("show", "--state", tmp_path, "--json").stdout)
    assert found["decisions"]["one"]["a"]["rewards"] == 1
    assert found["models"]["a"]["load"] == 0.25


def test_names_are_shown_as_they_are_written(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    with Keeper(tmp_path / FILE_NAME).running() as keeper:
        keeper.take([Reward("r", "[/bold]", "[/]", 1.0), Measurement("[/red]", load=0.5)])
    shown = run("show", "--state", tmp_path)
    assert shown.exit_code == 0
    assert all(name in shown.stdout for name in ("[/bold]", "[/]", "[/red]"))
    policy, log, rewards = files
    policy.write_text(
        policy.read_text()
        .replace("name: one", "name: '[/one]'")
        .replace("model: a,", "model: '[/a]',")
        .replace("[a, b]", "['[/a]', b]")
        .replace("default_model: a", "default_model: b")
    )
    log.write_text(logged("r", "b", {"b": 1.0}).replace('"one"', '"[/one]"'))
    rewards.write_text(rewarded("r", "b", 1.0).replace('"one"', '"[/one]"'))
    told = estimate(files)
    assert "[/one]: 1 rewarded" in told.stdout
    log.write_text("")
    assert estimate(files).exit_code == 1


def test_show_of_no_state_or_a_broken_one_says_so(tmp_path: Path) -> None:
    assert run("show", "--state", tmp_path).exit_code == 2
    (tmp_path / FILE_NAME).write_text("{}")
    assert run("show", "--state", tmp_path).exit_code == 1


def test_add_tells_a_running_admin_address(tmp_path: Path) -> None:
    listener = listen("127.0.0.1", 0)
    admin = f"127.0.0.1:{listener.getsockname()[1]}"
    keeper = Keeper(tmp_path / FILE_NAME)
    feedback = Feedback(keeper, lambda: {"": {"a", "b"}, "one": {"a", "b"}})
    with keeper.running(), serving([Front("admin", build_intake(feedback), listener)]):
        assert run("add", "r1", "one", "a", "0.5", "--admin", admin).stdout == "taken\n"
        assert "known already" in run("add", "r1", "one", "a", "0.5", "--admin", admin).stdout
        assert run("add", "r1", "one", "a", "1", "--against", "b", "--admin", admin).exit_code == 0
        refused = run("add", "r1", "two", "a", "1", "--admin", admin)
        assert refused.exit_code == 1
        assert "a decision is none of the policy's" in refused.stderr
    assert load(tmp_path / FILE_NAME).version == 2
    assert run("add", "r1", "one", "a", "1", "--admin", admin).exit_code == 1


def test_add_shows_the_token_where_one_is_asked_for(tmp_path: Path) -> None:
    listener = listen("127.0.0.1", 0)
    admin = f"127.0.0.1:{listener.getsockname()[1]}"
    (tmp_path / "token").write_text("a-token-that-is-long-enough\n")
    keeper = Keeper(tmp_path / FILE_NAME)
    intake = build_intake(Feedback(keeper, lambda: {"": {"a"}, "one": {"a"}}))
    guarded = Guard(intake, Access(None, b"a-token-that-is-long-enough"))
    with keeper.running(), serving([Front("admin", guarded, listener)]):
        assert run("add", "r1", "one", "a", "1", "--admin", admin).exit_code == 1
        flags = ("--admin", admin, "--admin-token-file", str(tmp_path / "token"))
        assert run("add", "r1", "one", "a", "1", *flags).stdout == "taken\n"
        assert run("add", "r1", "one", "a", "1", *flags[:-1], str(tmp_path / "none")).exit_code == 2


@pytest.mark.parametrize("flags", [["2"], ["-1"], ["much"], ["1", "--admin", "nowhere"]])
def test_what_is_no_reward_or_no_address_is_wrong_use(flags: list[str]) -> None:
    assert run("add", "r1", "one", "a", *flags).exit_code == 2
