"""What a client embedded or referred to: data URIs (RFC 2397), bare base64, http(s) URLs.

Answers with the bytes or with the reason why there are none; a broken reference is no request error, since it is the
policy that decides what an unreadable part means. Nothing is fetched.
"""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass, field
from urllib.parse import unquote, unquote_to_bytes

import pybase64

from router.request.long_base64 import known_base64
from router.request.view import SourceStatus


@dataclass(frozen=True, slots=True)
class Source:
    """Bytes with their media type (lower case, without parameters), or why there are none."""

    status: SourceStatus
    data: bytes = field(default=b"", repr=False)
    media_type: str = ""
    reason: str = ""


_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):")
_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf"{_NAME}/{_NAME}\Z")
# RFC 2397 has parameters as in MIME, a token or a quoted string after the equals sign, percent-escaped where needed.
_PARAMETER = re.compile(rf'{_NAME}=(?:{_NAME}|"[^"]*"|)\Z')
# Between scheme and comma; a media type with some parameters takes a hundred characters.
_MAX_HEAD = 4_096
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_WHITE_SPACE = {ord(c): None for c in " \t\r\n\f\v"}
# A URL parser drops these wherever they stand (WHATWG URL, basic URL parser); blanks are data.
_DROPPED_BY_URL_PARSERS = {ord(c): None for c in "\t\r\n"}
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}\Z")
_TO_STANDARD_ALPHABET = str.maketrans("-_", "+/")


def read_url(url: str) -> Source:
    """The content behind a URL, where that is possible without fetching.

    `inline` for a legal data URI, `not_fetched` for http and https, `malformed` for all else.
    """
    scheme = _SCHEME.match(url)
    if scheme is None:
        return _malformed("empty URL" if not url.strip() else "not an absolute URL")
    match scheme[1].lower():
        case "data":
            return _read_data_uri(url, scheme.end())
        case "http" | "https":
            return Source("not_fetched")
        case _:
            return _malformed("URL scheme is not supported")


def read_base64_or_data_uri(text: str) -> Source:
    """The content of a field that takes base64 and, by custom, data URIs too. No media type for bare base64."""
    if ":" in text[:64]:
        return read_url(text)
    data = known_base64(text, 0)
    if data is None:
        data = _decode_base64(text)
    return _malformed("invalid base64") if data is None else Source("inline", data)


def _read_data_uri(uri: str, start: int) -> Source:
    comma = uri.find(",", start)
    if comma < 0:
        return _malformed("data URI without a comma")
    if comma - start > _MAX_HEAD:
        return _malformed("data URI with too many parameters")
    head = [part.strip() for part in uri[start:comma].split(";")]
    is_base64 = len(head) > 1 and head[-1].lower() == "base64"
    if is_base64:
        head.pop()
    if any(_BROKEN_ESCAPE.search(part) for part in head):
        return _malformed("data URI with a broken percent escape")
    media_type, parameters = unquote(head[0]), head[1:]
    if media_type and not _MEDIA_TYPE.match(media_type):
        return _malformed("data URI with a malformed media type")
    if not all(map(_PARAMETER.match, parameters)):
        return _malformed("data URI with a malformed parameter")
    if is_base64:
        data = known_base64(uri, comma + 1)
        if data is None:
            data = _decode_base64(uri[comma + 1 :])
        reason = "data URI with invalid base64"
    else:
        data = _decode_percent(uri[comma + 1 :])
        reason = "data URI with an illegal character or a broken percent escape"
    media_type = media_type.lower() or "text/plain"
    if data is None:
        return Source("malformed", media_type=media_type, reason=reason)
    return Source("inline", data, media_type)


def _decode_base64(text: str) -> bytes | None:
    try:
        return pybase64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return _decode_unusual_base64(text)


def _decode_unusual_base64(text: str) -> bytes | None:
    """Percent escapes, white space, missing padding, the URL-safe alphabet; not a mix of the two alphabets.

    A mix is refused because lenient decoders drop what is not of their alphabet, and would see other bytes than we.
    """
    if not text.isascii() or _BROKEN_ESCAPE.search(text):
        return None
    if "%" in text:
        # Latin-1 keeps each byte a character, so that what is no base64 is still seen as such below.
        text = unquote_to_bytes(text).decode("latin-1")
    text = text.translate(_WHITE_SPACE)
    if not _BASE64.match(text):
        return None
    digits = text.rstrip("=")
    padding = len(text) - len(digits)
    if len(digits) % 4 == 1 or (padding and len(text) % 4):
        return None
    padded = digits.translate(_TO_STANDARD_ALPHABET) + "=" * (-len(digits) % 4)
    return pybase64.b64decode(padded, validate=True)


def _decode_percent(text: str) -> bytes | None:
    text = text.translate(_DROPPED_BY_URL_PARSERS)
    if not text.isascii() or not text.isprintable() or "#" in text or _BROKEN_ESCAPE.search(text):
        return None
    return unquote_to_bytes(text)


def _malformed(reason: str) -> Source:
    return Source("malformed", reason=reason)
