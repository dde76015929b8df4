"""Checks of answers in a policy: what holds, and what an author is told of what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config.lint import lint
from router.config.load import LoadedPolicy, parse_policy
from router.config.problems import PolicyError
from router.policy.model import Refuse

POLICY = """\
version: 1
{top}
upstreams: [{{model: m, cluster: m}}]
default_model: m
encoders: {{text: starter, vision: starter}}
signals:
  secret: {{key: {{}}, users: {{roles: [user]}}}}
  keyword: {{all: {{any: [x], over: all}}, user: {{any: [x]}}}}
  tool_call: {{shell: {{names: [shell]}}}}
  context: {{long: {{min_tokens: 10}}}}
  image: {{car: {{concepts: [a car]}}}}
projections:
  score:
    risk: {{inputs: [{{secret: key, weight: 1}}], threshold: 0.5}}
    size: {{inputs: [{{context: long, weight: 1}}], threshold: 0.5}}
responses: {{checks: [{checks}]}}
"""


def load(checks: str, top: str = "") -> LoadedPolicy:
    return parse_policy(POLICY.format(checks=checks, top=top).encode(), Path("policy.yaml"))


def test_a_check_is_a_decision_that_refuses() -> None:
    loaded = load(
        "{name: a, when: {secret: key}, respond: {status: 451, code: c, message: No.}},"
        "{name: b, when: {any: [{tool_call: shell}, {score: risk}]}, on_unknown: pass}"
    )
    first, second = loaded.checks
    assert (first.name, first.outcome, first.unknown_matches) == ("a", Refuse(451, "c", "No."), True)
    assert (second.name, second.unknown_matches) == ("b", False)
    assert second.outcome == Refuse(403, "policy_violation", "The answer was refused by policy.")
    assert first.tier > second.tier
    assert loaded.policy.decisions == ()


def test_what_nobody_can_tell_is_refused_or_passes_with_the_policys_failures() -> None:
    (closed,) = load("{name: a, when: {secret: key}}", "on_failure: closed").checks
    (opened,) = load("{name: a, when: {secret: key}}", "on_failure: open").checks
    (refuses,) = load("{name: a, when: {secret: key}, on_unknown: refuse}", "on_failure: open").checks
    assert (closed.unknown_matches, opened.unknown_matches, refuses.unknown_matches) == (True, False, True)


@pytest.mark.parametrize(
    ("checks", "says"),
    [
        ("{name: a, when: {context: long}}", "context/long asks about a request"),
        ("{name: a, when: {image: car}}", "image/car asks about a request"),
        ("{name: a, when: {conversation: has_images}}", "conversation/has_images asks about a request"),
        ("{name: a, when: {score: size}}", "context/long asks about a request"),
        ("{name: a, when: {keyword: user}}", "keyword/user reads only what users say (`over: user`)"),
        ("{name: a, when: {secret: users}}", "secret/users does not read what the assistant says"),
        ("{name: a, when: {all: [{secret: key}, {not: {tool_call: shell}}]}}", "`not` has no place in a check"),
        ("{name: a, when: {secret: nowhere}}", "nowhere"),
        ("{name: a, when: {secret: key}}, {name: a, when: {secret: key}}", 'responses.checks[0] is named "a" too'),
        ("{name: a, when: {secret: key}, respond: {status: 200}}", "400"),
        ("{name: a, wenn: {secret: key}}", "when"),
    ],
)
def test_an_author_is_told_what_is_wrong_and_where(checks: str, says: str) -> None:
    with pytest.raises(PolicyError) as told:
        load(checks)
    (line, *_) = [line for line in told.value.lines() if says in line]
    assert line.startswith("policy.yaml:16:")


def test_what_only_checks_read_is_read() -> None:
    unread = {finding.finding.subject.name for finding in lint(load("{name: a, when: {score: risk}}"))}
    assert not {"secret/key", "score/risk"} & unread
    assert {"secret/users", "score/size"} <= unread
