"""What an image file says about itself, and the least of it that a decoder needs for the first frame.

Reads the containers' structure (PNG chunks, JPEG segments, GIF blocks, RIFF) without decoding pixels, and drops what
only costs or confuses a decoder: comments, profiles, compressed texts, later frames. Decoding is in `images.py`.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from router.request.errors import ImageError

Format = Literal["PNG", "JPEG", "WEBP", "GIF", "BMP"]

# Bounds on what is walked in Python. Encoders write PNG chunks of 8 KiB and more, GIF blocks of 255 bytes, a few dozen
# JPEG segments and, when progressive, about ten scans; each scan costs a pass over the whole image.
_MAX_CHUNKS = 100_000
_MAX_GIF_BLOCKS = 1_000_000
_MAX_SEGMENTS = 10_000
_MAX_SCANS = 64

_ORIENTATION_TAG = 0x0112
# Without those that have no length: the stuffed zero, TEM, RST0-7. Fill bytes (any number of FF before the marker) are
# not part of the pattern: a repetition would be tried anew from each of them, in time that grows with their square.
_JPEG_MARKER = re.compile(rb"\xff([\x02-\xcf\xd8-\xfe])")
# A search holds the interpreter's lock; between windows other threads get their turn.
_SEARCH_WINDOW = 1 << 16
_SOI, _EOI, _SOS, _APP1, _COM = 0xD8, 0xD9, 0xDA, 0xE1, 0xFE
_START_OF_FRAME = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# APP0 (JFIF) and APP14 (Adobe) decide about colours; all other application segments are metadata.
_JPEG_DROPPED = (frozenset(range(0xE1, 0xF0)) - {0xEE}) | {_COM}
_GIF_IMAGE, _GIF_EXTENSION, _GIF_TRAILER, _GIF_GRAPHIC_CONTROL = 0x2C, 0x21, 0x3B, 0xF9
_PNG_KEPT = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"})


@dataclass(frozen=True, slots=True)
class Still:
    """The first frame of an image, not decoded. `orientation` is EXIF's, 1-8; `frames` stops at the limit plus one."""

    format: Format
    width: int
    height: int
    frames: int
    orientation: int
    data: bytes = field(repr=False)


