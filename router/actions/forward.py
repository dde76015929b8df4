"""Sends a request on to an upstream: the headers that Envoy routes by, and the model's name in the body."""

from __future__ import annotations

from router.actions import headers
from router.actions.edits import Edits
from router.request.edit import set_model
from router.request.view import RequestView


def forward(
    view: RequestView,
    body: bytes,
    *,
    cluster: str,
    model: str,
    rewrite_model: str,
    decision: str | None,
    record: str,
) -> Edits:
    """Edits that send the request to `cluster`.

    `model` is the policy's name for it, `rewrite_model` the upstream's; a body that has the latter already is left as
    it came. `decision` is None when none matched.
    """
    return Edits(
        headers=(
            (headers.CLUSTER, cluster),
            (headers.MODEL, model),
            (headers.DECISION, decision or headers.NO_DECISION),
            (headers.RECORD, record),
        ),
        body=None if view.requested_model == rewrite_model else set_model(body, view, rewrite_model),
    )
