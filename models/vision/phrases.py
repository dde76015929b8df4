"""The phrases that the tower learns to land near, and their embeddings by the locked text tower."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

PHRASES = Path(__file__).with_name("phrases.yaml")


@dataclass(frozen=True)
class Phrases:
    """All wordings: by class for training, by rendered kind, kept for calibration, and of things never shown."""

    classes: Mapping[str, tuple[str, ...]]
    held_out: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, tuple[str, ...]]
    distractors: tuple[str, ...]
    templates: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The classes, sorted."""
        return tuple(sorted(self.classes))


def load(path: Path = PHRASES) -> Phrases:
    """Read the phrases file."""
    raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    return Phrases(
        classes={name: tuple(entry["phrases"]) for name, entry in raw["classes"].items()},
        held_out={name: tuple(entry["held_out"]) for name, entry in raw["classes"].items()},
        kinds={name: tuple(entry) for name, entry in raw["kinds"].items()},
        distractors=tuple(raw["distractors"]),
        templates=tuple(raw["templates"]),
    )


def filled(template: str, phrase: str) -> str:
    """Put the phrase into the template."""
    return template.replace("{}", phrase)
