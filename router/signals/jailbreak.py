"""`jailbreak`: attempts to talk a model out of its instructions, or to make it tell them.

    jailbreak:
      attack: {threshold: 0.7}
      attack_in_pictures: {threshold: 0.7, read_images: true}
      attack_by_likeness: {method: contrastive}
      role_play: {method: head}
      sure_attack: {method: all, pack: ./packs/injection, attack_labels: [INJECTION], threshold: 0.6}

Every text of every turn and role is read whole, tool calls and tool results included, and the best place decides: a
long harmless text around an attack neither hides nor thins it. `method` says who judges:

- `combined`, the default where the text pack has a head `jailbreak`: short segments are compared with anchors of
  attacks and of what merely resembles them (`jailbreak_anchors.py`), searched for turns of phrase
  (`jailbreak_patterns.py`), in whatever way their letters are set (`jailbreak_views.py`), and judged by the head; the
  three are weighed together (`jailbreak_scoring.py`). Segments end where paragraphs or sentences do. Where there is a
  hint of an attack, the segment's parts and what stands around its borders are looked at by themselves. Evidence says
  what it rests on: the turns of phrase, `head` where the head by itself takes it for an attack, else `likeness`. Costs
  a text encoder's pass for each segment of at most 400 bytes, about 65 words, that is not cached, and next to nothing
  for the head.
- `contrastive`, the default elsewhere: the same without the head, and without a look at parts.
- `head`: the head alone, window by window. Costs next to nothing beside the text encoder's pass for each window that is
  not cached.
- `classifier`: a sequence-classifier pack, asked for its `attack_labels`, window by window. Costs its model's pass for
  each window that is not cached.
- `any`: `contrastive` and the pack, or the head where no pack is named, and the surer one decides; catches more, with
  the false alarms of either.
- `all`: both have to find the same text, and the less sure one decides; fewer false alarms.

The starter's head knows long role plays and rewritten requests, and what merely speaks of attacks; a single sentence of
attack it often misses in a window of others, which `head` alone therefore does.

With `read_images` what is written inside every image is judged as a user's words are, whoever sent the image; evidence
names the image and the box. It is read whole, block by block and, where a turn of phrase speaks for it, a few lines at
a time, so that a note on a page does not drown in it. An image that can't be read makes the answer unknown, unless
something else matches. Costs text recognition of each image that is not cached, from a tenth of a second for a line to
several seconds for a page, and needs the extra `ocr`.

What it can't see: requests that are harmful but no attack on the instructions; instructions planted in a document that
are phrased like any other; paraphrases by a patient attacker; text that is encoded, or, without `read_images`, inside
an image. Outside English it knows turns of phrase of some languages only. Documents about attacks that quote them raise
false alarms: of 80 in a measured set `combined` flags 3, `contrastive` 11
(`tests/signals/test_jailbreak_figures.py`). An operator's own system prompt and tools are read too, because whoever
holds an API key may write them, but they must look more like an attack than a user's words to match
(`OPERATOR_DISCOUNT`), and `combined` does not ask the head about them; a policy for clients that it trusts can leave
`system` and `developer` out of `roles`. A text encoder is needed whatever the method.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import Field, model_validator

from router.inference.classifier import NoNumberError
from router.inference.executor import Overloaded
from router.inference.head import TextHead
from router.inference.reading import ImageReader
from router.request.view import RequestView, Role
from router.signals.anchors import NOT_A_NUMBER
from router.signals.base import Cost, Evidence, Observation, SignalName, failed, observed, shed
from router.signals.classifier import LabelJudge, judge_by_head, open_judge
from router.signals.heads import required_head, usual_head
from router.signals.jailbreak_scoring import SegmentScorer
from router.signals.places import OVERLOADED, ImageText, read_images
from router.signals.resources import Resources, SignalSetupError
from router.signals.settings import Phrase, SignalSettings, Threshold

MAX_EVIDENCE: Final = 8
"""Segments that are cited, those with the highest scores first."""

OPERATORS: Final[frozenset[Role]] = frozenset({"system", "developer"})
OPERATOR_DISCOUNT: Final = 4.0
"""Taken off the log-odds of what an operator wrote: system prompts and tool definitions speak of rules, instructions
and roles as a matter of course. Set by hand, on a dozen ordinary system prompts."""


HEAD: Final = "jailbreak"
"""The head's name, and that of its label for attacks."""

