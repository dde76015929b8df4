"""What a decision does to a request that goes on to an upstream.

Plain data, which `router.extproc` turns into mutations.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Edits:
    """`headers` are set (each name once, replacing any value); `body` replaces the body, None leaves it as it came.

    `remove` are names of headers that do not go on, none of them set. `metadata` is what access logs and other filters
    may know of the decision: words of the policy's author only.
    """

    headers: tuple[tuple[str, str], ...]
    body: bytes | None = field(default=None, repr=False)
    remove: tuple[str, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()

    def telling(self, metadata: tuple[tuple[str, str], ...]) -> Edits:
        """The same with this metadata."""
        return Edits(self.headers, self.body, self.remove, metadata)
