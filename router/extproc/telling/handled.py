"""What is told of an LLM request once it has been answered, to whoever logs, measures, traces or keeps records.

Facts and our own words alone: nothing that a client wrote. Made on the request path, told off it (`teller.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from router.records.record import DecisionRecord, OutcomeKind
from router.request.view import Api
from router.telemetry.context import Trace

Kind = Literal["decision", "unreadable", "failure"]
"""It was judged; the client sent what cannot be read; or it could not be judged and got the policy's outcome for that.
Also the event of the log line."""


@dataclass(frozen=True, slots=True)
class Handled:
    """A request that is finished for us.

    `record` is there for a decision alone. `failure` says why there is none: a kind of failure or the code of an error,
    of a bounded set. `outcome` is what became of the request, also of one that was not judged; `status` that of our own
    answer, None where the request goes on. `began` is in nanoseconds since the epoch, when all was there to judge by;
    `seconds` until the answer. `body_bytes` are as sent, 0 where the body was not gathered.
    """

    kind: Kind
    api: Api | None
    identifier: str
    record: DecisionRecord | None
    policy: str
    """The digest of the policy."""
    outcome: OutcomeKind
    began: int
    seconds: float
    body_bytes: int = 0
    image_bytes: tuple[int, ...] = ()
    """Of each image that the request brought along, as sent."""
    failure: str = ""
    status: int | None = None
    pointer: str = ""
    """Where in the body it is that could not be read."""
    enforced: bool = True
    """Whether the outcome was acted on, or only recorded."""
    trace: Trace | None = None
    """None where nothing is traced."""


Tell = Callable[[Handled], None]
"""Takes what was handled; must not block, and raises nothing."""