_BLOCK: Final = re.compile(r"[^\n]+(?:\n[^\n]+)*")
"""Lines without a blank one between them."""

_LINE: Final = re.compile(r"[^\n]+")

LINES_AT_ONCE: Final = 4
"""Lines of a longer block in an image that are read by themselves, too, every second one a new beginning: what was put
on a page goes on the block above it where it stands as near and as far to the left, and would drown there. Only where
a turn of phrase speaks for it, because few words out of a page may be like anything."""

THRESHOLD: Final = 0.7
"""Where no head judges alone."""


class JailbreakSettings(SignalSettings):
    """Settings of a `jailbreak` signal."""

    threshold: Threshold | None = Field(
        None,
        description="Score from which on it matches. Not given: the head's own where it judges alone, which its pack "
        f"names; {THRESHOLD} otherwise.",
    )
    method: Literal["combined", "contrastive", "head", "classifier", "any", "all"] | None = Field(
        default=None,
        description="combined: by anchors, turns of phrase and the text pack's head, weighed together; contrastive: "
        "without the head; head: by the head alone; classifier: by a pack; any: contrastive or another, which is the "
        "pack or else the head; all: both have to find the same text. Not given: combined where the text pack has the "
        "head, else contrastive.",
    )
    pack: Phrase | None = Field(
        default=None, description="Sequence-classifier pack, by path or by name; for classifier, any and all."
    )
    attack_labels: tuple[Phrase, ...] = Field(default=(), description="Labels of the pack that mean an attack.")
    read_images: bool = Field(default=False, description="Read the text inside images, too, as a user's words.")
    roles: tuple[Role, ...] = Field(
        ("system", "developer", "user", "assistant", "tool"),
        min_length=1,
        description="Roles whose texts are read; all of them by default.",
    )

    @model_validator(mode="after")
    def _holds_together(self) -> JailbreakSettings:
        if self.method not in ("classifier", "any", "all") and (self.pack is not None or self.attack_labels):
            raise ValueError("pack and attack_labels are for the methods classifier, any and all")
        if self.method == "classifier" and (self.pack is None or not self.attack_labels):
            raise ValueError("method classifier needs pack and attack_labels")
        if (self.pack is None) != (not self.attack_labels):
            raise ValueError("pack and attack_labels go together")
        return self

    @property
    def matching(self) -> tuple[float, None] | None:
        """See `SignalSettings`; a head's own threshold stands in its pack."""
        if self.threshold is None and self.method == "head":
            return None
        return THRESHOLD if self.threshold is None else self.threshold, None

    @property
    def heads(self) -> tuple[str, ...]:
        """See `SignalSettings`."""
        return (HEAD,) if self.pack is None and self.method != "contrastive" else ()

    @property
    def classifier_packs(self) -> tuple[str, ...]:
        """The one that judges, where one does."""
        return () if self.pack is None else (self.pack,)

    @property
    def reads_images(self) -> bool:
        """As the policy says."""
        return self.read_images


