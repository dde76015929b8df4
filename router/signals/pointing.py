"""Texts that point at an image and say nothing about what it should show: "What is this?", "can you check it for me".

Two means that fail in different places: a list of English words that carry no topic, and examples for likeness.
"""

from __future__ import annotations

import re
from typing import Final

POINTING: Final[tuple[str, ...]] = (
    "What is this?",
    "What is in this picture?",
    "Describe the image.",
    "What do you see here?",
    "Can you help me with this?",
    "Read this for me.",
    "Please explain.",
    "Is this normal?",
    "What does it say?",
    "Tell me about this photo.",
    "What is wrong here?",
    "Look at the attached file.",
    "What am I looking at?",
)
"""Examples."""

POINTS: Final = 0.55
"""Cosine with one of those from which on a text merely points. Of two dozen questions that say what they expect to be
shown, the nearest has 0.50 with all-MiniLM-L6-v2."""

LONGEST: Final = 300
"""Characters beyond which a text is taken to say something."""

_WORDS: Final = re.compile(r"[^\W\d_]+")

_WITHOUT_TOPIC: Final = frozenset(
    """
    a about above all also am an and any anyone anything are as at attached attachment be been below better
    between both but by can check clear come comment comments correct could d describe detail detailed details
    did different do does doing don done else enclosed everything exactly explain file files fine for from
    give going good got had has have he hello help her here hey hi him his how i idea ideas if image images in
    into is isn it its just kind know let like ll look looking looks m make me mean means might mine more my
    need no normal not now of off ok okay on one only opinion or other our out over photo photos pic pics
    picture pictures please problem put quick re read really right s same say says screenshot see seem seems
    she should show shown shows so some somebody someone something sort sure t take tell than thank thanks
    that the their them then there these they thing things think this those thought thoughts to too two upload
    uploaded us ve very view want was we well were what where which who whose why will with wrong would yes
    you your
    """.split()  # noqa: SIM905 - a list would be a line a word
)


def has_no_topic(text: str) -> bool:
    """Whether a text is short and has no word but such as carry no topic in English, or none at all."""
    return len(text) <= LONGEST and all(word in _WITHOUT_TOPIC for word in _WORDS.findall(text.casefold()))
