"""Takes feedback over HTTP: rewards and measurements, checked and bounded, into the keeper of the state.

Whoever is let in (`guard.py`) is believed; pages in a browser are kept out by asking for JSON too. Nothing of what was
sent is repeated in answers or logs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Annotated, Final, TypeVar, cast

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from router.admin.bodies import media_type, read_body
from router.selection.keeper import FullError, Keeper
from router.selection.learning import Measurement, Reward

MAX_BODY: Final = 256 * 1024
MAX_EVENTS: Final = 500
BODY_SECONDS: Final = 5.0

Known = Callable[[], Mapping[str, Set[str]]]
"""The policy's decisions, each with the models that its route may lead to; under `""` all models of the policy."""

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256, pattern=r"^[\x21-\x7e]+\Z")]
_Unit = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=86_400_000)]


class _Reward(msgspec.Struct, forbid_unknown_fields=True):
    record: Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z_-]{1,64}\Z")]
    decision: _Name
    model: _Name
    reward: _Unit
    against: _Name | None = None


class _Measurement(msgspec.Struct, forbid_unknown_fields=True):
    model: _Name
    ttft_ms: _Milliseconds | None = None
    latency_ms: _Milliseconds | None = None
    load: _Unit | None = None


Row = TypeVar("Row", _Reward, _Measurement)


class Feedback:
    """What the two endpoints do; both answer how many events were new. Raise HTTPException for what they refuse."""

    def __init__(self, keeper: Keeper, known: Known) -> None:
        self._keeper = keeper
        self._known = known

    async def rewards(self, request: Request) -> dict[str, int]:
        """One reward or a list of them: {record, decision, model, reward, against}."""
        rows = await _rows(request, _Reward)
        known = self._known()
        for row in rows:
            if row.decision not in known or not row.decision:
                raise HTTPException(422, "a decision is none of the policy's")
            if {row.model, row.against or row.model} - known[row.decision]:
                raise HTTPException(422, "a model is none of its decision's")
            if row.against == row.model:
                raise HTTPException(422, "a model is compared with itself")
        return self._take([Reward(r.record, r.decision, r.model, r.reward, r.against or "") for r in rows])

    async def measurements(self, request: Request) -> dict[str, int]:
        """One measurement or a list of them: {model, ttft_ms, latency_ms, load}."""
        rows = await _rows(request, _Measurement)
        models = self._known()[""]
        for row in rows:
            if row.model not in models:
                raise HTTPException(422, "a model is none of the policy's")
            if row.ttft_ms is None and row.latency_ms is None and row.load is None:
                raise HTTPException(422, "needs one of ttft_ms, latency_ms and load")
        return self._take([Measurement(row.model, row.ttft_ms, row.latency_ms, row.load) for row in rows])

    def _take(self, events: list[Reward] | list[Measurement]) -> dict[str, int]:
        try:
            return {"received": len(events), "new": self._keeper.take(events)}
        except FullError:
            raise HTTPException(507, "the state holds as many decisions and models as it may") from None


async def _rows(request: Request, row: type[Row]) -> list[Row]:
    if media_type(request) != "application/json":
        raise HTTPException(415, "the content type must be application/json")
    body = await read_body(request, MAX_BODY, BODY_SECONDS)
    kind = list[row] if body.lstrip()[:1] == b"[" else row  # type: ignore[valid-type]
    try:
        found = msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HTTPException(422, _without_values(error)) from None
    rows: list[Row] = found if isinstance(found, list) else [cast("Row", found)]
    if len(rows) > MAX_EVENTS:
        raise HTTPException(413, f"more than {MAX_EVENTS} at once")
    return rows


def _without_values(error: Exception) -> str:
    """The library's words for a wrong shape name types, bounds and paths; only an unknown key would be quoted."""
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return "is not JSON"
    return "has an unknown key" if "unknown field" in text else text
