"""The policy file's shape. Field descriptions are the documentation that editors show.

Only shape lives here: `load.py` checks what refers to what, and the families' own settings come from
`router.signals.registry`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from router.config.handling import (
    EncodingSettings,
    LimitSettings,
    ParitySettings,
    RecordSettings,
    RemoteImageSettings,
    ResponseSettings,
    ShadowSettings,
)
from router.config.remote_encoder import EncoderPack
from router.config.section import Section
from router.config.selecting import Selecting
from router.packs.files import TowerKind
from router.request.image_tokens import RULE_PATTERN
from router.request.view import Api, Capability
from router.signals.trusted_header import HeaderName

HeaderWord = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]+$", max_length=256)]
"""Goes into a header as it is, so: visible ASCII, no space."""

MetadataPath = Annotated[str, StringConstraints(pattern=r"^[^:]+(:[^:]+)+$", max_length=512)]
AttributeName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)*$", max_length=256)]

Modality = Literal["text", "image", "audio", "file"]


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


class PriceSettings(Section):
    """What a million tokens cost, in one currency throughout the policy."""

    input_per_million: float = Field(ge=0, allow_inf_nan=False, description="Tokens of the question.")
    output_per_million: float = Field(ge=0, allow_inf_nan=False, description="Tokens of the answer.")


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
    context_tokens: int | None = Field(
        default=None, gt=0, description="Tokens that fit, question and answer together; omitted: without bound."
    )
    capabilities: tuple[Capability, ...] | None = Field(
        default=None, description="What the model can do beyond answering; omitted: everything."
    )
    outputs: tuple[Literal["text", "image", "audio"], ...] = Field(
        default=("text",), min_length=1, description="Kinds of answer that the model can give."
    )
    price: PriceSettings | None = Field(default=None, description="What a million tokens cost.")
    quality: float | None = Field(default=None, ge=0, le=1, description="How good its answers are, in your judgement.")
    image_tokens: str = Field(
        default="",
        pattern=f"^$|{RULE_PATTERN}",
        description="How it counts the tokens of images, as in openai_tiles, anthropic or fixed:576; omitted: not.",
    )
    card: str = Field(default="", max_length=4000, description="What the model is good at, in words.")


class EncoderSettings(Section):
    """The packs that give text and images their embeddings: a shipped pack's name, or a folder."""

    text: EncoderPack | None = Field(
        default=None, description="Pack of the text encoder, or a mapping that also says which server runs it."
    )
    vision: EncoderPack | None = Field(
        default=None, description="Pack of the vision encoder, or a mapping that also says which server runs it."
    )
    dimension: int | None = Field(
        default=None,
        gt=0,
        description="Length to which embeddings are cut, for packs that were trained for it; omitted: their own.",
    )

    @property
    def elsewhere(self) -> frozenset[TowerKind]:
        """The towers that are not run here."""
        kinds: tuple[TowerKind, ...] = ("text", "vision")
        given = ((kind, self.text if kind == "text" else self.vision) for kind in kinds)
        return frozenset(kind for kind, encoder in given if encoder is not None and encoder.remote is not None)


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


class IntervalSettings(Section):
    """A range of numbers; a missing end is without bound."""

    gte: float | None = Field(default=None, allow_inf_nan=False, description="From this number on.")
    gt: float | None = Field(default=None, allow_inf_nan=False, description="Above this number.")
    lte: float | None = Field(default=None, allow_inf_nan=False, description="Up to this number.")
    lt: float | None = Field(default=None, allow_inf_nan=False, description="Below this number.")


class PartitionSettings(Section):
    """Rival signals of which at most one wins."""

    of: tuple[str, ...] = Field(min_length=2, description="Members, as family/name, with scores of one kind.")
    method: Literal["exclusive", "softmax"] = Field(
        default="exclusive",
        description="exclusive: of those that matched, the one with the highest score; softmax: shares of all scores.",
    )
    temperature: float = Field(default=1.0, gt=0, le=1000, description="softmax: scores are divided by it first.")
    none: float | None = Field(
        default=None, ge=-1000, le=1000, description="softmax: the score of a rival that stands for none of them."
    )
    threshold: float = Field(default=0.0, ge=0, le=1, description="softmax: share from which on a winner counts.")


