"""From a request's bytes to what is done with it: parse, decide, act, record.

The judge of an exchange. It knows the policy and the request, not Envoy's messages; `pointsman explain` uses the same.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from router.actions import headers
from router.actions.edits import Edits
from router.actions.forward import forward
from router.actions.respond import clarify, refuse
from router.extproc.bodies import Bodies
from router.extproc.choosing import Chooser
from router.extproc.claims import with_claims
from router.extproc.exchange import FailureKind
from router.extproc.head import RequestHead
from router.extproc.metadata import metadata_of, metadata_of_failure
from router.policy.engine import Engine
from router.policy.model import Clarify, Policy, Refuse, Route
from router.policy.resolve import Resolution
from router.policy.verdict import Verdict
from router.records.record import NO_CAPABLE_MODEL, DecisionRecord, OutcomeKind
from router.records.record_id import new_record_id
from router.request.apis import detect, effective_method, parse, unreadable
from router.request.content_coding import UnknownCoding
from router.request.dialect import error_reply
from router.request.errors import RequestError, UnreadablePrompt
from router.request.limits import RequestLimits, check_counts
from router.request.reply import Reply
from router.request.view import Api, RequestView
from router.selection.needs import explain

logger = logging.getLogger(__name__)

UNSUPPORTED_API = "Requests to this endpoint cannot be judged, and the policy refuses what it could not judge."
TOO_LARGE = "The request body is larger than this gateway takes."
NOT_JUDGED = "The request could not be judged, and the policy refuses what it could not judge. Try again."

FALLBACK_API: Api = "openai.chat"
"""Whose dialect an error speaks when the request's own API is not known."""

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
    """Judges requests by one policy. `parsing` runs the parsing of large bodies off the event loop.

    `chooser` finds the upstream; by default one without state, cards or counter. `bodies` undoes content codings
    and has the limits that parsed requests are held against.
    """

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        budget: float,
        parsing: Executor,
        recorder: Recorder,
        chooser: Chooser | None = None,
        bodies: Bodies | None = None,
    ) -> None:
        self._policy = policy
        self._default = policy.upstream(policy.default_model)
        self._models = frozenset(upstream.model for upstream in policy.upstreams)
        self._engine = engine
        self._budget = budget
        self._parsing = parsing
        self._record = recorder
        self._chooser = chooser or Chooser(policy, parsing)
        self._bodies = bodies or Bodies(parsing, RequestLimits())

    def reads_body(self, head: RequestHead) -> bool:
        """Of LLM requests alone: whatever else is sent here may be of any size and is let through."""
        return api_of(self._policy, head) is not None

    async def judge_headers(self, head: RequestHead) -> Answer:
        """A request without a body: untouched, unless its path promises one."""
        return await self.judge(head, b"")

    async def judge(self, head: RequestHead, body: bytes) -> Answer:
        """Decide about a request; what is no LLM request goes to the default model's cluster, untouched.

        An LLM request of an API that is not read here could not be judged, and gets the policy's outcome for that.
        Under a policy that only observes, every request goes where those go that are none.
        """
        answer = await self._judge(head, body)
        return only_observed(self._policy, answer) if self._policy.observe_only else answer

    async def _judge(self, head: RequestHead, body: bytes) -> Answer:
        api = api_of(self._policy, head)
        if api is None and unreadable(effective_method(head.method, head.headers), head.path, self._policy.apis):
            return failure_outcome(self._policy, head, "unsupported_api")
        if api is None:
            # Envoy routes by this header alone; a request that is not ours needs it as well.
            return Edits(((headers.CLUSTER, self._default.cluster),))
        try:
            started = time.perf_counter()
            read = await self._bodies.read(head, body)
            given = with_claims(head, self._policy.trusted_metadata, self._policy.trusted_attributes)
            judgement = await self.judge_body(api, read.data, given, started)
        except UnknownCoding:
            return passed_unjudged(self._policy, "unknown_encoding")
        except UnreadablePrompt as error:
            if self._policy.on_failure == "open":
                return passed_unjudged(self._policy, error.code)
            return self._unreadable(api, error)
        except RequestError as error:
            return self._unreadable(api, error)
        enforced = not (head.copy or self._policy.observe_only)
        self._record(judgement.record if enforced else replace(judgement.record, enforced=False))
        return await self._bodies.write(judgement.answer, read)

    def _unreadable(self, api: Api, error: RequestError) -> Reply:
        identifier = new_record_id()
        fields = {"record": identifier, "status": error.status, "code": error.code, "pointer": error.pointer}
        logger.info("unreadable", extra={"fields": fields})
        reply = error_reply(api, error.status, error.code, error.message, error.pointer)
        told = metadata_of_failure(FAILURE, "refuse", error.code, identifier)
        return replace(reply, headers=((headers.DECISION, FAILURE), (headers.RECORD, identifier)), metadata=told)

    async def judge_body(
        self, api: Api, body: bytes, given: Mapping[str, str] | None = None, started: float | None = None
    ) -> Judgement:
        """Decide about an LLM request's body; raises RequestError for one that cannot be read.

        Of the `given` headers, by lower-case name, the policy sees those that it trusts. Time counts from `started`.
        """
        started = time.perf_counter() if started is None else started
        view = self._with_trusted(await self._parsed(api, body), given or {})
        parsed = time.perf_counter()
        verdict = await self._engine.decide(view, self._budget - (parsed - started))
        identifier = new_record_id()
        resolution = None
        if verdict.outcome is None or isinstance(verdict.outcome, Route):
            left = self._budget - (time.perf_counter() - started)
            resolution = await self._chooser.choose(verdict, view, identifier, left)
        return self._act(view, body, verdict, resolution, identifier, started, parsed)

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Answer:
        """The policy's outcome for a request that could not be judged."""
        return failure_outcome(self._policy, head, kind)

    async def _parsed(self, api: Api, body: bytes) -> RequestView:
        if len(body) <= INLINE_PARSE_BYTES:
            return self._parse(api, body)
        return await asyncio.get_running_loop().run_in_executor(self._parsing, self._parse, api, body)

    def _parse(self, api: Api, body: bytes) -> RequestView:
        view = parse(api, body)
        check_counts(view, self._bodies.limits)
        return view

    def _with_trusted(self, view: RequestView, given: Mapping[str, str]) -> RequestView:
        trusted = {name: given[name] for name in self._policy.trusted_headers if name in given}
        return replace(view, headers=trusted) if trusted else view

    def _act(
        self,
        view: RequestView,
        body: bytes,
        verdict: Verdict,
        resolution: Resolution | None,
        identifier: str,
        started: float,
        parsed: float,
    ) -> Judgement:
        decision = verdict.decision or headers.NO_DECISION
        decided = time.perf_counter()
        upstream = resolution.upstream if resolution else None
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
            case _ if upstream is None:
                kind = "refuse"
                message = explain(tuple(resolution.filtered.values()) if resolution else ())
                answer = refuse(view.api, 400, NO_CAPABLE_MODEL, message, decision, identifier)
            case _:
                kind = "route"
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
            resolution=resolution,
            body_bytes=view.body_bytes,
            turns=len(view.turns),
            images=len(view.images),
            stream=view.stream,
            parse=parsed - started,
            decide=decided - parsed,
            duration=time.perf_counter() - started,
        )
        return Judgement(replace(answer, metadata=metadata_of(record)), record)


