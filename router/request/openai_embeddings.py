"""OpenAI embeddings (`POST /v1/embeddings`): a body becomes a RequestView.

All inputs are one turn of the user. Input as token ids cannot be read, and is refused with a code of its own. What
servers of multimodal embeddings take is read too: objects with a text or an image each, or `messages` as in chat.
"""

from __future__ import annotations

from router.request.beside import TopKeys, read_extras
from router.request.edit import locate_model
from router.request.errors import RequestError
from router.request.openai_chat import UNSEEN_KEYS, read_messages
from router.request.prompts import read_prompt
from router.request.strict_json import JsonObject, decode, object_at, required, string_at
from router.request.view import RequestView, Turn

_KEYS = TopKeys(
    read=frozenset({"model", "input", "messages"}),
    facts=frozenset({"dimensions", "encoding_format", "input_type"}),
    unseen=UNSEEN_KEYS,
    beside={"prompt": "user", "instruction": "developer", "documents": "tool"},
)


def parse(body: bytes) -> RequestView:
    """The request in `body`. Raises RequestError, and UnreadablePrompt for input that is no text."""
    request = object_at(decode(body, _KEYS.all), "", _KEYS.read | _KEYS.facts)
    model = request.get("model")
    return RequestView(
        api="openai.embeddings",
        requested_model=None if model is None else string_at(model, "/model"),
        turns=_read_turns(request),
        tools=(),
        stream=False,
        body_bytes=len(body),
        model_span=locate_model(body) if "model" in request else None,
        extras=tuple(read_extras(request, _KEYS)),
        outputs=(),
    )


def _read_turns(request: JsonObject) -> tuple[Turn, ...]:
    if request.get("messages") is None:
        return (Turn("/input", "user", read_prompt(required(request, "input", ""), "/input", objects=True)),)
    if request.get("input") is not None:
        message = "`messages` stands beside `input`; which of them counts is not certain."
        raise RequestError(400, "ambiguous_key", message, "")
    return read_messages(request["messages"])
