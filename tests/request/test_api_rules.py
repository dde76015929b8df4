from __future__ import annotations

import pytest

from router.request.api_rules import read_rules
from router.request.apis import detect, unreadable

RULES = read_rules(
    [
        ("/llm/v2/chat", "openai.chat"),
        ("/Tenants/{tenant}/generate", "openai.completions"),
        ("*/bedrock/{model}/invoke", "anthropic.messages"),
        ("/v1/embeddings", "openai.responses"),
        ("/notes/v1/messages", "none"),
        ("/notes/v1/messages", "openai.chat"),
        ("*/files", "none"),
    ]
)


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/llm/v2/chat", "openai.chat"),
        ("/llm/v2/chat?x=1", "openai.chat"),
        ("/LLM//v2/%63hat/", "openai.chat"),
        ("/x/../llm/v2/chat;y", "openai.chat"),
        ("/tenants/acme/generate", "openai.completions"),
        ("/TENANTS/a.b/Generate", "openai.completions"),
        ("/bedrock/m/invoke", "anthropic.messages"),
        ("/x/y/bedrock/m/invoke", "anthropic.messages"),
        ("/v1/embeddings", "openai.responses"),
        ("/x/v1/embeddings", "openai.embeddings"),
        ("/v1/chat/completions", "openai.chat"),
        ("/Notes/v1/messages", "openai.chat"),
    ],
)
def test_a_rule_holds_for_every_spelling_of_its_path_and_comes_first(path: str, api: str) -> None:
    assert detect("POST", path, RULES) == api
    assert not unreadable("POST", path, RULES)
    assert detect("GET", path, RULES) is None


@pytest.mark.parametrize(
    "path", ["/x/llm/v2/chat", "/llm/v2/chat/x", "/llm/v2", "/tenants/generate", "/bedrock/invoke"]
)
def test_a_rule_holds_for_no_other_path(path: str) -> None:
    assert detect("POST", path, RULES) is None


def test_a_segment_is_not_two() -> None:
    assert detect("POST", "/tenants/a/b/generate", RULES) is None
    assert unreadable("POST", "/tenants/a/b/generate", RULES)


@pytest.mark.parametrize("path", ["/notes/v1/messages", "/notes/v1/messages?x", "/v1/files", "/x/v1/files"])
def test_a_path_that_is_no_api_passes_as_it_is_written(path: str) -> None:
    assert detect("POST", path, RULES) is None
    assert not unreadable("POST", path, RULES)


@pytest.mark.parametrize(
    "path", ["/notes/v1/messages/", "/notes/v1//messages", "/notes/v1/%6dessages", "/notes/V1/messages"]
)
def test_another_spelling_of_it_may_be_another_path_and_is_judged(path: str) -> None:
    assert detect("POST", path, RULES) == "openai.chat"


def test_none_does_not_hide_what_lies_behind_a_cut() -> None:
    assert detect("POST", "/v1/chat/completions%3f/files", RULES) == "openai.chat"
    assert detect("POST", "/v1/chat/completions?/files", RULES) == "openai.chat"


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("", "no path"),
        ("chat", "no path"),
        ("/a b", "no path"),
        ("/a//b", "no path"),
        ("/a/", "no path"),
        ("/a?b", "no path"),
        ("/a%20b", "no path"),
        ("**/a", "no path"),
        ("/a/*/b", "no path"),
        ("/a/{b", "no path"),
        ("/a/../b", "dots"),
        ("/a/./b", "dots"),
    ],
)
def test_a_path_that_no_request_could_have_is_refused(path: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        read_rules([(path, "openai.chat")])


def test_an_api_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"openai\.completions, openai\.embeddings"):
        read_rules([("/a", "openai.chats")])
