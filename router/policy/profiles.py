"""Which set of decisions a request meets: a profile's, or the policy's own."""

from __future__ import annotations

from router.policy.model import Policy, Profile
from router.request.view import RequestView
from router.signals.trusted_header import value_of


def profile_of(policy: Policy, view: RequestView) -> Profile | None:
    """The first profile, in the policy's order, whose model the request names or whose header it bears."""
    for profile in policy.profiles:
        if view.requested_model in profile.models:
            return profile
        value = value_of(view, profile.header) if profile.header else None
        if value is not None and value.casefold() in profile.values:
            return profile
    return None
