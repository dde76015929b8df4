"""What Envoy tells of an answer before its body: whose it is, what it answers, and of what kind it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from router.actions import headers
from router.extproc.head import read_headers
from router.proto import ext_proc_pb2 as pb
from router.request.api_rules import ApiRules
from router.request.apis import detect, unreadable
from router.request.paths import normal_forms
from router.request.view import Api

TOLD: Final = (headers.DECISION, headers.MODEL, headers.RECORD)
"""Request headers that say what was decided about the request."""

FROM_UPSTREAM: Final = "via_upstream"
"""Envoy's detail of a response that an upstream gave; what Envoy answers itself has others."""

Kind = Literal["json", "events", "other"]

_WITHOUT_WORDS: Final[frozenset[Api]] = frozenset({"openai.embeddings", "anthropic.count_tokens"})
# Answers that were kept are fetched by paths that carry no prompt.
_KEPT: Final[tuple[tuple[str, Api], ...]] = (
    ("/responses/", "openai.responses"),
    ("/chat/completions/", "openai.chat"),
)


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """`told` are the headers that say what was decided about the request. `path` is content and stays out of logs."""

    path: str | None = field(repr=False)
    method: str
    details: str
    told: tuple[tuple[str, str], ...]
    kind: Kind
    encoding: str

    @property
    def from_upstream(self) -> bool:
        """Whether an upstream gave it; Envoy that does not say so is believed to have asked one."""
        return self.details in ("", FROM_UPSTREAM)

    def api(self, rules: ApiRules) -> Api | None:
        """Whose answer this is; None for what is checked by nobody: Envoy's own, and what has nothing a model said.

        The method is not asked where the path is an API's: upstreams that honour another one beside it are not rare.
        """
        if not self.from_upstream:
            return None
        if self.path is None:
            return "openai.chat"
        api = detect("POST", self.path, rules)
        if api in _WITHOUT_WORDS:
            return None
        if api is not None:
            return api
        for form in normal_forms(self.path):
            for part, kept in _KEPT:
                if part in form:
                    return kept
        return "openai.chat" if unreadable(self.method, self.path, rules) else None


def answer_facts(message: pb.ProcessingRequest) -> AnswerFacts:
    """The facts in a message with response headers and attributes."""
    given = {
        name: value.string_value
        for struct in message.attributes.values()
        for name, value in struct.fields.items()
        if value.HasField("string_value")
    }
    found = read_headers(message.response_headers)
    told = ((name, given.get(f"request.headers['{name}']", "")) for name in TOLD)
    return AnswerFacts(
        path=given.get("request.path"),
        method=given.get("request.method", "POST"),
        details=given.get("response.code_details", ""),
        told=tuple((name, value) for name, value in told if value),
        kind=_kind_of(found.get("content-type", "")),
        encoding=found.get("content-encoding", "").strip().lower(),
    )


def _kind_of(content_type: str) -> Kind:
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return "events"
    if kind in ("", "application/json", "application/x-ndjson", "application/jsonl") or kind.endswith("+json"):
        return "json"
    return "json" if kind.startswith("text/") else "other"
