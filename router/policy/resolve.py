"""From a verdict to the upstream that serves it."""

from __future__ import annotations

from router.policy.model import Policy, Route, Upstream
from router.policy.verdict import Verdict
from router.request.view import RequestView
from router.selection import static


def choose_upstream(policy: Policy, verdict: Verdict, view: RequestView) -> Upstream:
    """The upstream for a verdict that routes or that matched nothing.

    Without a match that is the requested model where the policy respects it, else the policy's default model.
    ValueError for a verdict that answers by itself.
    """
    match verdict.outcome:
        case Route(models=models):
            return policy.upstream(static.select(models))
        case None if verdict.reason == "requested_model" and view.requested_model is not None:
            return policy.upstream(view.requested_model)
        case None:
            return policy.upstream(policy.default_model)
        case _:
            raise ValueError("this verdict answers by itself")
