"""What must hold for any bytes: one function a target, which takes the bytes and raises AssertionError when it doesn't.

Whatever else escapes one of them is a finding too. Nothing here makes up bytes: see `changes.py` and `__main__.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from router.extproc.reading import ResponseFacts, ResponseReader
from router.extproc.sse import EventSplitter
from router.request.apis import detect, parse, unreadable
from router.request.content_coding import FREE_BYTES, UnknownCoding, decode, encode, read_codings
from router.request.data_uri import read_url
from router.request.edit import set_model
from router.request.errors import ImageError, RequestError
from router.request.images import ImageLimits
from router.request.images import decode as decode_image
from router.request.limits import RequestLimits, check_counts
from router.request.paths import normal_forms
from router.request.view import Api, RequestView
from tests.fuzz.answers import check_answer, check_answer_order
from tests.fuzz.connections import check_connection
from tests.fuzz.exchanges import check_exchange

Check = Callable[[bytes], None]

IMAGE_LIMITS: Final = ImageLimits(bytes=1 << 20, pixels=1 << 18, frames=3)
REQUEST_LIMITS: Final = RequestLimits(decoded_bytes=2 << 20, decoded_ratio=20)
EVENT_LIMIT: Final = 64
MODEL: Final = 'other/"model"\n\u00e9'


def check_body(api: Api) -> Check:
    """A body is read or refused; what was read points into it, and its model alone can be replaced."""

    def check(data: bytes) -> None:
        try:
            view = parse(api, data)
            check_counts(view, REQUEST_LIMITS)
        except RequestError as error:
            assert 400 <= error.status < 500, error.status
            assert error.pointer == "" or error.pointer.startswith("/"), error.pointer
            return
        document = json.loads(data)
        _check_pointers(view, document)
        _check_edit(api, view, data, document)

    return check


def _check_pointers(view: RequestView, document: Any) -> None:
    for pointer in _pointers(view):
        _resolve(document, pointer)
    assert all(span.text for span in view.texts)
    assert view.body_bytes > 0


def _pointers(view: RequestView) -> Iterator[str]:
    for turn, part in view.parts():
        yield turn.pointer
        yield part.pointer
    for span in (*view.texts, *view.latest_user_texts):
        yield span.pointer
    for tool in view.tools:
        yield tool.pointer


def _resolve(document: Any, pointer: str) -> Any:
    value = document
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        assert isinstance(value, dict | list), pointer
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def _check_edit(api: Api, view: RequestView, data: bytes, document: dict[str, Any]) -> None:
    edited = set_model(data, view, MODEL)
    if view.model_span is None:
        assert "model" not in document
        assert len(edited) > len(data)
    else:
        start, end = view.model_span.start, view.model_span.end
        assert json.loads(data[start:end]) == document["model"]
        assert edited.startswith(data[:start])
        assert edited.endswith(data[end:])
    assert json.loads(edited) == {**document, "model": MODEL}
    again = parse(api, edited)
    assert again.requested_model == MODEL
    assert (again.turns, again.tools, again.extras) == (view.turns, view.tools, view.extras)


def check_image(data: bytes) -> None:
    """An image is decoded within its limits, or there is a reason why not; a decoder's target changes neither."""
    for target in (None, (8, 8)):
        try:
            image = decode_image(data, IMAGE_LIMITS, target)
        except ImageError as error:
            assert 0 < len(error.reason) < 40
            continue
        assert image.mode == "RGB"
        assert 1 <= image.width * image.height <= IMAGE_LIMITS.pixels
        assert len(image.tobytes()) == image.width * image.height * 3


_CODINGS: Final = ("gzip", "deflate", "br", "zstd", "x-gzip", "identity", "gzip, br", "zstd,deflate")


def check_coding(data: bytes) -> None:
    """The first byte chooses the codings. What is decoded is within bounds, and comes back from being encoded again."""
    codings = read_codings(_CODINGS[data[0] % len(_CODINGS)]) if data else ()
    body = data[1:]
    try:
        plain = decode(body, codings, REQUEST_LIMITS)
    except RequestError as error:
        assert error.status in (400, 413)
    else:
        bound = max(FREE_BYTES, REQUEST_LIMITS.decoded_ratio * len(body))
        assert not codings or len(plain) <= min(REQUEST_LIMITS.decoded_bytes, bound)
    assert decode(encode(body, codings), codings, RequestLimits()) == body


