"""Answers a request without an upstream: a refusal, or a question back in the assistant's place."""

from __future__ import annotations

from dataclasses import replace

from router.actions import headers
from router.request import dialect
from router.request.reply import Reply
from router.request.view import Api, RequestView


def refuse(api: Api | None, status: int, code: str, message: str, decision: str | None, record: str) -> Reply:
    """An error in the client's dialect. `api` is None where it is not known, `decision` where none led to it."""
    return _signed(dialect.error_reply(api, status, code, message), decision, record)


def clarify(view: RequestView, model: str, text: str, decision: str, record: str, created: int) -> Reply:
    """`text` as an answer of the assistant, streamed if the client asked for a stream.

    `model` is the name that the answer bears, `record` also names the completion, `created` is in seconds since 1970.
    """
    return _signed(
        dialect.assistant_reply(view, model, text, dialect.reply_id(view.api, record), created), decision, record
    )


def _signed(reply: Reply, decision: str | None, record: str) -> Reply:
    signature = ((headers.DECISION, decision or headers.NO_DECISION), (headers.RECORD, record))
    return replace(reply, headers=(*reply.headers, *signature))
