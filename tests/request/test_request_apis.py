from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.request.apis import detect, parse, unreadable


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/v1/chat/completions?api-version=1",
        "/v1/chat/completions?x=/v1/models",
        "/v1/chat/completions/",
        "//v1//chat/completions",
        "/v1/%63hat/completions",
        "/v1%2Fchat%2fcompletions",
        "/v1/./chat/completions",
        "/v1/models/../chat/completions",
        "/../v1/chat/completions",
        "/v1/chat/x/%2e%2e/completions",
        "/V1/Chat/Completions",
        "/v1/chat/completions#x",
        "/chat/completions",
        "/openai/v1/chat/completions",
        "/openai/deployments/x/chat/completions?api-version=1",
        "/x/v1/chat/completions",
        "/v1/chat/completions%0A",
        "/v1/chat/completions%0a?x=1",
        "/v1/chat/completions%0D%0A/",
        "/v1/chat/completions%20",
        "/v1/chat/%09completions",
        "/v1/chat/completions%00",
        "/v1/chat/completions%C2%A0",
        "/v1/chat/completions%E2%80%8B",
        "/v1/chat/completions;x=1",
        "/v1;x/chat;/completions;a=b;c",
        "/v1/models/..;/chat/completions",
        "/v1/%2563hat/completions",
        "/v1/%25252563hat/completions",
        "/v1%252Fchat%255Ccompletions",
        "/v1/chat%5Ccompletions",
        "\\v1\\chat\\completions",
        "/v1/chat/completions.",
        "/v1/chat/completions%2e%2E",
        "/v1/chat./completions. ",
        "/v1/chat/completions%3Fx",
        "/x%3f/v1/chat/completions",
        "/x%23/v1/chat/completions",
        "/v1/chat/%EF%BD%83%EF%BD%8F%EF%BD%8D%EF%BD%90%EF%BD%8C%EF%BD%85%EF%BD%94%EF%BD%89%EF%BD%8F%EF%BD%8E%EF%BD%93",
        "http://gateway/v1/chat/completions",
    ],
)
def test_chat_completions_are_recognised_in_every_spelling_an_upstream_might_accept(path: str) -> None:
    assert detect("POST", path) == "openai.chat"
    assert detect("post", path) == "openai.chat"
    assert not unreadable("POST", path)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "post", " POST", "QUERY", "X", ""])
def test_any_method_that_could_be_overridden_into_a_post_counts(method: str) -> None:
    assert detect(method, "/v1/chat/completions") == "openai.chat"
    assert unreadable(method, "/v1/messages")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/chat/completions"),
        ("OPTIONS", "/v1/chat/completions"),
        ("head", "/v1/chat/completions"),
        ("DELETE", "/v1/chat/completions"),
        ("TRACE", "/v1/chat/completions"),
        ("POST", "/v1/models"),
        ("POST", "/v1/chat"),
        ("POST", "/v1/chat/completions/x"),
        ("POST", "/v1/xchat/completions"),
        ("POST", "/v1/chat/completions.json"),
        ("POST", "/?/v1/chat/completions"),
        ("POST", "/v1/chat/completions/.."),
        ("POST", "/"),
        ("POST", ""),
        ("POST", "*"),
        ("", ""),
    ],
)
def test_anything_else_is_none_of_ours(method: str, path: str) -> None:
    assert detect(method, path) is None


@pytest.mark.parametrize(
    "path",
    [
        *["/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens", "/v1/embeddings"],
        *["/invocations", "/rerank", "/v1/rerank?x", "/v2/rerank", "/generate", "/api/chat", "/api/generate", "/"],
        *["/v1beta/models/gemini:generateContent", "/v1beta/models/g%3AstreamGenerateContent?alt=sse"],
        *["/model/anthropic.claude-v2%3A1/invoke", "/openai/v1/Responses/", "/v1/responses;x%0A", "/v2/models/m/infer"],
    ],
)
def test_llm_endpoints_that_nothing_here_reads_are_known(path: str) -> None:
    assert detect("POST", path) is None
    assert unreadable("POST", path)
    assert not unreadable("GET", path)


@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/health", "/v1/responses/x/cancel", "/v1/files", "/x:y"])
def test_what_carries_no_prompt_is_not_unreadable(path: str) -> None:
    assert not unreadable("POST", path)


@given(st.text(max_size=40))
def test_no_path_raises(path: str) -> None:
    detect("POST", path)
    unreadable("POST", path)


def test_parse_reads_with_the_parser_of_the_api() -> None:
    view = parse("openai.chat", b'{"model":"m","messages":[{"role":"user","content":"hello"}]}')
    assert view.api == "openai.chat"
    assert view.texts[0].text == "hello"
