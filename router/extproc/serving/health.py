"""gRPC's health service (grpc/health/v1): what probes and Envoy ask before they send a worker anything."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from router.extproc.serving.call import Call, CallError, Status
from router.extproc.serving.connection import Handler

_SERVICE: Final = "grpc.health.v1.Health"


class Health:
    """Whether services of these names take requests; at first none does. Belongs to one event loop."""

    def __init__(self, services: tuple[str, ...]) -> None:
        self._states = dict.fromkeys(services, health_pb2.HealthCheckResponse.NOT_SERVING)
        self._changed = asyncio.Event()
        self._final = False

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """By path."""
        return {f"/{_SERVICE}/Check": self._check, f"/{_SERVICE}/Watch": self._watch}

    def set(self, serving: bool) -> None:
        """What is said from now on, of every service; once shut down it stays NOT_SERVING."""
        state = health_pb2.HealthCheckResponse
        if not self._final:
            self._states = dict.fromkeys(self._states, state.SERVING if serving else state.NOT_SERVING)
            self._changed.set()
            self._changed = asyncio.Event()

    def shut_down(self) -> None:
        """NOT_SERVING for good."""
        self.set(False)
        self._final = True

    async def _check(self, call: Call) -> None:
        service = await _asked(call)
        if service not in self._states:
            raise CallError(Status.NOT_FOUND, "There is no such service here.")
        await call.send(_answer(self._states[service]))

    async def _watch(self, call: Call) -> None:
        service = await _asked(call)
        told = None
        while True:
            changed = self._changed
            state = self._states.get(service, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
            if state != told:
                told = state
                await call.send(_answer(state))
            if self._final:
                # Or whoever watches would hold up the end.
                raise CallError(Status.UNAVAILABLE, "Nothing is served here any more.")
            await changed.wait()


async def _asked(call: Call) -> str:
    try:
        service: str = health_pb2.HealthCheckRequest.FromString(await anext(call)).service
    except (StopAsyncIteration, DecodeError):
        raise CallError(Status.INVALID_ARGUMENT, "Send one HealthCheckRequest.") from None
    return service


def _answer(state: int) -> bytes:
    data: bytes = health_pb2.HealthCheckResponse(status=state).SerializeToString()
    return data