@dataclass(frozen=True, slots=True)
class _Place:
    """A text with where it stands; `image` is there for what is written in one, from its character `begin` on."""

    pointer: str
    role: Role
    text: str = field(repr=False)
    image: ImageText | None = None
    begin: int = 0

    def evidence(self, label: str, score: float, span: tuple[int, int] | None, detail: str = "") -> Evidence:
        score = _discounted(score) if self.role in OPERATORS else score
        if self.image is None:
            return Evidence(self.pointer, label=label, score=score, span=span, detail=detail)
        box = self.image.place(span[0] + self.begin, span[1] + self.begin) if span is not None else ""
        detail = ", ".join(filter(None, (box, detail)))
        return Evidence(self.pointer, label=label, score=score, image=self.image.index, detail=detail)


class JailbreakSignal:
    """How much the most suspicious place of any text sounds like an attack."""

    def __init__(
        self,
        name: SignalName,
        settings: JailbreakSettings,
        scorer: SegmentScorer | None,
        judge: LabelJudge | None,
        threshold: float,
        reader: ImageReader | None = None,
    ) -> None:
        """At least one of `scorer` and `judge` is there, `reader` where images are read."""
        self.name = name
        self._settings = settings
        self._scorer = scorer
        self._judge = judge
        self._threshold = threshold
        self._reader = reader
        self._pack = ", ".join(each.pack for each in (self._scorer, self._judge) if each is not None)

    @property
    def cost(self) -> Cost:
        """A text model's, unless images are read."""
        return Cost.TEXT_MODEL if self._reader is None else Cost.READING

    async def prepare(self) -> None:
        """Embed the anchors."""
        if self._scorer is not None:
            await self._scorer.prepare()

    async def observe(self, view: RequestView) -> Observation:
        """The best place's score; places that reach the threshold are the evidence, else the best one.

        Once there is as much evidence as is cited, nothing more is read: the score may be higher still.
        """
        roles = self._settings.roles
        found: list[Evidence] = []
        missing: list[Evidence] = []
        try:
            for span in view.texts:
                if span.role in roles:
                    found = await self._look(_Place(span.pointer, span.role, span.text), found)
            if self._reader is not None and len(found) < MAX_EVIDENCE:
                for image in await read_images(view, roles, self._reader):
                    if image.missing:
                        missing.append(Evidence(image.pointer, image=image.index, detail=image.missing))
                        continue
                    for begin, text in self._passages(image.text):
                        found = await self._look(_Place(image.pointer, "user", text, image, begin), found)
        except Overloaded:
            return shed(self._pack)
        except NoNumberError:
            missing.append(Evidence("", detail=NOT_A_NUMBER))
        return self._answer(found, missing)

    def _passages(self, text: str) -> Iterator[tuple[int, str]]:
        """What is read of the text in an image, with where it begins: the whole, then its blocks, where there are
        several, then those of their lines that speak of an attack.

        Words that go on in the next line are one phrase all the same, and what stands in a box of its own is not to
        drown in what stands around it.
        """
        yield 0, text.replace("\n", " ")
        blocks = list(_BLOCK.finditer(text))
        for block in blocks if len(blocks) > 1 else ():
            yield block.start(), block[0].replace("\n", " ")
        if self._scorer is None:
            return
        for block in blocks:
            for begin, lines in _by_lines(text, *block.span()):
                if self._scorer.has_turn_of_phrase(lines):
                    yield begin, lines

    def _answer(self, found: Sequence[Evidence], missing: Sequence[Evidence]) -> Observation:
        score, label = (found[0].score or 0.0, found[0].label) if found else (0.0, "")
        matched = score >= self._threshold and bool(found)
        if matched or not missing:
            return observed(matched, score, label=label, evidence=(*found, *missing), pack=self._pack)
        reason = next((each.detail for each in missing if each.detail != OVERLOADED), None)
        return shed(self._pack, tuple(missing)) if reason is None else failed(reason, tuple(missing), self._pack)

    async def _look(self, place: _Place, found: list[Evidence]) -> list[Evidence]:
        """The foremost evidence, of this place too; less than the whole place is read once there is enough."""
        if len(found) == MAX_EVIDENCE:
            return found
        if self._settings.method == "all":
            return self._foremost([*found, *await self._agreed(place)])
        if self._scorer is not None:
            async for more in self._compared(place, self._scorer):
                found = self._foremost([*found, *more])
                if len(found) == MAX_EVIDENCE:
                    return found
        if self._judge is not None:
            found = self._foremost([*found, *await self._classified(place, self._judge)])
        return found

    async def _agreed(self, place: _Place) -> list[Evidence]:
        """Evidence of the less sure of the two."""
        compared: list[Evidence] = []
        if self._scorer is not None:
            async for more in self._compared(place, self._scorer):
                compared = self._foremost([*compared, *more])
        classified = self._foremost(await self._classified(place, self._judge)) if self._judge is not None else []
        return min(compared, classified, key=lambda some: (some[0].score or 0.0) if some else 0.0)

    async def _compared(self, place: _Place, scorer: SegmentScorer) -> AsyncIterator[list[Evidence]]:
        # What an operator asks of a model is to a head what an attacker asks.
        async for some in scorer.score(place.text, by_head=place.role not in OPERATORS):
            yield [place.evidence(each.label, each.score, each.segment.span, each.reading) for each in some]

    async def _classified(self, place: _Place, judge: LabelJudge) -> list[Evidence]:
        evidence = []
        for window in await judge.judge(place.text):
            if not all(map(math.isfinite, window.probabilities)):
                raise NoNumberError
            score = max(window.probabilities)
            label = judge.labels[window.probabilities.index(score)]
            evidence.append(place.evidence(label, min(score, 1.0), window.span))
        return evidence

    def _foremost(self, found: Sequence[Evidence]) -> list[Evidence]:
        ranked = sorted(found, key=lambda evidence: -(evidence.score or 0.0))
        over = [evidence for evidence in ranked if (evidence.score or 0.0) >= self._threshold]
        return over[:MAX_EVIDENCE] or ranked[:1]


