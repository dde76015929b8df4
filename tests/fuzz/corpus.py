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
