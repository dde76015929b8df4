"""The clients that people use, against our own answers over HTTP: each API, streamed and not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
import pytest
from answering_server import Answer, serving
from api_bodies import PNG, PNG_BASE64, PNG_URI

from router.request.dialect import CLARIFICATION, assistant_reply, error_reply, reply_id
from router.request.reply import Reply
from router.request.view import RequestView, ToolCallPart

TEXT = 'Which image did you mean?\n"quoted" \u2028 é \U0001f600'


def says(text: str) -> Answer:
    return lambda view: assistant_reply(view, "pointsman", text, reply_id(view.api, "r1"), 1_700_000_000)


def fails(status: int, pointer: str = "") -> Answer:
    return lambda view: error_reply(view.api, status, "policy_violation", "Refused by policy.", pointer)


@contextmanager
def openai_client(answer: Answer, seen: list[RequestView] | None = None) -> Iterator[openai.OpenAI]:
    with (
        serving(answer, seen) as address,
        openai.OpenAI(api_key="x", base_url=f"{address}/v1", max_retries=0) as client,
    ):
        yield client


@contextmanager
def anthropic_client(answer: Answer, seen: list[RequestView] | None = None) -> Iterator[anthropic.Anthropic]:
    with serving(answer, seen) as address, anthropic.Anthropic(api_key="x", base_url=address, max_retries=0) as client:
        yield client


MESSAGES: Any = [{"role": "user", "content": "hello"}]


def test_chat_completions() -> None:
    with openai_client(says(TEXT)) as client:
        completion = client.chat.completions.create(model="m", messages=MESSAGES)
        assert (completion.id, completion.choices[0].message.content) == ("chatcmpl-r1", TEXT)
        chunks = list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT


def test_responses_in_one_piece() -> None:
    with openai_client(says(TEXT)) as client:
        response = client.responses.create(model="m", input="hello")
    assert (response.id, response.object, response.created_at) == ("resp_r1", "response", 1_700_000_000)
    assert (response.status, response.output_text, response.model) == ("completed", TEXT, "pointsman")
    assert response.usage is not None
    assert response.usage.total_tokens == 0
    (message,) = response.output
    assert (message.type, message.id, message.status) == ("message", "msg_r1", "completed")
    assert type(response).model_validate(response.model_dump(), strict=True) == response


def test_responses_as_a_stream_of_events_in_order() -> None:
    with openai_client(says(TEXT)) as client:
        events = list(client.responses.create(model="m", input="hello", stream=True))
    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(9))
    for event in events:
        assert type(event).model_validate(event.model_dump(), strict=True) == event
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == TEXT


def test_responses_through_the_helper_that_gathers_a_stream() -> None:
    with openai_client(says(TEXT)) as client, client.responses.stream(model="m", input="hello") as stream:
        assert "".join(event.delta for event in stream if event.type == "response.output_text.delta") == TEXT
        assert stream.get_final_response().output_text == TEXT


def test_chat_through_the_helper_that_gathers_a_stream() -> None:
    with openai_client(says(TEXT)) as client, client.chat.completions.stream(model="m", messages=MESSAGES) as stream:
        assert stream.get_final_completion().choices[0].message.content == TEXT


@pytest.mark.parametrize("usage", [False, True])
def test_legacy_completions(usage: bool) -> None:
    with openai_client(says(TEXT)) as client:
        completion = client.completions.create(model="m", prompt="hello")
        assert (completion.id, completion.object, completion.model) == ("cmpl-r1", "text_completion", "pointsman")
        assert (completion.choices[0].text, completion.choices[0].finish_reason) == (TEXT, "stop")
        chunks = list(
            client.completions.create(model="m", prompt="x", stream=True, stream_options={"include_usage": usage})
        )
    assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == TEXT
    assert [chunk.choices[0].finish_reason for chunk in chunks[:2]] == [None, "stop"]
    assert (chunks[-1].usage is not None) is usage


def test_anthropic_messages_in_one_piece() -> None:
    with anthropic_client(says(TEXT)) as client:
        message = client.messages.create(model="m", max_tokens=10, messages=MESSAGES)
    assert (message.id, message.type, message.role, message.model) == ("msg_r1", "message", "assistant", "pointsman")
    assert (message.stop_reason, message.stop_sequence, message.usage.output_tokens) == ("end_turn", None, 0)
    (block,) = message.content
    assert block.type == "text"
    assert block.text == TEXT
    assert type(message).model_validate(message.model_dump(), strict=True) == message


def test_anthropic_messages_as_a_stream_of_events_in_order() -> None:
    with anthropic_client(says(TEXT)) as client:
        events = list(client.messages.create(model="m", max_tokens=10, messages=MESSAGES, stream=True))
    assert [event.type for event in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    for event in events:
        assert type(event).model_validate(event.model_dump(), strict=True) == event


def test_anthropic_messages_through_the_helper_that_gathers_a_stream() -> None:
    with (
        anthropic_client(says(TEXT)) as client,
        client.messages.stream(model="m", max_tokens=10, messages=MESSAGES) as stream,
    ):
        assert "".join(stream.text_stream) == TEXT
        message = stream.get_final_message()
    assert (message.stop_reason, message.id) == ("end_turn", "msg_r1")


def test_what_answers_in_numbers_gets_a_question_as_an_error() -> None:
    with openai_client(says(TEXT)) as client, pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model="m", input="hello")
    assert (caught.value.code, caught.value.body["message"]) == (CLARIFICATION, TEXT)
    with anthropic_client(says(TEXT)) as client, pytest.raises(anthropic.BadRequestError) as found:
        client.messages.count_tokens(model="m", messages=MESSAGES)
    assert found.value.body["error"] == {"type": "invalid_request_error", "message": TEXT, "code": CLARIFICATION}


OPENAI_CALLS = {
    "chat": lambda client, stream: client.chat.completions.create(model="m", messages=MESSAGES, stream=stream),
    "responses": lambda client, stream: client.responses.create(model="m", input="hello", stream=stream),
    "completions": lambda client, stream: client.completions.create(model="m", prompt="hello", stream=stream),
    "embeddings": lambda client, stream: client.embeddings.create(model="m", input="hello"),
}


@pytest.mark.parametrize("call", OPENAI_CALLS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "kind", "raised"),
    [
        (400, "invalid_request_error", openai.BadRequestError),
        (401, "authentication_error", openai.AuthenticationError),
        (403, "permission_error", openai.PermissionDeniedError),
        (429, "rate_limit_error", openai.RateLimitError),
        (503, "server_error", openai.InternalServerError),
    ],
)
def test_openais_client_raises_the_error_of_the_status(
    call: str, stream: bool, status: int, kind: str, raised: type[openai.APIStatusError]
) -> None:
    with openai_client(fails(status, "/model")) as client, pytest.raises(raised) as caught:
        OPENAI_CALLS[call](client, stream)
    error = caught.value
    assert (error.status_code, error.code, error.type, error.param) == (status, "policy_violation", kind, "/model")


ANTHROPIC_CALLS = {
    "messages": lambda client, stream: client.messages.create(
        model="m", max_tokens=10, messages=MESSAGES, stream=stream
    ),
    "count_tokens": lambda client, stream: client.messages.count_tokens(model="m", messages=MESSAGES),
}


@pytest.mark.parametrize("call", ANTHROPIC_CALLS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "kind", "raised"),
    [
        (400, "invalid_request_error", anthropic.BadRequestError),
        (401, "authentication_error", anthropic.AuthenticationError),
        (402, "billing_error", anthropic.APIStatusError),
        (403, "permission_error", anthropic.PermissionDeniedError),
        (404, "not_found_error", anthropic.NotFoundError),
        (413, "request_too_large", anthropic.APIStatusError),
        (415, "invalid_request_error", anthropic.APIStatusError),
        (429, "rate_limit_error", anthropic.RateLimitError),
        (500, "api_error", anthropic.InternalServerError),
        (501, "api_error", anthropic.APIStatusError),
        (503, "overloaded_error", anthropic.APIStatusError),
        (504, "timeout_error", anthropic.APIStatusError),
    ],
)
def test_anthropics_client_raises_the_error_of_the_status(
    call: str, stream: bool, status: int, kind: str, raised: type[anthropic.APIStatusError]
) -> None:
    with anthropic_client(fails(status)) as client, pytest.raises(raised) as caught:
        ANTHROPIC_CALLS[call](client, stream)
    error = caught.value
    assert (error.status_code, error.type) == (status, kind)
    assert error.body == {
        "type": "error",
        "error": {"type": kind, "message": "Refused by policy.", "code": "policy_violation"},
    }


def test_an_error_at_a_place_says_so_in_anthropics_message() -> None:
    with anthropic_client(fails(400, "/messages/0")) as client, pytest.raises(anthropic.BadRequestError) as caught:
        client.messages.create(model="m", max_tokens=10, messages=MESSAGES)
    assert caught.value.body["error"]["message"] == "/messages/0: Refused by policy."


def ok(view: RequestView) -> Reply:
    return assistant_reply(view, "m", "ok", "x", 0)


def test_what_openais_client_writes_is_read() -> None:
    seen: list[RequestView] = []
    with openai_client(ok, seen) as client:
        client.responses.create(
            model="m",
            instructions="be kind",
            input=[
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "look"},
                        {"type": "input_image", "image_url": PNG_URI, "detail": "auto"},
                    ],
                },
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {
                    "type": "function_call_output",
                    "call_id": "c",
                    "output": [{"type": "input_image", "image_url": PNG_URI, "detail": "auto"}],
                },
            ],
            previous_response_id="resp_0",
            max_output_tokens=7,
        )
    (view,) = seen
    assert [turn.role for turn in view.turns] == ["developer", "user", "assistant", "tool"]
    assert [image.data for image in view.images] == [PNG, PNG]
    assert (view.continues, view.max_output_tokens) == (True, 7)


def test_what_anthropics_client_writes_is_read() -> None:
    seen: list[RequestView] = []
    image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}}
    with anthropic_client(ok, seen) as client:
        client.messages.create(
            model="m",
            max_tokens=7,
            system="be kind",
            messages=[
                {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [image]}]},
            ],
        )
    (view,) = seen
    assert [turn.role for turn in view.turns] == ["system", "user", "assistant", "tool"]
    assert [part for _, part in view.parts() if isinstance(part, ToolCallPart)] == [
        ToolCallPart("/messages/1/content/0/input", "t", "f", '{"x":1}')
    ]
    assert [found.data for found in view.images] == [PNG, PNG]
    assert view.max_output_tokens == 7
