"""Plain outcomes (`Edits`, `Reply`) turned into Envoy's messages, and nothing else.

The rules that Envoy does not forgive live here: `raw_value` instead of `value`, explicit overwriting, the exact
content-length with a new body and never without one, the route cache cleared so that the new headers choose the route.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from router.actions.edits import Edits
from router.extproc.head import RequestHead
from router.proto import ext_proc_pb2 as pb
from router.request.reply import Reply

OWN_PREFIX = "x-pointsman-"
"""Headers with this prefix are ours: what a client sends under it is removed."""

Slot = Literal["request_headers", "request_body"]
"""The kinds of answer that can carry a decision."""

UnexpectedKind = Literal["request_trailers", "response_headers", "response_body", "response_trailers"]

_OVERWRITE = pb.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD


def wait_for_body() -> pb.ProcessingResponse:
    """Go on and send the body; everything is decided with it."""
    return pb.ProcessingResponse(request_headers=pb.HeadersResponse())


def decided(slot: Slot, outcome: Edits | Reply, head: RequestHead | None) -> pb.ProcessingResponse:
    """The last answer of an exchange; ValueError for edits that must not be sent in this place."""
    if isinstance(outcome, Reply):
        return immediate(outcome)
    response = pb.ProcessingResponse()
    if slot == "request_body":
        _change(response.request_body.response, outcome, head)
        return response
    if outcome.body is not None:
        raise ValueError("a request without a body cannot be given one")
    _change(response.request_headers.response, outcome, head)
    return response


def immediate(reply: Reply) -> pb.ProcessingResponse:
    """An answer to the client, in place of the upstream's."""
    response = pb.ProcessingResponse()
    answer = response.immediate_response
    answer.status.code = reply.status
    _set(answer.headers, (("content-type", reply.content_type), *reply.headers))
    answer.body = reply.body
    answer.details = "pointsman"
    return response


def neutral(kind: UnexpectedKind) -> pb.ProcessingResponse:
    """Changes nothing and lets Envoy go on, whatever it asked about."""
    match kind:
        case "request_trailers":
            return pb.ProcessingResponse(request_trailers=pb.TrailersResponse())
        case "response_headers":
            return pb.ProcessingResponse(response_headers=pb.HeadersResponse())
        case "response_body":
            return pb.ProcessingResponse(response_body=pb.BodyResponse())
        case "response_trailers":
            return pb.ProcessingResponse(response_trailers=pb.TrailersResponse())


def _change(changes: pb.CommonResponse, edits: Edits, head: RequestHead | None) -> None:
    names = {name.lower() for name, _ in edits.headers}
    if "content-length" in names:
        # A length that does not fit the body behind it lets the rest be read as another request.
        raise ValueError("content-length follows from the body")
    changes.clear_route_cache = True
    mutation = changes.header_mutation
    _set(mutation, edits.headers)
    mutation.remove_headers.extend(_foreign(head, names))
    if edits.body is not None:
        changes.body_mutation.body = edits.body
        _set(mutation, (("content-length", str(len(edits.body))),))


def _foreign(head: RequestHead | None, own: set[str]) -> list[str]:
    if head is None:
        return []
    return [name for name in head.headers if name.startswith(OWN_PREFIX) and name not in own]


def _set(mutation: pb.HeaderMutation, headers: Iterable[tuple[str, str]]) -> None:
    """Filled in place: three times as fast as making each message and copying it, and every request pays for it."""
    for name, value in headers:
        option = mutation.set_headers.add(append_action=_OVERWRITE)
        option.header.key = name.lower()
        option.header.raw_value = value.encode()
