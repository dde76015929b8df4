"""One tower's model at another server, in the place of a session of our own.

Signals ask it on the event loop; the parity gate and the canary ask it from a thread, over the same connection and
through the same checks. A blocking call would hold one of the few threads that run models, so there is none.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from router.inference.executor import InferenceExecutor, Overloaded
from router.inference.remote.access import read_access
from router.inference.remote.errors import RemoteError, RemoteTimeoutError, RemoteUnavailableError
from router.inference.remote.server import RemoteServer
from router.inference.remote.tensors import Feed, Floats, Wording
from router.packs.manifest import TextTower, VisionTower

if TYPE_CHECKING:
    from router.inference.remote.client import End

T = TypeVar("T")

SLACK_SECONDS: Final = 5.0
"""Beyond the time of a call, before a thread stops waiting for a loop that may have ended."""


class RemoteSession:
    """Rows of one tower from one server. `lane` bounds what is under way and what waits; `batch` rows go at a time."""

    def __init__(
        self,
        tower: TextTower | VisionTower,
        inputs: tuple[str, ...],
        server: RemoteServer,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """`loop` is the one that serves, and not this thread's. Reads files; raises RemoteSetupError."""
        # gRPC takes some 16 MB of each process: only where there is such a server.
        from router.inference.remote.client import RemoteClient  # noqa: PLC0415

        self.server = server
        self.kind: Literal["text", "vision"] = "text" if isinstance(tower, TextTower) else "vision"
        self.client = RemoteClient(server, read_access(server))
        self.lane = InferenceExecutor(server.concurrency, server.queue)
        # An int8 graph scales its activations by the greatest in the batch, so there each row goes alone.
        self.batch = 1 if tower.precision == "int8" else server.batch
        self._wording = Wording(tower, inputs, server)
        self._loop = loop

    @property
    def ends(self) -> dict[End, int]:
        """Calls by how they ended; shed are those too that found no place here. For any thread."""
        ends = dict(self.client.ends)
        ends["shed"] = ends.get("shed", 0) + self.lane.shed
        return ends

    def introduce(self) -> None:
        """Blocks until the server is known to have such a model; raises RemoteError and RemoteSetupError."""
        self._wait(self.client.require_ready())
        self._wording.agree(self._wait(self.client.metadata()))

    def request(self, feed: Feed) -> bytes:
        """A call for these tensors, written down; for any thread."""
        return self._wording.request(feed)

    async def rows(self, request: bytes, count: int) -> Floats:
        """Unit vectors (count, d), read-only, within the server's time; raises RemoteError and Overloaded.

        It takes no place in the `lane`: ask it through there.
        """
        try:
            rows = self._wording.rows(await self.client.infer(request), count)
        except (RemoteError, Overloaded) as error:
            self.client.ended(error)
            raise
        self.client.ended(None)
        return rows

    def run(self, outputs: Sequence[str], feed: Mapping[str, NDArray[Any]]) -> list[Floats]:
        """As a session of our own: blocks, and not for the event loop's thread. `outputs` is the tower's one."""
        count = len(next(iter(feed.values())))
        parts = []
        for start in range(0, count, self.batch):
            part = {name: tensor[start : start + self.batch] for name, tensor in feed.items()}
            size = min(self.batch, count - start)
            parts.append(self._wait(self.lane.ask(self.rows, self.request(part), size)))
        return [np.concatenate(parts) for _ in outputs]

    def get_providers(self) -> list[str]:
        """None that we could know of."""
        return []

    def close(self) -> None:
        """Make no more calls; for any thread."""
        self.lane.close()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._close)

    def _close(self) -> None:
        self._closing = self._loop.create_task(self.client.close())

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        # A call waits for others and then has its time.
        waits = 1 + self.server.queue / self.server.concurrency
        try:
            return future.result(waits * self.server.timeout + SLACK_SECONDS)
        except RemoteTimeoutError:
            raise
        except TimeoutError:
            future.cancel()
            raise RemoteTimeoutError(f"{self.server.named}: nobody is left to ask it") from None
        except concurrent.futures.CancelledError:
            raise RemoteUnavailableError(f"the connection to {self.server.target} is closed") from None
