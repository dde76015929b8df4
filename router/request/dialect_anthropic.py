"""Anthropic's errors, and its messages."""

from __future__ import annotations

from typing import Any, Final

from router.request.events import json_reply, stream_reply
from router.request.reply import Reply
from router.request.view import RequestView

_NO_USAGE: Final = {"input_tokens": 0, "output_tokens": 0}
# "Errors" in Anthropic's API reference; 503 is what its 529 is called elsewhere.
_ERROR_TYPES: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def error(status: int, code: str, message: str, pointer: str) -> Reply:
    """An error; `pointer` is empty where no place in the body is to blame.

    This API has no member for the place, which goes in front of the message as it does with Anthropic, and none for a
    code; that is added, since clients let members pass that they do not know.
    """
    kind = _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    said = f"{pointer}: {message}" if pointer else message
    return json_reply({"type": "error", "error": {"type": kind, "message": said, "code": code}}, status)


def answer(view: RequestView, model: str, text: str, reply_id: str) -> Reply:
    """A message that says `text`, or its events."""
    if not view.stream:
        return json_reply(_message(reply_id, model, [{"type": "text", "text": text}], "end_turn"))
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": _message(reply_id, model, [], None)},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": _NO_USAGE},
        {"type": "message_stop"},
    ]
    return stream_reply(events, named=True)


def _message(reply_id: str, model: str, content: list[dict[str, Any]], stop_reason: str | None) -> dict[str, Any]:
    return {
        "id": reply_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": _NO_USAGE,
    }
