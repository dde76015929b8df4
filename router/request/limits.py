"""Bounds on what one request may bring: bytes as sent and decoded, images, parts. Which of them holds where is told by
the code that asks; what a policy says about them is read elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from router.request.errors import RequestError
from router.request.view import RequestView

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """`body_bytes` as sent, `decoded_bytes` without content codings, `decoded_ratio` of the second to the first.

    `images` and `parts` are numbers; the latter counts messages, what they consist of, and tools.
    """

    body_bytes: int = 32 * MIB
    decoded_bytes: int = 32 * MIB
    decoded_ratio: int = 200
    images: int = 500
    parts: int = 20_000


def check_size(body: bytes, limits: RequestLimits) -> None:
    """Raises RequestError (413) for a body that is larger than `body_bytes`."""
    if len(body) > limits.body_bytes:
        raise RequestError(413, "request_too_large", "The request body is larger than this gateway takes.")


def check_counts(view: RequestView, limits: RequestLimits) -> None:
    """Raises RequestError (400) for a request of too many parts or images; names the first that is too many."""
    if _count(view) > limits.parts:
        _name_the_first(view, limits)
    if len(view.images) > limits.images:
        raise _too_many("images", limits.images, view.images[limits.images].pointer)


def _count(view: RequestView) -> int:
    return len(view.tools) + len(view.turns) + len(view.extras) + sum(1 for _ in view.parts())


def _name_the_first(view: RequestView, limits: RequestLimits) -> None:
    count = len(view.tools)
    for turn in (*view.turns, *view.extras):
        count += 1
        if count > limits.parts:
            raise _too_many("parts", limits.parts, turn.pointer)
    for _, part in view.parts():
        count += 1
        if count > limits.parts:
            raise _too_many("parts", limits.parts, part.pointer)


def _too_many(what: str, most: int, pointer: str) -> RequestError:
    return RequestError(400, f"too_many_{what}", f"A request may have {most} {what} at most.", pointer)
