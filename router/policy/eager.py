"""Begins coroutines at once, for those that mostly end without having waited: only one that waits needs a deadline.

A timer and its cancelling cost more than many a heuristic signal. What is begun runs in the task that began it, as if
it had been awaited.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """It has ended, with this result."""

    value: T


class Waits(Generic[T]):
    """It waits for something: await it, before anything else is awaited."""

    __slots__ = ("_awaited", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, T], awaited: object) -> None:
        self._coroutine = coroutine
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine, awaited = self._coroutine, self._awaited
        try:
            while True:
                try:
                    sent = yield awaited
                except GeneratorExit:
                    coroutine.close()
                    raise
                except BaseException as error:
                    awaited = coroutine.throw(error)
                else:
                    awaited = coroutine.send(sent)
        except StopIteration as end:
            result: T = end.value
            return result


def begin(coroutine: Coroutine[Any, Any, T]) -> Done[T] | Waits[T]:
    """Run it until it waits for the first time, or ends; raises what it raises until then. Needs a running task."""
    try:
        return Waits(coroutine, coroutine.send(None))
    except StopIteration as end:
        return Done(end.value)
