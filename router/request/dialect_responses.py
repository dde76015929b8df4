"""OpenAI Responses: an answer, and the events that it streams as; errors are those of `dialect_openai.py`.

Nobody keeps such an answer: a client that names it as `previous_response_id` later gets the upstream's own error.
"""

from __future__ import annotations

from typing import Any, Final

from router.request.events import json_reply, stream_reply
from router.request.reply import Reply
from router.request.view import RequestView

_NO_USAGE: Final = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}
_PLACE: Final = {"output_index": 0, "content_index": 0}


def answer(view: RequestView, model: str, text: str, reply_id: str, created: int) -> Reply:
    """A response whose one message says `text`, or its events."""
    message = f"msg_{reply_id.removeprefix('resp_')}"
    whole = _item(message, "completed", [_part(text)])
    completed = _response(reply_id, model, created, "completed", [whole], _NO_USAGE)
    if not view.stream:
        return json_reply(completed)
    begun = _response(reply_id, model, created, "in_progress", [], None)
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": _item(message, "in_progress", [])},
        {"type": "response.content_part.added", "item_id": message, **_PLACE, "part": _part("")},
        {"type": "response.output_text.delta", "item_id": message, **_PLACE, "delta": text, "logprobs": []},
        {"type": "response.output_text.done", "item_id": message, **_PLACE, "text": text, "logprobs": []},
        {"type": "response.content_part.done", "item_id": message, **_PLACE, "part": _part(text)},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {"type": "response.completed", "response": completed},
    ]
    return stream_reply(({**event, "sequence_number": n} for n, event in enumerate(events)), named=True)


def _response(
    reply_id: str, model: str, created: int, status: str, output: list[dict[str, Any]], usage: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "id": reply_id,
        "object": "response",
        "created_at": created,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "metadata": {},
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": usage,
    }


def _item(message: str, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": message, "type": "message", "status": status, "role": "assistant", "content": content}


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
