"""The one place where an answer of our own takes the form that a client's API has for it.

Knows the shapes of errors and completions, not when to send them. Texts come from the policy or are constant words.
"""

from __future__ import annotations

from typing import Any

import msgspec

from router.request.reply import Reply
from router.request.view import Api, RequestView

_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_NO_USAGE = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def error_reply(api: Api | None, status: int, code: str, message: str, pointer: str = "") -> Reply:
    """An error in the client's dialect; OpenAI's where the API is not known.

    A streaming client gets it the same way: OpenAI answers what fails before the first event with plain JSON and the
    status, and clients look at the status first. `pointer` is the JSON pointer of the offending value, empty for none.
    """
    error = {"message": message, "type": _error_type(status), "param": pointer or None, "code": code}
    return Reply(status, "application/json", msgspec.json.encode({"error": error}))


def assistant_reply(view: RequestView, model: str, text: str, reply_id: str, created: int) -> Reply:
    """A completion that says `text`, as JSON or, where the view asks for it, as a stream of events.

    `created` is in seconds since 1970. Its usage is zero: no model was called.
    """
    if view.stream:
        return _stream(view, model, text, reply_id, created)
    completion = {
        "id": reply_id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": _NO_USAGE,
    }
    return Reply(200, "application/json", msgspec.json.encode(completion))


def _stream(view: RequestView, model: str, text: str, reply_id: str, created: int) -> Reply:
    common: dict[str, Any] = {"id": reply_id, "object": "chat.completion.chunk", "created": created, "model": model}
    if view.include_usage:
        common["usage"] = None

    def chunk(delta: dict[str, str], finish_reason: str | None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**common, "choices": [choice]}

    chunks = [chunk({"role": "assistant", "content": ""}, None), chunk({"content": text}, None), chunk({}, "stop")]
    if view.include_usage:
        chunks.append({**common, "choices": [], "usage": _NO_USAGE})
    events = [b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks]
    body = b"".join((*events, b"data: [DONE]\n\n"))
    return Reply(200, "text/event-stream; charset=utf-8", body, (("cache-control", "no-cache"),))


def _error_type(status: int) -> str:
    if status >= 500:
        return "server_error"
    return _ERROR_TYPES.get(status, "invalid_request_error")
