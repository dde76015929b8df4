"""What was captured of a request, as it is stored and as it is read again. Whether and what is `extproc`'s matter."""

from __future__ import annotations

import base64
from typing import Any, Final

import msgspec

from router.config.handling import CaptureSettings
from router.records.opening import secret_text
from router.records.sealing import Keys, SealError, read_keys
from router.records.store import Reader, StoreError
from router.request.apis import parse
from router.request.errors import RequestError
from router.request.view import Api

FORMAT: Final = 1


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of a request: its body as it was judged, and the trusted headers that signals read.

    `redacted`: values were replaced; `removed` counts images, files and audio that were.
    """

    format: int
    api: Api
    body: bytes
    headers: dict[str, str] = {}
    redacted: bool = False
    removed: int = 0
    read: tuple[str, ...] = ()
    """Names of headers that would be among `headers` if they had been sent."""

    def __repr__(self) -> str:
        return f"Content({self.api}, {len(self.body)} bytes)"

    @property
    def whole(self) -> bool:
        """Whether nothing was taken out."""
        return not self.redacted and not self.removed


def keys_of(settings: CaptureSettings | None) -> Keys:
    """The keys that the policy names; none where content is kept in plain. Raises StoreError and SealError."""
    if settings is None or not settings.encrypt:
        return Keys()
    return read_keys(secret_text(settings.key_env, settings.key_file))


def seal(keys: Keys, record: str, content: Content) -> bytes:
    """What is stored."""
    return keys.seal(record, msgspec.json.encode(content))


def content_of(store: Reader, record: str, keys: Keys) -> Content | None:
    """What was captured of this record's request; None where nothing was.

    Raises StoreError, and SealError for what the keys do not open.
    """
    row = store.content(record)
    if row is None or row.body is None:
        return None
    try:
        content = msgspec.json.decode(keys.open(record, row.body), type=Content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise SealError("is no content that this version can read") from None
    if content.format != FORMAT:
        raise SealError(f"is content of format {content.format}; this version reads {FORMAT}")
    return content


def captured(store: Reader, identifier: str, keys: Keys) -> dict[str, Any] | None:
    """For people to look at: `{"text": [...], "images": [{"index", "media_type", "data_base64"}]}`; None: nothing.

    Images that were removed are missing; the others keep their index. What cannot be opened with these keys is as good
    as not captured.
    """
    try:
        content = content_of(store, identifier, keys)
        return None if content is None else shown(content)
    except (SealError, StoreError):
        return None


def shown(content: Content) -> dict[str, Any]:
    """Its texts in their order, and its images."""
    try:
        view = parse(content.api, content.body)
    except RequestError:
        # Another version read it otherwise.
        return {"text": [content.body.decode("utf-8", "replace")], "images": []}
    return {
        "text": [span.text for span in view.texts],
        "images": [
            {
                "index": index,
                "media_type": image.media_type,
                "data_base64": base64.b64encode(image.data).decode("ascii"),
            }
            for index, image in enumerate(view.images)
            if image.data
        ],
    }
