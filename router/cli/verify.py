"""`pointsman packs verify` and `pointsman packs probe`: is a pack what it claims to be, and does it mean anything?"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.table import Column, Table

from router.cli.output import DOES_NOT_HOLD, FINE, WRONG_USE, complain, errors, escape, out, print_json
from router.export.errors import ExportError, WrongUseError
from router.export.probe import SHIPPED, Probed, ProbeError, Ranked, read_probe, require_one_space, run_probe
from router.export.verify.images import corpus_files, image_files
from router.export.verify.isolate import verify
from router.export.verify.page import render
from router.export.verify.report import Report, Row, SideReport
from router.export.verify.sources import NoReferenceError, find_reference, other_weights
from router.export.verify.texts import TEXTS
from router.inference.open import open_text_model, open_vision_model
from router.packs.files import PackError, carried_files, faults
from router.packs.store import MANIFEST, Pack, expanded, is_folder, list_shipped, read_pack, shipped_folder
from router.request.images import ImageLimits

TOP = 2
"""Labels of an image that the probe's table shows."""

FIELD_WIDTH = 8
"""Columns that a field's name gets at least."""


def run_verify(name: str, checkpoint: str | None, images: Path | None, as_json: bool, page: Path | None) -> int:
    """Exit code 0 when nothing drifts, 1 when something does, 2 for wrong use."""
    if images is not None and not is_folder(images):
        complain(f"{images}: no such folder")
        return WRONG_USE
    files = corpus_files() if images is None else image_files(images)
    if not files:
        complain(f"{images}: no PNG, JPEG, WebP, GIF or BMP file in it")
        return WRONG_USE
    try:
        pack = _pack(name)
        with tempfile.TemporaryDirectory() as scratch, errors.status("starting") as status:

            def progress(words: str) -> None:
                status.update(escape(words))

            reference, why_not = None, ""
            try:
                reference = find_reference(pack, checkpoint, Path(scratch), progress)
            except NoReferenceError as error:
                why_not = str(error)
            report = verify(pack, reference, why_not, files, TEXTS, progress, with_pictures=page is not None)
            if checkpoint is not None and (doubt := other_weights(pack, checkpoint)):
                report = replace(report, notes=(*report.notes, doubt))
    except WrongUseError as error:
        complain(str(error))
        return WRONG_USE
    except (PackError, ExportError) as error:
        complain(str(error))
        return DOES_NOT_HOLD
    if page is not None:
        try:
            page.write_text(render(report), encoding="utf-8")
        except OSError as error:
            complain(f"{page}: {error.strerror}")
            return WRONG_USE
    if as_json:
        print_json(report.as_json())
    else:
        _show(report)
    return FINE if report.holds else DOES_NOT_HOLD


def run_probe_verb(name: str, file: Path | None, text_name: str | None, as_json: bool) -> int:
    """Exit code 0 when every image's top label is of its own field, 1 otherwise, 2 for wrong use."""
    path = SHIPPED if file is None else file
    try:
        probe = read_probe(path)
    except ProbeError as error:
        complain(str(error))
        return WRONG_USE
    try:
        pack = _pack(name)
        if pack.manifest.vision is None:
            raise WrongUseError(
                f"pack {pack.manifest.name!r} has no vision tower, so that it has no images to rank for"
            )
        text_pack = _text_pack_for(pack) if text_name is None else _text_pack(pack, text_name)
        with errors.status("probing"):
            vision, text = open_vision_model(pack, ImageLimits(frames=1_000)), open_text_model(text_pack)
            probed = run_probe(probe, path.parent, vision, text)
    except WrongUseError as error:
        complain(str(error))
        return WRONG_USE
    except (PackError, ProbeError) as error:
        complain(str(error))
        return DOES_NOT_HOLD
    if as_json:
        print_json(_probed_as_json(pack, text_pack, probed))
    else:
        _show_probed(probed)
    return FINE if probed.right else DOES_NOT_HOLD


def _pack(name: str) -> Pack:
    """The pack in this folder, or the shipped one of this name, its files checked.

    Raises WrongUseError where there is none, PackError for one that does not hold.
    """
    folder = expanded(name)
    if not is_folder(folder) and name in list_shipped():
        folder = shipped_folder() / name
    if not is_folder(folder):
        raise WrongUseError(f"no pack is named {name!r}: name a folder, or one of {', '.join(list_shipped())}")
    if not (folder / MANIFEST).exists() and (folder / "config.json").is_file():
        raise WrongUseError(
            f"{folder} is a checkpoint and no pack yet: `pointsman packs export {folder} --to PACK` makes one of it"
        )
    pack = read_pack(folder)
    broken = faults(pack.folder, carried_files(pack.manifest))
    if broken:
        raise PackError(f"pack {pack.manifest.name!r} is damaged: {'; '.join(broken)}")
    return pack


def _text_pack(pack: Pack, name: str) -> Pack:
    """The pack that the user names for the labels; raises WrongUseError for one of another space, and PackError."""
    named = _pack(name)
    if named.manifest.text is None:
        raise WrongUseError(f"pack {named.manifest.name!r} has no text tower; name one that has with --text")
    try:
        require_one_space(pack.manifest, named.manifest)
    except ProbeError as error:
        raise WrongUseError(str(error)) from error
    return named