class ScoreSettings(Section):
    """A weighted sum."""

    inputs: tuple[dict[str, Any], ...] = Field(
        min_length=1,
        description="Summands {family: name, weight: 0.5}; by: match (1 or 0), score or value; gte, gt, lte, lt and "
        "label ask as in a condition.",
    )
    offset: float = Field(default=0.0, allow_inf_nan=False, description="What the sum begins with.")
    missing: Literal["unknown", "skip"] = Field(
        default="unknown", description="What an unknown input makes of the sum: unknown, or it adds nothing."
    )
    threshold: float | None = Field(
        default=None, allow_inf_nan=False, description="Sum from which on the projection matches by itself."
    )


class BandSettings(Section):
    """Names for the ranges of a number."""

    of: str | dict[str, str] = Field(description="A score's name, or {family: name} of a signal with a number.")
    bands: dict[HeaderWord, IntervalSettings] = Field(min_length=1, description="label -> range.")
    gaps: Literal["forbid", "allow"] = Field(
        default="forbid", description="allow: numbers between the bands are in none of them."
    )


class ProjectionSettings(Section):
    """Signals derived from signals."""

    partition: dict[str, PartitionSettings] = Field(default_factory=dict, description="name -> rivals.")
    score: dict[str, ScoreSettings] = Field(default_factory=dict, description="name -> weighted sum.")
    band: dict[str, BandSettings] = Field(default_factory=dict, description="name -> ranges of a number.")


class RouteSettings(Section):
    """Which models may take the request."""

    models: tuple[str, ...] = Field(min_length=1, description="Candidates, by the upstreams' model names.")
    select: Selecting = Field(
        default="static",
        validate_default=True,
        description="How one of them is selected: a word, or a mapping of one word to its settings.",
    )
    fallback: tuple[str, ...] = Field(
        default=(), description="Models, best first, for a request that none of the candidates can take."
    )


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
    when: Any = Field(
        description="{all: [..]}, {any: [..]}, {at_least: n, of: [..]}, {not: ..}, or {family: name} of a signal or "
        "projection, with gte, gt, lte, lt or label if wanted."
    )
    route: RouteSettings | None = Field(default=None, description="Send it to a model.")
    respond: RespondSettings | None = Field(default=None, description="Answer it here.")

    @model_validator(mode="after")
    def _one_outcome(self) -> DecisionSettings:
        if (self.route is None) == (self.respond is None):
            raise ValueError("needs exactly one outcome: route or respond")
        return self


class ProfileHeaderSettings(Section):
    """A trusted header whose value chooses a profile."""

    name: HeaderName = Field(description="One of trusted_headers.")
    any: tuple[str, ...] = Field(min_length=1, description="Its values, in any case; one is enough.")


class ProfileSettings(Section):
    """A set of decisions of its own. The policy's guards are considered under every profile."""

    name: HeaderWord = Field(description="Appears in records.")
    models: tuple[str, ...] = Field(default=(), description="Model names that clients ask for to have this profile.")
    header: ProfileHeaderSettings | None = Field(default=None, description="A header that gives requests this profile.")
    decisions: tuple[DecisionSettings, ...] = Field(default=(), description="In place of the policy's own routes.")
    default_model: str | None = Field(
        default=None, description="Where a request of this profile goes without a match goes; omitted: the policy's."
    )

    @model_validator(mode="after")
    def _can_be_chosen(self) -> ProfileSettings:
        if not self.models and self.header is None:
            raise ValueError("needs models or header, or no request will ever have this profile")
        return self


