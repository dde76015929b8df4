"""A worker whose policy file changes goes on serving, by the new policy or, where that does not hold, by the old."""

from __future__ import annotations

import asyncio
import hashlib
import os
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from running_worker import PATIENCE, Running, running_worker
from tiny_packs import write_vision_pack

from router.actions.edits import Edits
from router.config.load import parse_policy
from router.extproc import life, reload
from router.extproc import machinery as machinery_room
from router.extproc.exchange import FailureKind
from router.extproc.head import RequestHead
from router.extproc.house import build_house, move_in
from router.extproc.readiness import Door, NotReadyError
from router.inference.executor import InferenceExecutor
from router.request.reply import Reply

DECISION, MODEL = "x-pointsman-decision", "x-pointsman-model"


def policy(name: str, more: str = "") -> str:
    """A policy that sends every greeting to the model `name`, by a decision of that name."""
    return f"""\
version: 1
upstreams: [{{model: {name}, cluster: c}}, {{model: other, cluster: o}}]
default_model: other
signals: {{keyword: {{greeting: {{any: [hello]}}}}}}
decisions: [{{name: {name}, when: {{keyword: greeting}}, route: {{models: [{name}]}}}}]
{more}"""


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def replace(file: Path, text: str) -> None:
    fresh = file.with_suffix(".fresh")
    fresh.write_text(text)
    fresh.rename(file)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "DRAIN_NOTICE", 0.0)
    monkeypatch.setattr(reload, "LOOK_SECONDS", 0.02)


