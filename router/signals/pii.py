"""`pii`: personal data, anywhere in the request.

    pii:
      restricted: {types: [CREDIT_CARD, US_SSN, IBAN_CODE, TRAVEL_DOCUMENT], read_images: true}
      address_list: {types: [EMAIL_ADDRESS], min_count: 20}
      people: {types: [PERSON]}
      people_and_places: {types: [PERSON, LOCATION], model: packs/names, labels: {B-PER: PERSON}}
      licences: {types: [US_DRIVER_LICENSE], engine: presidio}

Types have Presidio's names. Cards (issuer, length, Luhn), IBANs (country's length, mod 97), US social security numbers
(area, group, serial), travel documents (machine-readable zones with their check digits), e-mail and IP addresses and
phone numbers are found by patterns; words nearby raise or lower a score. Every other type is asked of the text pack's
head `pii`, of a token-classifier pack (`model`) or of Presidio (`engine: presidio`, with `pip install
'pointsman[pii]'`). All of the request is read: every turn and role, tool calls, tool results, tool definitions, names
of files and, with `read_images`, what is written in images.

Patterns cost microseconds for a question and about half a millisecond a kilobyte of tables, in linear time; the head
next to nothing beside the text encoder's pass for each window that is not cached; a classifier a pass of its own;
Presidio its own models in a thread of its own; images a reading each that is not cached. Scores of patterns are set by
hand and not calibrated: 0.9 and more is as good as certain, 0.5 is where words nearby decided. It can't see what is
spelled out in words, encoded, spread over several messages, or inside audio, PDF and other files that are not text;
passport and licence numbers that stand alone; national numbers of other countries than the United States. Addresses of
shared mail boxes and numbers out of manuals are found like anybody's; IP addresses of private networks, of the machine
itself and of manuals (RFC 1918, 5737 and their like) score at most 0.4, and count only where the `threshold` is as low.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from functools import partial
from typing import Final, Literal

from pydantic import Field, model_validator

from router.inference.classifier import Labelling
from router.inference.reading import ImageReader
from router.request.view import RequestView, Role
from router.signals.base import Cost, Observation, SignalName
from router.signals.gathering import Gathering, Source, look_through
from router.signals.heads import required_head
from router.signals.pii_models import Tagger, entity, open_presidio
from router.signals.pii_patterns import PATTERN_TYPES, PatternFinder
from router.signals.places import ALL_ROLES
from router.signals.resources import Resources, SignalSetupError
from router.signals.scan import Found, scan
from router.signals.settings import Phrase, SignalSettings, Threshold
from router.signals.texts import encodable

MAX_COUNT: Final = 1_000
"""The most that `min_count` may ask for."""


HEAD: Final = "pii"

ELSEWHERE: Final = "can be had of a token-classifier pack, named under `model`, or of `engine: presidio`"


class PiiSettings(SignalSettings):
    """Settings of a `pii` signal."""

    types: tuple[Phrase, ...] = Field(
        PATTERN_TYPES,
        min_length=1,
        description="Types that count, by Presidio's names, and TRAVEL_DOCUMENT. Patterns find "
        + ", ".join(PATTERN_TYPES)
        + "; others are asked of the text pack's head, of a `model` or of Presidio.",
    )
    min_count: int = Field(1, ge=1, le=MAX_COUNT, description="Different values from which on it matches.")
    threshold: Threshold = Field(
        0.5,
        description="Score from which on a value counts. Not given: what the head finds must reach its own threshold "
        "too, which its pack names.",
    )
    roles: tuple[Role, ...] = Field(
        ALL_ROLES, min_length=1, description="Roles whose parts are read; all of them by default."
    )
    read_images: bool = Field(False, description="Whether what is written inside images is read too.")
    model: Phrase | None = Field(
        None, description="A token-classifier pack, by name or path, for the types that no pattern finds."
    )
    labels: Mapping[str, str] = Field(
        default_factory=dict,
        description="What the pack's labels mean, such as {B-PER: PERSON}. Usual ones (PER, LOC, ORG) are known.",
    )
    engine: Literal["patterns", "head", "presidio"] | None = Field(
        None,
        description="Who is asked for types that no pattern finds. head: the text pack's head; presidio: Presidio, an "
        "optional dependency; patterns: nobody. Not given: the `model` if there is one, else the head.",
    )
    language: str = Field("en", pattern="^[a-z]{2}$", description="The language that Presidio is to expect.")
    nlp_configuration: Phrase | None = Field(
        None,
        description="Presidio's NLP engine configuration, a YAML file; by default spaCy's large model of the language.",
    )

    @property
    def classifier_packs(self) -> tuple[str, ...]:
        """The token classifier."""
        return () if self.model is None else (self.model,)

    @property
    def heads(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return (HEAD,) if self.asks_head else ()

    @property
    def asks_head(self) -> bool:
        """Whether the text encoder's head is asked for types that no pattern finds."""
        return bool(self.tagged_types) and self.model is None and self.engine in (None, "head")

    @property
    def reads_images(self) -> bool:
        """As the policy says."""
        return self.read_images

    @property
    def tagged_types(self) -> tuple[str, ...]:
        """Types that no pattern finds."""
        return tuple(kind for kind in self.types if kind not in PATTERN_TYPES)

    @model_validator(mode="after")
    def _types_have_a_source(self) -> PiiSettings:
        presidio = self.engine == "presidio"
        if self.model is not None and self.engine in ("head", "presidio"):
            raise ValueError(f"`model` and `engine: {self.engine}` are two sources for the same types; choose one")
        if self.tagged_types and self.model is None and self.engine == "patterns":
            raise ValueError(
                f"no pattern finds {', '.join(self.tagged_types)}; name a token-classifier pack under `model`, "
                f"`engine: head` or `engine: presidio`"
            )
        if not self.tagged_types and self.engine in ("head", "presidio"):
            raise ValueError(f"patterns find all of these types; `engine: {self.engine}` would not be asked")
        if self.labels and self.model is None:
            raise ValueError("`labels` are a pack's; name it under `model`")
        if self.nlp_configuration is not None and not presidio:
            raise ValueError("`nlp_configuration` is Presidio's; it needs `engine: presidio`")
        return self


