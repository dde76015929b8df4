"""Identity documents of countries that do not exist: passports, identity cards, licences, residence permits.

Every one carries what makes such a document one: a portrait, fields with their labels, security print, a number, and
mostly a machine readable zone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from PIL import Image, ImageDraw

from . import words
from .art import Art, Colour, fit, gradient, grid_text, luminance, mix, rounded, shade, text_within
from .fonts import Face
from .looks import look
from .mrz import td1, td3
from .people import identity_photo, signature


@dataclass(frozen=True)
class Holder:
    """Who the document says its holder is, and for how long."""

    surname: str
    given: str
    number: str
    born: tuple[int, int, int]
    issued: tuple[int, int, int]
    expires: tuple[int, int, int]
    sex: str
    place: str


def _holder(art: Art) -> Holder:
    issued = art.date(2008, 2026)
    return Holder(
        surname=words.surname(art).upper(),
        given=words.given(art).upper() if art.chance(0.7) else words.given(art),
        number=art.letters(art.whole(0, 2)) + art.digits(7) if art.chance(0.7) else art.code(9),
        born=art.date(1945, 2008),
        issued=issued,
        expires=(issued[0] + art.pick((5, 10)), issued[1], issued[2]),
        sex=art.pick(("M", "F")),
        place=words.city(art).upper(),
    )


def _date(art: Art, date: tuple[int, int, int], style: int) -> str:
    year, month, day = date
    return (
        f"{day:02d} {words.MONTHS[month - 1]} {year}",
        f"{day:02d}.{month:02d}.{year}",
        f"{month:02d}/{day:02d}/{year}",
        f"{year}-{month:02d}-{day:02d}",
    )[style]


def guilloche(art: Art, image: Image.Image, colours: tuple[Colour, ...], density: int = 26) -> None:
    """The fine waves of security print."""
    draw = ImageDraw.Draw(image, "RGBA")
    width, height = image.size
    for colour in colours:
        kind = art.pick(("waves", "rosette", "waves", "lines"))
        strength = art.whole(40, 110)
        if kind == "waves":
            amplitude, period = art.between(0.02, 0.12) * height, art.between(0.15, 0.7) * width
            beat = art.between(0.3, 2.0)
            for line in range(density):
                base = height * (line + 0.5) / density
                points = [
                    (
                        x,
                        base
                        + amplitude
                        * math.sin(x / period * math.tau + line * 0.22)
                        * math.cos(x / (period * beat) + line * 0.1),
                    )
                    for x in range(0, width + 8, 8)
                ]
                draw.line(points, fill=(*colour, strength))
        elif kind == "rosette":
            cx, cy = art.between(0.2, 0.8) * width, art.between(0.2, 0.8) * height
            radius, petals = art.between(0.2, 0.5) * height, art.whole(5, 16)
            for ring in range(density // 2):
                grown = radius * (0.4 + 0.6 * ring / (density // 2))
                ring_points = []
                for step in range(181):
                    angle = step / 180 * math.tau
                    r = grown * (1 + 0.22 * math.sin(petals * angle + ring * 0.15))
                    ring_points.append((cx + r * math.cos(angle), cy + r * math.sin(angle)))
                draw.line(ring_points, fill=(*colour, strength))
        else:
            slope = art.between(-0.6, 0.6)
            for line in range(density * 2):
                x = width * (line / (density * 2) * 1.6 - 0.3)
                draw.line((x, 0, x + slope * height, height), fill=(*colour, strength))


def emblem(art: Art, draw: ImageDraw.ImageDraw, x: float, y: float, r: float, colour: Colour) -> None:
    """A coat of arms of no state."""
    shape = art.pick(("star", "shield", "disc", "eagle"))
    if shape == "star":
        points = [
            (
                x + math.sin(i * math.pi / 5) * r * (1 if i % 2 == 0 else 0.42),
                y - math.cos(i * math.pi / 5) * r * (1 if i % 2 == 0 else 0.42),
            )
            for i in range(10)
        ]
        draw.polygon(points, fill=colour)
    elif shape == "shield":
        draw.polygon(
            [
                (x - r * 0.8, y - r),
                (x + r * 0.8, y - r),
                (x + r * 0.8, y + r * 0.2),
                (x, y + r),
                (x - r * 0.8, y + r * 0.2),
            ],
            fill=colour,
        )
        draw.line(
            (x - r * 0.8, y - r * 0.2, x + r * 0.8, y - r * 0.2),
            fill=mix(colour, (255, 255, 255), 0.7),
            width=max(1, int(r * 0.2)),
        )
    elif shape == "disc":
        for share in (1.0, 0.75, 0.5):
            draw.ellipse(
                (x - r * share, y - r * share, x + r * share, y + r * share),
                outline=colour,
                width=max(1, int(r * 0.12)),
            )
    else:
        draw.ellipse((x - r * 0.25, y - r * 0.7, x + r * 0.25, y + r * 0.8), fill=colour)
        for side in (-1, 1):
            draw.polygon(
                [(x, y - r * 0.3), (x + side * r, y - r * 0.8), (x + side * r * 0.8, y + r * 0.3), (x, y + r * 0.3)],
                fill=colour,
            )


def _ghost(
    art: Art, canvas: Image.Image, photo: Image.Image, place: tuple[int, int], size: tuple[int, int], tint: Colour
) -> None:
    small = photo.resize(size).convert("L")
    layer = Image.new("RGB", size, tint)
    canvas.paste(layer, place, small.point(lambda v: max(0, 150 - int(v * 0.62))))


def _chip(draw: ImageDraw.ImageDraw, x: float, y: float, w: float) -> None:
    h = w * 0.78
    gold = (212, 178, 95)
    draw.rounded_rectangle((x, y, x + w, y + h), w * 0.14, fill=gold, outline=(120, 95, 40))
    for share in (0.33, 0.66):
        draw.line((x, y + h * share, x + w, y + h * share), fill=(120, 95, 40))
    draw.rectangle((x + w * 0.35, y + h * 0.2, x + w * 0.65, y + h * 0.8), outline=(120, 95, 40))


def _hologram(art: Art, canvas: Image.Image, x: int, y: int, r: int) -> None:
    hue = art.pick([gradient((2 * r, 2 * r), art.vivid(), art.vivid(), art.between(0, 360)) for _ in range(2)])
    mask = Image.new("L", (2 * r, 2 * r), 0)
    draw = ImageDraw.Draw(mask)
    for step in range(0, r, 4):
        draw.ellipse((step, step, 2 * r - step, 2 * r - step), outline=art.whole(50, 130), width=2)
    canvas.paste(hue, (x - r, y - r), mask)


def _barcode(art: Art, draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int], two_dimensional: bool) -> None:
    left, top, right, bottom = box
    step = 3
    for x in range(left, right, step):
        if two_dimensional:
            for y in range(top, bottom, step * 2):
                if art.chance(0.5):
                    draw.rectangle((x, y, x + step - 1, y + step * 2 - 1), fill=(20, 20, 20))
        elif art.chance(0.5):
            draw.rectangle((x, top, x + step - 1, bottom), fill=(20, 20, 20))


def _zone(
    draw: ImageDraw.ImageDraw,
    face: Face,
    lines: tuple[str, ...],
    left: float,
    top: float,
    width: float,
    height: float,
    fill: Colour,
) -> None:
    cell = width / max(len(line) for line in lines)
    pitch = height / len(lines)
    for index, line in enumerate(lines):
        grid_text(draw, (left, top + index * pitch), line, face, min(pitch * 0.78, cell * 1.6), cell, fill)


def _fields(
    draw: ImageDraw.ImageDraw,
    art: Art,
    entries: list[tuple[str, str]],
    box: tuple[float, float, float, float],
    label: Face,
    value: Face,
    ink: Colour,
    label_ink: Colour,
    columns: int,
) -> None:
    left, top, right, bottom = box
    rows = math.ceil(len(entries) / columns)
    pitch = (bottom - top) / rows
    column = (right - left) / columns
    beside, small = art.chance(0.2), pitch * art.between(0.22, 0.3)
    for index, (name, text) in enumerate(entries):
        x = left + (index % columns) * column
        y = top + (index // columns) * pitch
        size = fit(draw, text, value, pitch * 0.46, column * (0.6 if beside else 0.96))
        if beside:
            text_within(draw, (x, y + pitch * 0.2), name, label, small, column * 0.34, label_ink)
            draw.text((x + column * 0.37, y + pitch * 0.1), text, font=value.at(size), fill=ink)
        else:
            text_within(draw, (x, y), name, label, small, column * 0.96, label_ink)
            draw.text((x, y + pitch * 0.34), text, font=value.at(size), fill=ink)


AUTHORITIES = ("Prefecture", "Ministry of the Interior", "Civil Registry", "Police", "DMV")
LABELS = {
    "surname": (
        "Surname / Nom",
        "Surname",
        "1. Surname",
        "Apellidos",
        "Name / Nom",
        "LN",
        "Nom",
        "Nachname / Surname",
        "Cognome",
    ),
    "given": (
        "Given names / Prénoms",
        "Given names",
        "2. Given names",
        "Nombre",
        "Vornamen / Given names",
        "FN",
        "Prénoms",
        "Nome",
    ),
    "nationality": ("Nationality / Nationalité", "Nationality", "Staatsangehörigkeit", "Nacionalidad", "Cittadinanza"),
    "born": (
        "Date of birth / Date de naissance",
        "Date of birth",
        "3. Date of birth",
        "DOB",
        "Geburtsdatum",
        "Fecha de nacimiento",
        "Born",
    ),
    "sex": ("Sex / Sexe", "Sex", "Geschlecht", "Sexo"),
    "place": ("Place of birth / Lieu de naissance", "Place of birth", "Geburtsort", "Lugar de nacimiento"),
    "issued": (
        "Date of issue / Date de délivrance",
        "Date of issue",
        "4a. Issued",
        "ISS",
        "Ausstellungsdatum",
        "Issued",
    ),
    "expires": (
        "Date of expiry / Date d'expiration",
        "Date of expiry",
        "4b. Expires",
        "EXP",
        "Gültig bis",
        "Valid until",
        "Expires",
    ),
    "authority": ("Authority / Autorité", "Authority", "4c. Authority", "Behörde", "Issuing authority"),
    "number": (
        "Passport No. / Passeport No",
        "Document No.",
        "5. Number",
        "DL NO",
        "Ausweisnummer",
        "Número",
        "Card number",
        "No.",
    ),
    "height": ("Height / Taille", "Height", "HGT", "Größe"),
    "address": ("Address / Domicile", "Address", "8. Address", "Anschrift", "Domicilio"),
    "class": ("9. Categories", "CLASS", "Klassen", "Categories"),
}


def _entries(art: Art, holder: Holder, country: str, names: tuple[str, ...]) -> list[tuple[str, str]]:
    style = art.whole(0, 3)
    values = {
        "surname": holder.surname,
        "given": holder.given,
        "nationality": country,
        "born": _date(art, holder.born, style),
        "sex": holder.sex,
        "place": holder.place,
        "issued": _date(art, holder.issued, style),
        "expires": _date(art, holder.expires, style),
        "authority": f"{holder.place.title()} {art.pick(AUTHORITIES)}",
        "number": holder.number,
        "height": art.pick((f"{art.whole(150, 199)} cm", f"{art.whole(5, 6)}'-{art.whole(0, 11):02d}\"")),
        "address": f"{art.whole(1, 980)} {words.surname(art)} St, {words.city(art)}",
        "class": art.pick(("B", "AM B", "A1 B BE", "D", "C", "M")),
    }
    return [(art.pick(LABELS[name]), values[name]) for name in names]


def _ground(art: Art, size: tuple[int, int]) -> tuple[Image.Image, Colour]:
    first, second = art.pale(), art.pale()
    if art.chance(0.12):
        first, second = art.colour((0.2, 0.5), (0.6, 0.9)), art.pale()
    canvas = gradient(size, first, second, art.pick((0, 45, 90, 135)))
    accent = art.colour((0.4, 0.9), (0.3, 0.7))
    guilloche(art, canvas, tuple(art.colour((0.2, 0.7), (0.5, 0.9)) for _ in range(art.whole(1, 3))), art.whole(12, 34))
    return canvas, accent


def passport_page(art: Art) -> Image.Image:
    """The data page alone, flat."""
    width, height = 1000, 704
    canvas, accent = _ground(art, (width, height))
    draw = ImageDraw.Draw(canvas)
    country = art.pick(words.COUNTRIES)
    holder = _holder(art)
    label, value, bold = art.sans(), art.pick((art.sans, art.bold, art.mono))(), art.bold()
    ink, label_ink = art.pick(((20, 20, 25), (15, 25, 60), (40, 30, 30))), mix(accent, (40, 40, 40), 0.4)
    if art.chance(0.25):
        draw.rectangle((0, 0, width, 84), fill=accent)
        head_ink: Colour = (255, 255, 255)
    else:
        head_ink = shade(accent, 0.8)
    title = country[2]
    text_within(draw, (40, 22), title, bold, 40, 330, head_ink)
    text_within(draw, (width - 40, 26), country[1], bold, 32, 500, head_ink, "ra")
    if art.chance(0.6):
        emblem(art, draw, art.pick((440, 905)), 140 if art.chance(0.5) else 46, 34, mix(accent, (255, 255, 255), 0.3))
    left_photo = not art.chance(0.1)
    photo_w, photo_h = art.whole(230, 275), art.whole(300, 345)
    photo = identity_photo(art, (photo_w, photo_h))
    photo_x = 40 if left_photo else width - 40 - photo_w
    photo_y = art.whole(100, 150)
    canvas.paste(photo, (photo_x, photo_y))
    if art.chance(0.4):
        draw.rectangle((photo_x, photo_y, photo_x + photo_w, photo_y + photo_h), outline=accent, width=3)
    text_left = 40 + photo_w + 36 if left_photo else 44
    text_right = width - 40 if left_photo else photo_x - 30
    top_entries = [("Type / Type", "P"), ("Code", country[0]), (art.pick(LABELS["number"]), holder.number)]
    _fields(draw, art, top_entries, (text_left, 96, text_right, 160), label, value, ink, label_ink, 3)
    kept = ("surname", "given", "nationality", "born", "sex", "place", "issued", "expires", "authority")
    entries = _entries(art, holder, country[1], kept)
    columns = art.pick((1, 2, 2))
    _fields(
        draw,
        art,
        entries if columns == 2 else entries[:7],
        (text_left, 168, text_right, 530),
        label,
        value,
        ink,
        label_ink,
        columns,
    )
    if art.chance(0.5):
        _ghost(art, canvas, photo, (width - 190, 370), (120, 150), accent)
    if art.chance(0.4):
        _hologram(art, canvas, photo_x + photo_w - 20, photo_y + photo_h - 40, art.whole(40, 80))
    signature(draw, art, (photo_x + 10, photo_y + photo_h + 6, photo_x + photo_w - 10, 535))
    if art.chance(0.75):
        draw.rectangle((0, 548, width, height), fill=mix(art.pale(), (255, 255, 255), 0.6))
    lines = td3(country[0], holder.surname, holder.given, holder.number, holder.born, holder.sex, holder.expires)
    zone = art.fonts.pick(art.pick(("ocr", "mono")), art.rng)
    _zone(draw, zone, lines, 36, 566, width - 72, 120, (15, 15, 15))
    _stamp(art, canvas)
    return canvas


def _stamp(art: Art, canvas: Image.Image) -> None:
    if not art.chance(0.25):
        return
    text = art.pick(("SPECIMEN", "SAMPLE", "MUSTER", "VOID", "COPY"))
    layer = Image.new("RGBA", canvas.size, (0, 0, 0, 0))
    draw = ImageDraw.Draw(layer)
    face = art.bold()
    size = fit(draw, text, face, canvas.height * 0.3, canvas.width * 0.8)
    colour = art.pick(((200, 30, 30), (120, 120, 120), (30, 60, 160)))
    draw.text(
        (canvas.width / 2, canvas.height / 2), text, font=face.at(size), fill=(*colour, art.whole(60, 140)), anchor="mm"
    )
    layer = layer.rotate(art.between(-30, 30))
    canvas.paste(layer, (0, 0), layer)


def _booklet(art: Art, page: Image.Image) -> Image.Image:
    """The data page below the facing page, as an open booklet lies."""
    other, accent = _ground(art, page.size)
    draw = ImageDraw.Draw(other)
    face = art.serif()
    if art.chance(0.5):
        for index in range(art.whole(3, 7)):
            draw.text((80, 120 + index * 44), words.sentence(art, 9), font=face.at(24), fill=shade(accent, 0.6))
    else:
        for _ in range(art.whole(1, 4)):
            x, y, r = art.whole(150, 850), art.whole(120, 560), art.whole(60, 110)
            colour = art.colour((0.5, 0.9), (0.3, 0.7))
            draw.ellipse((x - r, y - r * 0.7, x + r, y + r * 0.7), outline=colour, width=5)
            draw.text(
                (x, y), art.pick(("ENTRY", "EXIT", "VISA", "ADMITTED")), font=face.at(30), fill=colour, anchor="mm"
            )
    both = Image.new("RGB", (page.width, page.height * 2 + 6), (90, 80, 80))
    both.paste(other, (0, 0))
    both.paste(page, (0, page.height + 6))
    return both


def passport(art: Art) -> Image.Image:
    """A data page, alone or in its open booklet, in any look."""
    page = passport_page(art)
    if art.chance(0.22):
        page = _booklet(art, page)
    flat = rounded(page, art.whole(0, 34))
    return look(art, flat, clean=0.32, desk_share=0.42).convert("RGB")


def _card(art: Art, kind: str) -> Image.Image:
    width, height = 1012, 638
    canvas, accent = _ground(art, (width, height))
    draw = ImageDraw.Draw(canvas)
    country = art.pick(words.COUNTRIES)
    holder = _holder(art)
    label, value, bold = art.sans(), art.pick((art.sans, art.bold, art.sans, art.mono))(), art.bold()
    ink, label_ink = art.pick(((20, 20, 25), (15, 25, 60), (40, 30, 30))), mix(accent, (40, 40, 40), 0.3)
    title = {"identity": country[3], "licence": country[4], "permit": country[5]}[kind]
    state = art.pick(words.STATES) if kind == "licence" and art.chance(0.5) else country[1]
    band = art.chance(0.5)
    if band:
        colour = art.pick((accent, art.dark(), (30, 60, 140)))
        draw.rectangle((0, 0, width, 100), fill=colour)
        head: Colour = (255, 255, 255) if luminance(colour) < 0.6 else (20, 20, 30)
    else:
        head = shade(accent, 0.75)
    flag = art.chance(0.4)
    if flag:
        stripes = [art.vivid() for _ in range(3)]
        for index, stripe in enumerate(stripes):
            if art.pick((True, False)):
                draw.rectangle((36, 24 + index * 20, 126, 44 + index * 20), fill=stripe)
            else:
                draw.rectangle((36 + index * 30, 24, 66 + index * 30, 84), fill=stripe)
    x = 146 if flag else 36
    text_within(draw, (x, 12), state, bold, 40, 640, head)
    text_within(draw, (x, 58), title, label, 30, 640, head)
    if art.chance(0.5):
        emblem(art, draw, width - 70, 54, 36, head)
    right_photo = art.chance(0.3)
    photo_w, photo_h = art.whole(230, 290), art.whole(300, 360)
    photo = identity_photo(art, (photo_w, photo_h))
    photo_x = width - photo_w - 36 if right_photo else 36
    photo_y = art.whole(112, 150)
    canvas.paste(photo, (photo_x, photo_y))
    left, right = (40, photo_x - 24) if right_photo else (photo_x + photo_w + 30, width - 36)
    kept = {
        "identity": ("surname", "given", "sex", "nationality", "born", "number", "expires", "place"),
        "licence": ("surname", "given", "born", "number", "issued", "expires", "address", "class"),
        "permit": ("surname", "given", "sex", "nationality", "born", "number", "expires", "issued"),
    }[kind]
    zone = kind != "licence" and art.chance(0.4)
    bottom = 500 if zone else 590
    _fields(
        draw,
        art,
        _entries(art, holder, country[1], kept),
        (left, 118, right, bottom),
        label,
        value,
        ink,
        label_ink,
        art.pick((1, 2, 2)),
    )
    if kind != "licence" and art.chance(0.4):
        _chip(draw, art.pick((left + 10, right - 130)), art.whole(320, 380), 110)
    if art.chance(0.5):
        _ghost(art, canvas, photo, (right - 120, bottom - 170), (110, 140), accent)
    if art.chance(0.3):
        _hologram(art, canvas, art.whole(300, 800), art.whole(200, 460), art.whole(40, 90))
    signature(
        draw, art, (photo_x + 8, photo_y + photo_h + 4, photo_x + photo_w - 8, min(bottom + 30, photo_y + photo_h + 90))
    )
    if zone:
        lines = td1(
            art.pick(("I<", "ID", "AR")),
            country[0],
            holder.surname,
            holder.given,
            holder.number,
            holder.born,
            holder.sex,
            holder.expires,
        )
        draw.rectangle((0, 512, width, height), fill=mix(art.pale(), (255, 255, 255), 0.6))
        _zone(draw, art.fonts.pick("ocr", art.rng), lines, 40, 520, width - 80, 112, (15, 15, 15))
    if kind == "licence" and art.chance(0.25):
        _barcode(art, draw, (left, 560, right, 620), art.chance(0.5))
    _stamp(art, canvas)
    return canvas


def _back(art: Art, kind: str) -> Image.Image:
    """A card's back: machine readable zone or a table of categories, a barcode, small print, no large photo."""
    width, height = 1012, 638
    canvas, accent = _ground(art, (width, height))
    draw = ImageDraw.Draw(canvas)
    country, holder = art.pick(words.COUNTRIES), _holder(art)
    label, value = art.sans(), art.mono()
    if kind == "licence":
        for row in range(9):
            y = 60 + row * 42
            draw.line((60, y, 760, y), fill=shade(accent, 0.7), width=2)
            draw.text(
                (70, y + 6),
                art.pick(("AM", "A1", "A2", "A", "B1", "B", "C1", "C", "D", "BE", "T")),
                font=label.at(26),
                fill=(30, 30, 30),
            )
            if art.chance(0.4):
                draw.text((280, y + 8), _date(art, art.date(1990, 2024), 1), font=value.at(22), fill=(20, 20, 20))
        for x in (60, 250, 430, 610, 760):
            draw.line((x, 60, x, 60 + 8 * 42), fill=shade(accent, 0.7), width=2)
        _barcode(art, draw, (60, 470, 940, 590), art.chance(0.7))
    else:
        kept = ("address", "height", "issued", "authority")
        _fields(
            draw,
            art,
            _entries(art, holder, country[1], kept),
            (60, 40, 700, 330),
            label,
            value,
            (20, 20, 20),
            mix(accent, (40, 40, 40), 0.3),
            2,
        )
        if art.chance(0.5):
            _ghost(art, canvas, identity_photo(art, (120, 150)), (800, 60), (140, 180), accent)
        if art.chance(0.4):
            _chip(draw, 740, 240, 120)
        draw.rectangle((0, 420, width, height), fill=mix(art.pale(), (255, 255, 255), 0.6))
        lines = td1(
            "ID", country[0], holder.surname, holder.given, holder.number, holder.born, holder.sex, holder.expires
        )
        _zone(draw, art.fonts.pick("ocr", art.rng), lines, 40, 436, width - 80, 180, (15, 15, 15))
    return canvas


