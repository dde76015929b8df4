"""Examples for the jailbreak head: crops of attacks and of harmless texts, of the same lengths on both sides.

Length alone would part naive sets, so that both sides draw how long a crop is from one distribution, and harmless short
texts are joined until they are as long as attacks are. A part of the attacks stands inside harmless text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from models.text import attacks, prose
from models.text.encoder import Encoder, Window
from models.text.sources import Row, calibrates, may_train, own_lines, rows, sample

LENGTHS, WEIGHTS = (48, 96, 160, 254), (20, 30, 25, 25)
CROPS = 2

ATTACK_SETS = ("jailbreak_inthewild", "gptfuzzer", "jailbreakbench_artifacts", "jailbreak_dan_tap_autodan")

COPIES = {"jailbreak_inthewild": 1, "gptfuzzer": 3, "jailbreakbench_artifacts": 1, "jailbreak_dan_tap_autodan": 4}


MOST_OF = {"jailbreak_prompt_with_random_search": 60, "jailbreak_JBC": 30, "jailbreak_GCG": 110, "jailbreak_DSN": 110}
"""Texts of each kind of JailbreakBench's: the first two are one template with many goals."""


DRAWN = {
    "benign_instructions": 500, "gpteacher": 450, "clinc150": 200, "banking77": 120, "math_code_reasoning": 250,
    "mmlu_redux_subjects": 200, "harmful_requests": 300, "multijail": 300,
}  # fmt: skip
"""How many harmless rows of each collection train."""


@dataclass(frozen=True, slots=True)
class Example:
    """Crops of one text; it is an attack if any of them is one. `text` is what it was cut from."""

    crops: tuple[Window, ...] = field(repr=False)
    attack: bool
    source: str
    text: str = field(repr=False)


def attack_rows(data: Path, name: str) -> list[Row]:
    """A set's attacks; GPTFuzzer's file holds its seed questions too, which are none."""
    return [row for row in rows(data, name) if row.label != "harmful_question"]


def examples(data: Path, encoder: Encoder, seed: int) -> list[Example]:
    """All that may train, every source."""
    random_ = random.Random(seed)
    harmless = harmless_texts(data, seed)
    context = [text for name in ("benign_instructions", "gpteacher", "python", "bipia") for text in harmless[name]]
    found: list[Example] = []
    for text, source in _attacks(data, encoder, harmless, random_):
        if random_.random() < 0.3:
            found.append(_whole(_inside(text, context, random_), encoder, True, source))
        else:
            found.append(_cut(text, encoder, True, source, random_))
    for source, texts in harmless.items():
        for text in texts:
            joined = _grown(text, texts, random_) if source != "python" else text
            found.append(_cut(joined, encoder, False, source, random_))
    return found


def harmless_texts(data: Path, seed: int) -> dict[str, list[str]]:
    """Harmless texts by source: none of a measuring set, none of what sets thresholds."""

    def drawn(name: str, most: int) -> list[str]:
        return [row.text for row in sample(rows(data, name), most, seed, may_train)]

    random_ = random.Random(seed)
    quotes = [
        quote for quote in (attacks.direct(random_) for _ in range(900)) if len(quote) < 110 and "\n" not in quote
    ]
    frames = own_lines("security_frames")
    contexts = [row.text for row in rows(data, "bipia") if row.label.startswith("benign")]
    return {
        **{name: drawn(name, most) for name, most in DRAWN.items()},
        "bipia": contexts,
        "languages": own_lines("languages"),
        "security": own_lines("security") * 3,
        "quotations": [random_.choice(frames).replace("{quote}", quote) for quote in quotes[:300]],
        "python": _some(prose.python_pages(), 160, random_),
        "near_misses": own_lines("near_misses"),
        "personas": own_lines("personas") * 3,
    }


def _is(kind: str) -> Callable[[Row], bool]:
    return lambda row: row.label == kind


def _some(texts: list[str], most: int, random_: random.Random) -> list[str]:
    return random_.sample(texts, min(most, len(texts)))


def threshold_rows(data: Path) -> list[Row]:
    """Harmless requests of collections that nothing trains on."""
    return [row for row in rows(data, "benign_instructions") if calibrates(row)]


def _attacks(
    data: Path, encoder: Encoder, harmless: dict[str, list[str]], random_: random.Random
) -> Iterator[tuple[str, str]]:
    for name in ATTACK_SETS:
        several = attack_rows(data, name)
        if name == "jailbreakbench_artifacts":
            # One template of many goals: a few say it all.
            kinds = {row.label for row in several}
            several = [row for kind in sorted(kinds) for row in sample(several, MOST_OF[kind], 0, _is(kind))]
        for row in several:
            for _ in range(COPIES[name]):
                yield row.text, name
    for _ in range(600):
        yield attacks.direct(random_), "own_direct"
    for _ in range(250):
        yield attacks.role_play(random_), "own_role_play"
    vocabulary = encoder.word_pieces()
    for _ in range(300):
        base = random_.choice(
            harmless["harmful_requests"] if random_.random() < 0.8 else harmless["benign_instructions"]
        )
        yield attacks.suffixed(base[:300], vocabulary, random_), "own_suffix"


def _cut(text: str, encoder: Encoder, attack: bool, source: str, random_: random.Random) -> Example:
    """Up to `CROPS` crops side by side, from a random place on."""
    whole = encoder.whole(text)
    (length,) = random_.choices(LENGTHS, WEIGHTS)
    if attack and len(whole.ids) > 300:
        length = max(length, 96)
    reach = CROPS * length
    start = random_.randint(0, max(len(whole.ids) - reach, 0))
    end = min(start + reach, len(whole.ids))
    crops = tuple(whole.crop(at, min(at + length, end)) for at in range(start, max(end, start + 1), length))
    # A rest of a few words says nothing by itself.
    kept = tuple(crop for crop in crops if len(crop.ids) >= 16) or crops[:1]
    return Example(kept, attack, source, text)


def _whole(text: str, encoder: Encoder, attack: bool, source: str) -> Example:
    return Example(tuple(encoder.windows(text)[:CROPS]), attack, source, text)


def _inside(attack: str, context: Sequence[str], random_: random.Random) -> str:
    """An attack's beginning with harmless text before it, behind it, or both."""
    before, behind = (random_.choice(context)[: random_.randint(60, 700)] for _ in range(2))
    joint = random_.choice((" ", "\n", "\n\n"))
    where = random_.randrange(3)
    parts = ([before] if where != 1 else []) + [attack[:1500]] + ([behind] if where != 0 else [])
    return joint.join(parts)


def _grown(text: str, others: Sequence[str], random_: random.Random) -> str:
    """The text itself, or in half of the cases with more of its kind behind it."""
    if random_.random() < 0.5:
        return text
    size = random_.choice((250, 500, 900, 1800))
    while len(text) < size:
        text += random_.choice((" ", "\n", "\n\n")) + random_.choice(others)
    return text
