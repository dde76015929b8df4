"""OpenAI's legacy completions (`POST /v1/completions`): a body becomes a RequestView.

All prompts are one turn of the user, the text behind the gap (`suffix`) among them. Prompts as token ids or as
embeddings cannot be read, and are refused with a code of their own.
"""

from __future__ import annotations

from router.request.beside import TopKeys, read_extras
from router.request.edit import locate_model
from router.request.errors import UnreadablePrompt
from router.request.openai_chat import UNSEEN_KEYS, read_include_usage
from router.request.prompts import read_prompt
from router.request.request_facts import COMPLETIONS_FACT_KEYS, read_completions_needs, read_output_limit
from router.request.strict_json import decode, object_at, optional_flag, optional_string, required, string_at
from router.request.view import RequestView, TextPart, Turn

_KEYS = TopKeys(
    read=frozenset({"model", "prompt", "suffix", "stream", "stream_options", "prompt_embeds"}),
    facts=COMPLETIONS_FACT_KEYS,
    unseen=UNSEEN_KEYS,
    beside={"messages": "user", "input": "user", "documents": "tool", "input_extra": "user"},
)


def parse(body: bytes) -> RequestView:
    """The request in `body`. Raises RequestError, and UnreadablePrompt for a prompt that is no text."""
    request = object_at(decode(body, _KEYS.all), "", _KEYS.read | _KEYS.facts)
    if request.get("prompt_embeds"):
        raise UnreadablePrompt("/prompt_embeds")
    model = request.get("model")
    parts = read_prompt(required(request, "prompt", ""), "/prompt")
    suffix = optional_string(request, "suffix", "")
    if suffix:
        parts = (*parts, TextPart("/suffix", suffix))
    return RequestView(
        api="openai.completions",
        requested_model=None if model is None else string_at(model, "/model"),
        turns=(Turn("/prompt", "user", parts),),
        tools=(),
        stream=optional_flag(request, "stream", ""),
        body_bytes=len(body),
        model_span=locate_model(body) if "model" in request else None,
        include_usage=read_include_usage(request),
        extras=tuple(read_extras(request, _KEYS)),
        max_output_tokens=read_output_limit(request, ("max_tokens",)),
        needs=read_completions_needs(request),
    )
