"""Loads the policy that another one names as its shadow."""

from __future__ import annotations

from router.config.load import LoadedPolicy, load_policy
from router.config.problems import PolicyError, Problem

LOCATION = ("shadow", "policy")


def load_shadow(loaded: LoadedPolicy) -> LoadedPolicy | None:
    """The shadow, None where there is none. Raises PolicyError with problems of the policy that names it."""
    if loaded.shadow is None:
        return None
    path = loaded.base / loaded.shadow.policy
    try:
        shadow = load_policy(path)
    except PolicyError as error:
        raise PolicyError(loaded.path, [_problem(loaded, line) for line in error.lines()]) from None
    if shadow.policy.digest == loaded.policy.digest and path.resolve() == loaded.path.resolve():
        raise PolicyError(loaded.path, [_problem(loaded, "names the policy itself as its shadow")])
    if unseen := [name for name in shadow.policy.trusted_headers if _source(shadow, name) != _source(loaded, name)]:
        named = ", ".join(unseen)
        why = f"trusts {named}, which this policy does not, or takes from elsewhere, so that nobody looks for it"
        raise PolicyError(loaded.path, [_problem(loaded, why)])
    return shadow


def _source(loaded: LoadedPolicy, header: str) -> str | None:
    """Where a trusted header comes from: its own name, or where Envoy takes it; None: it is not trusted."""
    policy = loaded.policy
    if header not in policy.trusted_headers:
        return None
    return {**policy.trusted_metadata, **policy.trusted_attributes}.get(header, header)


def _problem(loaded: LoadedPolicy, why: str) -> Problem:
    return loaded.source.problem(LOCATION, f"the shadow policy cannot be used: {why}")
