"""Printed and written paper: pages, letters, forms, invoices, receipts, manuscripts."""

from __future__ import annotations

import math

from PIL import Image, ImageDraw, ImageFilter

from . import words
from .art import Art, Colour, grid_text, mix, shade, text_within, wrap
from .charts import mini_chart
from .looks import look, on_desk, paper
from .people import signature
from .tables import draw_table

INK: Colour = (25, 25, 28)


def _finished(art: Art, page: Image.Image, clean: float = 0.62) -> Image.Image:
    if art.chance(0.12):
        w, h = int(page.width * art.between(0.6, 1)), int(page.height * art.between(0.35, 0.9))
        x, y = art.whole(0, page.width - w), art.whole(0, page.height - h)
        page = page.crop((x, y, x + w, y + h))
    return look(art, page, clean=clean, desk_share=0.12).convert("RGB")


def document_page(art: Art) -> Image.Image:
    """A page of running text: article, book, report, slide-like handout, typescript."""
    style = art.pick(("article", "report", "book", "typescript", "manual", "article"))
    width, height = art.pick(((820, 1160), (820, 1060), (760, 1100))) if not art.chance(0.1) else (1160, 820)
    aged = art.between(0.2, 1.0) if style == "typescript" or art.chance(0.3) else 0.0
    page = paper(art, (width, height), aged)
    draw = ImageDraw.Draw(page)
    face = art.mono() if style == "typescript" else art.print_face()
    bold = art.bold()
    language = words.language(art, face.wide)
    size = art.between(10, 19)
    pitch = size * art.between(1.2, 1.75)
    margin = width * art.between(0.07, 0.15)
    columns = 2 if style == "article" and art.chance(0.7) else 1
    gap = 24
    room = (width - 2 * margin - gap * (columns - 1)) / columns
    top = height * art.between(0.05, 0.12)
    if style in ("article", "report", "manual") and art.chance(0.75):
        title = words.title(art, art.whole(3, 9), language)
        for line in wrap(draw, title, bold, size * 1.8, width - 2 * margin):
            x, anchor = (width / 2, "ma") if columns == 2 or art.chance(0.3) else (margin, "la")
            draw.text((x, top), line, font=bold.at(size * 1.8), fill=INK, anchor=anchor)
            top += size * 2.4
        if art.chance(0.6):
            draw.text(
                (width / 2, top),
                f"{words.given(art)} {words.surname(art)}, {words.given(art)} {words.surname(art)}",
                font=face.at(size),
                fill=INK,
                anchor="ma",
            )
            top += size * 2.6
    end = height * art.between(0.88, 0.95) if not art.chance(0.15) else height * art.between(0.35, 0.8)
    for column in range(columns):
        x = margin + column * (room + gap)
        y = top
        while y < end:
            chance = art.rng.random()
            if chance < 0.06 and style in ("article", "report", "manual"):
                tall = art.between(0.1, 0.2) * height
                if y + tall < end:
                    if art.chance(0.4):
                        mini_chart(art, page, (x + 20, y + 6, x + room - 20, y + tall - 20), art.dark())
                    elif art.chance(0.5):
                        draw_table(
                            art,
                            draw,
                            (x, y + 8, x + room, y + tall - 24),
                            art.whole(3, 6),
                            art.whole(2, 5),
                            face,
                            bold,
                            INK,
                            (255, 255, 255),
                        )
                    else:
                        draw.rectangle(
                            (x + 20, y + 6, x + room - 20, y + tall - 22), fill=art.colour((0, 0.4), (0.5, 0.95))
                        )
                    draw.text(
                        (x + room / 2, y + tall - 16),
                        f"Figure {art.whole(1, 9)}: {words.sentence(art, 5, language)}",
                        font=face.at(size * 0.8),
                        fill=INK,
                        anchor="ma",
                    )
                    y += tall + pitch
                continue
            if chance < 0.18 and style not in {"typescript", "book"}:
                y += pitch * 0.5
                draw.text(
                    (x, y),
                    f"{art.whole(1, 9)}  {words.title(art, art.whole(1, 4), language)}",
                    font=bold.at(size * 1.2),
                    fill=INK,
                )
                y += pitch * 1.5
            if chance > 0.93:
                for _ in range(art.whole(2, 5)):
                    draw.text(
                        (x + 14, y),
                        "•  " + words.sentence(art, art.whole(3, 7), language),
                        font=face.at(size),
                        fill=INK,
                    )
                    y += pitch
            indent = size * 1.6 if style == "book" else 0
            justify = style in ("article", "book")
            lines = wrap(draw, words.paragraph(art, art.whole(2, 6), language), face, size, room - indent)
            for number, line in enumerate(lines):
                if y > end:
                    break
                start = x + (indent if number == 0 else 0)
                if justify and number < len(lines) - 1:
                    parts = line.split()
                    slack = (
                        room
                        - (indent if number == 0 else 0)
                        - sum(draw.textlength(part, font=face.at(size)) for part in parts)
                    )
                    step = slack / max(1, len(parts) - 1)
                    for part in parts:
                        draw.text((start, y), part, font=face.at(size), fill=INK)
                        start += draw.textlength(part, font=face.at(size)) + step
                else:
                    draw.text((start, y), line, font=face.at(size), fill=INK)
                y += pitch
            y += pitch * art.pick((0.0, 0.5, 1.0))
    if art.chance(0.6):
        draw.text((width / 2, height * 0.965), str(art.whole(1, 400)), font=face.at(size), fill=INK, anchor="mm")
    if style == "typescript":
        page = page.filter(ImageFilter.GaussianBlur(art.between(0, 0.9)))
    return _finished(art, page, 0.75 if style != "typescript" else 0.4)


