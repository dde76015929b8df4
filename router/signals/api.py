"""`api`: which API the client speaks, and whether it wants the answer as a stream.

    api:
      chat_stream: {any: [openai.chat], stream: true}

Costs nothing. `streaming` needs no definition. It sees what the body says; not which program sent it, nor whether an
upstream can answer in that API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import Field, model_validator

from router.request.view import Api, RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, observed
from router.signals.settings import SignalSettings


class ApiSettings(SignalSettings):
    """Settings of an `api` signal: all that is given must hold."""

    any: tuple[Api, ...] | None = Field(
        default=None, min_length=1, description="APIs; that the client speaks one is enough."
    )
    stream: bool | None = Field(
        default=None, description="true: the answer is wanted as a stream; false: in one piece; omitted: either."
    )

    @model_validator(mode="after")
    def _says_something(self) -> ApiSettings:
        if self.any is None and self.stream is None:
            raise ValueError("any or stream is needed")
        return self


BUILTINS: Final[Mapping[str, ApiSettings]] = {"streaming": ApiSettings(stream=True)}
"""Names that a condition may use without a definition in the policy."""


class ApiSignal:
    """Whether the request is of one of the APIs; has no score. Its label is the API, whether it matched or not."""

    cost = Cost.HEURISTIC

    def __init__(self, name: SignalName, settings: ApiSettings) -> None:
        self.name = name
        self._settings = settings

    async def prepare(self) -> None:
        """Nothing to do."""

    async def observe(self, view: RequestView) -> Observation:
        """Compare."""
        wanted, stream = self._settings.any, self._settings.stream
        matched = (wanted is None or view.api in wanted) and (stream is None or view.stream is stream)
        detail = "stream" if view.stream else ""
        return observed(matched, label=view.api, evidence=(Evidence("", label=view.api, detail=detail),))
