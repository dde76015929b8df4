"""From the bytes of an answer to decoded JSON, the way that clients read it; and from pieces to what signals read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from router.extproc.answers.events import read_event
from router.extproc.answers.gathered import GatheredCall
from router.extproc.answers.pieces import Called, Ended, Key, Piece, Said, WholeText
from router.extproc.answers.wholes import read_answer
from router.extproc.sse import RawEventSplitter
from router.request.calls import read_arguments, read_name
from router.request.view import Api, Part, RequestView, TextPart, Turn

DONE = b"[DONE]"
"""Data that is no JSON and ends OpenAI's older streams."""

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_PLAIN: Final = re.compile(rb"(?:data:.*|event: ?[a-z0-9_.]{1,64}|(?:id|retry): ?[0-9]{0,10}|:?)\Z", re.DOTALL)
"""Lines of an event that say nothing beside its data."""

_MARK: Final = b"\xef\xbb\xbf"

_ESCAPES: Final = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[^u]")
_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_INTEGER_DIGITS: Final = 18
"""Of numbers that are read as integers; of longer ones Python reads only so many, and nobody needs to know."""


class NoJson(Exception):
    """Text that is no JSON."""


def decoded(text: bytes) -> Any:
    """The JSON value; raises NoJson.

    More is taken than by us elsewhere, because clients take it: lone surrogates, bytes that are no UTF-8, control
    characters, numbers of any length.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        try:
            return _LENIENT.decode(_characters(text))
        except ValueError:
            raise NoJson from None


def pieces_of_answer(body: bytes) -> list[Piece]:
    """The pieces of a whole answer; of one that is no JSON all of it as text, and what it says as a stream of events.

    Clients that asked for a stream read one, whatever kind the answer says it is.
    """
    try:
        return list(read_answer(decoded(body)))
    except NoJson:
        return [*pieces_of_no_json(body, read_answer), *_pieces_as_stream(body)] if body else []


def pieces_of_no_json(text: bytes, read: Callable[[object], Iterator[Piece]]) -> Iterator[Piece]:
    """What is said by what is no JSON: all of it as text, and what clients may still make of it.

    Some read the first JSON value and ask for no more, as they do the first member of what is compressed; and what
    breaks off is shown as it is, where JSON's escapes would hide words from signals.
    """
    given = _characters(text)
    shown = text.decode(errors="replace")
    for form in dict.fromkeys((shown, given, _ESCAPES.sub(_unescaped, shown), _ESCAPES.sub(_unescaped, given))):
        yield WholeText("", form)
    try:
        first, _ = _LENIENT.raw_decode(given.lstrip())
    except ValueError:
        return
    if isinstance(first, dict | list):
        yield from read(first)


def _characters(text: bytes) -> str:
    return text.decode(json.detect_encoding(text), errors="replace")


def _unescaped(found: re.Match[str]) -> str:
    escape = found[0]
    if escape[1] != "u":
        return _SHORT.get(escape[1], escape[1])
    units = bytes.fromhex(escape.replace("\\u", ""))
    return units.decode("utf-16-be", errors="replace")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _INTEGER_DIGITS else float(digits)


_LENIENT: Final = json.JSONDecoder(strict=False, parse_int=_integer)


def pieces_beside(raw: bytes) -> list[Piece]:
    """What an event says beside its data: a body that is no stream of events at all, comments, names, identifiers."""
    lines = [line for line in _LINE_END.split(raw.removeprefix(_MARK)) if not _PLAIN.match(line)]
    return _pieces_of_lines(lines) if lines else []


def _pieces_of_lines(lines: list[bytes]) -> list[Piece]:
    """The pieces of lines that may be JSON together."""
    text = b"\n".join(lines)
    try:
        return list(read_answer(decoded(text)))
    except (NoJson, RecursionError):
        return [WholeText("", text.decode(errors="replace"))]


def _pieces_as_stream(body: bytes) -> Iterator[Piece]:
    """Texts and calls that are put together of events, or of lines of JSON; nothing where there are none."""
    texts: dict[Key, tuple[str, list[str]]] = {}
    calls: dict[Key, GatheredCall] = {}
    splitter = RawEventSplitter(len(body) + 2)
    # With an empty line nothing is left behind the last event.
    for event in splitter.feed(body + b"\n\n"):
        for data in (event.data,) if event.data else _LINE_END.split(event.raw):
            for piece in _pieces_of_event(data):
                match piece:
                    case Said(key, pointer, more):
                        texts.setdefault(key, (pointer, []))[1].append(more)
                    case Called(key, pointer):
                        calls.setdefault(key, GatheredCall(pointer)).add(piece)
                    case Ended():
                        pass
                    case _:
                        yield piece
    for pointer, parts in texts.values():
        yield WholeText(pointer, "".join(parts))
    for call in calls.values():
        yield call.whole()


def _pieces_of_event(data: bytes) -> list[Piece]:
    if not data.lstrip().startswith((b"{", b"[")):
        return []
    try:
        return list(read_event(decoded(data)))
    except NoJson:
        return []


def parts_of(piece: Piece) -> Iterator[Part]:
    """What signals read of a text or call."""
    match piece:
        case Said() | WholeText():
            yield TextPart(piece.pointer, piece.text)
        case Ended():
            pass
        case Called() | _:
            yield from read_name(piece.name, piece.pointer)
            yield from read_arguments(piece.arguments, piece.pointer, piece.call_id, piece.name)


def view_of(api: Api, parts: Iterable[Part], stream: bool, size: int) -> RequestView:
    """What the assistant said, as the last turn of a conversation that nobody shows here."""
    turn = Turn("", "assistant", tuple(parts))
    return RequestView(
        api=api,
        requested_model=None,
        turns=(turn,),
        tools=(),
        stream=stream,
        body_bytes=size,
        model_span=None,
    )
