from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.request.apis import detect, effective_method, parse, unreadable


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


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/v1/responses", "openai.responses"),
        ("/openai/v1/Responses/", "openai.responses"),
        ("/openai/responses?api-version=preview", "openai.responses"),
        ("/api/v1/responses;x%0A", "openai.responses"),
        ("/v1/completions", "openai.completions"),
        ("/openai/deployments/x/completions?api-version=1", "openai.completions"),
        ("/v1/fim/completions", "openai.completions"),
        ("/v1/xchat/completions", "openai.completions"),
        ("/v1/embeddings", "openai.embeddings"),
        ("/openai/deployments/x/embeddings", "openai.embeddings"),
        ("/v1/messages", "anthropic.messages"),
        ("/anthropic/v1/messages?beta=true", "anthropic.messages"),
        ("/V1//Messages.", "anthropic.messages"),
        ("/v1/messages/count_tokens", "anthropic.count_tokens"),
        ("/anthropic/v1/messages/%63ount_tokens", "anthropic.count_tokens"),
        ("/v1/threads/x/chat/completions", "openai.chat"),
    ],
)
def test_every_api_is_recognised_in_vendors_variants(path: str, api: str) -> None:
    assert detect("POST", path) == api
    assert not unreadable("POST", path)
    assert detect("GET", path) is None


@pytest.mark.parametrize("method", ["PUT", "PATCH", "post", " POST", "QUERY", "X", ""])
def test_any_method_that_could_be_overridden_into_a_post_counts(method: str) -> None:
    assert detect(method, "/v1/chat/completions") == "openai.chat"
    assert unreadable(method, "/v1/moderations")


@pytest.mark.parametrize(
    ("method", "headers", "effective"),
    [
        ("POST", {}, "POST"),
        ("GET", {}, "GET"),
        ("GET", {"x-http-method-override": "post"}, "post"),
        ("DELETE", {"x-http-method": " PATCH"}, " PATCH"),
        ("GET", {"x-method-override": "DELETE"}, "GET"),
        ("GET", {"x-http-method-override": "HEAD", "x-method-override": "PUT"}, "PUT"),
        ("POST", {"x-http-method-override": "GET"}, "POST"),
        ("", {"x-http-method-override": "GET"}, ""),
    ],
)
def test_of_several_methods_the_one_that_carries_a_prompt_counts(
    method: str, headers: dict[str, str], effective: str
) -> None:
    assert effective_method(method, headers) == effective


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
        ("POST", "/v1/chatcompletions"),
        ("POST", "/v1/chat/completions.json"),
        ("POST", "/messages"),
        ("POST", "/v1/threads/x/messages"),
        ("POST", "/v1/agents/completions"),
        ("POST", "/api/embeddings"),
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
        *["/v1/moderations", "/v1/responses/compact", "/v1/responses/input_tokens", "/v1/images/generations"],
        *["/invocations", "/rerank", "/v1/rerank?x", "/v2/rerank", "/generate", "/api/chat", "/api/generate", "/"],
        *["/v1beta/models/gemini:generateContent", "/v1beta/models/g%3AstreamGenerateContent?alt=sse"],
        *[
            "/model/anthropic.claude-v2%3A1/invoke",
            "/openai/v1/Moderations/",
            "/v1/complete;x%0A",
            "/v2/models/m/infer",
        ],
        *["/v1/agents/completions", "/api/embeddings", "/v1/messages/batches", "/x/messages"],
    ],
)
def test_llm_endpoints_that_nothing_here_reads_are_known(path: str) -> None:
    assert detect("POST", path) is None
    assert unreadable("POST", path)
    assert not unreadable("GET", path)


@pytest.mark.parametrize(
    "path",
    [
        *["/v1/assistants", "/v1/assistants/x", "/v1/threads", "/v1/threads/x/messages", "/v1/threads/x/runs"],
        *["/v1/threads/x/runs/y/submit_tool_outputs", "/v1/conversations", "/v1/conversations/x/items"],
        *["/v1/realtime/sessions", "/v1/realtime/calls", "/v1/files", "/v1/uploads/x/parts", "/v1/batches"],
        *["/openai/files?api-version=1", "/openai/v1/vector_stores/x/search", "/v1beta/cachedContents"],
        *["/v1/chatkit/threads", "/v1/evals/x/runs", "/x//V1/%66iles/"],
    ],
)
def test_what_a_model_reads_later_cannot_be_judged_when_it_is_put_there(path: str) -> None:
    assert detect("POST", path) is None
    assert unreadable("POST", path)
    assert not unreadable("DELETE", path)


def test_what_may_be_taken_for_a_completion_by_its_beginning_cannot_be_judged() -> None:
    assert unreadable("POST", "/v1/chat/completions/x")
    assert not unreadable("GET", "/v1/chat/completions/x")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/realtime?model=x",
        "/v1/responses",
        "/openai/v1/responses?x",
        "/openai/realtime",
        "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=x",
    ],
)
def test_a_socket_over_which_prompts_go_cannot_be_judged(path: str) -> None:
    assert unreadable("GET", path)
    assert detect("GET", path) is None
    assert not unreadable("OPTIONS", path)


def test_a_path_that_may_be_two_apis_is_read_as_neither() -> None:
    for path in ("/v1/chat/completions%3F/v1/messages", "/v1/messages%23/chat/completions"):
        assert detect("POST", path) is None
        assert unreadable("POST", path)


@pytest.mark.parametrize(
    "path",
    [
        *["/v1/models", "/metrics", "/health", "/v1/responses/x/cancel", "/v1/batches/x/cancel", "/x:y"],
        *["/files", "/threads/x", "/app/conversations", "/v1/users/files.json", "/v1x/profiles", "/v1/filesystem"],
    ],
)
def test_what_carries_no_prompt_is_not_unreadable(path: str) -> None:
    assert not unreadable("POST", path)
    assert detect("POST", path) is None


def test_a_path_of_nothing_but_tricks_takes_no_time() -> None:
    for path in ("/v1/files" * 5_000 + "/cancel", "/v1" * 20_000, "/chat/completions" * 4_000 + "/", "/%25" * 10_000):
        detect("POST", path)
        unreadable("POST", path)


@given(st.text(max_size=40))
def test_no_path_raises(path: str) -> None:
    detect("POST", path)
    unreadable("POST", path)


def test_parse_reads_with_the_parser_of_the_api() -> None:
    view = parse("openai.chat", b'{"model":"m","messages":[{"role":"user","content":"hello"}]}')
    assert view.api == "openai.chat"
    assert view.texts[0].text == "hello"