def letter(art: Art) -> Image.Image:
    """A business letter."""
    width, height = 820, 1160
    page = paper(art, (width, height), art.pick((0.0, 0.0, 0.2, 0.6, 1.0)))
    draw = ImageDraw.Draw(page)
    face, bold = art.print_face(), art.bold()
    language = words.language(art, face.wide)
    size = art.between(13, 17)
    colour = art.dark()
    draw.text((80, 60), art.pick(words.COMPANIES), font=bold.at(30), fill=colour)
    if art.chance(0.5):
        draw.line((80, 106, width - 80, 106), fill=colour, width=3)
    y = 150.0
    for line in (
        f"{words.given(art)} {words.surname(art)}",
        f"{art.whole(1, 200)} {words.surname(art)} Street",
        words.city(art),
    ):
        draw.text((80, y), line, font=face.at(size), fill=INK)
        y += size * 1.5
    draw.text(
        (width - 80, y),
        f"{words.city(art)}, {art.whole(1, 28)}.{art.whole(1, 12)}.2025",
        font=face.at(size),
        fill=INK,
        anchor="ra",
    )
    y += size * 3
    draw.text(
        (80, y),
        art.pick(
            (
                "Dear Sir or Madam,",
                "Dear colleagues,",
                "Madame, Monsieur,",
                "Sehr geehrte Damen und Herren,",
                "Estimados señores:",
            )
        ),
        font=face.at(size),
        fill=INK,
    )
    y += size * 2.4
    for _ in range(art.whole(2, 5)):
        for line in wrap(draw, words.paragraph(art, art.whole(2, 5), language), face, size, width - 160):
            draw.text((80, y), line, font=face.at(size), fill=INK)
            y += size * 1.5
        y += size
    draw.text(
        (80, y),
        art.pick(("Yours sincerely,", "Best regards,", "Mit freundlichen Grüßen", "Cordialement,")),
        font=face.at(size),
        fill=INK,
    )
    signature(draw, art, (80, y + 24, 280, y + 84))
    draw.text((80, y + 96), f"{words.given(art)} {words.surname(art)}", font=face.at(size), fill=INK)
    return _finished(art, page)


FIELDS = [
    "Surname",
    "First name",
    "Date of birth",
    "Address",
    "Postal code",
    "City",
    "Telephone",
    "E-mail",
    "Occupation",
    "Employer",
    "Tax number",
    "Nationality",
    "Marital status",
    "Account holder",
    "Signature",
    "Place, date",
    "Reason for application",
    "Number of children",
    "Bank",
    "Vehicle type",
    "Emergency contact",
    "Reference number",
    "Amount",
    "Period from / to",
]


