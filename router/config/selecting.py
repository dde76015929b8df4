"""How a policy writes `select`: a word, or a mapping of one word to its settings; and what becomes of it.

Field descriptions are the documentation that editors show. Formulas stand in `router.selection`, in the module of each
word.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from router.config.problems import Location, did_you_mean
from router.selection.model import (
    Bandit,
    Cheapest,
    Elo,
    Fastest,
    Hybrid,
    Limits,
    MultiFactor,
    Select,
    Similarity,
    Static,
    Weighted,
    picks_by,
)

Report = Callable[[Location, str], None]

_Share = Annotated[float, Field(ge=0, le=1)]
_Weight = Annotated[float, Field(ge=0, le=1e9)]
_ANSWER: Final = "Tokens that an answer is expected to have, unless the request allows fewer."
_EXPLORE: Final = "Share of requests that goes to all candidates alike, so that something is learnt about each."


class SelectSection(BaseModel):
    """A mapping below `select`: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StaticSettings(SelectSection):
    """The first candidate, always."""

    def made(self) -> Static:
        """The selection."""
        return Static()


class WeightedSettings(SelectSection):
    """Each candidate gets its share of keys, and a key keeps its candidate."""

    weights: dict[str, _Weight] = Field(min_length=1, description="model -> weight, for every candidate of the route.")
    sticky: Literal["conversation", "header", "request"] = Field(
        default="conversation",
        description="What keeps its candidate: the conversation, by its beginning; the value of `header`, the "
        "conversation where it is missing; or nothing beyond the request.",
    )
    header: str = Field(default="", description="sticky: header: one of trusted_headers.")

    @model_validator(mode="after")
    def _holds_together(self) -> WeightedSettings:
        if not any(self.weights.values()):
            raise ValueError("one of the weights must be above 0")
        if (self.sticky == "header") != bool(self.header):
            raise ValueError("`sticky: header` and `header` go together")
        return self

    def made(self) -> Weighted:
        """The selection."""
        return Weighted(self.weights, self.sticky, self.header.lower())


class CheapestSettings(SelectSection):
    """The lowest expected price of the request."""

    output_tokens: int = Field(default=500, ge=0, le=10_000_000, description=_ANSWER)

    def made(self) -> Cheapest:
        """The selection."""
        return Cheapest(self.output_tokens)


class FastestSettings(SelectSection):
    """The lowest percentile of a measured time."""

    measure: Literal["ttft", "latency"] = Field(
        default="ttft", description="ttft: time to the first token; latency: to the end of the answer."
    )
    percentile: float = Field(default=50, ge=0, le=100, description="Which percentile of the latest times.")
    explore: _Share = Field(default=0.05, description=_EXPLORE)

    def made(self) -> Fastest:
        """The selection."""
        return Fastest(self.measure, self.percentile, self.explore)


class BoundSettings(SelectSection):
    """Limits that a candidate must keep; what is not known of it breaks none."""

    min_quality: _Share | None = Field(default=None, description="Least quality, as the upstreams state it.")
    max_cost: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="Highest expected price of the request."
    )
    max_latency_ms: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="Highest median latency.")
    max_load: _Share | None = Field(default=None, description="Highest load, as measured.")
    output_tokens: int = Field(default=500, ge=0, le=10_000_000, description=_ANSWER)

    def made(self) -> Limits:
        """The limits."""
        return Limits(self.min_quality, self.max_cost, self.max_latency_ms, self.max_load, self.output_tokens)


class FactorSettings(SelectSection):
    """How much each counts."""

    quality: _Weight = Field(default=1, description="Quality, as the upstreams state it.")
    latency: _Weight = Field(default=1, description="The lowest median latency over the candidate's own.")
    cost: _Weight = Field(default=1, description="The lowest expected price over the candidate's own.")
    load: _Weight = Field(default=0, description="One minus the load, as measured.")

    @model_validator(mode="after")
    def _something(self) -> FactorSettings:
        if not any((self.quality, self.latency, self.cost, self.load)):
            raise ValueError("one of the weights must be above 0")
        return self


class MultiFactorSettings(SelectSection):
    """A weighted mean of quality, latency, cost and load, within limits."""

    weights: FactorSettings = Field(default=FactorSettings(), description="How much each counts.")
    limits: BoundSettings = Field(default=BoundSettings(), description="What a candidate must keep.")

    def made(self) -> MultiFactor:
        """The selection."""
        weights = self.weights
        return MultiFactor(weights.quality, weights.latency, weights.cost, weights.load, self.limits.made())


class SimilaritySettings(SelectSection):
    """The candidate whose card is most like what the user says."""

    def made(self) -> Similarity:
        """The selection."""
        return Similarity()


class EloSettings(SelectSection):
    """The highest rating from comparisons."""

    explore: _Share = Field(default=0.05, description=_EXPLORE)

    def made(self) -> Elo:
        """The selection."""
        return Elo(self.explore)


class BanditSettings(SelectSection):
    """Thompson sampling over rewards."""

    prior: tuple[Annotated[float, Field(ge=0.5, le=1000)], Annotated[float, Field(ge=0.5, le=1000)]] = Field(
        default=(1.0, 1.0), description="The two numbers of the Beta distribution that every candidate starts from."
    )

    def made(self) -> Bandit:
        """The selection."""
        return Bandit(self.prior)


