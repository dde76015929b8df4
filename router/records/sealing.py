"""Encrypts what is captured of requests, where it lies: AES-256-GCM, bound to the record that it belongs to.

A sealed body says which key it needs by the first bytes of that key's hash, so that keys can be changed: the first of
those given encrypts, all of them decrypt. Whatever does not fit is an error, never a wrong content.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES: Final = 32
ID_BYTES: Final = 8
NONCE_BYTES: Final = 12
"""What GCM is made for. Random ones of 96 bits are good for four thousand million bodies under one key."""

PLAIN: Final = b"\x00"
SEALED: Final = b"\x01"
_BOUND_TO: Final = b"pointsman content\x00"
_HEX: Final = re.compile(rf"[0-9A-Fa-f]{{{2 * KEY_BYTES}}}")


class SealError(Exception):
    """A body that cannot be opened, or a text that is no key. Quotes neither."""


class Keys:
    """Keys, of which the first encrypts; without any, bodies are kept as they are."""

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        """Raises SealError for a key of another length."""
        if any(len(key) != KEY_BYTES for key in keys):
            raise SealError(f"a key has {KEY_BYTES} bytes")
        self._keys = {key_id(key): key for key in keys}
        self._first = key_id(keys[0]) if keys else None

    def __repr__(self) -> str:
        return f"Keys({', '.join(one.hex() for one in self._keys)})"

    def seal(self, record: str, content: bytes) -> bytes:
        """What is stored of this record's content."""
        if self._first is None:
            return PLAIN + content
        nonce = os.urandom(NONCE_BYTES)
        head = SEALED + self._first
        sealed = _cipher(self._keys[self._first]).encrypt(nonce, content, _binding(record, head))
        return head + nonce + sealed

    def open(self, record: str, stored: bytes) -> bytes:
        """The content again; raises SealError. With keys plain content is none: anybody could have put it there."""
        if stored[:1] == PLAIN and self._first is None:
            return stored[1:]
        if stored[:1] == PLAIN:
            raise SealError("is plain, where what is kept is encrypted; without keys it can be looked at")
        head, rest = stored[: 1 + ID_BYTES], stored[1 + ID_BYTES :]
        if stored[:1] != SEALED or len(rest) < NONCE_BYTES:
            raise SealError("is no captured content")
        key = self._keys.get(head[1:])
        if key is None:
            raise SealError(f"is encrypted with the key {head[1:].hex()}, which is not among those given")
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415

        try:
            return _cipher(key).decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], _binding(record, head))
        except InvalidTag:
            raise SealError("is not what was stored for this record") from None


def _cipher(key: bytes) -> AESGCM:
    # Only whoever has keys loads it: it takes some 6 MB of each process.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    return AESGCM(key)


def read_keys(text: str) -> Keys:
    """Keys from a text, each 32 bytes in base64 or hex, white space or commas between them; raises SealError."""
    words = [word for word in re.split(r"[\s,]+", text) if word]
    if not words:
        raise SealError("there is no key")
    return Keys([_key(word, index) for index, word in enumerate(words, 1)])


def key_id(key: bytes) -> bytes:
    """The first bytes of the key's hash, by which a body says which key it needs."""
    return hashlib.sha256(key).digest()[:ID_BYTES]


def _binding(record: str, head: bytes) -> bytes:
    return _BOUND_TO + record.encode() + b"\x00" + head


def _key(word: str, index: int) -> bytes:
    if _HEX.fullmatch(word):
        return bytes.fromhex(word)
    try:
        # Both alphabets, padded or not.
        plain = word.replace("-", "+").replace("_", "/").rstrip("=")
        key = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise SealError(f"key {index} is not {KEY_BYTES} bytes in base64 or hex; `openssl rand -base64 32` makes one")
    return key
