"""`pointsman explain`: decides one request here and now, as a worker would, and shows why."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from router.cli.output import DOES_NOT_HOLD, FINE, WRONG_USE, Stop, complain, out, policy_or_stop, print_json
from router.cli.tree import headline, trees
from router.config.load import LoadedPolicy
from router.extproc.house import build_house
from router.extproc.machinery import SetupError
from router.extproc.pipeline import Judgement
from router.request.apis import detect
from router.request.errors import RequestError
from router.request.view import Api


def run_explain(policy: Path, request: Path, path: str, headers: Sequence[str], as_json: bool) -> int:
    """Exit code 0 when a decision was made, 1 when the policy or the request cannot be read, 2 for wrong use."""
    try:
        loaded = policy_or_stop(policy)
        api = detect("POST", path, loaded.policy.apis)
        if api is None:
            complain(f"{path} is no path of an LLM request; try /v1/chat/completions")
            return WRONG_USE
        body = _body_or_stop(request)
        judgement = asyncio.run(_judge(loaded, api, body, _headers_or_stop(headers)))
    except Stop as stop:
        return stop.code
    except SetupError as error:
        complain(str(error))
        return DOES_NOT_HOLD
    except RequestError as error:
        where = f" at {error.pointer}" if error.pointer else ""
        complain(f"{request}: {error.message}{where} (the client would get {error.status})")
        return DOES_NOT_HOLD
    if as_json:
        print_json(judgement.record.whole())
    else:
        _show(judgement)
    return FINE


def _body_or_stop(request: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(request) == "-" else request.read_bytes()
    except OSError as error:
        complain(f"{request}: {error.strerror}")
        raise Stop(WRONG_USE) from None


def _headers_or_stop(written: Sequence[str]) -> dict[str, str]:
    headers = {}
    for each in written:
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            complain(f"--header takes a name and a value, as in 'x-team: blue'; not {each!r}")
            raise Stop(WRONG_USE)
        headers[name.strip().lower()] = value.strip()
    return headers


async def _judge(loaded: LoadedPolicy, api: Api, body: bytes, headers: Mapping[str, str]) -> Judgement:
    async with build_house(loaded, threads=1) as house:
        return await house.pipeline.judge_body(api, body, headers)


def _show(judgement: Judgement) -> None:
    out.print(headline(judgement.record), soft_wrap=True)
    for tree in trees(judgement.record):
        out.print(tree)