class _OneWord(SelectSection):
    @model_validator(mode="after")
    def _one(self) -> _OneWord:
        if len(self.model_fields_set) != 1 or None in (getattr(self, name) for name in self.model_fields_set):
            raise ValueError(f"needs exactly one of {', '.join(type(self).model_fields)}")
        return self

    @property
    def chosen(self) -> Any:
        """The settings that are there."""
        [name] = self.model_fields_set
        return getattr(self, name)


def _spelled_out(value: Any) -> Any:
    """`static` as `{static: {}}`, and `{bandit: }` as `{bandit: {}}`."""
    if isinstance(value, str):
        return {value: {}}
    if isinstance(value, dict):
        return {key: {} if inner is None else inner for key, inner in value.items()}
    return value


class PickSettings(_OneWord):
    """What picks within the rules: one of these."""

    fastest: FastestSettings | None = Field(default=None, description="The lowest percentile of a measured time.")
    similarity: SimilaritySettings | None = Field(default=None, description="The card most like what the user says.")
    elo: EloSettings | None = Field(default=None, description="The highest rating.")
    bandit: BanditSettings | None = Field(default=None, description="Thompson sampling over rewards.")


PickWord = Literal["fastest", "similarity", "elo", "bandit"]
Pick = Annotated[PickSettings, BeforeValidator(_spelled_out, json_schema_input_type=PickWord | PickSettings)]


class HybridSettings(SelectSection):
    """Rules bound, learning picks within."""

    limits: BoundSettings = Field(default=BoundSettings(), description="What a candidate must keep.")
    first: int | None = Field(default=None, ge=1, description="How many of those left stay, in the route's order.")
    pick: Pick = Field(description="What chooses among those: fastest, similarity, elo or bandit.")

    def made(self) -> Hybrid:
        """The selection."""
        return Hybrid(self.pick.chosen.made(), self.limits.made(), self.first)


class SelectSettings(_OneWord):
    """How one of the candidates is selected: one of these."""

    static: StaticSettings | None = Field(default=None, description="The first candidate.")
    weighted: WeightedSettings | None = Field(default=None, description="Shares by weight; a key keeps its candidate.")
    cheapest: CheapestSettings | None = Field(default=None, description="The lowest expected price.")
    fastest: FastestSettings | None = Field(default=None, description="The lowest percentile of a measured time.")
    multi_factor: MultiFactorSettings | None = Field(
        default=None, description="A weighted mean of quality, latency, cost and load, within limits."
    )
    similarity: SimilaritySettings | None = Field(default=None, description="The card most like what the user says.")
    elo: EloSettings | None = Field(default=None, description="The highest rating.")
    bandit: BanditSettings | None = Field(default=None, description="Thompson sampling over rewards.")
    hybrid: HybridSettings | None = Field(default=None, description="Rules bound, learning picks within.")


SelectWord = Literal["static", "cheapest", "fastest", "multi_factor", "similarity", "elo", "bandit"]
Selecting = Annotated[SelectSettings, BeforeValidator(_spelled_out, json_schema_input_type=SelectWord | SelectSettings)]
"""The type of the key `select`."""


def read_select(settings: SelectSettings) -> Select:
    """The selection that the settings say."""
    made: Select = settings.chosen.made()
    return made


@dataclass(frozen=True, slots=True)
class Selectable:
    """What the rest of the policy gives to selections: models by what is known of them."""

    priced: Collection[str]
    rated: Collection[str]
    carded: Collection[str]
    trusted_headers: Collection[str]
    text_encoder: bool


def check_select(
    settings: SelectSettings, models: Sequence[str], location: Location, have: Selectable, report: Report
) -> None:
    """Report what the selection needs of the policy and does not find there. `location` is that of `select`."""
    [word] = settings.model_fields_set
    here = (*location, word)
    select = read_select(settings)
    if isinstance(select, Weighted):
        for model in select.weights:
            if model not in models:
                report((*here, "weights", model), f'the route has no model "{model}"{did_you_mean(model, models)}')
        for model in models:
            if model not in select.weights:
                report((*here, "weights"), f'needs a weight for "{model}" too; 0 if it is to have no share')
        if select.sticky == "header" and select.header not in have.trusted_headers:
            message = f'"{select.header}" is not among trusted_headers, so that any client could set it'
            report((*here, "header"), message)
    for what, need, known in _asked_of_models(select, have):
        missing = [model for model in models if model not in known]
        if missing:
            report(here, f"{what} needs `{need}` of each candidate; {', '.join(missing)} has none")
    if isinstance(picks_by(select), Similarity) and not have.text_encoder:
        report(here, "similarity needs encoders.text; for example `text: starter`")


def _asked_of_models(select: Select, have: Selectable) -> Iterator[tuple[str, str, Collection[str]]]:
    limits = select.limits if isinstance(select, Hybrid | MultiFactor) else Limits()
    factors = select if isinstance(select, MultiFactor) else None
    if isinstance(select, Cheapest):
        yield "cheapest", "price", have.priced
    if limits.max_cost is not None or (factors and factors.cost):
        yield "a weight or limit of cost", "price", have.priced
    if limits.min_quality is not None or (factors and factors.quality):
        yield "a weight or limit of quality", "quality", have.rated
    if isinstance(picks_by(select), Similarity):
        yield "similarity", "card", have.carded
