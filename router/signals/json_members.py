"""A value out of JSON that somebody else wrote, by a path of the policy: for tool arguments and claims in headers.

A path is a JSON pointer (RFC 6901: `/realm_access/roles`) or the same with dots (`realm_access.roles`). Nothing here
decodes or judges.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

Steps = tuple[str, ...]


def read_path(path: str) -> Steps:
    """The steps of a path. ValueError for an empty one, an empty step between dots, or a bad escape in a pointer."""
    if not path.startswith("/"):
        steps = tuple(path.split("."))
        if not all(steps):
            raise ValueError("a path is names joined by dots, or a JSON pointer that begins with a slash")
        return steps
    steps = tuple(path[1:].split("/"))
    if any("~" in step.replace("~0", "").replace("~1", "") for step in steps):
        raise ValueError("in a JSON pointer `~` is written `~0`, and `/` in a name `~1`")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


def values_at(document: object, steps: Steps) -> Iterator[object]:
    """The values that the path leads to; none where a member is missing.

    In a list a number is an index, and any other step goes on in each item. A list at the end is its items.
    """
    stack: list[tuple[object, int]] = [(document, 0)]
    while stack:
        value, depth = stack.pop()
        match value:
            case list() if depth < len(steps) and steps[depth].isdecimal() and steps[depth].isascii():
                # Not int() at once: it refuses numbers of thousands of digits, and no list is that long.
                index = int(steps[depth][:9])
                if index < len(value) and len(steps[depth]) <= 9:
                    stack.append((value[index], depth + 1))
            case list():
                stack.extend((item, depth) for item in reversed(value))
            case _ if depth == len(steps):
                yield value
            case dict() if steps[depth] in value:
                stack.append((value[steps[depth]], depth + 1))
            case _:
                pass


def as_text(value: object) -> str:
    """A string as it is; anything else as JSON writes it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
