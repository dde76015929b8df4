"""The families of signals: what each needs, and how one is built from its settings. A table, and nothing clever."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from router.signals.agreement import AgreementSettings, AgreementSignal
from router.signals.api import BUILTINS as API_BUILTINS
from router.signals.api import ApiSettings, ApiSignal
from router.signals.base import Signal, SignalName
from router.signals.classifier import ClassifierSettings, build_classifier
from router.signals.complexity import ComplexitySettings, build_complexity
from router.signals.context import ContextSettings, ContextSignal
from router.signals.conversation import BUILTINS, ConversationSettings, ConversationSignal
from router.signals.domain import DomainSettings, build_domain
from router.signals.embedding import EmbeddingSettings, EmbeddingSignal
from router.signals.fact_check import FactCheckSettings, build_fact_check
from router.signals.feedback import FeedbackSettings, feedback_classes, feedback_signal
from router.signals.header import HeaderSettings, HeaderSignal
from router.signals.image import ImageSettings, ImageSignal
from router.signals.jailbreak import JailbreakSettings, build_jailbreak
from router.signals.keyword import KeywordSettings, KeywordSignal
from router.signals.knowledge_base import KnowledgeBaseSettings, KnowledgeBaseSignal
from router.signals.language import LanguageSettings, LanguageSignal
from router.signals.memory_write import MemoryWriteSettings, MemoryWriteSignal
from router.signals.metadata import MetadataSettings, MetadataSignal
from router.signals.modality import BUILTINS as MODALITY_BUILTINS
from router.signals.modality import ModalitySettings, ModalitySignal
from router.signals.pii import PiiSettings, build_pii
from router.signals.preference import PreferenceSettings, PreferenceSignal
from router.signals.reask import ReaskSettings, ReaskSignal
from router.signals.resources import Resources
from router.signals.role import RoleSettings, RoleSignal
from router.signals.secret import SecretSettings, build_secret
from router.signals.settings import SignalSettings
from router.signals.structure import StructureSettings, StructureSignal
from router.signals.tool_call import ToolCallSettings, ToolCallSignal
from router.signals.tool_result import ToolResultSettings, ToolResultSignal

Tower = Literal["text", "vision"]

ScoreKind = Literal["none", "similarity", "probability", "share"]
"""What a family's scores are: none at all; a cosine; a probability by itself; a share of what could have been, such as
of words or of rivals. Only scores of one kind can be rivals in a partition."""


@dataclass(frozen=True, slots=True)
class Family:
    """One family. `build` takes settings of the family's own model; it raises SignalSetupError for the policy's author.

    `needs` are the encoders without which `build` raises; `builtins` are names that need no definition. `scores` is the
    kind of its observations' scores; `counts` says that they have a `value`, which is then what predicates compare.
    `labels` says that their label tells one class from another, so that a condition may ask for it.
    """

    settings: type[SignalSettings]
    build: Callable[[SignalName, Any, Resources], Signal]
    needs: frozenset[Tower] = frozenset()
    builtins: Mapping[str, SignalSettings] = field(default_factory=dict)
    scores: ScoreKind = "none"
    counts: bool = False
    labels: bool = False


def _keyword(name: SignalName, settings: KeywordSettings, resources: Resources) -> Signal:
    return KeywordSignal(name, settings, resources.reader_for(name, settings.read_images))


def _language(name: SignalName, settings: LanguageSettings, _: Resources) -> Signal:
    return LanguageSignal(name, settings)


def _structure(name: SignalName, settings: StructureSettings, _: Resources) -> Signal:
    return StructureSignal(name, settings)


def _conversation(name: SignalName, settings: ConversationSettings, _: Resources) -> Signal:
    return ConversationSignal(name, settings)


def _context(name: SignalName, settings: ContextSettings, resources: Resources) -> Signal:
    return ContextSignal(name, settings, resources.text)


def _embedding(name: SignalName, settings: EmbeddingSettings, resources: Resources) -> Signal:
    return EmbeddingSignal(name, settings, resources.text_for(name), resources)


def _image(name: SignalName, settings: ImageSettings, resources: Resources) -> Signal:
    return ImageSignal(name, settings, resources.text_for(name), resources.vision_for(name))


def _agreement(name: SignalName, settings: AgreementSettings, resources: Resources) -> Signal:
    return AgreementSignal(name, settings, resources.text_for(name), resources.vision_for(name))


def _knowledge_base(name: SignalName, settings: KnowledgeBaseSettings, resources: Resources) -> Signal:
    return KnowledgeBaseSignal(name, settings, resources.text_for(name), resources)


def _preference(name: SignalName, settings: PreferenceSettings, resources: Resources) -> Signal:
    return PreferenceSignal(name, settings, resources.text_for(name))


def _reask(name: SignalName, settings: ReaskSettings, resources: Resources) -> Signal:
    return ReaskSignal(name, settings, resources.text_for(name))


def _feedback(name: SignalName, settings: FeedbackSettings, resources: Resources) -> Signal:
    return feedback_signal(name, settings, feedback_classes(resources.text_for(name)))


def _api(name: SignalName, settings: ApiSettings, _: Resources) -> Signal:
    return ApiSignal(name, settings)


def _modality(name: SignalName, settings: ModalitySettings, _: Resources) -> Signal:
    return ModalitySignal(name, settings)


def _header(name: SignalName, settings: HeaderSettings, _: Resources) -> Signal:
    return HeaderSignal(name, settings)


def _metadata(name: SignalName, settings: MetadataSettings, _: Resources) -> Signal:
    return MetadataSignal(name, settings)


def _role(name: SignalName, settings: RoleSettings, _: Resources) -> Signal:
    return RoleSignal(name, settings)


def _tool_call(name: SignalName, settings: ToolCallSettings, _: Resources) -> Signal:
    return ToolCallSignal(name, settings)


def _tool_result(name: SignalName, settings: ToolResultSettings, resources: Resources) -> Signal:
    return ToolResultSignal(name, settings, resources.text)


def _memory_write(name: SignalName, settings: MemoryWriteSettings, _: Resources) -> Signal:
    return MemoryWriteSignal(name, settings)


FAMILIES: Final[Mapping[str, Family]] = {
    "keyword": Family(KeywordSettings, _keyword, scores="share", counts=True),
    "language": Family(LanguageSettings, _language, scores="share", labels=True),
    "structure": Family(StructureSettings, _structure, counts=True),
    "conversation": Family(ConversationSettings, _conversation, builtins=BUILTINS, counts=True),
    "context": Family(ContextSettings, _context, counts=True),
    "embedding": Family(EmbeddingSettings, _embedding, needs=frozenset({"text"}), scores="similarity"),
    "image": Family(ImageSettings, _image, needs=frozenset({"text", "vision"}), scores="probability", labels=True),
    "agreement": Family(
        AgreementSettings, _agreement, needs=frozenset({"text", "vision"}), scores="similarity", counts=True
    ),
    "complexity": Family(
        ComplexitySettings, build_complexity, needs=frozenset({"text"}), scores="share", counts=True, labels=True
    ),
    "knowledge_base": Family(
        KnowledgeBaseSettings, _knowledge_base, needs=frozenset({"text"}), scores="similarity", labels=True
    ),
    "preference": Family(PreferenceSettings, _preference, needs=frozenset({"text"}), scores="similarity", labels=True),
    "reask": Family(ReaskSettings, _reask, needs=frozenset({"text"}), scores="similarity"),
    "domain": Family(DomainSettings, build_domain, needs=frozenset({"text"}), scores="share", labels=True),
    "fact_check": Family(FactCheckSettings, build_fact_check, needs=frozenset({"text"}), scores="share", labels=True),
    "feedback": Family(FeedbackSettings, _feedback, needs=frozenset({"text"}), scores="share", labels=True),
    "jailbreak": Family(JailbreakSettings, build_jailbreak, needs=frozenset({"text"}), scores="probability"),
    "classifier": Family(ClassifierSettings, build_classifier, scores="probability", labels=True),
    "api": Family(ApiSettings, _api, builtins=API_BUILTINS),
    "modality": Family(ModalitySettings, _modality, builtins=MODALITY_BUILTINS),
    "header": Family(HeaderSettings, _header),
    "metadata": Family(MetadataSettings, _metadata),
    "role": Family(RoleSettings, _role),
    "tool_call": Family(ToolCallSettings, _tool_call),
    "tool_result": Family(ToolResultSettings, _tool_result, scores="probability"),
    "memory_write": Family(MemoryWriteSettings, _memory_write),
    "pii": Family(PiiSettings, build_pii, scores="probability"),
    "secret": Family(SecretSettings, build_secret, scores="probability"),
}
"""Every family, by the name that policies use."""
