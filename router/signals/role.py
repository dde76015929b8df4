"""`role`: whether one of the caller's roles, listed in a trusted request header, is one of these.

    role:
      clinical_staff: {header: x-user-roles, any: [admin, clinician]}
      scoped: {header: x-scopes, any: ['models:large'], separator: ' '}

Reads only a header that the policy lists as trusted, because an authenticating filter in front sets it. Roles are whole
items of the list: `admin` is not in `site-admin,user`. Costs microseconds. It knows neither users nor groups, sees the
first value of a header that came several times, and takes the header's word for everything. Roles inside a JSON value
are `metadata`'s. The caller's other roles are never recorded.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from router.request.view import RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, observed
from router.signals.settings import Phrases, SignalSettings
from router.signals.trusted_header import HeaderName, pointer_to, value_of


class RoleSettings(SignalSettings):
    """Settings of a `role` signal."""

    header: HeaderName = Field(
        description="The header that lists the caller's roles; the policy has to list it as trusted."
    )
    any: Phrases = Field(description="Roles; that the caller has one of them is enough.")
    separator: Annotated[str, StringConstraints(min_length=1)] = Field(
        ",", description="What stands between two roles in the header; blanks around a role do not count."
    )
    case_sensitive: bool = Field(False, description="Whether upper and lower case differ.")

    @property
    def trusted_headers(self) -> tuple[str, ...]:
        """The header it reads."""
        return (self.header,)


class RoleSignal:
    """Whether the caller has one of the roles; has no score. The label is the first of the roles that they have."""

    cost = Cost.HEURISTIC

    def __init__(self, name: SignalName, settings: RoleSettings) -> None:
        self.name = name
        self._header = settings.header
        self._roles = settings.any
        self._separator = settings.separator
        self._fold = str if settings.case_sensitive else str.casefold

    async def prepare(self) -> None:
        """Nothing to do."""

    async def observe(self, view: RequestView) -> Observation:
        """Look for each role in the list; an absent header lists none."""
        pointer = pointer_to(self._header)
        value = value_of(view, self._header)
        if value is None:
            return observed(False, evidence=(Evidence(pointer, detail="absent"),))
        held = {self._fold(item.strip()) for item in value.split(self._separator)}
        shared = [role for role in self._roles if self._fold(role) in held]
        evidence = tuple(Evidence(pointer, label=role) for role in shared)
        return observed(bool(shared), label=shared[0] if shared else "", evidence=evidence or (Evidence(pointer),))
