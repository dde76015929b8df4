"""Reads what the playground's form sends: a path, headers and a body, bounded, and few at a time.

Nothing of it is kept, and nothing of it is in what is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from router.admin.bodies import media_type, read_body

MAX_BYTES: Final = 32 * 1024 * 1024
"""Of the form as JSON; the policy has its own, lower limit for bodies."""

BODY_SECONDS: Final = 20.0
MAX_HEADERS: Final = 64

AT_ONCE: Final = 3
"""Forms that may be in hand at a time."""


class _Form(msgspec.Struct, forbid_unknown_fields=True):
    path: Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
    headers: Annotated[dict[str, str], msgspec.Meta(max_length=MAX_HEADERS)]
    body: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to be explained; header names are in lower case."""

    path: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)


async def asked(request: Request) -> Asked:
    """What the form holds. Raises HTTPException."""
    if media_type(request) != "application/json":
        raise HTTPException(415, "the content type must be application/json")
    data = await read_body(request, MAX_BYTES, BODY_SECONDS)
    try:
        form = msgspec.json.decode(data, type=_Form)
        headers = {"content-type": "application/json"}
        headers.update({name.lower(): value for name, value in form.headers.items()})
        return Asked(form.path, headers, form.body.encode())
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise HTTPException(422, "the form must be {path, headers, body}, headers and body of text") from None
