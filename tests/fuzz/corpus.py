"""The seeds: small files under `corpus/TARGET/`, written by hand or by the script at the end of this module.

`python -m tests.fuzz.corpus` writes those that are made anew; files found by fuzzing are put beside them by hand.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import zlib
from pathlib import Path
from typing import Any, Final

import brotli
from PIL import Image

from router.request.content_coding import encode
from tests.extproc.answers.streams_of_apis import stream_of

FOLDER: Final = Path(__file__).with_name("corpus")

_SHARED: Final = {"count_tokens": "messages"}
"""Targets that read the same bodies."""


def seeds(target: str) -> list[bytes]:
    """The seeds of a target, in the order of their names."""
    folder = FOLDER / _SHARED.get(target, target)
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def folder_of(target: str) -> Path:
    """Where a target's seeds are."""
    return FOLDER / _SHARED.get(target, target)


PNG_URI: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
)
"""One red pixel."""


def _bodies() -> dict[str, dict[str, Any]]:
    image = {"type": "image_url", "image_url": {"url": PNG_URI}}
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"city": "K\u00f6ln"}'}}
    tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    block = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PNG_URI.partition(",")[2]},
    }
    return {
        "chat": {
            "plain.json": {"model": "m", "messages": [{"role": "user", "content": "hello"}]},
            "rich.json": {
                "messages": [
                    {"role": "system", "content": [{"type": "text", "text": "s: \u003a"}]},
                    {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "c1", "content": "9\u00b0"},
                    {
                        "role": "user",
                        "content": [{"type": "file", "file": {"file_data": PNG_URI, "filename": "a.png"}}],
                    },
                ],
                "tools": [tool],
                "stream": True,
                "stream_options": {"include_usage": True},
                "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
                "model": "m",
            },
            "missing.json": {
                "messages": [
                    {"role": "tool"},
                    {"role": "assistant", "function_call": {"name": "f"}},
                    {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "f"}}]},
                ]
            },
        },
        "responses": {
            "plain.json": {"model": "m", "input": "hello"},
            "rich.json": {
                "model": "m",
                "instructions": "i",
                "input": [
                    {"role": "user", "content": [{"type": "input_image", "image_url": PNG_URI}]},
                    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "t"}]},
                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r"}]},
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "o"}]},
                ],
                "tools": [{"type": "function", "name": "f", "parameters": {}}],
                "previous_response_id": "r1",
            },
            "missing.json": {
                "input": [
                    {"type": "function_call", "name": "f"},
                    {"type": "function_call_output"},
                    {"type": "mcp_list_tools"},
                ]
            },
        },
        "completions": {"plain.json": {"model": "m", "prompt": ["a", "b"], "suffix": "s", "n": 2}},
        "embeddings": {"plain.json": {"model": "m", "input": ["a", "b"]}, "ids.json": {"input": [[1, 2]]}},
        "messages": {
            "plain.json": {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hello"}]},
            "rich.json": {
                "model": "m",
                "system": [{"type": "text", "text": "s"}],
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "t"}, block]},
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "thinking", "thinking": "h", "signature": "x"},
                            {"type": "tool_use", "id": "u", "name": "f", "input": {"a": [1]}},
                        ],
                    },
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u", "content": [block]}]},
                ],
                "tools": [{"name": "f", "input_schema": {"type": "object"}}],
            },
            "missing.json": {
                "messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "name": "f"}]},
                    {"role": "user", "content": [{"type": "tool_result"}, {"type": "mcp_tool_result"}]},
                ]
            },
        },
    }


def _images() -> dict[str, bytes]:
    picture = Image.linear_gradient("L").resize((12, 9)).convert("RGB")
    found = {}
    for form, options in (
        ("PNG", {}),
        ("JPEG", {"quality": 50}),
        ("WEBP", {"quality": 40}),
        ("GIF", {}),
        ("BMP", {}),
    ):
        buffer = io.BytesIO()
        picture.save(buffer, form, **options)
        found[f"plain.{form.lower()}"] = buffer.getvalue()
    buffer = io.BytesIO()
    Image.merge("RGBA", (*picture.split(), Image.new("L", picture.size, 99))).save(buffer, "PNG")
    found["alpha.png"] = buffer.getvalue()
    buffer = io.BytesIO()
    picture.convert("P").save(buffer, "GIF", save_all=True, append_images=[picture.rotate(90).convert("P")])
    found["moving.gif"] = buffer.getvalue()
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.save(buffer, "JPEG", progressive=True, exif=exif)
    found["turned.jpeg"] = buffer.getvalue()
    return found


