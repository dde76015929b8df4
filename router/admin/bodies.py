"""Reads the body of a request to the admin address: so many bytes and so long, never more."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request


async def read_body(request: Request, most: int, seconds: float) -> bytes:
    """The whole body; raises HTTPException for one that is larger, takes longer, or ends early."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise HTTPException(413, f"more than {most} bytes")
    except TimeoutError:
        raise HTTPException(408, "the body took too long") from None
    except ClientDisconnect:
        raise HTTPException(400, "the body ended early") from None
    return bytes(body)


def media_type(request: Request) -> str:
    """The content type in lower case, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
