"""The canary over the packs of the house that serves, which may be another one after a reload."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from router.extproc.house import House
from router.extproc.machinery import SetupError
from router.extproc.readiness import Door, Readiness
from router.inference.canary import Canary
from router.inference.gate import GoldenError, Miss


def canary_of(house: House) -> Canary | None:
    """The canary over the packs of this house, None where its policy wants none; raises SetupError."""
    if not house.loaded.parity.interval:
        return None
    try:
        machinery = house.machinery
        return Canary(machinery.encoders, machinery.executor, house.loaded.parity.interval, machinery.ledger)
    except GoldenError as error:
        raise SetupError([str(error)]) from error


class Watch:
    """The canary at work over the house that serves; a miss shuts the door."""

    def __init__(self, readiness: Readiness, door: Door, house: House, canary: Canary | None, notice: float) -> None:
        """`notice` is how many seconds a miss is told before the door is shut."""
        self._notice = notice
        self._readiness = readiness
        self._door = door
        self._house = house
        self._task = asyncio.create_task(self._watch(canary)) if canary else None

    def follow(self, house: House) -> None:
        """Watch over this house instead; one with the same packs and the same interval is watched already."""
        before, self._house = self._house, house
        if (before.machinery, before.loaded.parity) == (house.machinery, house.loaded.parity):
            return
        self.end()
        try:
            canary = canary_of(house)
        except SetupError as error:
            self._task = asyncio.create_task(self._shut(error.reasons, ()))
        else:
            self._task = asyncio.create_task(self._watch(canary)) if canary else None

    def end(self) -> None:
        """Watch no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _watch(self, canary: Canary) -> None:
        misses = await canary.watch()
        await self._shut([f"the canary found that a pack has drifted while serving: {miss}" for miss in misses], misses)

    async def _shut(self, reasons: Sequence[str], misses: Sequence[Miss]) -> None:
        """Tell of it first: Envoy gets the time to send its requests to workers that can judge them."""
        await self._readiness.refused(reasons, misses)
        await asyncio.sleep(self._notice)
        self._door.shut()
