"""From a request's bytes to what is done with it: parse, decide, act, record.

The judge of an exchange. It knows the policy and the request, not Envoy's messages; `pointsman explain` uses the same.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from router.actions import headers
from router.actions.edits import Edits
from router.actions.forward import forward
from router.actions.respond import clarify, refuse
from router.extproc.exchange import FailureKind
from router.extproc.head import RequestHead
from router.policy.engine import Engine
from router.policy.model import Clarify, Policy, Refuse, Upstream
from router.policy.resolve import choose_upstream
from router.policy.verdict import Verdict
from router.records.record import DecisionRecord, OutcomeKind
from router.records.record_id import new_record_id
from router.request.apis import detect, parse, unreadable
from router.request.dialect import error_reply
from router.request.errors import RequestError
from router.request.reply import Reply
from router.request.view import Api, RequestView

logger = logging.getLogger(__name__)

UNSUPPORTED_API = "Requests to this endpoint cannot be judged, and the policy refuses what it could not judge."
NOT_JUDGED = "The request could not be judged, and the policy refuses what it could not judge. Try again."

FALLBACK_API: Api = "openai.chat"
"""Whose dialect an error speaks when the request's own API is not known."""

READABLE_ENCODINGS = ("", "identity")
READABLE_CHARSETS = ("", "utf-8", "utf8", "us-ascii")
"""JSON is UTF-8 (RFC 8259); an upstream that honours another charset would read another text than we do."""

INLINE_PARSE_BYTES = 128 * 1024
"""A body up to this size is parsed on the event loop: about 0.1 ms, less than a thread hop costs under load."""

FAILURE = "failure"
"""The decision of a request that could not be judged, in headers and logs."""

Answer = Edits | Reply
Recorder = Callable[[DecisionRecord], None]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is done with one request, and the record of why."""

    answer: Answer
    record: DecisionRecord


class Pipeline:
    """Judges requests by one policy. `parsing` runs the parsing of large bodies off the event loop."""

    def __init__(self, policy: Policy, engine: Engine, budget: float, parsing: Executor, recorder: Recorder) -> None:
        self._policy = policy
        self._default = policy.upstream(policy.default_model)
        self._models = frozenset(upstream.model for upstream in policy.upstreams)
        self._engine = engine
        self._budget = budget
        self._parsing = parsing
        self._record = recorder

    async def judge_headers(self, head: RequestHead) -> Answer:
        """A request without a body: untouched, unless its path promises one."""
        return await self.judge(head, b"")

    async def judge(self, head: RequestHead, body: bytes) -> Answer:
        """Decide about a request; what is no LLM request goes to the default model's cluster, untouched.

        An LLM request of an API that is not read here could not be judged, and gets the policy's outcome for that.
        """
        api = detect(head.method, head.path)
        if api is None and unreadable(head.method, head.path):
            return self.failed(head, "unsupported_api")
        if api is None:
            # Envoy routes by this header alone; a request that is not ours needs it as well.
            return Edits(((headers.CLUSTER, self._default.cluster),))
        try:
            if head.content_encoding not in READABLE_ENCODINGS:
                raise RequestError(415, "unsupported_content_encoding", "The body is encoded; send it as plain JSON.")
            if head.charset not in READABLE_CHARSETS:
                raise RequestError(415, "unsupported_charset", "The body's charset is not UTF-8; send it as UTF-8.")
            judgement = await self.judge_body(api, body)
        except RequestError as error:
            identifier = new_record_id()
            fields = {"record": identifier, "status": error.status, "code": error.code, "pointer": error.pointer}
            logger.info("unreadable", extra={"fields": fields})
            reply = error_reply(api, error.status, error.code, error.message, error.pointer)
            return replace(reply, headers=((headers.DECISION, FAILURE), (headers.RECORD, identifier)))
        self._record(judgement.record)
        return judgement.answer

    async def judge_body(self, api: Api, body: bytes) -> Judgement:
        """Decide about an LLM request's body; raises RequestError for one that cannot be read."""
        started = time.perf_counter()
        view = await self._parsed(api, body)
        parsed = time.perf_counter()
        verdict = await self._engine.decide(view, self._budget - (parsed - started))
        return self._act(view, body, verdict, started, parsed)

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Answer:
        """The policy's outcome for a request that could not be judged."""
        return failure_outcome(self._policy, head, kind)

    async def _parsed(self, api: Api, body: bytes) -> RequestView:
        if len(body) <= INLINE_PARSE_BYTES:
            return parse(api, body)
        return await asyncio.get_running_loop().run_in_executor(self._parsing, parse, api, body)

    def _act(self, view: RequestView, body: bytes, verdict: Verdict, started: float, parsed: float) -> Judgement:
        identifier = new_record_id()
        decision = verdict.decision or headers.NO_DECISION
        decided = time.perf_counter()
        upstream: Upstream | None = None
        kind: OutcomeKind
        answer: Answer
        match verdict.outcome:
            case Refuse() if verdict.overran:
                # It fails closed, but nobody broke the policy: there was no time to look.
                kind = "refuse"
                answer = refuse(view.api, 503, "not_judged", NOT_JUDGED, decision, identifier)
            case Refuse(status=status, code=code, message=message):
                kind = "refuse"
                answer = refuse(view.api, status, code, message, decision, identifier)
            case Clarify(message=message):
                kind = "clarify"
                answer = clarify(view, self._default.model, message, decision, identifier, int(time.time()))
            case _:
                kind = "route"
                upstream = choose_upstream(self._policy, verdict, view)
                answer = forward(
                    view,
                    body,
                    cluster=upstream.cluster,
                    model=upstream.model,
                    rewrite_model=upstream.rewrite_model,
                    decision=decision,
                    record=identifier,
                )
        record = DecisionRecord(
            record=identifier,
            policy=self._policy.digest,
            api=view.api,
            requested_model=view.requested_model if view.requested_model in self._models else None,
            decision=decision,
            outcome=kind,
            model=upstream.model if upstream else None,
            cluster=upstream.cluster if upstream else None,
            verdict=verdict,
            body_bytes=view.body_bytes,
            turns=len(view.turns),
            images=len(view.images),
            stream=view.stream,
            parse=parsed - started,
            decide=decided - parsed,
            duration=time.perf_counter() - started,
        )
        return Judgement(answer, record)


def failure_outcome(policy: Policy, head: RequestHead | None, kind: FailureKind) -> Answer:
    """What the policy does with a request that could not be judged; one line in the log says so."""
    identifier = new_record_id()
    logger.warning("failure", extra={"fields": {"record": identifier, "kind": kind}})
    if policy.on_failure == "open":
        default = policy.upstream(policy.default_model)
        named = ((headers.MODEL, default.model), (headers.DECISION, FAILURE), (headers.RECORD, identifier))
        return Edits(((headers.CLUSTER, default.cluster), *named))
    if kind == "unsupported_api":
        return refuse(FALLBACK_API, 501, "unsupported_api", UNSUPPORTED_API, FAILURE, identifier)
    api = detect(head.method, head.path) if head else None
    return refuse(api or FALLBACK_API, 503, "not_judged", NOT_JUDGED, FAILURE, identifier)
