"""The head of a request as Envoy reports it: method, path and headers, without the body.

Header values and the path are content and stay out of logs and reprs. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from router.proto import ext_proc_pb2 as pb


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What is known before the body. `headers` maps lower-case names to their first value, pseudo-headers included.

    `path` is as sent, with the query.
    """

    method: str
    path: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    @property
    def charset(self) -> str:
        """The charset parameter of the content type, lower case; empty when there is none."""
        for parameter in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset":
                return value.strip().strip("\"'").lower()
        return ""

    @property
    def content_encoding(self) -> str:
        """Lower case; empty when the body is not encoded."""
        return self.headers.get("content-encoding", "").strip().lower()


def read_head(message: pb.HttpHeaders) -> RequestHead:
    """The head in Envoy's message. Bytes beyond ASCII are read as Latin-1, which loses nothing."""
    headers: dict[str, str] = {}
    for header in message.headers.headers:
        value = header.raw_value.decode("latin-1") if header.raw_value else header.value
        headers.setdefault(header.key.lower(), value)
    return RequestHead(method=headers.get(":method", ""), path=headers.get(":path", ""), headers=headers)