def outcomes(running: Running) -> dict[str, int]:
    return {attributes["outcome"]: count for attributes, count in running.counted("pointsman.policy.reloads")}


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_changed_policy_is_taken_over_without_a_restart(tmp_path: Path) -> None:
    async with running_worker(tmp_path, policy("first")) as running:
        await running.until(ready=True)
        assert (await running.headers_of_a_chat())[1][DECISION] == "first"
        replace(running.config, policy("second"))
        state = await running.until_policy(digest(policy("second")))
        assert state["refused_policy"] == []
        assert (await running.headers_of_a_chat())[1][DECISION] == "second"
        assert outcomes(running) == {"taken_over": 1}


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("version: 1\nupstreams: [", "is not YAML"),
        (policy("second", "encoders: {text: ./nowhere}"), "nowhere"),
        (policy("second", "limits: {body_bytes: 1000}"), "restart both"),
        (policy("second", "limits: {decoded_bytes: 100000000}"), "restart both"),
        (policy("second", "limits: {decision_ms: 1}"), "limits.decision_ms was 2000 and is 1"),
        (policy("second", "observe_only: true"), "observe_only was false and is true"),
        (policy("second", "gateway_api_inference: true"), "gateway_api_inference was false and is true"),
        (policy("second", "responses: {usage: true}"), "responses.usage was false and is true"),
        (policy("second", "trusted_metadata: {x-team: a.b:team}"), "was [] and is [a.b]"),
        (policy("second", "trusted_headers: [x-team]\nstrip_from_clients: [x-team]"), "was [] and is [x-team]"),
        (policy("second", "trusted_attributes: {x-from: source.address}"), "was [] and is [source.address]"),
        (
            policy("second", "responses: {checks: [{name: no, when: {tool_call: t}}]}").replace(
                "signals: {", "signals: {tool_call: {t: {names: [t]}}, "
            ),
            "whether there are responses.checks was false and is true",
        ),
        (
            policy("second").replace("cluster: o}", "cluster: o, endpoint: 'http://127.0.0.1:2'}"),
            "Envoy does not know cluster o at http://127.0.0.1:2",
        ),
        (policy("second").replace("greeting}", "gretting}"), "did you mean"),
    ],
)
async def test_a_bad_policy_keeps_the_old_one_and_is_told_of(
    tmp_path: Path, bad: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_worker(tmp_path, policy("first")) as running:
        await running.until(ready=True)
        replace(running.config, bad)
        await until(lambda: bool(running.state()["refused_policy"]))
        assert says in " ".join(running.state()["refused_policy"])
        assert running.state()["policy"] == digest(policy("first"))
        assert (await running.headers_of_a_chat())[1][DECISION] == "first"
        assert outcomes(running) == {"refused": 1}
        assert "policy refused, the former one goes on" in caplog.text
        replace(running.config, policy("third"))
        assert (await running.until_policy(digest(policy("third"))))["refused_policy"] == []


async def test_a_policy_that_is_asked_for_is_read_again_though_it_is_the_same(tmp_path: Path) -> None:
    async with running_worker(tmp_path, policy("first")) as running:
        await running.until(ready=True)
        running.reload.set()
        await until(lambda: outcomes(running) == {"taken_over": 1})


def test_a_touched_file_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(policy("first"))
    watched = reload.PolicyFile(file, digest(policy("first")))
    replace(file, policy("first"))
    assert looks(watched, 3) == [None, None, None]
    replace(file, policy("second"))
    assert looks(watched, 3) == [None, policy("second").encode(), None]
    file.unlink()
    assert looks(watched, 2) == [None, None]


def test_a_file_that_changed_before_anybody_watched_it_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(policy("second"))
    assert policy("second").encode() in looks(reload.PolicyFile(file, digest(policy("first"))), 2)


def test_a_file_that_is_still_being_written_is_left_until_it_rests(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(policy("first"))
    watched = reload.PolicyFile(file, digest(policy("first")))
    looks(watched, 2)
    text = policy("second", "profiles: []\n")
    for end in range(len(policy("second")), len(text)):
        # Each beginning holds by itself.
        file.write_text(text[:end])
        assert watched.changed() is None
    file.write_text(text)
    assert looks(watched, 2) == [None, text.encode()]


def test_a_file_that_changes_while_it_is_read_is_left_for_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(policy("second"))
    watched = reload.PolicyFile(file, digest(policy("first")))
    read = reload.read_file

    def slowly(path: Path) -> bytes:
        text = read(path)
        replace(path, policy("third"))
        return text

    watched.changed()
    with monkeypatch.context() as slow:
        slow.setattr(reload, "read_file", slowly)
        assert watched.changed() is None
    assert looks(watched, 2) == [None, policy("third").encode()]


def test_what_was_asked_for_is_not_taken_for_a_change_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(policy("first"))
    watched = reload.PolicyFile(file, digest(policy("first")))
    replace(file, policy("second"))
    assert watched.reread() == policy("second").encode()
    assert looks(watched, 3) == [None, None, None]


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop"])
def test_a_policy_that_is_no_file_is_no_change_and_holds_nobody_up(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "policy.yaml"
    {"pipe": os.mkfifo, "folder": os.mkdir, "loop": lambda path: path.symlink_to(path)}[kind](file)
    watched = reload.PolicyFile(file, digest(policy("first")))
    assert looks(watched, 3) == [None, None, None]
    assert watched.reread() is None


def looks(watched: reload.PolicyFile, times: int) -> list[bytes | None]:
    return [watched.changed() for _ in range(times)]


async def test_no_request_is_lost_or_judged_by_two_policies_while_policies_change(tmp_path: Path) -> None:
    names = [f"policy-{index}" for index in range(8)]
    async with running_worker(tmp_path, policy(names[0])) as running:
        await running.until(ready=True)
        done = asyncio.Event()
        seen: list[tuple[int, str, str]] = []

        async def client() -> None:
            while not done.is_set():
                status, headers = await running.headers_of_a_chat()
                seen.append((status, headers[DECISION], headers[MODEL]))

        clients = [asyncio.create_task(client()) for _ in range(4)]
        await until(lambda: bool(seen))
        for name in names[1:]:
            replace(running.config, policy(name))
            await running.until_policy(digest(policy(name)))
        await until(lambda: seen[-1][1] == names[-1])
        done.set()
        await asyncio.gather(*clients)
        assert {status for status, _, _ in seen} == {0}
        assert all(decision == model for _, decision, model in seen)
        assert {decision for _, decision, _ in seen} >= {names[0], names[-1]}
        assert (await running.headers_of_a_chat())[1][DECISION] == names[-1]


async def test_a_worker_that_was_refused_tries_again_with_another_policy(tmp_path: Path) -> None:
    write_vision_pack(tmp_path / "vision")
    (tmp_path / "broken").mkdir()
    async with running_worker(tmp_path, policy("first", "encoders: {vision: ./broken}")) as running:
        await running.until(ready=False)
        replace(running.config, "version: 2")
        replace(running.config, policy("first", "encoders: {vision: ./vision}"))
        await running.until(ready=True)
        assert (await running.headers_of_a_chat())[1][DECISION] == "first"


async def test_models_stay_open_where_the_next_policy_needs_the_same(tmp_path: Path) -> None:
    write_vision_pack(tmp_path / "vision")

    def loaded(name: str, encoders: str) -> object:
        return parse_policy(policy(name, f"encoders: {{{encoders}}}").encode(), tmp_path / "policy.yaml")

    async with build_house(loaded("first", "vision: ./vision"), 1) as house:
        same = await move_in(loaded("second", "vision: ./vision"), 1, house)
        assert same.machinery is house.machinery
        other = await move_in(loaded("third", ""), 1, house)
        assert other.machinery is not house.machinery
        other.machinery.close()


class SlowJudge:
    """Answers with its own header once it is let go."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.free = asyncio.Event()

    def reads_body(self, head: RequestHead) -> bool:
        return True

    async def judge_headers(self, head: RequestHead) -> Edits | Reply:
        return await self.judge(head, b"")

    async def judge(self, head: RequestHead, body: bytes) -> Edits | Reply:
        await self.free.wait()
        return Edits(((MODEL, self.name),))

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Edits | Reply:
        raise AssertionError


async def test_who_was_before_the_old_judge_is_answered_by_it_and_then_it_is_gone() -> None:
    rules = parse_policy(policy("first").encode(), Path("policy.yaml")).policy
    head = RequestHead("POST", "/v1/chat/completions", {})
    old, new = SlowJudge("old"), SlowJudge("new")
    door = Door(rules, old)
    before = asyncio.create_task(door.judge(head, b""))
    await asyncio.sleep(0)
    gone = door.hand_over(rules, new)
    after = asyncio.create_task(door.judge(head, b""))
    await asyncio.sleep(0)
    assert not gone.is_set()
    old.free.set()
    assert await before == Edits(((MODEL, "old"),))
    assert gone.is_set()
    new.free.set()
    assert await after == Edits(((MODEL, "new"),))


async def test_a_judge_with_nobody_before_it_is_gone_at_once_and_a_shut_door_has_none_to_follow() -> None:
    rules = parse_policy(policy("first").encode(), Path("policy.yaml")).policy
    door = Door(rules, SlowJudge("old"))
    assert door.hand_over(rules, SlowJudge("new")).is_set()
    door.shut()
    assert not door.open
    with pytest.raises(NotReadyError):
        door.hand_over(rules, SlowJudge("third"))


async def test_the_models_of_a_former_policy_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_vision_pack(tmp_path / "vision")
    opened: list[weakref.ref[InferenceExecutor]] = []

    def remembered(threads: int, queue: int) -> InferenceExecutor:
        executor = InferenceExecutor(threads, queue)
        opened.append(weakref.ref(executor))
        return executor

    monkeypatch.setattr(machinery_room, "InferenceExecutor", remembered)
    async with running_worker(tmp_path, policy("first", "encoders: {vision: ./vision}")) as running:
        await running.until(ready=True)
        for queue in (5, 6):
            text = policy("next", f"encoders: {{vision: ./vision}}\nlimits: {{queue: {queue}}}")
            replace(running.config, text)
            await running.until_policy(digest(text))
            await until(lambda: [each() is None for each in opened] == [True] * (len(opened) - 1) + [False])
        assert len(opened) == 3


async def test_an_endpoint_less_needs_no_new_envoy(tmp_path: Path) -> None:
    first = policy("first").replace("cluster: o}", "cluster: o, endpoint: 'http://127.0.0.1:2'}")
    async with running_worker(tmp_path, first) as running:
        await running.until(ready=True)
        replace(running.config, policy("second"))
        assert (await running.until_policy(digest(policy("second"))))["refused_policy"] == []
