from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, get_args

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.request.dialect import assistant_reply, error_reply, reply_id
from router.request.openai_chat import parse
from router.request.reply import Reply
from router.request.view import Api, RequestView

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


def events_of(body: bytes) -> list[dict[str, Any]]:
    """The data of a stream's events; those with a name have the one that their data says."""
    found = []
    for event in body.removesuffix(b"data: [DONE]\n\n").split(b"\n\n")[:-1]:
        name, data = ("", event) if event.startswith(b"data: ") else event.split(b"\n")
        found.append(json.loads(data.removeprefix(b"data: ")))
        assert name in ("", f"event: {found[-1].get('type')}".encode())
    return found


SAID: dict[Api, tuple[Callable[[Any], str], Callable[[Any], str]]] = {
    "openai.chat": (
        lambda whole: whole["choices"][0]["message"]["content"],
        lambda event: event["choices"][0]["delta"].get("content", ""),
    ),
    "openai.responses": (
        lambda whole: whole["output"][0]["content"][0]["text"],
        lambda event: event.get("delta", ""),
    ),
    "openai.completions": (
        lambda whole: whole["choices"][0]["text"],
        lambda event: event["choices"][0]["text"],
    ),
    "anthropic.messages": (
        lambda whole: whole["content"][0]["text"],
        lambda event: event["delta"].get("text", "") if "delta" in event else "",
    ),
}


@given(st.text())
def test_any_text_arrives_whole_plain_and_streamed(text: str) -> None:
    for api, (in_whole, in_event) in SAID.items():
        view = RequestView(api, None, (), (), False, 0, None)
        whole = assistant_reply(view, "m", text, "id", 0)
        assert in_whole(json.loads(whole.body)) == text
        streamed = assistant_reply(replace(view, stream=True), "m", text, "id", 0)
        assert "".join(map(in_event, events_of(streamed.body))) == text
        assert streamed.content_type.startswith("text/event-stream")
        assert streamed.body.endswith(b"data: [DONE]\n\n") is (api in ("openai.chat", "openai.completions"))


@pytest.mark.parametrize("api", get_args(Api))
def test_an_identifier_is_its_records_with_what_the_api_puts_in_front(api: Api) -> None:
    prefixes = {"openai.chat": "chatcmpl-", "openai.responses": "resp_", "openai.completions": "cmpl-"}
    assert reply_id(api, "r1") == f"{({**prefixes, 'anthropic.messages': 'msg_'}).get(api, '')}r1"


@pytest.mark.parametrize("api", get_args(Api))
def test_every_api_has_an_error_of_its_own_dialect(api: Api) -> None:
    reply = error_reply(api, 403, "code", "Words.", "/x")
    assert (reply.status, reply.content_type) == (403, "application/json")
    error = json.loads(reply.body)
    if api.startswith("anthropic."):
        assert error == {
            "type": "error",
            "error": {"type": "permission_error", "message": "/x: Words.", "code": "code"},
        }
    else:
        assert error == {"error": {"message": "Words.", "type": "permission_error", "param": "/x", "code": "code"}}
