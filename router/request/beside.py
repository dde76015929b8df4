"""What stands at the top of a body beside the conversation, and a model may be shown all the same.

Which keys an API has, and who writes them, its own module says; this one reads what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from router.request.free_text import read_freely
from router.request.strict_json import JsonObject
from router.request.view import Role, Turn


@dataclass(frozen=True)
class TopKeys:
    """The keys at the top of a body.

    `read` are read by the API's own parser, `facts` are options whose meaning it knows as well, `unseen` steer a server
    and are shown to no model, `beside` are shown to one and usually written by the role that they map to.
    """

    read: frozenset[str]
    facts: frozenset[str]
    unseen: frozenset[str]
    beside: Mapping[str, Role]

    @cached_property
    def all(self) -> frozenset[str]:
        """Every key that the API has, the only ones that a pointer may name."""
        return self.read | self.facts | self.unseen | self.beside.keys()


def read_extras(request: JsonObject, keys: TopKeys) -> Iterator[Turn]:
    """The texts and images under all keys that are neither `read` nor `unseen`, one turn a key."""
    named = keys.all
    for key, value in request.items():
        if key in keys.read or key in keys.unseen or value is None:
            continue
        pointer = f"/{key}" if key in named else ""
        # Of an option that we do not know, a short word is a setting and not a message.
        if key in named:
            parts = tuple(read_freely(value, pointer, labels=key in keys.beside, key=key))
        else:
            parts = tuple(read_freely({key: value}, pointer, labels=False))
        if parts:
            yield Turn(pointer, keys.beside.get(key, "developer"), parts)