class PiiSignal:
    """How sure it is that the request has personal data of the types that count.

    `tagger` is asked for `tagged_types`, with the words of `labels`; what it is less sure of than `least` is dropped.
    """

    def __init__(
        self,
        name: SignalName,
        settings: PiiSettings,
        reader: ImageReader | None = None,
        tagger: Tagger | None = None,
        least: float = 0.0,
    ) -> None:
        self.name = name
        self._settings = settings
        self._reader = reader
        self._tagger = tagger
        patterns = [kind for kind in settings.types if kind in PATTERN_TYPES]
        self._sources: list[Source] = []
        if patterns:
            self._sources.append(partial(scan, find=PatternFinder(patterns).find))
        if tagger is not None:
            types = frozenset(settings.tagged_types)
            self._sources.append(partial(_tagged, tagger, types, settings.labels, least))

    @property
    def cost(self) -> Cost:
        """Heuristic, unless a model or a reader has to be asked."""
        if self._reader is not None:
            return Cost.READING
        return Cost.HEURISTIC if self._tagger is None else Cost.TEXT_MODEL

    async def prepare(self) -> None:
        """Nothing to do: patterns are compiled and models open."""

    async def observe(self, view: RequestView) -> Observation:
        """Matched if enough different values reach the threshold; unknown if not, and something could not be read.

        Once there are enough of them, and as many as are cited, nothing more is read: the score may be higher still.
        """
        settings = self._settings
        found = Gathering(settings.threshold, settings.min_count, self._tagger.pack if self._tagger else "")
        return await look_through(view, settings.roles, self._sources, self._reader, found)


def build_pii(name: SignalName, settings: PiiSettings, resources: Resources) -> PiiSignal:
    """The signal with what its settings ask for. SignalSetupError where that is not at hand."""
    reader = resources.reader_for(name, settings.read_images)
    if settings.engine == "presidio":
        file = None if settings.nlp_configuration is None else resources.base / settings.nlp_configuration
        presidio = open_presidio(str(name), settings.tagged_types, settings.language, file)
        return PiiSignal(name, settings, reader, presidio)
    if not settings.tagged_types:
        return PiiSignal(name, settings, reader)
    if settings.model is None:
        return _with_head(name, settings, resources, reader)
    classifier = resources.classifiers.get(settings.model)
    if classifier is None:
        raise SignalSetupError(f"{name}: the pack {settings.model!r} is not at hand")
    if missing := _untold(settings, classifier):
        raise SignalSetupError(
            f"{name}: no label of the pack {settings.model!r} means {', '.join(missing)}; it has "
            f"{', '.join(classifier.labels)}. Say under `labels` what they mean"
        )
    return PiiSignal(name, settings, reader, classifier)


def _with_head(name: SignalName, settings: PiiSettings, resources: Resources, reader: ImageReader | None) -> PiiSignal:
    try:
        head = required_head(name, HEAD, resources)
    except SignalSetupError as error:
        raise SignalSetupError(f"{error}. Without it {', '.join(settings.tagged_types)} {ELSEWHERE}") from None
    if head.level != "token":
        raise SignalSetupError(f"{name}: the head {HEAD!r} labels texts, not tokens")
    if missing := _untold(settings, head):
        raise SignalSetupError(
            f"{name}: the head {HEAD!r} knows {', '.join(head.labels)}; {', '.join(missing)} {ELSEWHERE}"
        )
    # Its scores are calibrated, those of patterns are not: where the policy names no threshold, each has its own.
    least = 0.0 if "threshold" in settings.model_fields_set else head.part.threshold
    return PiiSignal(name, settings, reader, head, least)


def _untold(settings: PiiSettings, judges: Labelling) -> list[str]:
    """Types that none of the labels means."""
    told = {entity(label, settings.labels) for label in judges.labels}
    return [kind for kind in settings.tagged_types if kind not in told]


async def _tagged(
    tagger: Tagger, types: Collection[str], labels: Mapping[str, str], least: float, text: str
) -> AsyncIterator[Found]:
    """What the tagger calls one of the types; places are those of the text, whose length stays the same."""
    for span in await tagger.tag(encodable(text)):
        kind = entity(span.label, labels)
        if kind in types and span.score >= least:
            key = hash((kind, text[span.start : span.end].casefold()))
            yield Found((span.start, span.end), kind, span.score, key)
