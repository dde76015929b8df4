"""From a case to the request's body, with the image files that it names put in."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from router.evaluation.cases import Case, CasesError, Turn
from router.request.api_rules import ApiRules
from router.request.apis import detect
from router.request.view import Api

MAX_IMAGE_BYTES: Final = 64 * 2**20
FILE: Final = "file:"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MEDIA: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".gif": "image/gif",
    ".bmp": "image/bmp",
}


@dataclass(frozen=True, slots=True)
class CaseRequest:
    """What a client would send. Header names are lower case."""

    api: Api
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def request_of(case: Case, rules: ApiRules = ()) -> CaseRequest:
    """The request; raises CasesError for a path of no known API and for image files that cannot be read.

    `rules` are the policy's own, for paths beside the usual ones.
    """
    api = detect("POST", case.file.path, rules)
    if api is None:
        raise CasesError([f"{case.place}: path: {case.file.path} is no path of an LLM request that is read here"])
    if case.file.body is None and api != "openai.chat":
        raise CasesError([f"{case.place}: path: {case.file.path} needs a body; text and turns make chat completions"])
    headers = {name.lower(): value for name, value in case.file.headers.items()}
    try:
        body = json.dumps(_body(case), ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise CasesError([f"{case.place}: body: nests too deep"]) from None
    except (TypeError, ValueError):
        raise CasesError(
            [f"{case.place}: body: holds what JSON has not, such as a date or an infinite number; quote it as text"]
        ) from None
    return CaseRequest(api, _SURROGATE.sub(_escaped, body).encode(), headers)


def _escaped(surrogate: re.Match[str]) -> str:
    """As a client would write what JSON can carry and UTF-8 cannot."""
    return f"\\u{ord(surrogate[0]):04x}"


def _body(case: Case) -> Any:
    if case.file.body is not None:
        return _filled(case.file.body, case)
    turns = case.file.turns or (Turn(user=case.file.text or "", images=case.file.images),)
    messages = [_message(turn, case, bare=case.file.text is None and not case.file.turns) for turn in turns]
    return {"model": case.file.model, "messages": messages, **_filled(case.file.more, case)}


def _message(turn: Turn, case: Case, bare: bool) -> dict[str, Any]:
    if turn.user is None:
        role = "assistant" if turn.assistant is not None else "system"
        return {"role": role, "content": turn.assistant if turn.system is None else turn.system}
    if not turn.images:
        return {"role": "user", "content": turn.user}
    pictures = [{"type": "image_url", "image_url": {"url": _data_uri(name, case)}} for name in turn.images]
    return {"role": "user", "content": [*([] if bare else [{"type": "text", "text": turn.user}]), *pictures]}


def _filled(value: Any, case: Case) -> Any:
    """The same with `file:` in every url of an image replaced by what the file holds."""
    if isinstance(value, list):
        return [_filled(each, case) for each in value]
    if not isinstance(value, dict):
        return value
    filled = {}
    for key, each in value.items():
        if key in ("url", "image_url") and isinstance(each, str) and each.startswith(FILE):
            filled[key] = _data_uri(each.removeprefix(FILE), case)
        elif key == "data" and isinstance(each, str) and each.startswith(FILE):
            filled[key] = base64.b64encode(_read(each.removeprefix(FILE), case)).decode()
        else:
            filled[key] = _filled(each, case)
    return filled


def _data_uri(name: str, case: Case) -> str:
    media = _MEDIA.get(Path(name).suffix.lower(), "application/octet-stream")
    return f"data:{media};base64,{base64.b64encode(_read(name, case)).decode()}"


def _read(name: str, case: Case) -> bytes:
    path = case.base / name
    try:
        if not path.is_file():
            raise CasesError([f"{case.place}: images: no file {path}"])
        # Its size is what was read: the kernel's own files say that they have none, and never end.
        with path.open("rb") as file:
            data = file.read(MAX_IMAGE_BYTES + 1)
        if len(data) > MAX_IMAGE_BYTES:
            raise CasesError([f"{case.place}: images: {path} has more than {MAX_IMAGE_BYTES} bytes"])
        return data
    except (OSError, ValueError) as error:
        raise CasesError([f"{case.place}: images: {name!r} cannot be read: {type(error).__name__}"]) from None
