"""Sends a request on to an upstream: the headers that Envoy routes by, and the model's name in the body."""

from __future__ import annotations

from router.actions import headers
from router.actions.edits import Edits
from router.request.edit import set_model
from router.request.view import RequestView


def onward(cluster: str, model: str, decision: str, record: str, gateway: bool = False) -> Edits:
    """Edits that send the request to `cluster` with its body as it came; `model` is the policy's name for it.

    With `gateway` the model is named as the Gateway API Inference Extension wants it, too.
    """
    named = ((headers.MODEL, model), (headers.DECISION, decision), (headers.RECORD, record))
    return Edits(((headers.CLUSTER, cluster), *named, *(((headers.GATEWAY_MODEL, model),) if gateway else ())))


def forward(
    view: RequestView,
    body: bytes,
    *,
    cluster: str,
    model: str,
    rewrite_model: str,
    decision: str | None,
    record: str,
    gateway: bool = False,
) -> Edits:
    """As `onward`, with the upstream's name for the model, `rewrite_model`, in the body.

    A body that has it already is left as it came. `decision` is None when none matched.
    """
    edits = onward(cluster, model, decision or headers.NO_DECISION, record, gateway)
    if view.requested_model == rewrite_model:
        return edits
    return Edits(edits.headers, set_model(body, view, rewrite_model))
