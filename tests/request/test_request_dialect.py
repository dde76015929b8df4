from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.request.dialect import assistant_reply, error_reply
from router.request.openai_chat import parse
from router.request.reply import Reply
from router.request.view import RequestView

MESSAGES = [{"role": "user", "content": "hello"}]
TEXT = 'Which image did you mean?\n"quoted" \u2028 é \U0001f600'


class Answering(httpx.BaseTransport):
    """Gives a reply to whatever request, and keeps the request's body."""

    def __init__(self, answer) -> None:
        self.answer = answer

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        reply: Reply = self.answer(parse(request.read()))
        headers = {"content-type": reply.content_type, **dict(reply.headers)}
        return httpx.Response(reply.status, headers=headers, content=reply.body)


def client(answer) -> Iterator[openai.OpenAI]:
    return openai.OpenAI(
        api_key="x", base_url="http://test/v1", max_retries=0, http_client=httpx.Client(transport=Answering(answer))
    )


def says(text: str):
    def answer(view: RequestView) -> Reply:
        return assistant_reply(view, "pointsman", text, "chatcmpl-1", 1_700_000_000)

    return answer


def test_the_real_client_reads_a_completion() -> None:
    with client(says(TEXT)) as real:
        completion = real.chat.completions.create(model="m", messages=MESSAGES)
    assert completion.id == "chatcmpl-1"
    assert (completion.object, completion.created, completion.model) == ("chat.completion", 1_700_000_000, "pointsman")
    (choice,) = completion.choices
    assert (choice.index, choice.finish_reason, choice.message.role, choice.message.content) == (
        0,
        "stop",
        "assistant",
        TEXT,
    )
    assert completion.usage is not None
    assert completion.usage.total_tokens == 0


def test_the_real_client_reads_a_stream() -> None:
    with client(says(TEXT)) as real:
        chunks = list(real.chat.completions.create(model="m", messages=MESSAGES, stream=True))
    assert {(chunk.id, chunk.object, chunk.model) for chunk in chunks} == {
        ("chatcmpl-1", "chat.completion.chunk", "pointsman")
    }
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, None, "stop"]
    assert all(chunk.usage is None for chunk in chunks)


def test_the_real_client_accumulates_a_stream() -> None:
    with client(says(TEXT)) as real, real.chat.completions.stream(model="m", messages=MESSAGES) as stream:
        completion = stream.get_final_completion()
    assert completion.choices[0].message.content == TEXT
    assert completion.choices[0].finish_reason == "stop"


def test_usage_comes_last_in_a_stream_that_asks_for_it() -> None:
    with client(says(TEXT)) as real:
        *chunks, last = real.chat.completions.create(
            model="m", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
    assert [chunk.usage for chunk in chunks] == [None] * len(chunks)
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.total_tokens == 0


def test_a_stream_is_server_sent_events_with_a_done_mark() -> None:
    view = parse(json.dumps({"messages": MESSAGES, "stream": True}).encode())
    reply = assistant_reply(view, "m", TEXT, "id", 0)
    assert (reply.status, reply.content_type) == (200, "text/event-stream; charset=utf-8")
    events = reply.body.split(b"\n\n")
    assert events[-2:] == [b"data: [DONE]", b""]
    assert all(event.startswith(b"data: ") and b"\n" not in event for event in events[:-1])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "kind", "raised"),
    [
        (400, "invalid_request_error", openai.BadRequestError),
        (401, "authentication_error", openai.AuthenticationError),
        (403, "permission_error", openai.PermissionDeniedError),
        (404, "invalid_request_error", openai.NotFoundError),
        (422, "invalid_request_error", openai.UnprocessableEntityError),
        (429, "rate_limit_error", openai.RateLimitError),
        (500, "server_error", openai.InternalServerError),
        (503, "server_error", openai.InternalServerError),
    ],
)
def test_the_real_client_raises_the_error_of_the_status(stream: bool, status: int, kind: str, raised: type) -> None:
    def answer(view: RequestView) -> Reply:
        return error_reply(view.api, status, "policy_violation", "This request was refused by policy.", "/messages/0")

    with client(answer) as real, pytest.raises(raised) as caught:
        real.chat.completions.create(model="m", messages=MESSAGES, stream=stream)
    error = caught.value
    assert (error.status_code, error.code, error.type, error.param) == (status, "policy_violation", kind, "/messages/0")
    assert error.body["message"] == "This request was refused by policy."


def test_an_error_without_a_place_has_a_null_param_and_needs_no_known_api() -> None:
    reply = error_reply(None, 503, "unavailable", "Try again.")
    assert (reply.status, reply.content_type) == (503, "application/json")
    assert json.loads(reply.body) == {
        "error": {"message": "Try again.", "type": "server_error", "param": None, "code": "unavailable"}
    }


@given(st.text())
def test_any_text_arrives_whole_plain_and_streamed(text: str) -> None:
    for stream in (False, True):
        view = parse(json.dumps({"messages": MESSAGES, "stream": stream}).encode())
        body = assistant_reply(view, "m", text, "id", 0).body
        if stream:
            events = [json.loads(event[6:]) for event in body.split(b"\n\n")[:-2]]
            assert "".join(event["choices"][0]["delta"].get("content", "") for event in events) == text
        else:
            assert json.loads(body)["choices"][0]["message"]["content"] == text
