"""Which requests are LLM requests, and who reads them: one row an API.

Also knows the LLM endpoints that nothing here can read, so that the policy can say what becomes of them. Looks at
method and path alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import unquote

from router.request import openai_chat
from router.request.view import Api, RequestView

_BY_PATH: dict[str, Api] = {"/v1/chat/completions": "openai.chat"}
_BY_END: dict[str, Api] = {"/chat/completions": "openai.chat"}
_PARSERS: dict[Api, Callable[[bytes], RequestView]] = {"openai.chat": openai_chat.parse}

# Their bodies are not what a model reads. All other methods count, known or not: frameworks that honour
# `X-HTTP-Method-Override` make a POST of a PUT.
_WITHOUT_PROMPT = frozenset({"GET", "HEAD", "OPTIONS", "DELETE", "TRACE"})

# How the paths end under which servers take prompts in other shapes than ours, whatever stands before.
_UNREADABLE_ENDS = (
    # OpenAI, and the servers that speak like it (vLLM, SGLang, llama.cpp, LiteLLM).
    *("/completions", "/responses", "/responses/compact", "/responses/input_tokens", "/chat/completions/batch"),
    *("/embeddings", "/moderations", "/images/generations", "/images/edits", "/images/variations"),
    *("/audio/speech", "/audio/transcriptions", "/audio/translations", "/threads/runs", "/runs", "/batches"),
    # Anthropic.
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
_UNREADABLE_VERBS = frozenset(
    {
        *("generatecontent", "streamgeneratecontent", "batchgeneratecontent", "counttokens", "embedcontent"),
        *("batchembedcontents", "predict", "rawpredict", "streamrawpredict", "serverstreamingpredict"),
    }
)

# Double decoding happens where a proxy stands before a server; nobody has eight in a row.
_MAX_UNQUOTING = 8
_CUT = re.compile(r"[?#]")
_INVISIBLE = frozenset("CMZ")


def detect(method: str, path: str) -> Api | None:
    """The API that a request speaks, by its method and its path with or without a query; None: not ours to read.

    Compares how the path ends, as the most forgiving upstream would, because a spelling that only the upstream
    recognises would carry a request past every guard: see `_normal_forms`.
    """
    if method.strip().upper() in _WITHOUT_PROMPT:
        return None
    if api := _BY_PATH.get(path):
        return api
    for form in _normal_forms(path):
        for end, api in _BY_END.items():
            if form.endswith(end):
                return api
    return None


def unreadable(method: str, path: str) -> bool:
    """Whether a request goes to an LLM endpoint whose body nothing here can read: no guard can judge it.

    Spellings count as in `detect`; false for what `detect` knows.
    """
    if method.strip().upper() in _WITHOUT_PROMPT or detect(method, path) is not None:
        return False
    return any(
        # TGI generates at its root as well.
        form == "/"
        or form.endswith(_UNREADABLE_ENDS)
        or form.rpartition("/")[2].rpartition(":")[2] in _UNREADABLE_VERBS
        for form in _normal_forms(path)
    )


def parse(api: Api, body: bytes) -> RequestView:
    """The request in `body`. Raises RequestError when it cannot be read."""
    return _PARSERS[api](body)


def _normal_forms(path: str) -> Iterator[str]:
    """The path as forgiving upstreams understand it: the escaped question mark or hash, if any, cut at or kept.

    Escapes are undone until none is left, backslashes are slashes, white space, control and combining characters are
    gone and compatibility forms replaced; of segments, parameters (`;x=1`) and final dots go; doubled slashes and dot
    segments are resolved; case is folded.
    """
    path = path.partition("?")[0]
    for _ in range(_MAX_UNQUOTING):
        path, before = unquote(path), path
        if path == before:
            break
    path = _plain(path)
    yield _resolved(path)
    cut = _CUT.search(path)
    if cut is not None:
        yield _resolved(path[: cut.start()])


def _plain(path: str) -> str:
    # Marks go before the normalisation, whose time grows with the square of a run of them.
    shown = "".join(char for char in path if unicodedata.category(char)[0] not in _INVISIBLE)
    return unicodedata.normalize("NFKC", shown).replace("\\", "/").casefold()


def _resolved(path: str) -> str:
    segments: list[str] = []
    for segment in path.split("/"):
        name = segment.partition(";")[0]
        if name == "..":
            del segments[-1:]
        elif name := name.rstrip("."):
            segments.append(name)
    return "/" + "/".join(segments)