def api_of(policy: Policy, head: RequestHead) -> Api | None:
    """The API of an LLM request that can be read, by method and path; None for any other request."""
    return detect(effective_method(head.method, head.headers), head.path, policy.apis)


def passed_unjudged(policy: Policy, kind: str) -> Edits:
    """What the policy lets pass without having judged it; one line in the log says so."""
    identifier = new_record_id()
    logger.warning("failure", extra={"fields": {"record": identifier, "kind": kind}})
    return replace(_to_default(policy, identifier), metadata=metadata_of_failure(FAILURE, "route", kind, identifier))


def _to_default(policy: Policy, identifier: str) -> Edits:
    default = policy.upstream(policy.default_model)
    named = ((headers.MODEL, default.model), (headers.DECISION, FAILURE), (headers.RECORD, identifier))
    return Edits(((headers.CLUSTER, default.cluster), *named))


def only_observed(policy: Policy, answer: Answer) -> Edits:
    """What is done in place of this answer under a policy that only observes."""
    return Edits(((headers.CLUSTER, policy.upstream(policy.default_model).cluster),), metadata=answer.metadata)


def failure_outcome(policy: Policy, head: RequestHead | None, kind: FailureKind) -> Answer:
    """What the policy does with a request that could not be judged; one line in the log says so."""
    identifier = new_record_id()
    logger.warning("failure", extra={"fields": {"record": identifier, "kind": kind}})
    answer = _failure_answer(policy, head, kind, identifier)
    outcome = "route" if isinstance(answer, Edits) else "refuse"
    answer = replace(answer, metadata=metadata_of_failure(FAILURE, outcome, kind, identifier))
    # What was let go of cannot be sent on, whatever the policy is.
    return only_observed(policy, answer) if policy.observe_only and kind != "body_too_large" else answer


def _failure_answer(policy: Policy, head: RequestHead | None, kind: FailureKind, identifier: str) -> Answer:
    api = api_of(policy, head) if head else None
    if kind == "body_too_large":
        return refuse(api or FALLBACK_API, 413, "request_too_large", TOO_LARGE, FAILURE, identifier)
    if policy.on_failure == "open":
        return _to_default(policy, identifier)
    if kind == "unsupported_api":
        return refuse(FALLBACK_API, 501, "unsupported_api", UNSUPPORTED_API, FAILURE, identifier)
    return refuse(api or FALLBACK_API, 503, "not_judged", NOT_JUDGED, FAILURE, identifier)
