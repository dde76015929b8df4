"""From a request's bytes to what is done with it: parse, decide, act, record.

The judge of an exchange. It knows the policy and the request, not Envoy's messages; `pointsman explain` uses the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

from router.actions import headers
from router.actions.edits import Edits
from router.actions.forward import forward
from router.actions.respond import clarify, refuse
from router.extproc.bodies import Bodies
from router.extproc.choosing import Chooser
from router.extproc.claims import with_claims
from router.extproc.exchange import FailureKind
from router.extproc.head import RequestHead
from router.extproc.metadata import metadata_of
from router.extproc.telling.desk import Arrival, Telling
from router.extproc.unjudged import NOT_JUDGED, Answer, Unjudged, api_of, only_observed, traced
from router.policy.engine import Engine
from router.policy.model import Clarify, Policy, Refuse, Route
from router.policy.resolve import Resolution
from router.policy.verdict import Verdict
from router.records.record import NO_CAPABLE_MODEL, DecisionRecord, OutcomeKind
from router.records.record_id import new_record_id
from router.request.apis import effective_method, parse, unreadable
from router.request.content_coding import UnknownCoding
from router.request.errors import RequestError, UnreadablePrompt
from router.request.limits import RequestLimits, check_counts
from router.request.reply import Reply
from router.request.view import Api, RequestView
from router.selection.needs import explain

INLINE_PARSE_BYTES = 128 * 1024
"""A body up to this size is parsed on the event loop: about 0.1 ms, less than a thread hop costs under load."""


Aftermath = Callable[[DecisionRecord, RequestView, bytes], None]
"""Takes a request that was answered, with its body; must not block."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is done with one request, and the record of why; `image_bytes` are the sizes of its images as sent."""

    answer: Answer
    record: DecisionRecord
    view: RequestView = field(repr=False)
    image_bytes: tuple[int, ...] = ()


class Pipeline:
    """Judges requests by one policy. `parsing` runs the parsing of large bodies off the event loop.

    `chooser` finds the upstream; by default one without state, cards or counter. `bodies` undoes content codings
    and has the limits that parsed requests are held against. By `telling` each request is told of; `aftermath` gets
    those that were decided.
    """

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        budget: float,
        parsing: Executor,
        telling: Telling,
        chooser: Chooser | None = None,
        bodies: Bodies | None = None,
        aftermath: Aftermath | None = None,
    ) -> None:
        self._policy = policy
        self._default = policy.upstream(policy.default_model)
        self._models = frozenset(upstream.model for upstream in policy.upstreams)
        self._engine = engine
        self._budget = budget
        self._parsing = parsing
        self._telling = telling
        self._unjudged = Unjudged(policy, telling)
        self._chooser = chooser or Chooser(policy, parsing)
        self._bodies = bodies or Bodies(parsing, RequestLimits())
        self._aftermath = aftermath

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
        api = api_of(self._policy, head)
        if api is None and unreadable(effective_method(head.method, head.headers), head.path, self._policy.apis):
            return self.failed(head, "unsupported_api")
        if api is None:
            # Envoy routes by this header alone; a request that is not ours needs it as well.
            return Edits(((headers.CLUSTER, self._default.cluster),))
        arrival = self._telling.arrival(api, head, len(body))
        try:
            return await self._judge(api, head, body, arrival)
        except UnknownCoding:
            return self._unjudged.passed(arrival, "unknown_encoding")
        except UnreadablePrompt as error:
            if self._policy.on_failure == "open":
                return self._unjudged.passed(arrival, error.code)
            return self._unjudged.unreadable(api, arrival, error)
        except RequestError as error:
            return self._unjudged.unreadable(api, arrival, error)

    async def _judge(self, api: Api, head: RequestHead, body: bytes, arrival: Arrival) -> Answer:
        read = await self._bodies.read(head, body)
        given = with_claims(head, self._policy.trusted_metadata, self._policy.trusted_attributes)
        judgement = await self.judge_body(api, read.data, given, arrival.started)
        answer = await self._bodies.write(judgement.answer, read)
        answer = only_observed(self._policy, answer) if self._policy.observe_only else traced(answer, arrival.trace)
        self._tell(judgement, arrival, answer)
        if self._aftermath is not None:
            self._aftermath(judgement.record, judgement.view, read.data)
        return answer

    def _tell(self, judgement: Judgement, arrival: Arrival, answer: Answer) -> None:
        record = judgement.record
        enforced = not (arrival.copy or self._policy.observe_only)
        self._telling.tell(
            arrival.handled(
                "decision",
                record.record,
                record.policy,
                record.outcome,
                record=record if enforced else replace(record, enforced=False),
                image_bytes=judgement.image_bytes,
                status=answer.status if isinstance(answer, Reply) and enforced else None,
                enforced=enforced,
            )
        )

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
        resolution, settled = None, time.perf_counter()
        if verdict.outcome is None or isinstance(verdict.outcome, Route):
            left = self._budget - (time.perf_counter() - started)
            resolution = await self._chooser.choose(verdict, view, identifier, left)
        return self._act(view, body, verdict, resolution, identifier, started, parsed, settled)

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Answer:
        """The policy's outcome for a request that could not be judged."""
        return self._unjudged.failed(head, kind)

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
        settled: float,
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
                    gateway=self._policy.gateway_api_inference,
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
            select=decided - settled,
        )
        image_bytes = tuple([len(image.data) for image in view.images])
        return Judgement(answer.telling(metadata_of(record)), record, view, image_bytes)
