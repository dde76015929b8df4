from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from pydantic import ValidationError
from signal_fakes import ask, said

from router.request.view import Api
from router.signals.api import ApiSettings
from router.signals.base import Evidence
from router.signals.registry import FAMILIES

CHAT = said("hello")
STREAM = replace(CHAT, stream=True)


@pytest.mark.parametrize(
    ("settings", "chat", "stream"),
    [
        ({"any": ["openai.chat"]}, True, True),
        ({"stream": True}, False, True),
        ({"stream": False}, True, False),
        ({"any": ["openai.chat"], "stream": True}, False, True),
    ],
)
async def test_api_and_stream(settings: dict[str, Any], chat: bool, stream: bool) -> None:
    assert (await ask("api", settings, CHAT)).matched is chat
    assert (await ask("api", settings, STREAM)).matched is stream


async def test_every_api_is_told_from_the_others() -> None:
    for api in get_args(Api):
        observation = await ask("api", {"any": [api]}, replace(CHAT, api=api))
        assert (observation.matched, observation.label) == (True, api)
        other = await ask("api", {"any": [api]}, replace(CHAT, api="another"))  # type: ignore[arg-type]
        assert other.matched is False


async def test_evidence_is_of_the_request_as_a_whole() -> None:
    observation = await ask("api", {"stream": True}, STREAM)
    assert observation.evidence == (Evidence("", label="openai.chat", detail="stream"),)


async def test_streaming_needs_no_definition() -> None:
    settings = FAMILIES["api"].builtins["streaming"].model_dump(exclude_none=True)
    assert (await ask("api", settings, STREAM)).matched is True
    assert (await ask("api", settings, CHAT)).matched is False


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "any or stream is needed"),
        ({"any": []}, "at least 1 item"),
        ({"any": ["openai.chats"]}, "openai.chat"),
        ({"stream": "perhaps"}, "valid boolean"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ApiSettings.model_validate(settings)
