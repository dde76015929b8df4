"""Runs a pack beside its reference and takes the two apart: preprocessing, model, and both together.

Three comparisons an input: the two pipelines; the served graph against the reference on the reference's own input; both
inputs through the reference alone. A stage that drifts is explained by recomputing the reference with one fault each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from router.export.verify.declared import check_declared
from router.export.verify.image_side import verify_images
from router.export.verify.reference import Reference
from router.export.verify.report import Report, Side, SideReport
from router.export.verify.scale import scale_findings
from router.export.verify.text_side import verify_classifier, verify_texts
from router.inference.gate import check_classifier, check_heads, check_text, check_vision, misses_of
from router.inference.open import open_classifier_model, open_text_model, open_vision_model
from router.packs.files import PackError
from router.packs.store import Pack
from router.request.images import ImageLimits

Progress = Callable[[str], None]

# The operator's own files, which no client sent.
FILE_LIMITS = ImageLimits(bytes=1 << 30, pixels=200_000_000, frames=1_000)


def verify(
    pack: Pack,
    reference: Reference | None,
    why_not: str,
    images: Sequence[Path],
    texts: Sequence[str],
    progress: Progress,
    with_pictures: bool = False,
) -> Report:
    """Hold every tower of the pack against the reference, and against its golden vectors.

    Without a reference only the latter. Raises PackError for a pack that does not open.
    """
    golden: list[str] = []
    sides: list[SideReport] = []
    manifest = pack.manifest
    if manifest.vision is not None:
        progress("image tower: golden vectors")
        vision = open_vision_model(pack, FILE_LIMITS)
        golden += [str(miss) for miss in misses_of(pack, check_vision, vision)]
        if reference is not None and reference.image is not None:
            side = verify_images(vision, reference.image, images, progress, with_pictures)
            found = scale_findings(manifest.vision, reference.scale)
            sides.append(replace(side, findings=(*side.findings, *found)))
    if manifest.text is not None:
        progress("text tower: golden vectors")
        names = [head.name for head in manifest.heads.heads] if manifest.heads is not None else []
        text = open_text_model(pack, heads=names)
        golden += [str(miss) for miss in misses_of(pack, check_text, text)]
        if names:
            progress("heads: golden vectors")
            golden += [str(miss) for miss in misses_of(pack, check_heads, text)]
        if reference is not None and reference.text is not None:
            sides.append(verify_texts(text, reference.text, texts, progress))
    if manifest.classifier is not None:
        progress("classifier: golden vectors")
        classifier = open_classifier_model(pack)
        golden += [str(miss) for miss in misses_of(pack, check_classifier, classifier)]
        if reference is not None and reference.classifier is not None:
            sides.append(verify_classifier(classifier, reference.classifier, texts, progress))
    if reference is not None and not sides:
        raise PackError(
            f"the reference, {reference.description}, has nothing that pack {manifest.name!r} has; "
            "name the checkpoint that it was exported from with --reference"
        )
    progress("reading the graphs")
    declared = check_declared(pack)
    parts: dict[Side, object] = {
        "image": manifest.vision,
        "text": manifest.text,
        "heads": manifest.heads,
        "classifier": manifest.classifier,
    }
    compared = {side.side for side in sides}
    return Report(
        manifest.name,
        pack.digest,
        reference.description if reference else None,
        why_not,
        tuple(golden),
        tuple(sides),
        declared.misses,
        declared.notes,
        tuple(side for side, part in parts.items() if part is not None and side not in compared),
    )
