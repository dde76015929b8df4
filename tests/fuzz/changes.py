"""Changes of bytes that fuzzing is made of, as values: drawn by hypothesis, which finds the fewest that are needed.

Positions are shares of the length, so that a change means about the same on any seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from hypothesis import strategies as st

Kind = Literal["insert", "overwrite", "delete", "repeat", "flip", "splice"]

WORDS: Final[tuple[bytes, ...]] = (
    *(b"null", b"true", b"0", b"-1", b"1e999", b"9" * 400, b'""', b"[]", b"{}", b"[[", b"]", b"{", b"}", b",", b":"),
    *(b'"', b"\\", b"\\u0000", b"\\ud800", b"\\u003a", b"\xef\xbb\xbf", b"\xff", b"\x00", b"\n", b"\r\n\r\n", b"\r"),
    *(b'"model":', b'"model":1,', b'"role":"tool",', b'"content":', b'"type":"image_url",', b'"type":"input_file",'),
    *(
        b'"arguments":',
        b'"source":',
        b'"a/b~c":',
        b'"data":"JVBERi0="',
        b"data:image/png;base64,",
        b"data:;,%",
        b"[" * 300,
    ),
    *(
        b"data:",
        b"data: {}\n\n",
        b'{"usage":{"prompt_tokens":1}}',
        b'"usage"',
        b":\n",
        b"/v1/messages",
        b"%2f",
        b";",
        b"//",
    ),
    *(
        b"gzip",
        b"br",
        b"IHDR",
        b"IDAT",
        b"\xff\xd8",
        b"\xff\xc0",
        b"\xff\xd9",
        b"Exif\x00\x00",
        b"GIF89a",
        b"RIFF",
        b"BM",
    ),
    *(
        b"sk-12345678",
        b"sk-1234",
        b'"delta":{"content":"sk-"}',
        b'"index":1',
        b'"finish_reason":"stop"',
        b'{"type":"content_block_stop","index":0}',
        b'"type":"response.output_text.delta"',
        b'"name":"shell"',
        b"\\u0073",
    ),
    *(b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\x01\x00\x00"),
)
"""Pieces that readers of some kind of body have rules for."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change: `at` and `size` are shares of the length, `piece` what is put there."""

    kind: Kind
    at: float
    size: float
    piece: bytes


def changes() -> st.SearchStrategy[list[Change]]:
    """A few changes, more often near each other than not."""
    share = st.floats(0, 1)
    small = st.one_of(st.just(0.0), st.floats(0, 0.02), share)
    piece = st.one_of(st.sampled_from(WORDS), st.binary(max_size=12))
    kind = st.sampled_from(("insert", "overwrite", "delete", "repeat", "flip", "splice"))
    return st.lists(st.builds(Change, kind, share, small, piece), max_size=6)


def changed(seed: bytes, changes: Sequence[Change], other: bytes = b"", most: int = 64 * 1024) -> bytes:
    """`seed` with all changes made in turn, at most `most` bytes of it; a `splice` goes on with `other`."""
    data = seed
    for change in changes:
        start = round(change.at * len(data))
        end = start + round(change.size * (len(data) - start))
        match change.kind:
            case "insert":
                data = data[:start] + change.piece + data[start:]
            case "overwrite":
                data = data[:start] + change.piece + data[start + len(change.piece) :]
            case "delete":
                data = data[:start] + data[max(end, start + 1) :]
            case "repeat":
                data = data[:end] + data[start:end] * 3 + data[end:]
            case "flip":
                mask = change.piece[0] if change.piece else 1
                data = data[:start] + bytes(byte ^ mask for byte in data[start : start + 1]) + data[start + 1 :]
            case "splice":
                data = data[:start] + other[round(change.at * len(other)) :]
        data = data[:most]
    return data
