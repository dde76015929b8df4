"""OpenAI's legacy completions; their errors are those of `dialect_openai.py`."""

from __future__ import annotations

from typing import Any

from router.request.dialect_openai import NO_USAGE
from router.request.events import DONE, json_reply, stream_reply
from router.request.reply import Reply
from router.request.view import RequestView


def answer(view: RequestView, model: str, text: str, reply_id: str, created: int) -> Reply:
    """A completion that says `text`, or its chunks."""
    common: dict[str, Any] = {"id": reply_id, "object": "text_completion", "created": created, "model": model}

    def completion(text: str, finish_reason: str | None) -> dict[str, Any]:
        choice = {"text": text, "index": 0, "logprobs": None, "finish_reason": finish_reason}
        return {**common, "choices": [choice]}

    if not view.stream:
        return json_reply({**completion(text, "stop"), "usage": NO_USAGE})
    chunks = [completion(text, None), completion("", "stop")]
    if view.include_usage:
        chunks = [{**chunk, "usage": None} for chunk in chunks]
        chunks.append({**common, "choices": [], "usage": NO_USAGE})
    return stream_reply(chunks, named=False, end=DONE)
