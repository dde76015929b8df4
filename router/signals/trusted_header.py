"""The value of a request header that the policy trusts, as text; for the families that read headers.

Only what `RequestView.headers` holds can be read, and that holds only what the policy lists as trusted. A value is
content: it never leaves a signal. Evidence names the header by `pointer_to`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

from router.request.view import RequestView

HeaderName = Annotated[
    str,
    # A token of RFC 9110, section 5.6.2; pseudo-headers are none.
    StringConstraints(strip_whitespace=True, to_lower=True, pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", max_length=256),
]
"""A header's name, in any case; kept in lower case."""


def value_of(view: RequestView, name: str) -> str | None:
    """The header's value without blanks around it, empty where there is nothing else; None when it is absent.

    Bytes that are UTF-8 are read as such; any others as Latin-1.
    """
    value = view.headers.get(name)
    return None if value is None else _in_utf8(value).strip()


def pointer_to(name: str) -> str:
    """What stands for the header where evidence otherwise has a JSON pointer: no pointer begins like it."""
    return f"header:{name}"


def _in_utf8(value: str) -> str:
    # Headers arrive as bytes, and are read as Latin-1 on the way, which loses nothing.
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value