def _finished(art: Art, kind: str) -> Image.Image:
    flat = rounded(_card(art, kind), art.whole(20, 44))
    if art.chance(0.14):
        back = rounded(_back(art, kind), 36)
        if art.chance(0.5):
            return look(art, back, clean=0.25, desk_share=0.45).convert("RGB")
        both = Image.new("RGBA", (flat.width, flat.height * 2 + 40), (255, 255, 255, 255))
        both.paste(flat, (0, 0), flat)
        both.paste(back, (0, flat.height + 40), back)
        flat = both
    return look(art, flat, clean=0.28, desk_share=0.45).convert("RGB")


def identity_card(art: Art) -> Image.Image:
    """Front, back or both."""
    return _finished(art, "identity")


def drivers_licence(art: Art) -> Image.Image:
    """Front, back or both."""
    return _finished(art, "licence")


def residence_permit(art: Art) -> Image.Image:
    """Front, back or both."""
    return _finished(art, "permit")


def payment_card(art: Art) -> Image.Image:
    """A bank card: much like an identity card, but none."""
    width, height = 1012, 638
    first = art.colour((0.2, 0.95), (0.1, 0.9))
    canvas = gradient(
        (width, height), first, art.pick((shade(first, 0.5), art.colour((0.2, 0.9), (0.1, 0.9)))), art.between(0, 180)
    )
    draw = ImageDraw.Draw(canvas, "RGBA")
    for _ in range(art.whole(0, 4)):
        r = art.whole(150, 600)
        x, y = art.whole(0, width), art.whole(0, height)
        draw.ellipse((x - r, y - r, x + r, y + r), fill=(*art.colour((0.1, 0.9), (0.3, 1.0)), art.whole(20, 90)))
    ink: Colour = (245, 245, 245) if luminance(first) < 0.55 else (25, 25, 30)
    bold, sans = art.bold(), art.sans()
    if art.chance(0.15):
        draw.rectangle((0, 60, width, 190), fill=(15, 15, 15))
        draw.rectangle((60, 250, 720, 330), fill=(240, 240, 235))
        draw.text((640, 270), art.digits(3), font=sans.at(36), fill=(20, 20, 20))
        draw.text((60, 400), words.sentence(art, 14), font=sans.at(20), fill=ink)
    else:
        draw.text(
            (50, 40),
            art.pick(("Norbank", "First Velmora Bank", "Credit Union", "Castellan", "BANCO SUR", "Fjordbank")),
            font=bold.at(48),
            fill=ink,
        )
        _chip(draw, 70, 210, 120)
        number = " ".join(art.digits(4) for _ in range(4))
        face = art.pick((art.mono, art.sans))()
        text_within(draw, (70, 350), number, face, 70, 860, ink)
        draw.text((70, 460), f"VALID THRU {art.whole(1, 12):02d}/{art.whole(25, 33)}", font=sans.at(28), fill=ink)
        draw.text((70, 540), f"{words.given(art)} {words.surname(art)}".upper(), font=sans.at(40), fill=ink)
        if art.chance(0.6):
            for index, colour in enumerate((art.vivid(), art.vivid())):
                draw.ellipse((790 + index * 70, 500, 900 + index * 70, 610), fill=(*colour, 220))
        else:
            draw.text(
                (940, 520), art.pick(("PAYO", "CARTA", "DEBIT", "Visto")), font=bold.at(64), fill=ink, anchor="ra"
            )
    return look(art, rounded(canvas, 44), clean=0.3, desk_share=0.55).convert("RGB")
