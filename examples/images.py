"""Renders the images that the examples' cases use: `python -m examples.images`. The same files on every machine.

Everything in them is drawn from a seed and belongs to nobody. The seeds are ones that no training has seen.
"""

from __future__ import annotations

from pathlib import Path

from models.rendering import BUNDLED_FONT, FIRST_UNSEEN_SEED, render

LONGER_SIDE = 448
QUALITY = 80

IMAGES: dict[str, dict[str, tuple[str, int]]] = {
    "privacy": {
        "passport.jpg": ("passport", 11),
        "identity_card.jpg": ("identity_card", 12),
        "drivers_licence.jpg": ("drivers_licence", 13),
        "payment_card.jpg": ("payment_card", 11),
        "portrait.jpg": ("portrait", 11),
        "receipt.jpg": ("receipt", 11),
        "landscape.jpg": ("landscape", 11),
    },
    "medical": {
        "chest.jpg": ("chest_radiograph", 21),
        "mri.jpg": ("mri", 21),
        "histology.jpg": ("histology", 21),
        "passport.jpg": ("passport", 21),
        "car.jpg": ("car", 21),
        "food.jpg": ("food", 21),
    },
    "coding-agents": {
        "code.jpg": ("code", 31),
        "terminal.jpg": ("terminal", 31),
        "diagram.jpg": ("diagram", 31),
        "landscape.jpg": ("landscape", 31),
    },
    "cost-tiers": {"product.jpg": ("product", 41)},
    "safety-first": {"passport.jpg": ("passport", 51), "building.jpg": ("building", 51)},
    "multi-tenant": {"invoice.jpg": ("invoice", 61), "map.jpg": ("map", 61)},
}


def main() -> None:
    for example, files in IMAGES.items():
        folder = Path(__file__).parent / example / "images"
        folder.mkdir(exist_ok=True)
        for name, (kind, number) in files.items():
            image = render(kind, FIRST_UNSEEN_SEED + number, fonts=BUNDLED_FONT)
            image.thumbnail((LONGER_SIDE, LONGER_SIDE))
            image.save(folder / name, "JPEG", quality=QUALITY)


if __name__ == "__main__":
    main()