def _text_pack_for(pack: Pack) -> Pack:
    """The pack itself, or the shipped one whose text tower is in the same space; raises WrongUseError for neither."""
    if pack.manifest.text is not None:
        return pack
    for name in list_shipped():
        other = read_pack(shipped_folder() / name)
        if other.manifest.text is not None and other.manifest.space == pack.manifest.space:
            return other
    raise WrongUseError(f"pack {pack.manifest.name!r} has no text tower; name the pack that has it with --text")


def _show(report: Report) -> None:
    out.print(f"[bold]{escape(report.pack)}[/], digest {report.digest[:12]}")
    if report.reference is not None:
        out.print(f"held against {escape(report.reference)}")
    if report.golden_vectors_only:
        out.print("[yellow]golden vectors only; PyTorch was not asked[/]")
        out.print(f"[yellow]why: {escape(report.why_not)}[/]")
        out.print(
            "[yellow]to ask it: pointsman packs verify PACK --reference CHECKPOINT, the folder or hub id that the pack "
            "was made of[/]"
        )
    elif report.not_compared:
        out.print(f"[yellow]{', '.join(report.not_compared)}: golden vectors only; the reference has no such side[/]")
    for side in report.sides:
        _show_side(side)
    for miss in report.declared:
        out.print(f"[red]manifest: {escape(miss)}[/]")
    for miss in report.golden:
        out.print(f"[red]golden vectors: {escape(miss)}[/]")
    for finding in report.findings:
        out.print(f"[red]{escape(str(finding))}[/]")
    for note in report.notes:
        out.print(f"[yellow]{escape(note)}[/]")
    out.print(_verdict(report))


def _verdict(report: Report) -> str:
    if not report.holds:
        return "[bold red]does not hold[/]" if not report.golden and not report.findings else "[bold red]drifts[/]"
    if report.golden_vectors_only or report.not_compared:
        return "[yellow]holds, as far as golden vectors tell[/]"
    return "[green]holds[/]"


def _show_side(side: SideReport) -> None:
    last, unit = ("pixels", "levels") if side.side == "image" else ("tokens", "ids")
    title = f"{side.side}, {side.precision}: {side.measure}, bound {side.bound}"
    table = Table(
        "input",
        "whole",
        "model",
        last,
        f"{unit} apart",
        "",
        title=title,
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    shown = side.rows if side.side == "image" else tuple(row for row in side.rows if not row.held)
    for row in shown:
        style = "" if row.held else "red"
        figures = (_figure(row.whole), _figure(row.model), _figure(row.preprocessing))
        table.add_row(escape(row.name), *figures, _apart(side, row), escape(row.note), style=style)
    spreads = [side.spread("whole"), side.spread("model"), side.spread("preprocessing")]
    for which in ("least", "mean", "greatest"):
        cells = [_figure(None if spread is None else getattr(spread, which)) for spread in spreads]
        table.add_row(f"[bold]{which}[/] of {len(side.rows)}", *cells, "", "")
    out.print(table)
    out.print(
        f"{side.equal_inputs} of {len(side.rows)} {'pixels' if side.side == 'image' else 'token ids'} equal to the bit"
    )
    for each in side.left_out:
        out.print(f"[yellow]left out: {escape(each)}[/]")


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.7f}"


def _apart(side: SideReport, row: Row) -> str:
    if row.input_difference is None:
        return "other size"
    mean, most = row.input_difference
    if most == 0:
        return "none"
    return f"{mean:.2f}, most {most:.0f}" if side.side == "image" else f"{most:.0f}"


def _show_probed(probed: Probed) -> None:
    # One line an image: long labels are cut, JSON has them whole.
    whole = [
        Column(name, no_wrap=True, min_width=width) for name, width in (("field", FIELD_WIDTH), ("own first at", 12))
    ]
    cut = [Column(f"{place}.", no_wrap=True, overflow="ellipsis") for place in range(1, TOP + 1)]
    table = Table(Column("image", no_wrap=True, overflow="ellipsis"), *whole, *cut, box=None, pad_edge=False)
    for image in probed.images:
        top = [_label(each) for each in image.ranking[:TOP]]
        style = "" if image.right else "red"
        name = escape(Path(image.file).stem)
        table.add_row(name, escape(image.field), str(image.best_own.rank), *top, style=style)
    out.print(table)
    right = sum(image.right for image in probed.images)
    out.print(f"{right} of {len(probed.images)} top fields right, inversion rate {probed.inversion_rate:.4f}")


def _label(ranked: Ranked) -> str:
    return f"{ranked.cosine:.2f} {escape(ranked.label)}"


def _probed_as_json(pack: Pack, text: Pack, probed: Probed) -> dict[str, Any]:
    images = [{**asdict(image), "right": image.right} for image in probed.images]
    return {
        "pack": pack.manifest.name,
        "text_pack": text.manifest.name,
        "holds": probed.right,
        "inversion_rate": probed.inversion_rate,
        "images": images,
    }
