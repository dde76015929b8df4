"""Tables as they are typeset, printed, and shown in spreadsheets."""

from __future__ import annotations

from PIL import Image, ImageDraw

from . import words
from .art import Art, Colour, luminance, mix, wrap
from .fonts import Face
from .looks import look


def _cell(art: Art, kind: str) -> str:
    if kind == "name":
        return f"{words.surname(art)}"
    if kind == "place":
        return words.city(art)
    if kind == "whole":
        return f"{art.whole(0, 9999):,}"
    if kind == "real":
        return f"{art.between(-10, 200):.2f}"
    if kind == "share":
        return f"{art.between(0, 100):.1f}%"
    if kind == "date":
        return f"2025-{art.whole(1, 12):02d}-{art.whole(1, 28):02d}"
    return art.pick(("yes", "no", "-", "A", "B", "n/a", "Q1", "Q2"))


def draw_table(
    art: Art,
    draw: ImageDraw.ImageDraw,
    box: tuple[float, float, float, float],
    rows: int,
    columns: int,
    face: Face,
    bold: Face,
    ink: Colour,
    ground: Colour,
) -> None:
    """A grid of made-up cells with one of several kinds of ruling."""
    left, top, right, bottom = box
    pitch = (bottom - top) / (rows + 1)
    size = min(pitch * art.between(0.45, 0.66), 30)
    weights = [art.between(0.6, 1.4) for _ in range(columns)]
    edges = [left]
    for weight in weights:
        edges.append(edges[-1] + (right - left) * weight / sum(weights))
    kinds = [
        "name"
        if index == 0 and art.chance(0.7)
        else art.pick(("whole", "real", "real", "share", "date", "place", "mark"))
        for index in range(columns)
    ]
    ruling = art.pick(("full", "rows", "booktabs", "zebra", "none", "full"))
    head = art.pick((None, art.colour((0.2, 0.8), (0.2, 0.9)), mix(ground, ink, 0.15)))
    rule = mix(ground, ink, art.between(0.2, 0.9))
    heat = art.whole(1, columns - 1) if columns > 2 and art.chance(0.2) else None
    bars = art.whole(1, columns - 1) if columns > 2 and art.chance(0.1) else None
    colour = art.vivid()
    if head:
        draw.rectangle((left, top, right, top + pitch), fill=head)
    head_ink: Colour = ink if head is None else ((255, 255, 255) if luminance(head) < 0.55 else (20, 20, 20))
    for column in range(columns):
        numeric = kinds[column] in ("whole", "real", "share")
        for row in range(rows + 1):
            y = top + row * pitch
            if row and ruling == "zebra" and row % 2 == 0 and column == 0:
                draw.rectangle((left, y, right, y + pitch), fill=mix(ground, ink, 0.07))
            if row and column == heat:
                draw.rectangle(
                    (edges[column], y, edges[column + 1], y + pitch), fill=mix(ground, colour, art.rng.random())
                )
            if row and column == bars:
                draw.rectangle(
                    (
                        edges[column] + 2,
                        y + 3,
                        edges[column] + 2 + (edges[column + 1] - edges[column] - 6) * art.rng.random(),
                        y + pitch - 3,
                    ),
                    fill=colour,
                )
            text = words.title(art, 1) if row == 0 else _cell(art, kinds[column])
            font = (bold if row == 0 else face).at(size)
            room = edges[column + 1] - edges[column] - 8
            while len(text) > 2 and draw.textlength(text, font=font) > room:
                text = text[:-2]
            x, anchor = (edges[column + 1] - 5, "rm") if numeric else (edges[column] + 5, "lm")
            draw.text((x, y + pitch / 2), text, font=font, fill=head_ink if row == 0 else ink, anchor=anchor)
    if ruling in ("full", "rows"):
        for row in range(rows + 2):
            draw.line((left, top + row * pitch, right, top + row * pitch), fill=rule)
    if ruling == "full":
        for edge in edges:
            draw.line((edge, top, edge, bottom), fill=rule)
    if ruling == "booktabs":
        for y, width in ((top, 3), (top + pitch, 1), (bottom, 3)):
            draw.line((left, y, right, y), fill=rule, width=width)


