"""Names, places and whatever else has no shape: asked of a token classifier, or of Presidio.

Both are taggers: a text in, labelled stretches of it out. Presidio is optional; it runs in a thread of its own, one
text after another, and never on the event loop. Its models are its own business: they must be installed, since nothing
is fetched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

import yaml

from router.inference.classifier import TaggedSpan
from router.inference.executor import Overloaded
from router.signals.resources import SignalSetupError

USUAL_LABELS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("PER", "PERS", "NAME", "FIRSTNAME", "LASTNAME", "GIVENNAME", "SURNAME"), "PERSON"),
    **dict.fromkeys(("LOC", "GPE", "FAC", "CITY", "STREET", "ADDRESS", "STREET_ADDRESS"), "LOCATION"),
    "ORG": "ORGANIZATION",
    "NORP": "NRP",
    **dict.fromkeys(("DATE", "TIME"), "DATE_TIME"),
    "EMAIL": "EMAIL_ADDRESS",
    "PHONE": "PHONE_NUMBER",
}
"""What labels of token classifiers usually mean, in Presidio's words; others keep their name."""

PIECE: Final = 4_000
"""Characters that Presidio gets at once; entities over the border of two pieces are seen whole in a third."""

_SEAM: Final = 200

QUEUE: Final = 16
"""Texts that wait for Presidio before more are refused."""

# Their check asks tldextract, which fetches a list from the network.
_FETCHING: Final = frozenset({"EMAIL_ADDRESS", "URL"})


class Tagger(Protocol):
    """What the signal asks: a classifier pack's `tag`, or Presidio's."""

    @property
    def pack(self) -> str:
        """The digest of the pack, or ""."""
        ...

    async def tag(self, text: str) -> tuple[TaggedSpan, ...]:
        """Labelled stretches of the whole text, in order. Raises Overloaded."""
        ...


def entity(label: str, given: Mapping[str, str]) -> str:
    """The type that a classifier's label stands for: what the policy says, else the usual meaning."""
    if label in given:
        return given[label]
    bare = label[2:] if label[:2] in {"B-", "I-", "E-", "S-", "L-", "U-"} else label
    return given.get(bare, USUAL_LABELS.get(bare.upper(), bare.upper()))


class PresidioTagger:
    """Presidio's recognisers for the types that no pattern of ours finds."""

    pack = ""

    def __init__(self, types: Sequence[str], language: str, engine: Any) -> None:
        self._types = list(types)
        self._language = language
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, "presidio")
        self._waiting = 0

    async def tag(self, text: str) -> tuple[TaggedSpan, ...]:
        """Labelled stretches of the text; Overloaded where too many texts wait."""
        found: dict[tuple[int, int, str], TaggedSpan] = {}
        for begin in range(0, max(len(text) - _SEAM, 1), PIECE - _SEAM):
            if self._waiting >= QUEUE:
                raise Overloaded
            self._waiting += 1
            loop = asyncio.get_running_loop()
            try:
                results = await loop.run_in_executor(self._thread, self._analyse, text[begin : begin + PIECE])
            finally:
                self._waiting -= 1
            for start, end, label, score in results:
                span = TaggedSpan(begin + start, begin + end, label, score)
                found[span.start, span.end, label] = span
        return tuple(sorted(found.values(), key=lambda span: span.start))

    def _analyse(self, text: str) -> list[tuple[int, int, str, float]]:
        results = self._engine.analyze(text, language=self._language, entities=self._types)
        return [(result.start, result.end, result.entity_type, float(result.score)) for result in results]


def open_presidio(name: str, types: Sequence[str], language: str, configuration: Path | None) -> PresidioTagger:
    """Presidio with its NLP engine, as `configuration` (Presidio's own YAML) has it, else with spaCy's large model.

    SignalSetupError where it, its model or a type is missing; nothing is ever downloaded.
    """
    try:
        from presidio_analyzer import AnalyzerEngine  # noqa: PLC0415 - optional, and slow to import
        from presidio_analyzer.nlp_engine import NlpEngineProvider  # noqa: PLC0415
    except ImportError:
        raise SignalSetupError(f"{name}: `engine: presidio` needs the extra: pip install 'pointsman[pii]'") from None
    described = _nlp_configuration(name, language, configuration)
    engine = AnalyzerEngine(
        nlp_engine=NlpEngineProvider(nlp_configuration=described).create_engine(), supported_languages=[language]
    )
    known = set(engine.get_supported_entities(language)) - _FETCHING
    if missing := sorted(set(types) - known):
        raise SignalSetupError(f"{name}: Presidio has no recogniser for {', '.join(missing)} in {language!r}")
    return PresidioTagger(types, language, engine)


def _nlp_configuration(name: str, language: str, file: Path | None) -> Any:
    described: Any = {
        "nlp_engine_name": "spacy",
        "models": [{"lang_code": language, "model_name": f"{language}_core_web_lg"}],
    }
    if file is not None:
        try:
            described = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError):
            raise SignalSetupError(f"{name}: `nlp_configuration` cannot be read as YAML") from None
    models = described.get("models") if isinstance(described, dict) else None
    if not isinstance(models, list) or not all(isinstance(model, dict) for model in models):
        raise SignalSetupError(f"{name}: `nlp_configuration` has no list of `models`")
    if described.get("nlp_engine_name") != "spacy":
        raise SignalSetupError(f"{name}: `nlp_configuration` must name the engine spacy; others fetch their models")
    for model in models:
        # Presidio would fetch a missing one.
        package = str(model.get("model_name", ""))
        if not Path(package).is_dir() and find_spec(package.replace("-", "_")) is None:
            raise SignalSetupError(
                f"{name}: spaCy's model {package!r} is not installed: python -m spacy download {package}"
            )
    return described