def sniff(data: bytes) -> Format | None:
    """The format by its first bytes; None for any other than the five that are read."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WEBP"
    if data.startswith(b"BM") and data[6:10] == b"\0\0\0\0":
        return "BMP"
    return None


def read_still(data: bytes, max_frames: int) -> Still:
    """The first frame of `data`. Frames are counted up to `max_frames` + 1. Raises ImageError."""
    form = sniff(data)
    if form is None:
        raise ImageError("unknown format" if data else "empty")
    try:
        return _READERS[form](data, max_frames)
    except (struct.error, IndexError):
        raise ImageError("truncated") from None


def _read_png(data: bytes, max_frames: int) -> Still:
    width, height = struct.unpack_from(">II", data, 16)
    if data[12:16] != b"IHDR":
        raise ImageError("corrupt")
    view = memoryview(data)
    kept: list[bytes | memoryview] = [view[:8]]
    frames, orientation, position = 1, 1, 8
    for _ in range(_MAX_CHUNKS):
        length, kind = struct.unpack_from(">I4s", data, position)
        end = position + 12 + length
        (checksum,) = struct.unpack_from(">I", data, end - 4)
        if zlib.crc32(view[position + 4 : end - 4]) != checksum:
            raise ImageError("corrupt")
        if kind in _PNG_KEPT:
            kept.append(view[position:end])
        elif kind == b"acTL" and length >= 4:
            (announced,) = struct.unpack_from(">I", data, position + 8)
            frames = max(frames, announced)
        elif kind == b"fdAT":
            # Pictures beside the one in IDAT, whatever the animation's header counts.
            frames = max(frames, 2)
        elif kind == b"eXIf":
            orientation = _orientation(data[position + 8 : end - 4])
        if kind == b"IEND":
            return Still("PNG", width, height, frames, orientation, b"".join(kept))
        position = end
    raise ImageError("corrupt")


def _read_jpeg(data: bytes, max_frames: int) -> Still:
    view = memoryview(data)
    kept: list[bytes | memoryview] = [view[:2]]
    width = height = 0
    orientation, position = 0, 2
    for _ in range(_MAX_SEGMENTS):
        marker = _next_marker(data, position)
        if marker is None:
            raise ImageError("truncated")
        kind, start = marker[1][0], marker.end()
        if kind in (_SOI, _EOI):
            raise ImageError("corrupt")
        (length,) = struct.unpack_from(">H", data, start)
        position = start + length
        if kind == _SOS:
            _check_scans(data, start)
            kept.append(view[start - 2 :])
            return Still("JPEG", width, height, 1, orientation or 1, b"".join(kept))
        if kind in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", data, start + 3)
        if kind == _APP1 and not orientation and data.startswith(b"Exif\0\0", start + 2):
            orientation = _orientation(data[start + 8 : position])
        if kind not in _JPEG_DROPPED:
            kept.append(b"\xff")
            kept.append(view[start - 1 : position])
    raise ImageError("corrupt")


def _next_marker(data: bytes, position: int) -> re.Match[bytes] | None:
    """The first marker at or after `position`; work in proportion to its distance."""
    while position + 1 < len(data):
        marker = _JPEG_MARKER.search(data, position, position + _SEARCH_WINDOW)
        if marker is not None:
            return marker
        # A marker may lie across the border.
        position += _SEARCH_WINDOW - 1
    return None


def _check_scans(data: bytes, position: int) -> None:
    # Counting bytes takes trailing data for scans now and then; only a high count is worth an exact walk.
    if data.count(b"\xff\xda", position) < _MAX_SCANS:
        return
    scans = 1
    for _ in range(_MAX_SEGMENTS):
        (length,) = struct.unpack_from(">H", data, position)
        marker = _next_marker(data, position + length)
        if marker is None or marker[1][0] == _EOI:
            return
        scans += marker[1][0] == _SOS
        if scans > _MAX_SCANS:
            break
        position = marker.end()
    raise ImageError("too many scans")


def _read_gif(data: bytes, max_frames: int) -> Still:
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    position = 13 + _colour_table(flags)
    head = data[:position]
    control, first, frames, blocks = b"", b"", 0, 0

    def skip_blocks(position: int) -> int:
        nonlocal blocks
        while size := data[position]:
            position += size + 1
            blocks += 1
            if blocks > _MAX_GIF_BLOCKS:
                raise ImageError("corrupt")
        return position + 1

    try:
        while frames <= max_frames and (kind := data[position]) != _GIF_TRAILER:
            blocks += 1
            if blocks > _MAX_GIF_BLOCKS:
                raise ImageError("corrupt")
            if kind == _GIF_EXTENSION:
                end = skip_blocks(position + 2)
                if data[position + 1] == _GIF_GRAPHIC_CONTROL and not frames:
                    control = data[position:end]
            elif kind == _GIF_IMAGE:
                left, top, frame_width, frame_height, flags = struct.unpack_from("<HHHHB", data, position + 1)
                end = skip_blocks(position + 11 + _colour_table(flags))
                if not frames:
                    first = data[position:end]
                    width, height = max(width, left + frame_width), max(height, top + frame_height)
                frames += 1
            else:
                # Stray bytes between blocks happen, and decoders skip them.
                end = position + 1
            position = end
    except (IndexError, struct.error):
        # What is cut off behind the first frame does not matter.
        if not frames:
            raise
    if not frames:
        raise ImageError("corrupt")
    return Still("GIF", width, height, frames, 1, b"".join((head, control, first, b";")))


def _colour_table(flags: int) -> int:
    """Bytes of the colour table that the flags of a GIF's screen or frame announce."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _read_webp(data: bytes, max_frames: int) -> Still:
    (size,) = struct.unpack_from("<I", data, 4)
    if size + 8 > len(data):
        raise ImageError("truncated")
    kind = data[12:16]
    if kind == b"VP8X":
        words = struct.unpack_from("<HBHB", data, 24)
        width, height = words[0] + (words[1] << 16) + 1, words[2] + (words[3] << 16) + 1
    elif kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 ":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", data, 26))
    else:
        raise ImageError("corrupt")
    frames, orientation, position = 0, 1, 12
    for _ in range(_MAX_CHUNKS):
        if position + 8 > size + 8:
            return Still("WEBP", width, height, max(frames, 1), orientation, data)
        kind, length = struct.unpack_from("<4sI", data, position)
        frames += kind == b"ANMF"
        if kind == b"EXIF":
            orientation = _orientation(data[position + 8 : position + 8 + length].removeprefix(b"Exif\0\0"))
        position += 8 + length + (length & 1)
    raise ImageError("corrupt")


def _read_bmp(data: bytes, max_frames: int) -> Still:
    (header,) = struct.unpack_from("<I", data, 14)
    if header == 12:
        width, height = struct.unpack_from("<HH", data, 18)
        return Still("BMP", width, height, 1, 1, data)
    width, height = struct.unpack_from("<ii", data, 18)
    (compression,) = struct.unpack_from("<I", data, 30)
    if compression not in (0, 3):
        # Pillow decodes run lengths in Python, slowly; nobody sends them.
        raise ImageError("compressed BMP")
    return Still("BMP", width, abs(height), 1, 1, data)


_READERS: dict[Format, Callable[[bytes, int], Still]] = {
    "PNG": _read_png,
    "JPEG": _read_jpeg,
    "GIF": _read_gif,
    "WEBP": _read_webp,
    "BMP": _read_bmp,
}


def _orientation(tiff: bytes) -> int:
    """EXIF's orientation (TIFF 6.0, first directory); 1, as it lies, when it has none or is broken."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None:
        return 1
    try:
        (directory,) = struct.unpack_from(f"{order}I", tiff, 4)
        (entries,) = struct.unpack_from(f"{order}H", tiff, directory)
        for index in range(entries):
            tag, kind, count = struct.unpack_from(f"{order}HHI", tiff, directory + 2 + 12 * index)
            if tag == _ORIENTATION_TAG and kind == 3 and count == 1:
                (value,) = struct.unpack_from(f"{order}H", tiff, directory + 10 + 12 * index)
                return value if 1 <= value <= 8 else 1
    except struct.error:
        pass
    return 1
