"""`POST /explain`: reads what is to be explained, and answers with what would be decided about it.

Either the body of a request itself, with `?path=`, or an envelope with path, headers and body. Nothing of it is kept.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass, field
from typing import Annotated, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from router.admin.answers import answer
from router.admin.bodies import media_type, read_body
from router.admin.insight import Insight

ENVELOPE: Final = "application/vnd.pointsman.explain+json"
DEFAULT_PATH: Final = "/v1/chat/completions"
BODY_SECONDS: Final = 20.0
MAX_HEADERS: Final = 64

AT_ONCE: Final = 4
"""Requests whose bodies are in hand at a time; workers explain fewer."""

BASE64_SHARE: Final = 4 / 3
ENVELOPE_BYTES: Final = 1 << 20
"""Room in an envelope beside the body."""

STATUSES: Final = {"busy": 503, "not_ready": 503, "nobody_answers": 503, "failed": 503, "deadline": 504}
"""What is wrong with the workers and not with the request."""


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    path: Annotated[str, msgspec.Meta(min_length=1, max_length=2048)] = DEFAULT_PATH
    headers: Annotated[dict[str, str], msgspec.Meta(max_length=MAX_HEADERS)] = {}
    body: msgspec.Raw = msgspec.Raw()
    body_base64: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A request to be explained; header names are in lower case."""

    path: str = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class Playing:
    """The endpoint, for bodies of at most `body_bytes`."""

    def __init__(self, insight: Insight, body_bytes: int) -> None:
        self._insight = insight
        self._body_bytes = body_bytes
        self._running = 0

    async def explain(self, request: Request) -> JSONResponse:
        """200 with the record's document; 422 with the error that the client would get, 503 and 504 without time."""
        if self._running >= AT_ONCE:
            raise HTTPException(503, "too much is being explained; try again", {"retry-after": "1"})
        self._running += 1
        try:
            question = await self._read(request)
            told = await self._insight.explain(question.path, question.headers, question.body)
        finally:
            self._running -= 1
        status = STATUSES.get(told["error"]["code"], 422) if "error" in told else 200
        return answer(status, told, {"retry-after": "1"} if status == 503 else None)

    async def _read(self, request: Request) -> Question:
        kind = media_type(request)
        if kind == ENVELOPE:
            most = int(self._body_bytes * BASE64_SHARE) + ENVELOPE_BYTES
            return self._opened(await read_body(request, most, BODY_SECONDS))
        if kind != "application/json":
            message = f"the content type must be application/json, or {ENVELOPE} for path, headers and body together"
            raise HTTPException(415, message)
        path = request.query_params.get("path", DEFAULT_PATH)
        headers = {"content-type": "application/json"}
        if "content-encoding" in request.headers:
            headers["content-encoding"] = request.headers["content-encoding"]
        return Question(path, headers, await read_body(request, self._body_bytes, BODY_SECONDS))

    def _opened(self, data: bytes) -> Question:
        try:
            envelope = msgspec.json.decode(data, type=_Envelope)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            message = "the envelope must be JSON with path, headers (names with texts), and body or body_base64"
            raise HTTPException(422, message) from None
        written = bytes(envelope.body)
        if bool(written) == (envelope.body_base64 is not None):
            raise HTTPException(422, "the envelope needs one of body (JSON) and body_base64")
        headers = {name.lower(): value for name, value in envelope.headers.items()}
        if envelope.body_base64 is None:
            body = written
        else:
            try:
                body = b64decode(envelope.body_base64, validate=True)
            except (binascii.Error, ValueError):
                raise HTTPException(422, "body_base64 is no base64") from None
        if len(body) > self._body_bytes:
            raise HTTPException(413, f"more than {self._body_bytes} bytes")
        return Question(envelope.path, headers, body)
