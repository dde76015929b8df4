"""`metadata`: a value out of a trusted request header that carries a JSON object, such as a token's claims.

    metadata:
      radiology: {header: x-jwt-payload, key: department, any: [radiology, oncology]}
      trained: {header: x-jwt-payload, key: /realm_access/roles, any: [phi-reader]}
      adult: {header: x-jwt-payload, key: age_verified, any: [true]}

The header holds the object as JSON, or in base64 or base64url with or without padding: what Envoy's jwt_authn filter
writes under `forward_payload_header`. It must be one that the policy lists as trusted: it can't see whether a signature
holds, nor read a whole token. Strings match strings, numbers numbers, booleans booleans; of a list one item is enough.
Costs microseconds. A missing header, member or null does not match; a header that is no such object, or an object where
a value should be, is a failure, so that the answer is unknown. No value is ever recorded.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt

from router.request.data_uri import read_base64_or_data_uri
from router.request.errors import RequestError
from router.request.strict_json import JsonObject, decode
from router.request.view import RequestView
from router.signals.base import Cost, Evidence, Observation, SignalName, failed, observed
from router.signals.json_members import as_text, read_path, values_at
from router.signals.settings import Phrase, SignalSettings
from router.signals.texts import encodable
from router.signals.trusted_header import HeaderName, pointer_to, value_of

LARGEST: Final = 262_144
"""Characters of a header's value that are read; Envoy lets 60 KiB of headers through unless it is told otherwise."""

Scalar = StrictBool | StrictInt | StrictFloat | Phrase


def _checked(path: str) -> str:
    read_path(path)
    return path


class MetadataSettings(SignalSettings):
    """Settings of a `metadata` signal."""

    header: HeaderName = Field(
        description="The header that carries a JSON object; the policy has to list it as trusted."
    )
    key: Annotated[Phrase, AfterValidator(_checked)] = Field(
        description="Where the value stands: names joined by dots (`realm_access.roles`), or a JSON pointer "
        "(`/realm_access/roles`). In a list a number is an index, and any other name is looked for in each item."
    )
    any: tuple[Scalar, ...] | None = Field(
        None,
        min_length=1,
        description="Values; one that is there is enough. Omitted: any value that is not null.",
    )
    case_sensitive: bool = Field(False, description="Whether upper and lower case differ in strings.")

    @property
    def trusted_headers(self) -> tuple[str, ...]:
        """The header it reads."""
        return (self.header,)


class MetadataSignal:
    """Whether the value is one of those asked for; has no score. The label is the policy's word that fits."""

    cost = Cost.HEURISTIC

    def __init__(self, name: SignalName, settings: MetadataSettings) -> None:
        self.name = name
        self._header = settings.header
        self._steps = read_path(settings.key)
        self._fold = str if settings.case_sensitive else str.casefold
        self._wanted = None if settings.any is None else {self._key(word): as_text(word) for word in settings.any}

    async def prepare(self) -> None:
        """Nothing to do."""

    async def observe(self, view: RequestView) -> Observation:
        """Decode and compare; unknown where the header holds no JSON object."""
        pointer = pointer_to(self._header)
        value = value_of(view, self._header)
        if not value:
            return observed(False, evidence=(Evidence(pointer, detail="absent"),))
        document = _object_in(value)
        if isinstance(document, str):
            return failed(document, (Evidence(pointer, detail=document),))
        found = [value for value in values_at(document, self._steps) if value is not None]
        for scalar in found:
            if not isinstance(scalar, dict) and (label := self._word_for(scalar)) is not None:
                return observed(True, label=label, evidence=(Evidence(pointer, label=label),))
        if any(isinstance(value, dict) for value in found):
            reason = "an object where a value should be"
            return failed(reason, (Evidence(pointer, detail=reason),))
        return observed(False, evidence=(Evidence(pointer),))

    def _word_for(self, scalar: object) -> str | None:
        return "" if self._wanted is None else self._wanted.get(self._key(scalar))

    def _key(self, scalar: object) -> tuple[str, object]:
        # True equals 1 in Python, and in no claim.
        match scalar:
            case bool():
                return "boolean", scalar
            case str():
                return "string", self._fold(scalar.strip())
            case _:
                return "number", scalar


def _object_in(value: str) -> JsonObject | str:
    """The object that a header's value carries, or why it carries none."""
    if len(value) > LARGEST:
        return "too long to be read"
    data = encodable(value).encode()
    if not value.startswith("{"):
        source = read_base64_or_data_uri(value)
        if source.status != "inline":
            return "neither JSON nor base64"
        data = source.data
    try:
        return decode(data)
    except RequestError:
        return "not a JSON object"
