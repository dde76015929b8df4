"""The policy file's shape. Field descriptions are the documentation that editors show.

Only shape lives here: `load.py` checks what refers to what, and the families' own settings come from
`router.signals.registry`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

HeaderWord = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]+$", max_length=256)]
"""Goes into a header as it is, so: visible ASCII, no space."""

Modality = Literal["text", "image", "audio", "file"]


class Section(BaseModel):
    """A mapping of the policy: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _endpoint(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be http://host:port or https://host:port")
    if parts.username or parts.password:
        raise ValueError("must not carry credentials; they come from the environment or a file")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must end after the port; the client's path is kept")
    _ = parts.port  # raises ValueError when out of range
    return value


class UpstreamSettings(Section):
    """A model that requests can be sent to."""

    model: HeaderWord = Field(description="The name that decisions use.")
    cluster: HeaderWord = Field(description="Envoy's cluster that serves the model.")
    endpoint: Annotated[str, AfterValidator(_endpoint)] | None = Field(
        default=None, description="http(s)://host:port; with it, `pointsman envoy` renders the cluster."
    )
    rewrite_model: str | None = Field(
        default=None, min_length=1, description="What the upstream calls the model; omitted: the name above."
    )
    modalities: tuple[Modality, ...] = Field(default=("text",), min_length=1, description="What the model can read.")


class EncoderSettings(Section):
    """The packs that give text and images their embeddings: a shipped pack's name, or a folder."""

    text: str | None = Field(default=None, min_length=1, description="Pack of the text encoder.")
    vision: str | None = Field(default=None, min_length=1, description="Pack of the vision encoder.")
    dimension: int | None = Field(
        default=None,
        gt=0,
        description="Length to which embeddings are cut, for packs that were trained for it; omitted: their own.",
    )


class LimitSettings(Section):
    """Bounds on what one request may cost."""

    decision_ms: int = Field(
        default=2000,
        gt=0,
        le=60_000,
        description="Time in which a decision is made; a signal that misses it is timed_out.",
    )
    body_bytes: int = Field(
        default=32 * 1024 * 1024, gt=0, le=1024**3, description="Largest request body; Envoy answers 413 past it."
    )
    image_bytes: int = Field(default=20 * 1024 * 1024, gt=0, description="Largest single image, encoded.")
    image_pixels: int = Field(default=25_000_000, gt=0, description="Largest single image, in pixels as declared.")
    queue: int = Field(default=64, gt=0, description="Model calls that may wait in a worker; more are shed.")
    cache_bytes: int = Field(default=64 * 1024 * 1024, ge=0, description="Memory for cached embeddings in a worker.")


class ParitySettings(Section):
    """How a serving worker keeps proving that its packs mean what their references mean."""

    interval: float = Field(
        default=600,
        ge=0,
        le=86_400,
        description="Seconds between checks of one golden vector of each pack while serving; 0: at the start only.",
    )


class RespondSettings(Section):
    """An answer from Pointsman itself: `clarify`, or a refusal with `status`, `code` and `message`."""

    clarify: str | None = Field(default=None, min_length=1, description="The assistant's answer, as a completion.")
    status: int | None = Field(default=None, ge=400, le=599, description="HTTP status of a refusal; default 403.")
    code: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_.-]+$",
        description="Machine-readable code of a refusal; default policy_violation.",
    )
    message: str | None = Field(default=None, min_length=1, description="What the client is told.")

    @model_validator(mode="after")
    def _one_kind(self) -> RespondSettings:
        refusal = any(value is not None for value in (self.status, self.code, self.message))
        if self.clarify is not None and refusal:
            raise ValueError("clarify goes alone; status, code and message belong to a refusal")
        if self.clarify is None and self.message is None:
            raise ValueError("needs either clarify, or message (with status and code if wanted)")
        return self


class RouteSettings(Section):
    """Which models may take the request."""

    models: tuple[str, ...] = Field(min_length=1, description="Candidates, by the upstreams' model names.")
    select: Literal["static"] = Field(default="static", description="static: the first candidate.")


class DecisionSettings(Section):
    """A condition tree, and what follows when it holds."""

    name: HeaderWord = Field(description="Appears in headers, records and traces.")
    priority: int = Field(default=0, description="Higher wins.")
    guard: bool = Field(
        default=False, description="Fails closed: an unknown condition counts as matched; only guards outrank it."
    )
    on_unknown: Literal["match", "no_match"] | None = Field(
        default=None, description="How an unknown condition settles; default: match for guards, no_match for routes."
    )
    when: Any = Field(description="{all: [..]}, {any: [..]}, {not: ..}, or {family: name}.")
    route: RouteSettings | None = Field(default=None, description="Send it to a model.")
    respond: RespondSettings | None = Field(default=None, description="Answer it here.")

    @model_validator(mode="after")
    def _one_outcome(self) -> DecisionSettings:
        if (self.route is None) == (self.respond is None):
            raise ValueError("needs exactly one outcome: route or respond")
        return self


class PolicyFile(Section):
    """The whole file."""

    version: Literal[1] = Field(description="Version of this format.")
    on_failure: Literal["closed", "open"] = Field(
        default="closed",
        description="A request that could not be judged. closed: it is refused; open: it goes to default_model.",
    )
    respect_requested_model: bool = Field(
        default=False, description="Whether a request that names a model of the policy keeps it when only routes match."
    )
    upstreams: tuple[UpstreamSettings, ...] = Field(min_length=1, description="The models.")
    default_model: str = Field(description="Where a request goes that no decision matches.")
    encoders: EncoderSettings = Field(default=EncoderSettings(), description="Model packs.")
    limits: LimitSettings = Field(default=LimitSettings(), description="Bounds.")
    parity: ParitySettings = Field(default=ParitySettings(), description="Checks of packs while serving.")
    signals: dict[str, dict[str, Any]] = Field(default_factory=dict, description="family -> name -> settings.")
    decisions: tuple[DecisionSettings, ...] = Field(default=(), description="What is decided, and when.")