def form(art: Art) -> Image.Image:
    """A form with boxes and lines, empty or filled in by hand."""
    width, height = 820, 1120
    page = paper(art, (width, height))
    draw = ImageDraw.Draw(page)
    face, bold, hand = art.sans(), art.bold(), art.hand()
    tint = art.pick(((255, 255, 255), art.pale(), (235, 240, 248)))
    colour = art.dark()
    draw.text(
        (50, 36),
        art.pick(
            ("APPLICATION FORM", "REGISTRATION", "CLAIM FORM", "ANTRAG", "DEMANDE", "FORM ", f"FORM {art.code(4)}")
        ),
        font=bold.at(30),
        fill=colour,
    )
    draw.text((50, 76), words.sentence(art, 10), font=face.at(14), fill=INK)
    y = 120
    boxed = art.chance(0.5)
    filled = art.chance(0.5)
    while y < height - 120:
        if art.chance(0.18):
            draw.rectangle((50, y, width - 50, y + 28), fill=colour)
            draw.text(
                (60, y + 5),
                f"{art.whole(1, 9)}. {words.title(art, art.whole(1, 4))}",
                font=bold.at(16),
                fill=(255, 255, 255),
            )
            y += 38
        kind = art.whole(0, 3)
        if kind == 0:
            for index in range(3):
                x = 60 + index * 240
                draw.rectangle((x, y + 4, x + 16, y + 20), outline=INK, width=2)
                if filled and art.chance(0.4):
                    draw.line((x, y + 4, x + 16, y + 20), fill=(20, 30, 120), width=3)
                    draw.line((x + 16, y + 4, x, y + 20), fill=(20, 30, 120), width=3)
                draw.text(
                    (x + 24, y + 3),
                    art.pick(("Yes", "No", "single", "married", "other", words.title(art, 2))),
                    font=face.at(15),
                    fill=INK,
                )
            y += 36
            continue
        columns = art.pick((1, 2, 2, 3))
        room = (width - 100) / columns
        for index in range(columns):
            left = 50 + index * room
            draw.text((left + 4, y + 2), art.pick(FIELDS), font=face.at(12), fill=mix(INK, (255, 255, 255), 0.3))
            if boxed:
                draw.rectangle((left, y, left + room - 8, y + 46), outline=INK, fill=None)
                draw.rectangle((left + 2, y + 18, left + room - 10, y + 44), fill=tint)
            elif art.chance(0.3):
                for cell in range(int((room - 16) / 20)):
                    draw.rectangle((left + cell * 20, y + 18, left + cell * 20 + 20, y + 44), outline=INK)
            else:
                draw.line((left, y + 44, left + room - 10, y + 44), fill=INK)
            if filled and art.chance(0.8):
                draw.text(
                    (left + 8, y + 18),
                    art.pick((words.surname(art), words.city(art), art.digits(6), words.given(art))),
                    font=hand.at(22),
                    fill=(20, 30, 120),
                )
        y += 58
    return _finished(art, page, 0.5)


