"""Streams as the APIs send them, made of the pieces that a model said and a call that it made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from router.request.view import Api

Events = list[dict[str, Any]]
APIS: tuple[Api, ...] = ("openai.chat", "openai.completions", "openai.responses", "anthropic.messages")


def chat(texts: Sequence[str], arguments: Sequence[str] = (), tool: str = "shell") -> Events:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }

    events = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": text}) for text in texts)]
    if arguments:
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": tool, "arguments": ""}}
        events.append(chunk({"tool_calls": [call]}))
        events += (chunk({"tool_calls": [{"index": 0, "function": {"arguments": one}}]}) for one in arguments)
    return [*events, chunk({}, "tool_calls" if arguments else "stop")]


def completions(texts: Sequence[str]) -> Events:
    def chunk(text: str, finish: str | None) -> dict[str, Any]:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        return {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}

    return [*(chunk(text, None) for text in texts), chunk("", "stop")]


def responses(texts: Sequence[str], arguments: Sequence[str] = (), tool: str = "shell") -> Events:
    text = "".join(texts)
    place = {"output_index": 0, "content_index": 0, "item_id": "msg_1"}
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    output: list[dict[str, Any]] = [item]
    body = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": []}
    body |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "instructions": "sk-00000000 is asked"}
    events: Events = [
        {"type": "response.created", "response": body},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": one, "logprobs": []} for one in texts),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
    ]
    if arguments:
        call = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": tool, "status": "in_progress"}
        whole = {**call, "arguments": "".join(arguments), "status": "completed"}
        at = {"output_index": 1, "item_id": "fc_1"}
        events += [
            {"type": "response.output_item.added", "output_index": 1, "item": {**call, "arguments": ""}},
            *({"type": "response.function_call_arguments.delta", **at, "delta": one} for one in arguments),
            {"type": "response.function_call_arguments.done", **at, "arguments": "".join(arguments)},
            {"type": "response.output_item.done", "output_index": 1, "item": whole},
        ]
        output.append(whole)
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    done = {**body, "status": "completed", "output": output, "usage": usage}
    events.append({"type": "response.completed", "response": done})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def messages(texts: Sequence[str], arguments: Sequence[str] = (), tool: str = "shell") -> Events:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": usage,
    }
    message |= {"stop_reason": None, "stop_sequence": None}
    events: Events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": one}} for one in texts),
        {"type": "content_block_stop", "index": 0},
    ]
    if arguments:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
        events += [
            {"type": "content_block_start", "index": 1, "content_block": block},
            *(
                {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": one}}
                for one in arguments
            ),
            {"type": "content_block_stop", "index": 1},
        ]
    stop = "tool_use" if arguments else "end_turn"
    events.append(
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}}
    )
    return [*events, {"type": "message_stop"}]


def events_of(api: Api, texts: Sequence[str], arguments: Sequence[str] = (), tool: str = "shell") -> Events:
    if api == "openai.completions":
        return completions(texts)
    make = {"openai.chat": chat, "openai.responses": responses, "anthropic.messages": messages}[api]
    return make(texts, arguments, tool)


def sent(api: Api, events: Iterable[dict[str, Any]], line: str = "\n") -> bytes:
    """The events as their API sends them."""
    named = api in ("openai.responses", "anthropic.messages")
    out = [
        (f"event: {event['type']}{line}" if named else "") + f"data: {json.dumps(event)}{line}{line}"
        for event in events
    ]
    return ("".join(out) + ("" if named else f"data: [DONE]{line}{line}")).encode()


def stream_of(
    api: Api, texts: Sequence[str], arguments: Sequence[str] = (), tool: str = "shell", line: str = "\n"
) -> bytes:
    return sent(api, events_of(api, texts, arguments, tool), line)


def said_in(data: bytes) -> str:
    """All strings that a client was given under the keys for what a model says."""
    keys = ("content", "text", "delta", "partial_json", "arguments", "refusal")
    out: list[str] = []

    def walk(value: object, key: str) -> None:
        if isinstance(value, str) and key in keys:
            out.append(value)
        for inner, item in value.items() if isinstance(value, dict) else ():
            walk(item, inner)
        for item in value if isinstance(value, list) else ():
            walk(item, key)

    for line in data.decode().splitlines():
        if line.startswith("data: {"):
            walk(json.loads(line[6:]), "")
    return "".join(out)
