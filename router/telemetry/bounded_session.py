"""What exporters send over HTTP with: a collector's answer is read so far and no further, and a redirection is none.

The SDK reads answers whole. One that never ends, as of a broken proxy in the collector's place, would take all the
memory of a worker; what an answer says beyond its status and headers is of no use to us. It follows no redirection,
which could lead anywhere, and takes one for success.
"""

from __future__ import annotations

from typing import Any, Final

import requests

MOST_BYTES: Final = 64 * 1024
"""Of an answer; that of a collector has a few."""

REDIRECTION: Final = 3
"""The first digit of such a status."""


class RedirectedError(requests.RequestException):
    """Whoever answers does not take what is sent, but names another place."""


class BoundedSession(requests.Session):
    """Keeps connections whose answers were read to their end, and closes the others."""

    def send(self, request: requests.PreparedRequest, **given: Any) -> requests.Response:
        """See `requests.Session`; raises RedirectedError too."""
        response = super().send(request, **{**given, "stream": True})
        # As sent, since what is compressed may be anything once it is not.
        if len(response.raw.read(MOST_BYTES, decode_content=False)) == MOST_BYTES:
            response.close()
        if response.status_code // 100 == REDIRECTION:
            raise RedirectedError("a redirection, which is not followed")
        return response
