"""An answer that Pointsman gives itself, instead of an upstream; plain data, in the client's dialect already."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response; `content-length` is left to the server that sends it.

    `metadata` is what access logs may know of it: words of the policy's author only.
    """

    status: int
    content_type: str
    body: bytes = field(repr=False)
    headers: tuple[tuple[str, str], ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()

    def telling(self, metadata: tuple[tuple[str, str], ...]) -> Reply:
        """The same with this metadata."""
        return Reply(self.status, self.content_type, self.body, self.headers, metadata)