def invoice(art: Art) -> Image.Image:
    """An invoice on a full page."""
    width, height = 820, 1160
    page = paper(art, (width, height))
    draw = ImageDraw.Draw(page)
    face, bold = art.print_face() if art.chance(0.3) else art.sans(), art.bold()
    colour = art.pick((INK, art.dark(), art.vivid()))
    word, symbol, total_word = art.pick(
        (
            ("INVOICE", "$", "Total"),
            ("INVOICE", "£", "Amount due"),
            ("RECHNUNG", "€", "Gesamtbetrag"),
            ("FACTURE", "€", "Total TTC"),
            ("FACTURA", "€", "Total"),
            ("Invoice", "€", "Balance due"),
            ("BILL", "$", "Total due"),
            ("Purchase Order", "$", "Total"),
        )
    )
    size = art.between(12, 17)
    if art.chance(0.4):
        draw.rectangle((0, 0, width, 110), fill=colour)
        draw.text((50, 34), art.pick(words.COMPANIES), font=bold.at(32), fill=(255, 255, 255))
    else:
        draw.text((50, 50), art.pick(words.COMPANIES), font=bold.at(28), fill=colour)
        if art.chance(0.4):
            draw.ellipse((width - 140, 30, width - 60, 110), fill=art.vivid())
    y = 150.0
    draw.text(art.pick(((50, y), (width - 300, y))), word, font=bold.at(art.between(26, 46)), fill=colour)
    y += 70
    left = [
        f"{words.given(art)} {words.surname(art)}",
        art.pick(words.COMPANIES),
        f"{art.whole(1, 300)} {words.surname(art)} Road",
        f"{art.digits(5)} {words.city(art)}",
    ]
    right = [
        f"{word.title()} no. {art.whole(1000, 99999)}",
        f"Date: {art.whole(1, 28):02d}/{art.whole(1, 12):02d}/2025",
        f"Due: {art.whole(1, 28):02d}/{art.whole(1, 12):02d}/2025",
        f"VAT ID: {art.letters(2)}{art.digits(9)}",
        f"Customer: {art.digits(6)}",
    ]
    for index in range(5):
        if index < len(left):
            draw.text((50, y), left[index], font=face.at(size), fill=INK)
        draw.text((width - 300, y), right[index], font=face.at(size), fill=INK)
        y += size * 1.5
    y += 40
    columns = (50, 90, 430, 540, 650, width - 50)
    heads = art.pick(
        (
            ("#", "Description", "Qty", "Unit price", "Amount"),
            ("Pos", "Bezeichnung", "Menge", "Preis", "Betrag"),
            ("", "Désignation", "Qté", "P.U.", "Montant"),
        )
    )
    pitch = size * art.between(1.7, 2.6)
    ruled = art.chance(0.5)
    fill = art.pick((colour, mix(colour, (255, 255, 255), 0.8), (235, 235, 235)))
    draw.rectangle((50, y, width - 50, y + pitch), fill=fill)
    head_ink: Colour = (255, 255, 255) if sum(fill) < 380 else INK
    for index, head in enumerate(heads):
        anchor, x = ("la", columns[index] + 6) if index < 2 else ("ra", columns[index + 1] - 6)
        draw.text((x, y + pitch * 0.2), head, font=bold.at(size), fill=head_ink, anchor=anchor)
    y += pitch
    total = 0.0
    for row in range(art.whole(2, 12)):
        count, each = art.whole(1, 20), words.price(art, 400)
        total += count * each
        values = (str(row + 1), art.pick(words.SERVICES), str(count), words.money(each), words.money(count * each))
        for index, text in enumerate(values):
            anchor, x = ("la", columns[index] + 6) if index < 2 else ("ra", columns[index + 1] - 6)
            draw.text((x, y + pitch * 0.2), text, font=face.at(size), fill=INK, anchor=anchor)
        if ruled:
            draw.rectangle((50, y, width - 50, y + pitch), outline=(180, 180, 180))
        y += pitch
    y += 16
    rate = art.pick((7, 19, 20, 21, 25))
    for name, value in (
        (art.pick(("Subtotal", "Netto", "Total HT")), total),
        (f"{art.pick(('VAT', 'MwSt.', 'TVA', 'Tax'))} {rate}%", total * rate / 100),
        (total_word, total * (1 + rate / 100)),
    ):
        strong = name == total_word
        draw.text(
            (width - 260, y),
            name,
            font=(bold if strong else face).at(size * (1.2 if strong else 1)),
            fill=INK,
            anchor="ra" if art.chance(0.0) else "la",
        )
        draw.text(
            (width - 56, y),
            words.money(value, symbol),
            font=(bold if strong else face).at(size * (1.2 if strong else 1)),
            fill=INK,
            anchor="ra",
        )
        y += size * 1.8
    y += 30
    for line in (
        f"Bank: {art.pick(words.COMPANIES)}   IBAN: {art.letters(2)}{art.digits(18)}",
        words.sentence(art, 10),
        f"{art.pick(('Payment due within', 'Zahlbar innerhalb', 'Net'))} "
        f"{art.pick((7, 14, 30))} {art.pick(('days', 'Tagen', 'jours'))}",
    ):
        if y < height - 40:
            draw.text((50, y), line, font=face.at(size * 0.9), fill=INK)
            y += size * 1.6
    return _finished(art, page)