def _codings() -> dict[str, bytes]:
    text = b'{"model":"m","messages":[]}' * 3
    raw = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return {
        "gzip": b"\x00" + encode(text, ("gzip",)),
        "members": b"\x00" + gzip.compress(text, mtime=0) + gzip.compress(b"", mtime=0),
        "deflate": b"\x01" + encode(text, ("deflate",)),
        "raw": b"\x01" + raw.compress(text) + raw.flush(),
        "br": b"\x02" + brotli.compress(text),
        "zstd": b"\x03" + encode(text, ("zstd",)) * 2,
        "stacked": b"\x06" + encode(text, ("gzip", "br")),
        "bomb": b"\x00" + gzip.compress(bytes(3 << 20), 9, mtime=0),
    }


def _streams() -> dict[str, dict[str, bytes]]:
    chat = (
        b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n: comment\r\n\r\n'
        b'event: x\ndata: {"choices":[],\ndata: "usage":{"prompt_tokens":11,"completion_tokens":7}}\n\ndata: [DONE]\n\n'
    )
    anthropic = (
        b'event: message_start\r\ndata: {"type":"message_start","message":{"usage":{"input_tokens":3,'
        b'"cache_read_input_tokens":2}}}\r\n\r\ndata: {"type":"content_block_delta"}\r\r'
    )
    whole = b'{"usage":{"input_tokens":5,"output_tokens":6,"input_tokens_details":{"cached_tokens":1}}}'
    return {
        "events": {
            "chat": chat,
            "anthropic": anthropic,
            "mark": b"\xef\xbb\xbfdata:a\n\ndata\n\n",
            "long": b"data:" + b"x" * 99,
        },
        "response": {
            "chat": b"\x00\x01\x04" + chat,
            "anthropic": b"\x00\x02\x10" + anthropic,
            "json": b"\x00\x00\x63" + whole,
            "gzip": b"\x10\x00\x07" + gzip.compress(whole, mtime=0),
            "deflate": b"\x20\x01\x07" + zlib.compress(chat),
        },
    }


def _exchanges() -> dict[str, bytes]:
    post = b"\x02\x00\x04POST\x01\x14/v1/chat/completions"
    return {
        "buffered": b"\x00\x00\x00" + b"\x00\x0c" + post + b"\x02\x01\x02" + b"01234567",
        "rewritten": b"\x01\x00\x00" + b"\x00\x0c" + post + b"\x02\x00\x02" + b"01234567" + b"\x04\x00",
        "pieces": b"\x00\x00\x00" + b"\x00\x14" + post + b"\x02\x00\x01" + b"0123" + b"\x02\x01\x01" + b"4567",
        "pieces_trailers": b"\x01\x01\x00" + b"\x00\x14" + post + b"\x02\x00\x01" + b"0123" + b"\x04\x00",
        "head_alone": b"\x02\x00\x00" + b"\x00\x01" + post,
        "unseen": b"\x00\x80\x00" + b"\x00\x14" + post + b"\x02\x00\x01" + b"0123" + b"\x02\x01\x00",
        "copies": b"\x00\x00\x07" + b"\x00\x00\x01\x04\x01x" + b"\x02\x01\x01" + b"0123",
        "copies_later": b"\x00\x00\x06" + b"\x00\x0c" + post + b"\x02\x03\x01" + b"0123",
        "twice": b"\x03\x02\x00" + b"\x00\x0c" + post + b"\x00\x0c" + post,
        "too_large": b"\x00\x00\x00" + b"\x00\x14" + post + (b"\x02\x00\x80" + b"x" * 512) * 2,
        "nothing": b"\x04\x03\x00\x08\x00",
    }


