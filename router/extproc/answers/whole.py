"""Judges an answer that is there whole: undo its codings, read it, ask the checks."""

from __future__ import annotations

import asyncio
from typing import Final

from router.extproc.answers.checks import AnswerChecks, Refusal
from router.extproc.answers.documents import parts_of, pieces_of_answer, view_of
from router.request.content_coding import decode, read_codings
from router.request.errors import RequestError
from router.request.limits import RequestLimits
from router.request.view import Api, RequestView

INLINE_BYTES: Final = 32 * 1024
"""An answer up to this size, without codings, is read on the event loop; any other in a thread."""


async def judge_whole(checks: AnswerChecks, api: Api, body: bytes, encoding: str) -> Refusal | None:
    """The refusal of a check, or of what cannot be read; None for an answer that may go on."""
    try:
        async with asyncio.timeout(checks.deadline):
            if encoding or len(body) > INLINE_BYTES:
                view = await asyncio.to_thread(_read, api, body, encoding, checks.handling.bytes)
            else:
                view = _read(api, body, encoding, checks.handling.bytes)
            return await checks.judge(view)
    except RequestError:
        return checks.unreadable("encoding")
    except RecursionError:
        return checks.unreadable("not_json")
    except TimeoutError:
        return checks.unreadable("deadline")


def _read(api: Api, body: bytes, encoding: str, limit: int) -> RequestView:
    plain = decode(body, read_codings(encoding), RequestLimits(body_bytes=limit, decoded_bytes=limit))
    parts = (part for piece in pieces_of_answer(plain) for part in parts_of(piece))
    return view_of(api, parts, stream=False, size=len(plain))
