from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from signal_fakes import ask, in_tool_result, said, turns_given, view

from router.request.view import RequestView, TextPart, ToolCallPart
from router.signals.base import Evidence
from router.signals.tool_call import ToolCallSettings
from router.signals.tool_calls import CALLS_AT_ONCE, MAX_EVIDENCE, UNREADABLE


def call(index: int, name: str, arguments: object = "{}") -> ToolCallPart:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCallPart(f"/messages/{index}/tool_calls/0/function/arguments", f"call_{index}", name, text)


def made(*calls: tuple[str, object]) -> RequestView:
    return view(*(("assistant", call(index, name, arguments)) for index, (name, arguments) in enumerate(calls)))


LOOP = view(
    ("user", "Clean up."),
    ("assistant", call(1, "run_shell", {"command": "rm -rf build"})),
    ("tool", in_tool_result(TextPart("/r", "rm -rf / is dangerous"))),
    ("user", "Now list."),
    ("assistant", call(4, "run_shell", {"command": "ls"})),
    tools=2,
)


@pytest.mark.parametrize(
    ("settings", "name", "expected"),
    [
        ({"names": ["run_shell"]}, "run_shell", "run_shell"),
        ({"names": ["read", "run_shell"]}, " Run_Shell ", "run_shell"),
        ({"names": ["run"]}, "run_shell", None),
        ({"names": ["run*"]}, "run_shell", None),
        ({"names": ["run_*"], "method": "glob"}, "RUN_shell", "run_*"),
        ({"names": ["run_*"], "method": "glob"}, "rerun_shell", None),
        ({"names": ["run.shell"], "method": "glob"}, "run_shell", None),
        ({"names": ["f?o"], "method": "glob"}, "föo", "f?o"),
        ({"names": ["f?o"], "method": "glob"}, "fo", None),
        ({"names": ["a*b"], "method": "glob"}, "a\nb", "a*b"),
        ({"names": ["[ab]"], "method": "glob"}, "a", None),
        ({"names": ["shell$", "^x"], "method": "regex"}, "run_shell", "shell$"),
        ({"names": ["^shell"], "method": "regex"}, "run_shell", None),
    ],
)
async def test_a_call_by_its_name(settings: dict[str, Any], name: str, expected: str | None) -> None:
    observation = await ask("tool_call", settings, made((name, "{}")))
    assert observation.matched is (expected is not None)
    assert observation.label == (expected or "")


@pytest.mark.parametrize(
    ("pattern", "arguments", "expected"),
    [
        ("/etc/shadow", '{"path": "/etc/shadow"}', True),
        ("/ETC/shadow", '{"path": "/etc/shadow"}', True),
        ("/etc/shadow", '{"path": "\\u002fetc\\/shadow"}', True),
        (r'"rm" "x"', '{"command": "\\"rm\\" \\"x\\""}', True),
        ("secret", '{"broken": "secret', True),
        ("secret", '{"a": "secret", "a": "b"}', True),
        ("secret", "", False),
        ("secret", '{"a": "sec ret"}', False),
        ("ｓ", '{"a": "s"}', False),
        ("secret", '{"a": "ｓecr\u200bet"}', True),
    ],
)
async def test_a_call_by_the_text_of_its_arguments(pattern: str, arguments: str, expected: bool) -> None:
    observation = await ask("tool_call", {"arguments": ["never", pattern]}, made(("any", arguments)))
    assert observation.matched is expected
    assert observation.label == (pattern if expected else "")