def receipt(art: Art) -> Image.Image:
    """A till's narrow strip."""
    width = art.whole(330, 460)
    face = art.mono() if art.chance(0.75) else art.sans()
    size = art.between(15, 20)
    cell = width * 0.88 / art.whole(30, 40)
    pitch = size * art.between(1.2, 1.5)
    rows: list[str | tuple[str, str]] = []
    symbol = art.pick(("$", "", "€", "£", "EUR "))
    rows += [
        art.pick(words.COMPANIES).upper(),
        f"{art.whole(1, 300)} {words.surname(art)} St",
        words.city(art),
        f"TEL {art.digits(3)}-{art.digits(4)}",
        "",
    ]
    rows += [
        (
            f"{art.whole(1, 28):02d}/{art.whole(1, 12):02d}/2025 {art.whole(8, 21):02d}:{art.whole(0, 59):02d}",
            f"#{art.digits(5)}",
        ),
        (f"CASHIER {words.given(art).split()[0].upper()}", f"REG {art.whole(1, 9)}"),
        "-" * 32,
    ]
    total = 0.0
    for _ in range(art.whole(2, 18)):
        each = words.price(art, 30)
        total += each
        name = art.pick(words.GOODS)
        rows.append(
            (
                f"{art.whole(1, 4)} x {name}" if art.chance(0.4) else name.upper() if art.chance(0.5) else name,
                words.money(each, symbol),
            )
        )
    rows += [
        "-" * 32,
        (art.pick(("SUBTOTAL", "Zwischensumme", "SOUS-TOTAL")), words.money(total, symbol)),
        (art.pick(("TAX", "MwSt", "TVA", "VAT")), words.money(total * 0.08, symbol)),
    ]
    rows += [
        (art.pick(("TOTAL", "TOTAL DUE", "SUMME", "Total")), words.money(total * 1.08, symbol)),
        (
            art.pick(("CASH", "VISA ****" + art.digits(4), "CARD", "BAR")),
            words.money(total * 1.08 + art.pick((0, 2)), symbol),
        ),
        "",
    ]
    rows += [art.pick(("THANK YOU!", "Thank you for your visit", "Vielen Dank", "MERCI", "PLEASE COME AGAIN")), ""]
    barcode = art.chance(0.4)
    height = int(len(rows) * pitch + 60 + (80 if barcode else 0))
    page = paper(art, (width, height), art.between(0, 0.25))
    draw = ImageDraw.Draw(page)
    ink = art.pick((INK, (70, 70, 75), (60, 60, 110)))
    y = 24.0
    for index, row in enumerate(rows):
        if isinstance(row, tuple):
            left, right = row
            grid_text(draw, (width * 0.06, y), left[:24], face, size, cell, ink)
            grid_text(draw, (width * 0.94 - cell * len(right), y), right, face, size, cell, ink)
        elif index == 0:
            text_within(draw, (width / 2, y - 6), row, face, size * 1.6, width * 0.9, ink, "ma")
            y += 8
        else:
            grid_text(draw, (width / 2 - cell * len(row) / 2, y), row, face, size, cell, ink)
        y += pitch
    if barcode:
        x = width * 0.15
        while x < width * 0.85:
            w = art.pick((1, 2, 3))
            draw.rectangle((x, y, x + w, y + 54), fill=ink)
            x += w + art.pick((1, 2, 4))
    if art.chance(0.55):
        return on_desk(art, page.convert("RGBA"), 0.05, (0.75, 1.05))
    return _finished(art, page, 0.5)


def _stroke(
    art: Art,
    x: float,
    baseline: float,
    size: float,
    slant: float,
    letter: str,
    habits: dict[str, list[tuple[float, float]]],
) -> list[tuple[float, float]]:
    if letter not in habits:
        count = art.whole(3, 6)
        tall = letter in "bdfhklt" or letter.isupper()
        deep = letter in "gjpqy"
        points = []
        for index in range(count):
            high = art.between(0.6, 1.7) if tall and index == 1 else art.between(-0.1, 0.8)
            if deep and index == count - 2:
                high = art.between(-0.9, -0.4)
            points.append(((index + art.between(-0.35, 0.35)) / count, high))
        habits[letter] = points
    return [
        (
            x + (px + py * slant) * size * 0.62 + art.rng.gauss(0, size * 0.02),
            baseline - py * size * 0.55 + art.rng.gauss(0, size * 0.02),
        )
        for px, py in habits[letter]
    ]


