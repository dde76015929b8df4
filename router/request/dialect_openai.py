"""OpenAI's errors, which all its APIs share, and its chat completions."""

from __future__ import annotations

from typing import Any, Final

from router.request.events import DONE, json_reply, stream_reply
from router.request.reply import Reply
from router.request.view import RequestView

NO_USAGE: Final = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
"""Of an answer that no model gave."""

_ERROR_TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def error(status: int, code: str, message: str, pointer: str) -> Reply:
    """An error; `pointer` is empty where no place in the body is to blame."""
    found = {"message": message, "type": _error_type(status), "param": pointer or None, "code": code}
    return json_reply({"error": found}, status)


def answer(view: RequestView, model: str, text: str, reply_id: str, created: int) -> Reply:
    """A chat completion that says `text`, or its chunks."""
    if view.stream:
        return _stream(view, model, text, reply_id, created)
    return json_reply(
        {
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
            "usage": NO_USAGE,
        }
    )


def _stream(view: RequestView, model: str, text: str, reply_id: str, created: int) -> Reply:
    common: dict[str, Any] = {"id": reply_id, "object": "chat.completion.chunk", "created": created, "model": model}
    if view.include_usage:
        common["usage"] = None

    def chunk(delta: dict[str, str], finish_reason: str | None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**common, "choices": [choice]}

    chunks = [chunk({"role": "assistant", "content": ""}, None), chunk({"content": text}, None), chunk({}, "stop")]
    if view.include_usage:
        chunks.append({**common, "choices": [], "usage": NO_USAGE})
    return stream_reply(chunks, named=False, end=DONE)


def _error_type(status: int) -> str:
    if status >= 500:
        return "server_error"
    return _ERROR_TYPES.get(status, "invalid_request_error")
