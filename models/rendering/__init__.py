"""Images drawn from a seed: documents, screens, charts, phantoms and scenes that belong to nobody.

The training recipe, the demo's showcase and the parity corpora draw from here. Needs Pillow and numpy only; `render`
is a function of kind, seed, fonts and the Pillow release.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from PIL import Image

from . import (
    charts,
    code,
    consoles,
    diagrams,
    electronics,
    gadgets,
    identity,
    interface,
    maps,
    medical,
    objects,
    oddments,
    papers,
    people,
    radiology,
    scenes,
    strangers,
    tables,
    terminal,
    vehicles,
)
from .art import Art
from .fonts import Fonts

# Training draws seeds below this, everything that is shown or measured draws from here on.
FIRST_UNSEEN_SEED = 1_000_000

SYSTEM_FONTS = Fonts()
BUNDLED_FONT = Fonts(bundled=True)


@dataclass(frozen=True)
class Kind:
    """What is drawn, the class of the image collection that it belongs to, and how many the recipe renders."""

    draw: Callable[[Art], Image.Image]
    label: str
    share: float = 1.0


KINDS: Mapping[str, Kind] = {
    "passport": Kind(identity.passport, "passport_or_id", 2.0),
    "identity_card": Kind(identity.identity_card, "passport_or_id", 1.6),
    "drivers_licence": Kind(identity.drivers_licence, "passport_or_id", 1.6),
    "residence_permit": Kind(identity.residence_permit, "passport_or_id", 0.8),
    "payment_card": Kind(identity.payment_card, "payment_card"),
    "code": Kind(code.code_screenshot, "code_screenshot", 2.4),
    "terminal": Kind(terminal.terminal_screenshot, "terminal_screenshot", 2.4),
    "console": Kind(consoles.console, "terminal_screenshot", 2.0),
    "text_interface": Kind(consoles.text_interface, "terminal_screenshot", 1.2),
    "interface": Kind(interface.ui_screenshot, "ui_screenshot", 1.8),
    "chart": Kind(charts.chart, "chart_plot", 0.8),
    "bar_chart": Kind(charts.bar_chart, "chart_plot", 0.3),
    "line_chart": Kind(charts.line_chart, "chart_plot", 0.3),
    "scatter_plot": Kind(charts.scatter_plot, "chart_plot", 0.3),
    "pie_chart": Kind(charts.pie_chart, "chart_plot", 0.2),
    "table": Kind(tables.table, "table", 1.4),
    "diagram": Kind(diagrams.diagram, "diagram", 0.9),
    "flowchart": Kind(diagrams.flowchart, "diagram", 0.5),
    "document_page": Kind(papers.document_page, "document_page", 1.6),
    "letter": Kind(papers.letter, "document_page", 0.5),
    "form": Kind(papers.form, "document_page", 0.6),
    "invoice": Kind(papers.invoice, "receipt_invoice", 1.2),
    "receipt": Kind(papers.receipt, "receipt_invoice", 1.2),
    "handwriting": Kind(papers.handwriting, "handwriting", 1.0),
    "map": Kind(maps.map_image, "map", 0.8),
    "chest_radiograph": Kind(radiology.chest, "chest_xray", 0.9),
    "mri": Kind(medical.mri, "other_medical", 0.4),
    "ct": Kind(medical.ct, "other_medical", 0.4),
    "ultrasound": Kind(medical.ultrasound, "other_medical", 0.3),
    "fundus": Kind(medical.fundus, "other_medical", 0.2),
    "histology": Kind(medical.histology, "other_medical", 0.3),
    "cells": Kind(medical.cells, "other_medical", 0.3),
    "pcb": Kind(electronics.pcb, "pcb_electronics", 1.0),
    "gadget": Kind(gadgets.gadget, "pcb_electronics", 1.6),
    "wafer": Kind(electronics.wafer, "semiconductor_wafer", 0.7),
    "car": Kind(vehicles.car, "vehicle", 0.5),
    "portrait": Kind(people.portrait, "person_face", 0.4),
    "landscape": Kind(scenes.landscape, "landscape", 0.4),
    "building": Kind(scenes.building, "building", 0.3),
    "food": Kind(objects.food, "food", 0.2),
    "product": Kind(objects.product, "product", 0.5),
    "qr_code": Kind(objects.qr_code, "other", 0.3),
    "barcode": Kind(objects.barcode, "other", 0.2),
    "icon": Kind(objects.icon, "other", 0.5),
    "figure": Kind(objects.figure, "other", 0.5),
    "gradient": Kind(objects.gradient_image, "other", 0.2),
    "texture": Kind(objects.texture, "other", 0.4),
    "oddment": Kind(oddments.oddment, "other", 2.0),
    "stranger": Kind(strangers.stranger, "other", 6.0),
}


def render(kind: str, seed: int, fonts: Fonts = SYSTEM_FONTS, portraits: Sequence[Image.Image] = ()) -> Image.Image:
    """Draw one image. `portraits` lends photos for identity documents, so that these need not use drawn faces."""
    if kind not in KINDS:
        raise KeyError(f"no kind {kind!r}; known are {', '.join(sorted(KINDS))}")
    art = Art(random.Random(f"{kind}:{seed}"), fonts, portraits)
    return KINDS[kind].draw(art).convert("RGB")


__all__ = ["BUNDLED_FONT", "FIRST_UNSEEN_SEED", "KINDS", "SYSTEM_FONTS", "Fonts", "Kind", "render"]
