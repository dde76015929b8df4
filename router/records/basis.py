"""What records rest on beside themselves: the policy's text, and digests of all that its signals' answers depend on.

Stored once for all records that share it. Replay believes an observation for another policy only where the digests
are the same. They hold the signal's settings, the files and packs that it reads, and the bounds on images; not the
program's version, which each record names itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from router.config.handling import RecordSettings
from router.config.load import LoadedPolicy, SignalSpec
from router.records.recast import range_of, without_range
from router.records.stored import RecordFormatError
from router.selection.needs import wants_sizes

WITHOUT_ENCODERS: Final = frozenset(
    (
        "api",
        "conversation",
        "header",
        "keyword",
        "language",
        "memory_write",
        "metadata",
        "modality",
        "role",
        "secret",
        "structure",
        "tool_call",
    )
)
"""Families that never ask an encoder; all others are taken to ask both."""

WITHOUT_VISION: Final = frozenset(
    (
        "classifier",
        "context",
        "domain",
        "fact_check",
        "feedback",
        "jailbreak",
        "knowledge_base",
        "pii",
        "preference",
        "reask",
        "tool_result",
    )
)
"""Families that may ask the text encoder, and never the one of images."""

SHOWN: Final = 16
"""Hex digits of a definition's digest that are kept: 64 bits, of a policy's few hundred signals."""


class StoredBasis(msgspec.Struct, frozen=True):
    """A basis as it is stored. `text` is the policy file's; what is beside it is for who can't read that any more.

    `definitions` are digests by `family/name`. `apis` is a digest of the paths that the policy adds, `models` are its
    upstreams, `profiles` pairs of a profile's name and a digest of what gives requests that profile, in its order.
    `sized` says that images' sizes were looked up.
    """

    policy: str
    text: bytes
    definitions: dict[str, str]
    apis: str
    models: tuple[str, ...]
    profiles: tuple[tuple[str, str], ...]
    sized: bool
    ranges: dict[str, tuple[float | None, float | None]] = {}
    """By `family/name` the range of those whose definition leaves it out, see `recast.py`."""


@dataclass(frozen=True, slots=True)
class Basis:
    """`digest` names it; `body` is a `StoredBasis` in JSON. `settings` say where and how long records are kept."""

    digest: str
    body: bytes
    settings: RecordSettings


def basis_of(loaded: LoadedPolicy, packs: Mapping[str, str], settings: RecordSettings) -> Basis:
    """The basis of all records under this policy. `packs` as for `definitions`. Reads files; raises OSError."""
    body = msgspec.json.encode(stored_basis(loaded, packs), order="sorted")
    return Basis(hashlib.sha256(body).hexdigest(), body, settings.placed(loaded.base))


def stored_basis(loaded: LoadedPolicy, packs: Mapping[str, str]) -> StoredBasis:
    """What is stored of a policy, and what another one is compared by. Reads files; raises OSError."""
    policy = loaded.policy
    return StoredBasis(
        policy=policy.digest,
        text=loaded.source.text,
        definitions=definitions(loaded, packs),
        apis=_digest([[rule.pattern.pattern, rule.api] for rule in policy.apis]),
        models=tuple(upstream.model for upstream in policy.upstreams),
        profiles=tuple(
            (one.name, _digest([sorted(one.models), one.header, sorted(one.values), _source(loaded, one.header)]))
            for one in policy.profiles
        ),
        sized=wants_sizes(policy.upstreams),
        ranges={
            str(spec.name): found
            for spec in loaded.signals
            if (found := range_of(spec.name.family, spec.settings)) is not None
        },
    )


def read_basis(body: bytes) -> StoredBasis:
    """The basis again; raises RecordFormatError."""
    try:
        return msgspec.json.decode(body, type=StoredBasis)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        raise RecordFormatError("is no basis of records") from error


def definitions(loaded: LoadedPolicy, packs: Mapping[str, str]) -> dict[str, str]:
    """Digests by `family/name` of all signals, and as `encoders/text` that of the text encoder.

    `packs` are the packs' own digests: by the keys `text` and `vision`, and by the references that signals name.
    """
    found = {str(spec.name): _digest(list(_of_signal(spec, loaded, packs))) for spec in loaded.signals}
    return {**found, TEXT_ENCODER: _digest(_of_encoder("text", loaded, packs))}


TEXT_ENCODER: Final = "encoders/text"
"""Key of a definition that is no signal's: what similarities with models' cards are computed with."""


def _of_signal(spec: SignalSpec, loaded: LoadedPolicy, packs: Mapping[str, str]) -> Iterator[Any]:
    family, settings = spec.name.family, spec.settings
    written = without_range(family, settings)
    yield family
    yield written
    yield [[text, _file_digest(loaded, text)] for text in sorted(set(_texts(written))) if _is_file(loaded, text)]
    yield [[reference, packs.get(reference)] for reference in settings.classifier_packs]
    yield [[name, _source(loaded, name)] for name in settings.trusted_headers]
    sees = family not in WITHOUT_ENCODERS | WITHOUT_VISION
    if family not in WITHOUT_ENCODERS:
        yield _of_encoder("text", loaded, packs)
    if sees:
        yield _of_encoder("vision", loaded, packs)
    if sees or settings.reads_images:
        remote = loaded.remote_images
        yield [loaded.limits.image_bytes, loaded.limits.image_pixels, remote and remote.model_dump(mode="json")]


def _source(loaded: LoadedPolicy, header: str) -> str | None:
    """Where Envoy takes what is read under the name of a header; None: the header itself."""
    return {**loaded.policy.trusted_metadata, **loaded.policy.trusted_attributes}.get(header)


def _of_encoder(tower: str, loaded: LoadedPolicy, packs: Mapping[str, str]) -> list[Any]:
    return [packs.get(tower), loaded.encoders.dimension]


def _texts(written: Any) -> Iterator[str]:
    if isinstance(written, str):
        yield written
    elif isinstance(written, Mapping):
        for inner in written.values():
            yield from _texts(inner)
    elif isinstance(written, list | tuple):
        for inner in written:
            yield from _texts(inner)


def _is_file(loaded: LoadedPolicy, text: str) -> bool:
    """Any text of the settings may name a file beside the policy; one that does by chance does no harm."""
    try:
        return bool(text) and (loaded.base / text).is_file()
    except (OSError, ValueError):
        return False


def _file_digest(loaded: LoadedPolicy, text: str) -> str:
    with (loaded.base / text).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:SHOWN]
