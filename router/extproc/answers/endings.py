"""How a stream ends that is refused on its way: as its API ends an answer that a filter stopped, or one that failed.

It goes by what the client has been given so far. Knows no bytes of the answer but the identifiers and numbers that an
ending has to repeat.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from router.extproc.answers.checks import Refusal
from router.request import dialect
from router.request.events import DONE, stream_reply
from router.request.view import Api

_LARGEST: Final = 2**53
"""Of numbers, as JSON's are read by everybody; larger ones could not be repeated."""

_NO_USAGE: Final = {"output_tokens": 0}


@dataclass(frozen=True, slots=True)
class Mark:
    """What one event says of the stream as such."""

    kind: str = ""
    index: int = 0
    identifier: str = ""
    model: str = ""
    created: int = 0
    number: int = -1
    begun: tuple[int, ...] = ()
    finished: tuple[int, ...] = ()


NO_MARK: Final = Mark()


def mark_of(event: object) -> Mark:
    """The mark of an event's data."""
    if not isinstance(event, dict):
        return NO_MARK
    whole = event
    for name in ("response", "message"):
        if isinstance(event.get(name), dict):
            whole = event[name]
    choices = [one for one in _list(event.get("choices")) if isinstance(one, dict)]
    return Mark(
        kind=_text(event.get("type")),
        index=_number(event.get("index"), 0),
        identifier=_text(whole.get("id")),
        model=_text(whole.get("model")),
        created=_number(whole.get("created", whole.get("created_at")), 0),
        number=_number(event.get("sequence_number"), -1),
        begun=tuple(_number(one.get("index"), 0) for one in choices),
        finished=tuple(_number(one.get("index"), 0) for one in choices if one.get("finish_reason")),
    )


class Progress:
    """What of a stream a client has been given."""

    def __init__(self) -> None:
        self._identifier = ""
        self._model = ""
        self._created = 0
        self._number = -1
        self._began = False
        self._open: dict[int, None] = {}
        self._finished: set[int] = set()

    def note(self, mark: Mark) -> None:
        """An event with this mark has been given."""
        self._began = self._began or mark.kind == "message_start"
        self._identifier = self._identifier or mark.identifier
        self._model = self._model or mark.model
        self._created = self._created or mark.created
        self._number = max(self._number, mark.number)
        if mark.kind == "content_block_start":
            self._open[mark.index] = None
        elif mark.kind == "content_block_stop":
            self._open.pop(mark.index, None)
        self._open.update(dict.fromkeys(index for index in mark.begun if index not in self._finished))
        for index in mark.finished:
            self._finished.add(index)
            self._open.pop(index, None)

    def ending(self, api: Api, refusal: Refusal) -> bytes:
        """The events that end the stream."""
        if api == "openai.responses":
            return self._end_of_response(refusal)
        if api.startswith("anthropic."):
            return self._end_of_message(refusal)
        if refusal.status >= 500:
            return stream_reply([_error(api, refusal)], named=False, end=DONE).body
        return self._end_of_choices(api, refusal)

    def _end_of_choices(self, api: Api, refusal: Refusal) -> bytes:
        chat = api == "openai.chat"
        kind = "chat.completion.chunk" if chat else "text_completion"
        said: dict[str, Any] = {"delta": {"refusal": refusal.message}} if chat else {"text": "", "logprobs": None}
        common = {"id": self._identifier, "object": kind, "created": self._created or int(time.time())}
        chunks = [
            {
                **common,
                "model": self._model,
                "choices": [{"index": index, **said, "finish_reason": "content_filter"}],
            }
            for index in self._open or (() if self._finished else (0,))
        ]
        return stream_reply(chunks, named=False, end=DONE).body

    def _end_of_message(self, refusal: Refusal) -> bytes:
        if not self._began or refusal.status >= 500:
            return stream_reply([_error("anthropic.messages", refusal)], named=True).body
        stopped = {
            "stop_reason": "refusal",
            "stop_sequence": None,
            "stop_details": {"type": "refusal", "category": None, "explanation": refusal.message},
        }
        events: list[dict[str, Any]] = [
            *({"type": "content_block_stop", "index": index} for index in self._open),
            {"type": "message_delta", "delta": stopped, "usage": _NO_USAGE},
            {"type": "message_stop"},
        ]
        return stream_reply(events, named=True).body

    def _end_of_response(self, refusal: Refusal) -> bytes:
        failed = refusal.status >= 500
        status = "failed" if failed else "incomplete"
        response = {
            "id": self._identifier,
            "object": "response",
            "created_at": self._created or int(time.time()),
            "status": status,
            "error": {"code": refusal.code, "message": refusal.message},
            "incomplete_details": None if failed else {"reason": "content_filter"},
            "model": self._model,
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        event = {"type": f"response.{status}", "sequence_number": self._number + 1, "response": response}
        return stream_reply([event], named=True).body


def _error(api: Api, refusal: Refusal) -> dict[str, Any]:
    body = dialect.error_reply(api, refusal.status, refusal.code, refusal.message).body
    document: dict[str, Any] = msgspec.json.decode(body)
    return document


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    # Lone surrogates come as JSON, and cannot be sent as such.
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


def _number(value: object, otherwise: int) -> int:
    return value if type(value) is int and abs(value) < _LARGEST else otherwise