def _smooth(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Catmull-Rom through the points, four steps a piece."""
    if len(points) < 4:
        return points
    result = []
    for index in range(1, len(points) - 2):
        p0, p1, p2, p3 = points[index - 1 : index + 3]
        for step in range(4):
            t = step / 4
            result.append(
                tuple(
                    0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t * t + (3 * b - a - 3 * c + d) * t**3)
                    for a, b, c, d in zip(p0, p1, p2, p3, strict=True)
                )
            )
    return [(x, y) for x, y in result]


def handwriting(art: Art) -> Image.Image:
    """Pen strokes that look like cursive lines, or a hand-like face, on old, lined or plain paper."""
    width, height = art.pick(((820, 1160), (800, 1000), (1000, 700), (700, 1000)))
    aged = art.pick((0.0, 0.0, 0.2, 0.6, 1.0))
    page = paper(art, (width, height), aged)
    draw = ImageDraw.Draw(page)
    ink = art.pick(((30, 30, 90), (25, 25, 30), (70, 45, 25), (60, 40, 30), (20, 40, 120)))
    ink = mix(ink, (200, 180, 150), art.between(0, 0.35) * aged)
    size = art.between(20, 46)
    pitch = size * art.between(1.2, 1.9)
    margin = width * art.between(0.05, 0.2)
    if aged < 0.3 and art.chance(0.5):
        y = pitch * 2
        while y < height:
            draw.line((0, y, width, y), fill=(170, 195, 225))
            y += pitch
        if art.chance(0.4):
            draw.line((margin - 10, 0, margin - 10, height), fill=(225, 150, 150), width=2)
    register = art.chance(0.15)
    if register:
        for share in (0.15, 0.5, 0.75, 0.88):
            draw.line((width * share, 0, width * share, height), fill=mix(ink, (255, 255, 255), 0.4), width=2)
    language = art.pick(("en", "fr", "de", "es"))
    face = art.hand()
    drawn = art.chance(0.65) or face.path is None
    habits: dict[str, list[tuple[float, float]]] = {}
    slant = art.between(-0.1, 0.6)
    pen = art.pick((1, 2, 2, 3))
    end = height - pitch if not art.chance(0.25) else height * art.between(0.4, 0.8)
    y = pitch * art.between(1.5, 3)
    while y < end:
        x = margin + (size * 2 if art.chance(0.1) else 0)
        stop = width - margin * art.between(0.3, 1.1)
        drift = art.rng.gauss(0, 0.006)
        while x < stop:
            word = words.sentence(art, 1, language).rstrip(".")
            word = word if art.chance(0.1) else word.lower()
            if drawn:
                points: list[tuple[float, float]] = []
                for letter in word:
                    points += _stroke(art, x, y + (x - margin) * drift, size, slant, letter, habits)
                    x += size * 0.36
                draw.line(_smooth(points), fill=ink, width=pen, joint="curve")
                x += size * 0.35
            else:
                draw.text((x, y + (x - margin) * drift), word, font=face.at(size), fill=ink, anchor="ls")
                x += draw.textlength(word + " ", font=face.at(size))
        y += pitch * (1 if not register or art.chance(0.6) else 2)
    if art.chance(0.2):
        signature(draw, art, (width * 0.55, end, width * 0.85, min(height, end + 90)), shade(ink, 0.9))
    if art.chance(0.15):
        cx, cy, r = art.between(0.2, 0.8) * width, art.between(0.2, 0.9) * height, art.whole(30, 60)
        draw.ellipse((cx - r, cy - r, cx + r, cy + r), outline=(150, 40, 40), width=4)
        for step in range(12):
            draw.line((cx, cy, cx + r * math.cos(step), cy + r * math.sin(step)), fill=(150, 40, 40))
    return look(art, page, clean=0.6, desk_share=0.2).convert("RGB")
