"""Paths that a policy says an API stands behind, beside those that are known by themselves.

    apis:
      - {path: /llm/v2/chat, api: openai.chat}
      - {path: "/tenants/{tenant}/generate", api: openai.completions}
      - {path: "*/bedrock/invoke", api: anthropic.messages}
      - {path: /notes/v1/messages, api: none}

`{...}` stands for one segment, `*` in front for whatever comes before. `none` says that a path has nothing to do with
language models; since such requests pass unjudged, that rule holds only for the path exactly as it is written, where
the others hold for every spelling that an upstream may accept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from router.request.paths import normal_forms
from router.request.view import Api

NO_API: Final = "none"
_APIS: Final = get_args(Api)
_SEGMENT: Final = re.compile(r"\{[A-Za-z0-9_-]*\}")
_LEGAL: Final = re.compile(r"\*?(?:/(?:[A-Za-z0-9._~!$&'()+,:@-]|\{[A-Za-z0-9_-]*\})+)+\Z")


@dataclass(frozen=True, slots=True)
class ApiRule:
    """One row of the policy: the paths that `pattern` matches in full have the API, or none."""

    pattern: re.Pattern[str]
    api: Api | Literal["none"]


ApiRules = tuple[ApiRule, ...]


def read_rules(rows: Iterable[tuple[str, str]]) -> ApiRules:
    """Rules of (path, API) in their order, of which the first that matches counts.

    Raises ValueError, in words for the policy's author, for a path that is none or an API that is not known.
    """
    return tuple(ApiRule(_compile(path, api), _api(api)) for path, api in rows)


def _api(name: str) -> Api | Literal["none"]:
    for api in _APIS:
        if name == api:
            known: Api = api
            return known
    if name == NO_API:
        return "none"
    raise ValueError(f"{name!r} is no API; the APIs are {', '.join(_APIS)}, and {NO_API}")


def _compile(path: str, api: str) -> re.Pattern[str]:
    if not _LEGAL.match(path):
        raise ValueError(
            f"{path!r} is no path: it begins with a slash (or `*/`), has no query, no escapes and no empty segments"
        )
    if api == NO_API:
        return _pattern(path)
    front, rest = ("*", path[1:]) if path.startswith("*") else ("", path)
    # A marker that survives normalisation, as braces may not.
    marked = _SEGMENT.sub("-segment-", rest)
    (form,) = normal_forms(marked)
    if form.count("/") != marked.count("/"):
        raise ValueError(f"{path!r} has segments of dots, which no path keeps")
    segments = zip(rest.split("/"), form.split("/"), strict=True)
    spelled = "/".join(given if _SEGMENT.search(given) else plain for given, plain in segments)
    return _pattern(front + spelled.casefold())


def _pattern(path: str) -> re.Pattern[str]:
    front, rest = (".*", path[1:]) if path.startswith("*") else ("", path)
    literals = _SEGMENT.split(rest)
    return re.compile(front + "[^/]+".join(map(re.escape, literals)), re.DOTALL)