def _by_lines(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """A few lines at a time of a block that has more of them, with where they begin."""
    lines = list(_LINE.finditer(text, start, end))
    for first in range(0, len(lines) - 2, 2) if len(lines) > LINES_AT_ONCE else ():
        some = lines[first : first + LINES_AT_ONCE]
        yield some[0].start(), text[some[0].start() : some[-1].end()].replace("\n", " ")


def build_jailbreak(name: SignalName, settings: JailbreakSettings, resources: Resources) -> JailbreakSignal:
    """The signal with what its method asks for; SignalSetupError where that is not at hand."""
    encoder = resources.text_for(name)
    method = settings.method
    judge, scorer, threshold = None, None, THRESHOLD
    if method in (None, "combined"):
        head = usual_head(HEAD, resources) if method is None else required_head(name, HEAD, resources)
        scorer = SegmentScorer(encoder, _of_one_label(name, head))
    elif settings.pack is not None:
        judge = open_judge(name, settings.pack, settings.attack_labels, resources)
    elif method != "contrastive":
        head = required_head(name, HEAD, resources)
        judge = judge_by_head(name, head, (HEAD,))
        threshold = head.part.threshold if method == "head" else THRESHOLD
    if method in ("contrastive", "any", "all"):
        scorer = SegmentScorer(encoder)
    if settings.threshold is not None:
        threshold = settings.threshold
    reader = resources.reader_for(name, settings.read_images)
    return JailbreakSignal(name, settings, scorer, judge, threshold, reader)


def _of_one_label(name: SignalName, head: TextHead | None) -> TextHead | None:
    if head is not None and head.labels != (HEAD,):
        raise SignalSetupError(f"{name}: the head {HEAD!r} has other labels than {HEAD!r} alone")
    return head


def _discounted(score: float) -> float:
    """The score with OPERATOR_DISCOUNT off its log-odds."""
    odds = score / max(1.0 - score, 1e-12) * math.exp(-OPERATOR_DISCOUNT)
    return odds / (1.0 + odds)