def _answers() -> dict[str, dict[str, bytes]]:
    """Choices of `answers.given`, and behind them what an API answers: whole, streamed, packed; some with a secret.

    A secret comes in pieces, none of which is one.
    """
    texts = ("It begins ", "harmless: sk-", "1234", "5678", " and ends.")
    harmless = ("One two ", "three\n", "four.")
    call = ('{"cmd": "r', 'm -rf /"}')
    chat: dict[str, Any] = {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "".join(harmless)}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    message = {"type": "message", "content": [{"type": "text", "text": "".join(texts)}]}
    item = {"type": "message", "content": [{"type": "output_text", "text": "".join(texts)}]}
    blank = b'data: {"choices":[{"index":0,"delta":{"content":"a\\u0020b"}}]}\r\n\r\n: x\r\rid: 1\ndata\n\n'
    found = {
        "chat": b"\x08\x00\x02\x10" + stream_of("openai.chat", texts, call),
        "chat_words": b"\x08\x00\x02\x10" + stream_of("openai.chat", ("One two sk", " 1234", " 567 ", "and more.")),
        "messages_words": b"\x0b\x00\x02\x10" + stream_of("anthropic.messages", ("a sk 1", "234 ", "567 ", "more")),
        "chat_harmless": b"\x08\x00\x04\x10" + stream_of("openai.chat", harmless, ("{}",), "ask"),
        "chat_call": b"\x08\x00\x83\x05" + stream_of("openai.chat", harmless, call),
        "chat_gzip": b"\x08\x09\x02\x07" + stream_of("openai.chat", texts),
        "chat_observed": b"\x08\x00\x42\x09" + stream_of("openai.chat", texts),
        "chat_passes": b"\x08\x00\x32\x09" + stream_of("openai.chat", harmless, ("x" * 400,)),
        "completions": b"\x09\x0b\x04\x30" + stream_of("openai.completions", texts),
        "responses": b"\x0a\x00\x02\x40" + stream_of("openai.responses", texts),
        "responses_call": b"\x0a\x0d\x04\x40" + stream_of("openai.responses", harmless, call),
        "messages": b"\x0b\x00\x05\x07" + stream_of("anthropic.messages", texts, call, line="\r\n"),
        "messages_harmless": b"\x0b\x0c\x04\x07" + stream_of("anthropic.messages", harmless, ("{}",), "ask"),
        "odd": b"\x08\x00\x02\x02" + blank,
        "whole": b"\x00\x00\x00\x20" + json.dumps(chat).encode(),
        "whole_packed": b"\x00\x0d\x01\x20" + json.dumps(chat).encode(),
        "whole_message": b"\x03\x00\x02\x20" + json.dumps(message).encode(),
        "whole_response": b"\x02\x09\x02\x20" + json.dumps({"object": "response", "output": [item]}).encode(),
        "whole_too_large": b"\x00\x00\x30\x20" + json.dumps({**chat, "x": "y" * 400}).encode(),
        "text": b"\x16\x00\x02\x20" + stream_of("openai.chat", texts),
        "unknown_coding": b"\x00\x06\x00\x20" + b"{}",
        "unknown_kind": b"\x18\x00\x20\x20" + b"{}",
        "elsewhere": b"\x06\x00\x01\x20" + b"sk-12345678",
        "broken": b"\x08\x01\x00\x09" + encode(stream_of("openai.chat", harmless), ("gzip",))[:-9],
    }
    piece = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
    begun = b"\x08\x00\x02" + b"\x00\x00"
    order = {
        "stream": begun + b"\x02\x00" + bytes([len(piece)]) + piece + b"\x02\x01\x00",
        "trailers": begun + b"\x02\x00" + bytes([len(piece)]) + piece + b"\x05\x00",
        "twice": begun + b"\x00\x00",
        "body_first": b"\x00\x00\x00" + b"\x02\x01\x02" + b"{}",
        "request_first": b"\x00\x00\x00" + b"\x06\x01" + b"\x00\x00" + b"\x02\x01\x02" + b"{}",
        "nothing": b"\x00\x00\x00" + b"\x07\x00",
        "without_body": b"\x00\x00\x00" + b"\x00\x03",
        "breaks_off": begun + b"\x02\x00\x04" + b"data",
    }
    return {"answer": found, "answer_order": order}


def made() -> dict[str, dict[str, bytes]]:
    """Every seed that this module makes, by target and name."""
    found: dict[str, dict[str, bytes]] = {
        target: {name: json.dumps(body).encode() for name, body in bodies.items()}
        for target, bodies in _bodies().items()
    }
    found["chat"]["spaced.json"] = b' {\r\n\t"messages" : [ ] , "model" : "\\u006d" }\n'
    found["chat"]["empty.json"] = b"{ }"
    return {
        **found,
        "image": _images(),
        "coding": _codings(),
        "coding_header": {"one": b"gzip", "several": b"br, identity,X-GZIP ,zstd", "unknown": b"compress"},
        **_streams(),
        "url": {
            "png": PNG_URI.encode(),
            "percent": b"data:text/plain;charset=utf-8,a%20b",
            "http": b"https://images.example.com:443/a%2fb?c#d",
            "odd": b"DATA: image/PNG ;base64 , aGk_",
        },
        "path": {
            "chat": b"/v1/chat/completions?a=b",
            "odd": b"/openai//v1/./x/..%2Fv1%252fchat\\completions;a=b/",
            "verb": b"/v1beta/models/g:generateContent",
        },
        "exchange": _exchanges(),
        **_answers(),
    }


def write() -> int:
    """Write them; how many there are."""
    count = 0
    for target, files in made().items():
        (FOLDER / target).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (FOLDER / target / name).write_bytes(data)
            count += 1
    return count


if __name__ == "__main__":
    sys.stdout.write(f"{write()} seeds\n")