@pytest.mark.parametrize(
    ("members", "arguments", "expected"),
    [
        ({"path": "^/srv/prod/"}, {"path": "/srv/prod/x"}, True),
        ({"path": "^/srv/prod/"}, {"path": "/home/srv/prod/x"}, False),
        ({"path": "^/srv"}, {"other": "/srv"}, False),
        ({"path": "^/srv"}, "", False),
        ({"edits.path": "^/srv"}, {"edits": [{"path": "/home"}, {"path": "/srv/x"}]}, True),
        ({"/edits/0/path": "^/srv"}, {"edits": [{"path": "/home"}, {"path": "/srv/x"}]}, False),
        ({"amount": r"^\d{4,}$"}, {"amount": 5000}, True),
        ({"amount": r"^\d{4,}$"}, {"amount": 500}, False),
        ({"force": "true"}, {"force": True}, True),
        ({"to": "example"}, {"to": {"mail": "a@example.com"}}, True),
        ({"path": "x", "mode": "w"}, {"path": "x", "mode": "w"}, True),
        ({"path": "x", "mode": "w"}, {"path": "x", "mode": "r"}, False),
        ({"path": "^é$"}, {"path": "e\u0301"}, True),
        ({"path": "x"}, '{"path": "x"', None),
        ({"path": "x"}, '{"path": "x", "path": "y"}', None),
        ({"path": "x"}, '["x"]', None),
        ({"path": "x"}, "path=x", None),
        ({"path": "x"}, '{"path": "\ud800x"}', True),
        ({"path": "x"}, '{"path": ' * 100_000, None),
    ],
)
async def test_a_call_by_the_members_of_its_arguments(
    members: dict[str, str], arguments: object, expected: bool | None
) -> None:
    observation = await ask("tool_call", {"members": members}, made(("any", arguments)))
    assert observation.matched is expected
    assert observation.reason == (UNREADABLE if expected is None else "")


async def test_one_readable_call_that_fits_settles_it_and_the_name_is_asked_first() -> None:
    settings = {"names": ["write"], "members": {"path": "x"}}
    broken, fitting = ("write", "{"), ("write", {"path": "x"})
    assert (await ask("tool_call", settings, made(broken, fitting))).matched is True
    assert (await ask("tool_call", settings, made(broken, ("write", {"path": "y"})))).matched is None
    assert (await ask("tool_call", settings, made(("read", "{"), ("write", {"path": "y"})))).matched is False


async def test_all_that_is_asked_must_hold_of_one_call() -> None:
    settings = {"names": ["write"], "arguments": ["prod"]}
    apart = made(("write", {"path": "test"}), ("read", {"path": "prod"}))
    assert (await ask("tool_call", settings, apart)).matched is False
    assert (await ask("tool_call", settings, made(("write", {"path": "prod"})))).matched is True
    both = {"names": ["run_shell"], "destructive": True, "members": {"command": "/srv"}}
    assert (await ask("tool_call", both, made(("run_shell", {"command": "rm -rf /srv"})))).matched is True
    assert (await ask("tool_call", both, made(("run_shell", {"command": "ls /srv"})))).matched is False
    assert (await ask("tool_call", both, made(("bash", {"command": "rm -rf /srv"})))).matched is False


async def test_only_what_the_assistant_called_is_judged() -> None:
    assert (await ask("tool_call", {"destructive": True}, said("rm -rf /"))).matched is False
    assert (await ask("tool_call", {"destructive": True}, view())).matched is False
    observation = await ask("tool_call", {"destructive": True}, LOOP)
    pointer = "/messages/1/tool_calls/0/function/arguments"
    assert observation.evidence == (Evidence(pointer, label="rm -r", span=(12, 19)),)
    assert json.dumps({"command": "rm -rf build"})[12:19] == '"rm -rf'


@pytest.mark.parametrize(
    ("name", "arguments", "label"),
    [
        ("git", {"args": "push --force origin main"}, "git push --force"),
        ("functions.kubectl", {"args": "get pods"}, None),
        ("mcp__ops__kubectl", {"args": "delete ns x"}, "kubectl delete"),
        ("functions.terraform", "destroy", "terraform destroy"),
        ("delete_repo", {"name": "x"}, "name"),
        ("storage", {"action": "purge"}, "verb"),
        ("run_shell", "rm -rf x", "rm -r"),
        ("write_file", {"path": "a.md", "content": "Never run rm -rf here."}, None),
    ],
)
async def test_what_destroys_is_told_by_name_and_arguments_together(
    name: str, arguments: object, label: str | None
) -> None:
    observation = await ask("tool_call", {"destructive": True}, made((name, arguments)))
    assert observation.matched is (label is not None)
    assert observation.label == (label or "")


