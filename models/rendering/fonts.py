"""Typefaces: those of the system where there are any, Pillow's bundled one otherwise.

A face is chosen once an image and asked for sizes. The bundled face is proportional, so text on a grid (code, machine
readable zones) is set letter by letter; see `Face.fixed`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from PIL import ImageFont

Style = Literal["sans", "serif", "mono", "hand", "ocr", "bold"]
AnyFont = ImageFont.FreeTypeFont | ImageFont.ImageFont

FOLDERS = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"), Path("/Library/Fonts"), Path("C:/Windows/Fonts"))

# File names, without ending, of faces that draw Latin letters and are installed by common packages.
KNOWN: Mapping[Style, tuple[str, ...]] = {
    "sans": (
        "DejaVuSans",
        "LiberationSans-Regular",
        "Roboto-Regular",
        "OpenSans-Regular",
        "Lato-Regular",
        "Cantarell-VF",
        "Inter-Regular",
        "Arimo-Regular",
        "FreeSans",
        "NimbusSans-Regular",
        "Quicksand-Regular",
        "B612-Regular",
        "DejaVuSansCondensed",
        "Roboto-Light",
        "LiberationSansNarrow-Regular",
        "Lato-Light",
        "RobotoCondensed-Regular",
    ),
    "bold": (
        "DejaVuSans-Bold",
        "LiberationSans-Bold",
        "Roboto-Bold",
        "OpenSans-Bold",
        "Lato-Bold",
        "Inter-Bold",
        "Arimo-Bold",
        "FreeSansBold",
        "NimbusSans-Bold",
        "LiberationSerif-Bold",
        "Lato-Black",
    ),
    "serif": (
        "DejaVuSerif",
        "LiberationSerif-Regular",
        "Tinos-Regular",
        "FreeSerif",
        "EBGaramond12-Regular",
        "EBGaramond-Regular",
        "C059-Roman",
        "P052-Roman",
        "NimbusRoman-Regular",
        "Junicode",
        "Junicode-Regular",
        "Bookman-Light",
        "URWBookman-Light",
    ),
    "mono": (
        "DejaVuSansMono",
        "LiberationMono-Regular",
        "FiraCode-Regular",
        "JetBrainsMono-Regular",
        "Hack-Regular",
        "Inconsolata",
        "Inconsolata-Regular",
        "Cousine-Regular",
        "FreeMono",
        "NimbusMonoPS-Regular",
        "mononoki-Regular",
        "B612Mono-Regular",
        "Anonymous Pro",
        "AnonymousPro-Regular",
        "CourierPrime-Regular",
        "Courier Prime",
    ),
    "hand": (
        "DancingScript-Regular",
        "DancingScript",
        "Humor-Sans",
        "breip",
        "Rufscript010",
        "femkeklaver",
        "dkg",
        "KleeOne-Regular",
        "Isabella",
        "LeckerliOne-Regular",
        "ComicNeue-Regular",
        "Z003-MediumItalic",
        "DeliciousSauce",
        "SjfontsDelphine",
        "Delphine",
        "SteveHand",
    ),
    "ocr": ("OCR-B", "OCRB", "ocrb10", "OCRA", "OCR-A", "OCRBPitch"),
}
# Faces with Greek and Cyrillic letters.
WIDE = (
    "DejaVu",
    "Liberation",
    "Roboto",
    "OpenSans",
    "Arimo",
    "Tinos",
    "Cousine",
    "FreeSans",
    "FreeSerif",
    "FreeMono",
    "Inter",
    "JetBrains",
)


@cache
def _installed() -> Mapping[str, Path]:
    found: dict[str, Path] = {}
    for folder in (*FOLDERS, Path.home() / ".fonts", Path.home() / ".local/share/fonts"):
        if folder.is_dir():
            for file in sorted(folder.rglob("*")):
                if file.suffix.lower() in (".ttf", ".otf"):
                    found.setdefault(file.stem, file)
    return found


@lru_cache(maxsize=512)
def _load(path: Path, size: int) -> AnyFont:
    return ImageFont.truetype(str(path), size)


@lru_cache(maxsize=128)
def _bundled(size: int) -> AnyFont:
    return ImageFont.load_default(size)


@dataclass(frozen=True)
class Face:
    """One typeface; `path` is None for Pillow's bundled one."""

    path: Path | None
    style: Style

    @property
    def fixed(self) -> bool:
        """Whether all letters are equally wide."""
        return self.path is not None and self.style == "mono"

    @property
    def wide(self) -> bool:
        """Whether it draws Greek and Cyrillic."""
        return self.path is not None and self.path.stem.startswith(WIDE)

    def at(self, size: float) -> AnyFont:
        """The face at a size in pixels."""
        whole = max(4, round(size))
        return _bundled(whole) if self.path is None else _load(self.path, whole)


@dataclass(frozen=True)
class Fonts:
    """What an image may draw from. With `bundled` true the picture is the same on every machine."""

    bundled: bool = False

    def pick(self, style: Style, rng: random.Random) -> Face:
        # The draw is made in either case, so that the rest of the picture does not depend on what is installed.
        """Choose a face of this style."""
        chance = rng.random()
        if self.bundled:
            return Face(None, style)
        choices = _available(style)
        if not choices:
            return Face(None, style)
        return Face(choices[int(chance * len(choices))], style)


@cache
def _available(style: Style) -> Sequence[Path]:
    installed = _installed()
    named = [installed[name] for name in KNOWN[style] if name in installed]
    if not named and style in ("bold", "hand", "ocr"):
        return _available("mono" if style == "ocr" else "sans")
    return named
