"""What a policy does with LLM requests that are not judged: refused or passed on, told as what they are.

A request that cannot be read is the client's fault and is refused; one that could not be judged gets the policy's
outcome for that. Knows the policy, not Envoy's messages.
"""

from __future__ import annotations

from dataclasses import replace

from router.actions import headers
from router.actions.edits import Edits
from router.actions.forward import onward
from router.actions.respond import refuse
from router.extproc.exchange import FailureKind
from router.extproc.head import RequestHead
from router.extproc.metadata import metadata_of_failure
from router.extproc.telling.desk import Arrival, Telling
from router.policy.model import Policy
from router.records.record_id import new_record_id
from router.request.apis import detect, effective_method
from router.request.dialect import error_reply
from router.request.errors import RequestError
from router.request.reply import Reply
from router.request.view import Api
from router.telemetry.context import Trace

UNSUPPORTED_API = "Requests to this endpoint cannot be judged, and the policy refuses what it could not judge."
TOO_LARGE = "The request body is larger than this gateway takes."
NOT_JUDGED = "The request could not be judged, and the policy refuses what it could not judge. Try again."

FALLBACK_API: Api = "openai.chat"
"""Whose dialect an error speaks when the request's own API is not known."""

FAILURE = "failure"
"""The decision of a request that could not be judged, in headers and logs."""

Answer = Edits | Reply


class Unjudged:
    """Answers for requests under one policy that are not judged, and tells of each."""

    def __init__(self, policy: Policy, telling: Telling) -> None:
        self._policy = policy
        self._telling = telling

    def failed(self, head: RequestHead | None, kind: FailureKind) -> Answer:
        """For a request that could not be judged."""
        api = api_of(self._policy, head) if head is not None else None
        arrival = self._telling.arrival(api, head, 0)
        identifier = new_record_id()
        answer = self._answer(api, kind, identifier)
        # What was let go of cannot be sent on, whatever the policy is.
        enforced = not self._policy.observe_only or kind == "body_too_large"
        return self._told(arrival, answer, kind, identifier, enforced)

    def passed(self, arrival: Arrival, kind: str) -> Answer:
        """For a request that the policy lets pass without having judged it."""
        identifier = new_record_id()
        return self._told(arrival, self._to_default(identifier), kind, identifier, not self._policy.observe_only)

    def unreadable(self, api: Api, arrival: Arrival, error: RequestError) -> Answer:
        """For a request that cannot be read."""
        identifier = new_record_id()
        reply = error_reply(api, error.status, error.code, error.message, error.pointer)
        told = metadata_of_failure(FAILURE, "refuse", error.code, identifier)
        reply = replace(reply, headers=((headers.DECISION, FAILURE), (headers.RECORD, identifier)), metadata=told)
        enforced = not self._policy.observe_only
        self._telling.tell(
            arrival.handled(
                "unreadable",
                identifier,
                self._policy.digest,
                "refuse",
                failure=error.code,
                status=reply.status if enforced and not arrival.copy else None,
                pointer=error.pointer,
                enforced=enforced and not arrival.copy,
            )
        )
        return reply if enforced else only_observed(self._policy, reply)

    def _told(self, arrival: Arrival, answer: Answer, kind: str, identifier: str, enforced: bool) -> Answer:
        outcome = "route" if isinstance(answer, Edits) else "refuse"
        answer = replace(answer, metadata=metadata_of_failure(FAILURE, outcome, kind, identifier))
        answer = traced(answer, arrival.trace) if enforced else only_observed(self._policy, answer)
        self._telling.tell(
            arrival.handled(
                "failure",
                identifier,
                self._policy.digest,
                "route" if outcome == "route" else "refuse",
                failure=kind,
                status=answer.status if isinstance(answer, Reply) and not arrival.copy else None,
                enforced=enforced and not arrival.copy,
            )
        )
        return answer

    def _answer(self, api: Api | None, kind: FailureKind, identifier: str) -> Answer:
        if kind == "body_too_large":
            return refuse(api or FALLBACK_API, 413, "request_too_large", TOO_LARGE, FAILURE, identifier)
        if self._policy.on_failure == "open":
            return self._to_default(identifier)
        if kind == "unsupported_api":
            return refuse(FALLBACK_API, 501, "unsupported_api", UNSUPPORTED_API, FAILURE, identifier)
        return refuse(api or FALLBACK_API, 503, "not_judged", NOT_JUDGED, FAILURE, identifier)

    def _to_default(self, identifier: str) -> Edits:
        default = self._policy.upstream(self._policy.default_model)
        gateway = self._policy.gateway_api_inference
        return onward(default.cluster, default.model, FAILURE, identifier, gateway)


def api_of(policy: Policy, head: RequestHead) -> Api | None:
    """The API of an LLM request that can be read, by method and path; None for any other request."""
    return detect(effective_method(head.method, head.headers), head.path, policy.apis)


def only_observed(policy: Policy, answer: Answer) -> Edits:
    """What is done in place of this answer under a policy that only observes."""
    return Edits(((headers.CLUSTER, policy.upstream(policy.default_model).cluster),), metadata=answer.metadata)


def traced(answer: Answer, trace: Trace | None) -> Answer:
    """The answer, with what tells the upstream whose child its spans are."""
    if trace is None or isinstance(answer, Reply):
        return answer
    return replace(answer, headers=(*answer.headers, *trace.headers), remove=(*answer.remove, *trace.remove))