async def test_a_span_never_reaches_before_the_arguments() -> None:
    observation = await ask("tool_call", {"destructive": True}, made(("git", {"args": "push --force"})))
    assert observation.evidence[0].span == (0, len('{"args": "push --force'))


async def test_pending_calls_are_those_behind_the_last_thing_a_user_said() -> None:
    for settings in ({"destructive": True}, {"arguments": ["rm"]}):
        assert (await ask("tool_call", {**settings, "over": "all"}, LOOP)).matched is True
        assert (await ask("tool_call", {**settings, "over": "pending"}, LOOP)).matched is False
    assert (await ask("tool_call", {"names": ["run_shell"], "over": "pending"}, LOOP)).matched is True
    assert (await ask("tool_call", {"names": ["a"], "over": "pending"}, made(("a", "{}")))).matched is True


async def test_a_user_turn_of_results_alone_does_not_end_the_loop() -> None:
    request = view(
        ("user", "Go."),
        ("assistant", call(1, "a")),
        ("user", in_tool_result(TextPart("/r", "done"))),
        ("assistant", call(3, "b")),
    )
    assert (await ask("tool_call", {"names": ["a"], "over": "pending"}, request)).matched is True


async def test_tools_that_are_offered_count_only_if_asked() -> None:
    settings = {"names": ["tool*"], "method": "glob"}
    assert (await ask("tool_call", settings, LOOP)).matched is False
    observation = await ask("tool_call", {**settings, "offered": True}, LOOP)
    assert (observation.matched, observation.label) == (True, "tool*")
    assert observation.evidence[0] == Evidence("/tools/0", label="tool*", detail="offered")
    assert (await ask("tool_call", {"names": ["x"], "offered": True}, LOOP)).matched is False


async def test_arguments_and_names_are_never_recorded() -> None:
    for arguments in ({"command": "rm -rf hunter2"}, '{"path": "hunter2'):
        request = made(("hunter2", arguments))
        for settings in (
            {"destructive": True},
            {"names": ["h*"], "method": "glob"},
            {"members": {"path": "h"}},
            {"arguments": ["h[u]n"]},
        ):
            assert "hunter2" not in repr(await ask("tool_call", settings, request))


async def test_evidence_is_bounded_and_many_calls_give_way_to_others() -> None:
    request = made(*[("run", {"command": f"rm -rf {index}"}) for index in range(200)])
    observation = await ask("tool_call", {"destructive": True}, request)
    assert len(observation.evidence) == MAX_EVIDENCE
    harmless = made(*[("run", {"command": "ls"})] * 10 * CALLS_AT_ONCE)
    assert await turns_given(ask("tool_call", {"destructive": True}, harmless)) >= 10


async def test_a_command_far_inside_huge_arguments_is_found() -> None:
    script = "echo a\n" * 50_000 + "rm -rf /srv\n" + "echo b\n" * 50_000
    request = made(("write", {"script": script}))
    assert (await ask("tool_call", {"destructive": True}, request)).matched is True
    assert (await ask("tool_call", {"members": {"script": "rm -rf /srv"}}, request)).matched is True


@given(st.text(), st.text())
async def test_no_call_makes_it_raise(name: str, arguments: str) -> None:
    request = made((name, arguments))
    for settings in ({"destructive": True}, {"members": {"a": "b"}}, {"names": ["a"], "method": "glob"}):
        assert (await ask("tool_call", settings, request)).status in ("observed", "failed")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "at least one of names"),
        ({"over": "pending"}, "at least one of names"),
        ({"names": []}, "at least 1 item"),
        ({"names": ["("], "method": "regex"}, r"names\[0\]: missing"),
        ({"arguments": ["a", "("]}, r"arguments\[1\]: missing"),
        ({"members": {}}, "at least 1 item"),
        ({"members": {"a": "("}}, r"members.a: missing"),
        ({"members": {"a..b": "x"}}, "a path is names joined by dots"),
        ({"destructive": True, "offered": True}, "`offered` goes with `names` alone"),
        ({"names": ["a"], "arguments": ["b"], "offered": True}, "`offered` goes with `names` alone"),
        ({"names": ["a"], "over": "latest"}, "'pending' or 'all'"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ToolCallSettings.model_validate(settings)