def _sheet(art: Art) -> Image.Image:
    """A spreadsheet's window."""
    width, height = art.pick(((1000, 640), (900, 500), (760, 700)))
    canvas = Image.new("RGB", (width, height), (255, 255, 255))
    draw = ImageDraw.Draw(canvas)
    face, bold = art.sans(), art.bold()
    top = art.whole(50, 110)
    draw.rectangle((0, 0, width, top), fill=art.pick(((243, 242, 241), (33, 115, 70), (240, 240, 245))))
    draw.rectangle((60, top - 24, width, top - 2), fill=(255, 255, 255))
    draw.text((66, top - 22), f"=SUM(B2:B{art.whole(9, 40)})", font=face.at(14), fill=(60, 60, 60))
    column, row_height = art.whole(80, 130), art.whole(20, 28)
    rows, columns = (height - top) // row_height, (width - 44) // column + 1
    for index in range(columns):
        x = 44 + index * column
        draw.rectangle((x, top, x + column, top + row_height), fill=(236, 236, 238), outline=(200, 200, 200))
        draw.text(
            (x + column / 2, top + row_height / 2), chr(65 + index), font=face.at(13), fill=(80, 80, 80), anchor="mm"
        )
    filled = art.whole(rows // 2, rows)
    kinds = [art.pick(("name", "whole", "real", "share", "date", "place")) for _ in range(columns)]
    used = art.whole(3, columns)
    for row in range(1, rows + 1):
        y = top + row * row_height
        draw.rectangle((0, y, 44, y + row_height), fill=(236, 236, 238), outline=(200, 200, 200))
        draw.text((22, y + row_height / 2), str(row), font=face.at(12), fill=(80, 80, 80), anchor="mm")
        for index in range(columns):
            x = 44 + index * column
            draw.rectangle((x, y, x + column, y + row_height), outline=(222, 222, 222))
            if index < used and row <= filled:
                text = words.title(art, 1) if row == 1 else _cell(art, kinds[index])
                draw.text(
                    (x + 5, y + row_height / 2),
                    text[:14],
                    font=(bold if row == 1 else face).at(13),
                    fill=(20, 20, 20),
                    anchor="lm",
                )
    return canvas


def _printed(art: Art) -> Image.Image:
    """A page of a report that is mostly one table, with a heading, a note and a line or two of text."""
    width, height = art.pick(((820, 1120), (820, 1120), (1120, 820)))
    page = Image.new("RGB", (width, height), art.pick(((255, 255, 255), (255, 255, 255), (245, 242, 230))))
    draw = ImageDraw.Draw(page)
    face, bold = art.print_face(), art.bold()
    ink: Colour = (25, 25, 28)
    y = height * art.between(0.04, 0.12)
    title = words.title(art, art.whole(3, 8))
    draw.text((width / 2, y), title, font=bold.at(24), fill=ink, anchor="ma")
    y += 44
    for _ in range(art.whole(0, 3)):
        for line in wrap(draw, words.paragraph(art, 2), face, 15, width * 0.84):
            draw.text((width * 0.08, y), line, font=face.at(15), fill=ink)
            y += 21
    margin = width * art.between(0.05, 0.12)
    end = height * art.between(0.55, 0.93)
    rows = art.whole(6, 40)
    if art.chance(0.4):
        # Groups of rows under coloured bars.
        groups = art.whole(2, 5)
        each = (end - y - 20) / groups
        colour = art.pale()
        columns = art.whole(3, 9)
        for _ in range(groups):
            draw.rectangle((margin, y + 10, width - margin, y + 30), fill=colour)
            draw.text((margin + 6, y + 11), words.title(art, 3), font=bold.at(15), fill=ink)
            draw_table(
                art,
                draw,
                (margin, y + 30, width - margin, y + each),
                max(3, rows // groups),
                columns,
                face,
                bold,
                ink,
                (255, 255, 255),
            )
            y += each
    else:
        draw_table(
            art, draw, (margin, y + 12, width - margin, end), rows, art.whole(3, 11), face, bold, ink, (255, 255, 255)
        )
    draw.text(
        (margin, end + 10),
        f"{art.pick(('Source', 'Note', 'Quelle'))}: {words.sentence(art, 8)}",
        font=face.at(13),
        fill=ink,
    )
    if art.chance(0.12):
        page = page.rotate(art.pick((90, 270)), expand=True)
    return look(art, page, clean=0.7, desk_share=0.05).convert("RGB")


def table(art: Art) -> Image.Image:
    """A table in any dress."""
    if art.chance(0.12):
        return _sheet(art)
    if art.chance(0.4):
        return _printed(art)
    ground: Colour = art.pick(((255, 255, 255), (255, 255, 255), (252, 250, 245), (30, 32, 38)))
    ink: Colour = (235, 235, 235) if luminance(ground) < 0.5 else art.pick(((20, 20, 20), (60, 60, 60)))
    page = art.chance(0.35)
    width, height = (820, 1100) if page else art.pick(((900, 560), (800, 400), (700, 700), (1000, 500), (600, 800)))
    canvas = Image.new("RGB", (width, height), ground)
    draw = ImageDraw.Draw(canvas)
    face = art.print_face()
    bold = art.bold()
    margin = width * art.between(0.02, 0.09)
    y = height * 0.03
    if art.chance(0.7):
        draw.text(
            (margin, y),
            f"{art.pick(('Table', 'Tabelle', 'Tableau', 'Tab.'))} {art.whole(1, 30)}: "
            f"{words.title(art, art.whole(2, 6))}",
            font=bold.at(22),
            fill=ink,
        )
        y += 44
    blocks = art.pick((1, 2, 3)) if page else 1
    room = (height - y - margin) / blocks
    for _ in range(blocks):
        end = y + room - 40 if page else height - margin
        draw_table(
            art,
            draw,
            (margin, y, width - margin, end),
            art.whole(4, 10) if blocks > 1 else art.whole(4, 26),
            art.whole(2, 9),
            face,
            bold,
            ink,
            ground,
        )
        if page:
            draw.text((margin, end + 8), words.sentence(art, 9), font=face.at(14), fill=ink)
        y += room
    return look(art, canvas, clean=0.75, desk_share=0.05).convert("RGB")