class ApiRuleSettings(Section):
    """A path and the API that stands behind it."""

    path: str = Field(
        min_length=1, max_length=1024, description="{x} stands for one segment, * in front for whatever comes before."
    )
    api: Api | Literal["none"] = Field(
        description="The API whose bodies are sent there; none: it has nothing to do with language models."
    )


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
    strategy: Literal["priority", "confidence"] = Field(
        default="priority",
        description="What settles between routes that match. priority: the higher one, then the surer; confidence: the "
        "surer, then the higher priority. Guards always go by priority.",
    )
    evaluation: Literal["lazy", "full"] = Field(
        default="lazy", description="lazy: signals that cannot change the outcome are not asked; full: all are."
    )
    observe_only: bool = Field(
        default=False,
        description="Decide and record, and change nothing: every request goes to default_model as it came.",
    )
    gateway_api_inference: bool = Field(
        default=False,
        description="Name the model in x-gateway-model-name, too, which routes of the Gateway API Inference Extension "
        "match.",
    )
    responses: ResponseSettings = Field(default=ResponseSettings(), description="What is read of responses.")
    records: RecordSettings | None = Field(
        default=None, description="Where decision records are kept; omitted: nowhere but in the log."
    )
    shadow: ShadowSettings | None = Field(
        default=None, description="Another policy that is tried on live requests, without effect."
    )
    trusted_headers: tuple[HeaderName, ...] = Field(
        default=(),
        description="Request headers that signals and profiles may read: those that a filter in front sets, and "
        " takes away when a client sends them.",
    )
    strip_from_clients: tuple[HeaderName, ...] = Field(
        default=(),
        description="Those of trusted_headers that no client may set: Envoy takes away what clients send of them "
        "before its filters, one of which sets them.",
    )
    trusted_metadata: dict[HeaderName, MetadataPath] = Field(
        default_factory=dict,
        description="name -> namespace:key, or namespace:key:key, of Envoy's dynamic metadata, such as a claim of a "
        "token; read by its name as trusted headers are.",
    )
    trusted_attributes: dict[HeaderName, AttributeName] = Field(
        default_factory=dict,
        description="name -> an attribute of Envoy's, such as connection.uri_san_peer_certificate; read by its name as "
        "trusted headers are.",
    )
    upstreams: tuple[UpstreamSettings, ...] = Field(min_length=1, description="The models.")
    default_model: str = Field(description="Where a request goes that no decision matches.")
    fallback: tuple[str, ...] = Field(
        default=(),
        description="Models, best first, for a request that none of a route's candidates can take, guards' excepted.",
    )
    encoders: EncoderSettings = Field(default=EncoderSettings(), description="Model packs.")
    limits: LimitSettings = Field(default=LimitSettings(), description="Bounds.")
    encodings: EncodingSettings = Field(default=EncodingSettings(), description="Compressed request bodies.")
    remote_images: RemoteImageSettings | None = Field(
        default=None, description="Images behind URLs; omitted: none is fetched, so that they can't be judged."
    )
    parity: ParitySettings = Field(default=ParitySettings(), description="Checks of packs while serving.")
    signals: dict[str, dict[str, Any]] = Field(default_factory=dict, description="family -> name -> settings.")
    projections: ProjectionSettings = Field(default=ProjectionSettings(), description="Signals derived from signals.")
    decisions: tuple[DecisionSettings, ...] = Field(default=(), description="What is decided, and when.")
    apis: tuple[ApiRuleSettings, ...] = Field(
        default=(), description="Paths of LLM requests beside the usual ones; the first that fits counts."
    )
    profiles: tuple[ProfileSettings, ...] = Field(
        default=(), description="Sets of decisions of their own; the first whose model or header a request has is its."
    )

    @property
    def all_trusted(self) -> tuple[str, ...]:
        """Every name that is read as a trusted header."""
        return (*self.trusted_headers, *self.trusted_metadata, *self.trusted_attributes)