def check_coding_header(data: bytes) -> None:
    """Any header names codings that are known, or is refused."""
    try:
        codings = read_codings(data.decode("latin-1"))
    except UnknownCoding:
        return
    except RequestError as error:
        assert error.status == 415
        return
    assert len(codings) <= 4
    assert decode(encode(b"{}", codings), codings, REQUEST_LIMITS) == b"{}"


def check_events(data: bytes) -> None:
    """Events are the same however the stream is cut up; none is larger than is held."""
    whole = list(EventSplitter(EVENT_LIMIT).feed(data))
    for step in (1, 3, 7):
        splitter = EventSplitter(EVENT_LIMIT)
        pieces = (data[start : start + step] for start in range(0, len(data), step))
        assert [event for piece in pieces for event in splitter.feed(piece)] == whole
    assert all(0 < len(event) <= EVENT_LIMIT for event in whole)


_KINDS: Final = ("application/json", "text/event-stream", "text/event-stream; charset=utf-8", "text/html", "")
_ENCODINGS: Final = ("", "gzip", "deflate", "br", "identity", "x-gzip")
_STATUSES: Final = ("200", "429", "", "99999", "\u00b2\u00b2\u00b2")


def check_response(data: bytes) -> None:
    """Three bytes choose the headers and how the body is cut up; whatever the body is, its facts are told, and the same
    however it was cut."""
    first, second, third = (*data[:3], 0, 0, 0)[:3]
    body = data[3:]
    facts = [_facts(body, first, second, step) for step in (1 + third, 1 + third // 5, max(len(body), 1))]
    # A coding that breaks is noticed with the piece that it breaks in, and what went before is lost with that.
    assert facts[0].unread == "encoding" or facts[1:] == facts[:-1], facts


def _facts(body: bytes, first: int, second: int, step: int) -> ResponseFacts:
    reader = ResponseReader({"x-pointsman-model": "m"}, 1.0)
    reader.headers(
        {
            ":status": _STATUSES[first % len(_STATUSES)],
            "content-type": _KINDS[second % len(_KINDS)],
            "content-encoding": _ENCODINGS[first // 16 % len(_ENCODINGS)],
        }
    )
    for start in range(0, len(body), step):
        reader.body(body[start : start + step], 2.0)
    assert reader.facts().unread == "broken_off"
    reader.end(3.0)
    facts = reader.facts()
    assert (facts.model, facts.whole) == ("m", 2.0)
    assert facts.first in (None, 1.0)
    assert 0 <= facts.status <= 999
    counts = (facts.usage.tokens_in, facts.usage.tokens_out, facts.usage.cached)
    assert all(count is None or 0 <= count <= 3 * 10**9 for count in counts)
    assert facts.tokens_per_second is None or facts.tokens_per_second >= 0
    return facts


def check_url(data: bytes) -> None:
    """A URL of an image has a status, and bytes only where it is inline."""
    source = read_url(data.decode("utf-8", "surrogateescape"))
    assert source.status in ("inline", "not_fetched", "malformed")
    assert source.status == "inline" or not source.data
    assert (source.status == "malformed") == bool(source.reason)


def check_path(data: bytes) -> None:
    """A path is of an API that is read, of one that is not, or of none; never of two of these."""
    path = data.decode("latin-1")
    assert normal_forms(path)
    for method in ("POST", "GET", "BREW"):
        assert detect(method, path) is None or not unreadable(method, path)


CHECKS: Final[dict[str, Check]] = {
    "chat": check_body("openai.chat"),
    "responses": check_body("openai.responses"),
    "completions": check_body("openai.completions"),
    "embeddings": check_body("openai.embeddings"),
    "messages": check_body("anthropic.messages"),
    "count_tokens": check_body("anthropic.count_tokens"),
    "image": check_image,
    "coding": check_coding,
    "coding_header": check_coding_header,
    "events": check_events,
    "response": check_response,
    "answer": check_answer,
    "answer_order": check_answer_order,
    "url": check_url,
    "path": check_path,
    "exchange": check_exchange,
    "connection": check_connection,
}
"""By the name that the command takes."""
