"""The head of a request as Envoy reports it: method, path and headers, without the body.

Header values and the path are content and stay out of logs and reprs. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from google.protobuf.struct_pb2 import Struct

from router.proto import ext_proc_pb2 as pb

LISTS = frozenset(("content-encoding", "traceparent", "tracestate", "baggage"))
"""Headers of which all values are read, as one list: they layer, or add up, or are wrong where there are two."""

MAX_LENGTH_DIGITS = 18
"""Of a body's length, as many as fit into 64 bits for sure."""

_ALONE = pb.ProcessingRequest()
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What is known before the body. `headers` maps lower-case names to their first value, pseudo-headers included; of
    those in `LISTS` to all values as one list.

    `path` is as sent, with the query. `copy` says that Envoy shows a copy and takes no answer. `metadata`, by
    namespace, and `attributes` are what Envoy passes on of what filters in front found out. `carried` are the headers
    of Envoy's own call. `began` says since when all is there to judge by, in nanoseconds since the epoch; 0: since now.
    """

    method: str
    path: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    copy: bool = False
    metadata: Mapping[str, Struct] = field(default_factory=dict, repr=False)
    attributes: Mapping[str, Struct] = field(default_factory=dict, repr=False)
    carried: Mapping[str, str] = field(default_factory=dict, repr=False)
    began: int = 0

    @property
    def charset(self) -> str:
        """The charset parameter of the content type, lower case; empty when there is none."""
        for parameter in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = parameter.partition("=")
            if name.strip().lower() == "charset":
                return value.strip().strip("\"'").lower()
        return ""

    @property
    def content_length(self) -> int:
        """How long the body is said to be, in bytes; 0 where that is not said, or is no number."""
        length = self.headers.get("content-length", "")
        return int(length) if length.isascii() and length.isdigit() and len(length) <= MAX_LENGTH_DIGITS else 0

    @property
    def content_encoding(self) -> str:
        """Lower case; empty when the body is not encoded."""
        return self.headers.get("content-encoding", "").strip().lower()


def read_head(
    message: pb.HttpHeaders, around: pb.ProcessingRequest = _ALONE, carried: Mapping[str, str] = _NOTHING
) -> RequestHead:
    """The head in Envoy's message; `around` is the message that it came in, `carried` the headers of the call."""
    headers = read_headers(message)
    return RequestHead(
        method=headers.get(":method", ""),
        path=headers.get(":path", ""),
        headers=headers,
        copy=around.observability_mode,
        metadata=around.metadata_context.filter_metadata,
        attributes=around.attributes,
        carried=carried,
    )


def read_headers(message: pb.HttpHeaders) -> dict[str, str]:
    """First values by lower-case name, of `LISTS` all. Bytes beyond ASCII are read as Latin-1, which loses nothing."""
    headers: dict[str, str] = {}
    for header in message.headers.headers:
        raw = header.raw_value
        value = raw.decode("latin-1") if raw else header.value
        name = header.key.lower()
        if name not in headers:
            headers[name] = value
        elif name in LISTS:
            headers[name] = f"{headers[name]}, {value}"
    return headers
