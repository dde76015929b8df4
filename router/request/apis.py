"""Which requests are LLM requests, and who reads them: one row an API.

Also knows the LLM endpoints that nothing here can read, so that the policy can say what becomes of them. Looks at
method and path alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal

from router.request import (
    anthropic_messages,
    long_base64,
    openai_chat,
    openai_completions,
    openai_embeddings,
    openai_responses,
)
from router.request.api_rules import NO_API, ApiRules
from router.request.errors import RequestError
from router.request.paths import normal_forms
from router.request.view import Api, RequestView

_BY_PATH: Final[dict[str, Api]] = {
    "/v1/chat/completions": "openai.chat",
    "/v1/responses": "openai.responses",
    "/v1/completions": "openai.completions",
    "/v1/embeddings": "openai.embeddings",
    "/v1/messages": "anthropic.messages",
    "/v1/messages/count_tokens": "anthropic.count_tokens",
}
# In this order, since one ends like another. Vendors put all sorts of things before; `/messages` alone is said to be
# everything from a mailbox to a thread of OpenAI's assistants.
_BY_END: Final[dict[str, Api]] = {
    "/chat/completions": "openai.chat",
    "/responses": "openai.responses",
    "/completions": "openai.completions",
    "/embeddings": "openai.embeddings",
    "/v1/messages": "anthropic.messages",
    "/v1/messages/count_tokens": "anthropic.count_tokens",
}
_PARSERS: Final[dict[Api, Callable[[bytes], RequestView]]] = {
    "openai.chat": openai_chat.parse,
    "openai.responses": openai_responses.parse,
    "openai.completions": openai_completions.parse,
    "openai.embeddings": openai_embeddings.parse,
    "anthropic.messages": anthropic_messages.parse,
    "anthropic.count_tokens": anthropic_messages.parse_count,
}

# Their bodies are not what a model reads. All other methods count, known or not: frameworks that honour
# `X-HTTP-Method-Override` make a POST of a PUT.
_WITHOUT_PROMPT: Final = frozenset({"GET", "HEAD", "OPTIONS", "DELETE", "TRACE"})
_METHOD_OVERRIDES: Final = ("x-http-method-override", "x-http-method", "x-method-override")

# They end like APIs that are read, but Mistral's agents take messages, and Ollama's embeddings a prompt.
_OTHERS: Final = ("/agents/completions", "/api/embeddings")
# How the paths end under which servers take prompts in other shapes than ours, whatever stands before.
_UNREADABLE_ENDS: Final = (
    # OpenAI, and the servers that speak like it (vLLM, SGLang, llama.cpp, LiteLLM).
    *("/responses/compact", "/responses/input_tokens", "/chat/completions/batch"),
    *("/moderations", "/images/generations", "/images/edits", "/images/variations"),
    *("/audio/speech", "/audio/transcriptions", "/audio/translations", "/threads/runs", "/runs", "/batches"),
    *_OTHERS,
    # Anthropic, and what ends like its messages.
    *("/messages", "/messages/count_tokens", "/messages/batches", "/complete"),
    # SageMaker's convention, which vLLM and TGI serve too, and Bedrock's.
    *("/invocations", "/invoke", "/invoke-with-response-stream", "/converse", "/converse-stream"),
    # Ollama, Cohere, TGI, Triton, SGLang, llama.cpp by their own APIs.
    *("/api/chat", "/api/generate", "/api/embed", "/v1/chat", "/v2/chat", "/generate", "/generate_stream", "/embed"),
    *("/completion", "/infill", "/embedding", "/infer", "/encode"),
    # Rankers and classifiers, which are language models as well.
    *("/rerank", "/reranking", "/score", "/classify", "/pooling"),
)
# Google's custom methods, written behind a colon: models/NAME:generateContent.
_UNREADABLE_VERBS: Final = frozenset(
    {
        *("generatecontent", "streamgeneratecontent", "batchgeneratecontent", "counttokens", "embedcontent"),
        *("batchembedcontents", "predict", "rawpredict", "streamrawpredict", "serverstreamingpredict"),
    }
)
# What a model reads later is put there first: conversations, files, batches of requests, voice calls. Only beneath an
# API's root, because elsewhere these are words of everyday life. What ends with `cancel` carries nothing.
_STATEFUL: Final = re.compile(
    r".*/(?:v[0-9][a-z0-9]*|openai)/(?:"
    r"assistants|threads|conversations|realtime|live|files|uploads|batches|vector_stores|evals|cachedcontents"
    r"|chatkit/(?:sessions|threads)"
    r")(?:/.*)?",
    re.DOTALL,
)
# Servers that route by how a path begins would take this for a completion; OpenAI's own changes the labels of one.
_BENEATH_CHAT: Final = re.compile(r".*/chat/completions/[^/]+", re.DOTALL)
# A GET that opens a WebSocket, over which prompts go that nobody here sees.
_SOCKET_ENDS: Final = ("/v1/responses", "/realtime", ".bidigeneratecontent")


def effective_method(method: str, headers: Mapping[str, str]) -> str:
    """The method that an upstream may act by: one that carries a prompt, where the request names any such.

    `headers` are by lower-case name. A request with `X-HTTP-Method-Override` and the like has several methods, and
    which one counts is the upstream's secret.
    """
    if _carries_prompt(method):
        return method
    named = (method, *(headers[name] for name in _METHOD_OVERRIDES if name in headers))
    return next((name for name in named if _carries_prompt(name)), method)


def detect(method: str, path: str, rules: ApiRules = ()) -> Api | None:
    """The API that a request speaks, by its method and its path with or without a query; None: not ours to read.

    The policy's own `rules` come first. Compares how the path ends, as the most forgiving upstream would, because a
    spelling that only the upstream recognises would carry a request past every guard: see `paths.py`.
    """
    if not _carries_prompt(method):
        return None
    api = _BY_PATH.get(path)
    if api is not None and not any(rule.pattern.fullmatch(path) for rule in rules):
        return api
    found = _found(path, rules)
    # Read as one API, the body might mean something else in the other.
    return found.pop() if len(found) == 1 else None


def unreadable(method: str, path: str, rules: ApiRules = ()) -> bool:
    """Whether a request goes to an LLM endpoint whose body nothing here can read: no guard can judge it.

    Spellings count as in `detect`; false for what `detect` knows, and for what the policy says is no API.
    """
    if _excepted(path, rules):
        return False
    if not _carries_prompt(method):
        return method.strip().upper() == "GET" and any(form.endswith(_SOCKET_ENDS) for form in normal_forms(path))
    found = _found(path, rules)
    return len(found) > 1 or (not found and any(map(_is_unreadable, normal_forms(path))))


def parse(api: Api, body: bytes) -> RequestView:
    """The request in `body`. Raises RequestError when it cannot be read."""
    try:
        if len(body) <= long_base64.LEAST:
            return _PARSERS[api](body)
        with long_base64.remembering():
            return _PARSERS[api](body)
    except RecursionError:
        # The decoder reads deeper than those who read what it decoded.
        raise RequestError(400, "invalid_json", "The body is nested too deeply.") from None


def _carries_prompt(method: str) -> bool:
    return method == "POST" or method.strip().upper() not in _WITHOUT_PROMPT


def _found(path: str, rules: ApiRules) -> set[Api]:
    """The APIs that the path may stand for, one in all but tricky cases."""
    if _excepted(path, rules):
        return set()
    apis = (_api_of(form, rules) for form in normal_forms(path))
    return {api for api in apis if api is not None}


def _excepted(path: str, rules: ApiRules) -> bool:
    exact = path.partition("?")[0]
    excepted = any(rule.api == NO_API and rule.pattern.fullmatch(exact) for rule in rules)
    # A path with escapes or other tricks may be another one to an upstream.
    return excepted and set(normal_forms(path)) == {exact.casefold()}


def _api_of(form: str, rules: ApiRules) -> Api | None:
    for rule in rules:
        api: Api | Literal["none"] = rule.api
        if api != "none" and rule.pattern.fullmatch(form):
            return api
    if form.endswith(_OTHERS):
        return None
    return next((api for end, api in _BY_END.items() if form.endswith(end)), None)


def _is_unreadable(form: str) -> bool:
    return (
        # TGI generates at its root as well.
        form == "/"
        or form.endswith(_UNREADABLE_ENDS)
        or form.rpartition("/")[2].rpartition(":")[2] in _UNREADABLE_VERBS
        or (_STATEFUL.fullmatch(form) is not None and not form.endswith("/cancel"))
        or _BENEATH_CHAT.fullmatch(form) is not None
    )
