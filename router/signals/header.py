"""`header`: what a trusted request header says.

    header:
      research_team: {name: x-team, any: [research, nlp-lab]}
      beta_tenant: {name: x-tenant, any: ['^beta-\\d+$'], method: regex}
      internal: {name: x-internal, method: present}

Reads only headers that the policy lists as trusted, because something in front (an authenticating filter) sets or
removes them: whoever can send a header can claim anything in it. Costs microseconds. Where a header came several times
it sees the first value only. An absent header does not match, and is no failure. The value itself is never recorded:
evidence is the header's name and the policy's own word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import Field, model_validator

from router.request.view import RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, observed
from router.signals.re2_search import compile_patterns
from router.signals.settings import Phrases, SignalSettings
from router.signals.texts import encodable
from router.signals.trusted_header import HeaderName, pointer_to, value_of

Matcher = Callable[[str], str | None]
"""From a header's value to the policy's word that it matches; None where it matches none."""


class HeaderSettings(SignalSettings):
    """Settings of a `header` signal."""

    name: HeaderName = Field(description="The header's name, in any case; the policy has to list it as trusted.")
    any: Phrases | None = Field(
        None, description="Values, prefixes or patterns; one that fits is enough. Left out for `present`."
    )
    method: Literal["exact", "prefix", "regex", "present"] = Field(
        "exact",
        description="exact: the whole value, blanks around it aside; prefix: how it begins; regex: patterns in RE2 "
        "syntax, found anywhere in it; present: any value that is not blank.",
    )
    case_sensitive: bool = Field(False, description="Whether upper and lower case differ.")

    @model_validator(mode="after")
    def _fits_together(self) -> HeaderSettings:
        if self.method == "present" and self.any is not None:
            raise ValueError("`present` asks for no value; leave `any` out")
        if self.method != "present" and self.any is None:
            raise ValueError("`any` is needed, or `method: present`")
        matcher(self)
        return self

    @property
    def trusted_headers(self) -> tuple[str, ...]:
        """The header it reads."""
        return (self.name,)


def matcher(settings: HeaderSettings) -> Matcher:
    """What the settings ask of a value. ValueError for a pattern that RE2 refuses."""
    words = settings.any or ()
    if settings.method == "present":
        return lambda value: "" if value else None
    if settings.method == "regex":
        programs = compile_patterns(words, "any", settings.case_sensitive)
        return lambda value: next(
            (word for word, program in zip(words, programs, strict=True) if program.search(encodable(value))), None
        )
    fold = str if settings.case_sensitive else str.casefold
    if settings.method == "prefix":
        return lambda value: next((word for word in words if fold(value).startswith(fold(word))), None)
    by_value = {fold(word): word for word in reversed(words)}
    return lambda value: by_value.get(fold(value))


class HeaderSignal:
    """Whether the header's value is one of those asked for; has no score. The label is the policy's word that fits."""

    cost = Cost.HEURISTIC

    def __init__(self, name: SignalName, settings: HeaderSettings) -> None:
        self.name = name
        self._header = settings.name
        self._matching = matcher(settings)

    async def prepare(self) -> None:
        """Nothing to do."""

    async def observe(self, view: RequestView) -> Observation:
        """Compare; an absent header does not match."""
        value = value_of(view, self._header)
        word = None if value is None else self._matching(value)
        if word is None:
            return observed(False, evidence=(Evidence(pointer_to(self._header), detail="" if value else "absent"),))
        return observed(True, label=word, evidence=(Evidence(pointer_to(self._header), label=word),))
