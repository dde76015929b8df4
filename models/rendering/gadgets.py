"""More electronics than `electronics` draws: single chips, breadboards, wired modules, displays, close-ups."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .art import Art, Colour, clouds, gradient, mix, shade, to_image
from .electronics import board, module
from .looks import camera, desk, lit, on_desk

METAL: Colour = (196, 196, 192)


def _marking(art: Art) -> list[str]:
    return [
        f"{art.letters(art.whole(2, 4))}{art.digits(art.whole(2, 5))}{art.letters(1)}" for _ in range(art.whole(1, 4))
    ]


def chip(art: Art) -> Image.Image:
    """One packaged circuit: a square or long body, legs on two or four sides or balls of solder, a marking."""
    w, h = art.pick(((300, 300), (300, 300), (360, 130), (240, 170), (300, 220)))
    leg = art.whole(0, 34)
    image = Image.new("RGBA", (w + 2 * leg + 8, h + 2 * leg + 8), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    left, top = leg + 4, leg + 4
    pitch = art.whole(7, 30)
    metal = shade(METAL, art.between(0.7, 1.15))
    for x in range(left + pitch // 2, left + w - pitch // 2, pitch):
        draw.rectangle((x, 4, x + pitch * 0.45, h + 2 * leg + 4), fill=metal)
    if w == h:
        for y in range(top + pitch // 2, top + h - pitch // 2, pitch):
            draw.rectangle((4, y, w + 2 * leg + 4, y + pitch * 0.45), fill=metal)
    body: Colour = art.pick(((30, 30, 32), (44, 44, 48), (58, 56, 54), (120, 60, 130), (205, 200, 190), (22, 22, 26)))
    draw.rectangle((left, top, left + w, top + h), fill=body, outline=shade(body, 1.4))
    ink = (210, 210, 205) if sum(body) < 400 else (50, 50, 50)
    if art.chance(0.2):
        draw.rectangle(
            (left + w * 0.25, top + h * 0.25, left + w * 0.75, top + h * 0.75), fill=shade(METAL, art.between(0.8, 1.1))
        )
        ink = (60, 60, 62)
    draw.ellipse((left + 10, top + 10, left + 26, top + 26), fill=shade(body, 0.6))
    size = art.between(0.08, 0.16) * w
    for row, text in enumerate(_marking(art)):
        draw.text(
            (left + w * art.pick((0.5, 0.5)), top + h * 0.3 + row * size * 1.15),
            text,
            font=art.sans().at(size),
            fill=ink,
            anchor="mm",
        )
    return image


def _hole_grid(draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int], pitch: int, ink: Colour) -> None:
    for x in range(box[0], box[2], pitch):
        for y in range(box[1], box[3], pitch):
            draw.rectangle((x, y, x + pitch // 3, y + pitch // 3), fill=ink)


def _wire(
    art: Art, draw: ImageDraw.ImageDraw, start: tuple[float, float], end: tuple[float, float], width: int
) -> None:
    """A lead that sags or bends, with a highlight along it."""
    colour = art.pick(
        (
            (220, 40, 40),
            (30, 30, 30),
            (250, 200, 40),
            (40, 160, 70),
            (40, 90, 200),
            (240, 240, 240),
            (240, 130, 30),
            (150, 60, 170),
        )
    )
    bend = [(art.rng.gauss(0, 90), art.rng.gauss(0, 90)) for _ in range(2)]
    points = []
    for step in range(25):
        t = step / 24
        a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
        x = a * start[0] + b * (start[0] + bend[0][0]) + c * (end[0] + bend[1][0]) + d * end[0]
        y = a * start[1] + b * (start[1] + bend[0][1]) + c * (end[1] + bend[1][1]) + d * end[1]
        points.append((x, y))
    draw.line(points, fill=shade(colour, 0.75), width=width, joint="curve")
    draw.line([(x - 1, y - 1) for x, y in points], fill=colour, width=max(1, width - 2), joint="curve")


def _light(art: Art, draw: ImageDraw.ImageDraw, x: int, y: int) -> None:
    colour = art.pick(((230, 40, 40), (60, 200, 80), (70, 120, 240), (250, 220, 70), (240, 240, 245)))
    draw.line((x - 3, y + 8, x - 3, y + 30), fill=METAL, width=2)
    draw.line((x + 3, y + 8, x + 3, y + 30), fill=METAL, width=2)
    draw.ellipse((x - 10, y - 10, x + 10, y + 10), fill=colour)
    draw.ellipse((x - 6, y - 6, x - 1, y - 1), fill=mix(colour, (255, 255, 255), 0.7))


def _part(draw: ImageDraw.ImageDraw, x: int, y: int, wide: int, body: Colour, art: Art) -> None:
    """A resistor with rings."""
    draw.line((x - wide, y, x + wide, y), fill=METAL, width=2)
    draw.rounded_rectangle((x - wide // 2, y - 6, x + wide // 2, y + 6), 5, fill=body)
    for ring in range(4):
        rx = x - wide // 3 + ring * wide // 6
        draw.rectangle((rx, y - 6, rx + 2, y + 6), fill=art.vivid())


def breadboard(art: Art) -> Image.Image:
    """A plastic board of holes with chips, lights, resistors and leads stuck into it."""
    w, h = art.pick(((760, 280), (520, 340), (420, 300)))
    image = Image.new("RGB", (w, h), art.pick(((245, 243, 236), (250, 250, 250), (230, 232, 235), (40, 44, 52))))
    draw = ImageDraw.Draw(image)
    hole = (90, 90, 88) if image.getpixel((0, 0)) != (40, 44, 52) else (150, 150, 150)
    pitch = art.whole(11, 16)
    rail = pitch * 2 + 8
    for top in (8, h - rail - 8):
        draw.line((6, top, w - 6, top), fill=(220, 50, 50), width=2)
        draw.line((6, top + rail, w - 6, top + rail), fill=(50, 80, 200), width=2)
        _hole_grid(draw, (16, top + 5, w - 16, top + rail - 3), pitch, hole)
    _hole_grid(draw, (16, rail + 26, w - 16, h // 2 - 8), pitch, hole)
    _hole_grid(draw, (16, h // 2 + 12, w - 16, h - rail - 22), pitch, hole)
    for _ in range(art.whole(1, 4)):
        part = module(art).rotate(90, expand=True) if art.chance(0.4) else chip(art).convert("RGBA")
        part.thumbnail((art.whole(70, 240), int(h * 0.4)))
        image.paste(
            part, (art.whole(10, w - part.width - 10), h // 2 - part.height // 2), part if part.mode == "RGBA" else None
        )
    for _ in range(art.whole(0, 7)):
        x, y = art.whole(40, w - 40), art.whole(40, h - 50)
        if art.chance(0.5):
            _light(art, draw, x, y)
        else:
            _part(draw, x, y, art.whole(16, 34), art.pick(((215, 185, 140), (120, 180, 210))), art)
    for _ in range(art.whole(4, 22)):
        start = (art.between(0, w), art.between(0, h))
        end = (art.between(0, w), art.between(-20, h + 20))
        _wire(art, draw, start, end, art.whole(3, 7))
    return image


def _display(art: Art) -> Image.Image:
    """A board behind a screen: bezel, dark or lit panel, pins along an edge, a flat cable."""
    w, h = art.pick(((420, 300), (300, 420), (360, 360), (520, 260)))
    mask: Colour = art.pick(((24, 90, 170), (20, 110, 60), (25, 25, 28), (180, 30, 40), (230, 200, 40)))
    image = Image.new("RGB", (w, h), mask)
    draw = ImageDraw.Draw(image)
    box = (w * 0.08, h * 0.12, w * art.between(0.8, 0.94), h * 0.88)
    draw.rectangle(box, fill=(15, 16, 20), outline=(120, 120, 124), width=3)
    if art.chance(0.6):
        inner = (int(box[0] + 10), int(box[1] + 10), int(box[2] - 10), int(box[3] - 10))
        lit_up = gradient((inner[2] - inner[0], inner[3] - inner[1]), art.vivid(), art.dark(), art.between(0, 360))
        image.paste(lit_up, inner[:2])
        for row in range(art.whole(1, 5)):
            draw.text(
                (inner[0] + 8, inner[1] + 8 + row * 30),
                f"{art.letters(4)} {art.digits(3)}",
                font=art.mono().at(22),
                fill=(240, 240, 240),
            )
    for x in range(12, w - 12, 15):
        for y in (3, h - 12):
            draw.ellipse((x, y, x + 8, y + 8), fill=(212, 175, 90))
    for x, y in ((12, 18), (w - 22, 18), (12, h - 28), (w - 22, h - 28)):
        draw.ellipse((x, y, x + 12, y + 12), fill=(235, 235, 235), outline=(150, 150, 150))
    return image


def wired(art: Art) -> Image.Image:
    """Boards on a table, joined by leads, perhaps with a battery or a hand's worth of loose parts."""
    size = art.pick(((760, 560), (640, 640), (560, 760)))
    canvas = desk(art, size)
    draw = ImageDraw.Draw(canvas)
    centres = []
    for _ in range(art.whole(2, 4)):
        part = art.pick((module, board, _display, breadboard))(art).convert("RGBA")
        part.thumbnail((art.whole(160, 380), art.whole(160, 380)))
        part = part.rotate(art.between(-40, 40), Image.Resampling.BICUBIC, expand=True)
        x, y = art.whole(0, max(1, size[0] - part.width)), art.whole(0, max(1, size[1] - part.height))
        dark = Image.new("RGBA", part.size, (0, 0, 0, 110))
        canvas.paste(
            dark, (x + 6, y + 8), part.getchannel("A").filter(ImageFilter.GaussianBlur(5)).point(lambda a: a // 3)
        )
        canvas.paste(part, (x, y), part)
        centres.append((x + part.width / 2, y + part.height / 2))
    if art.chance(0.3):
        x, y = art.whole(0, size[0] - 120), art.whole(0, size[1] - 80)
        draw.rounded_rectangle(
            (x, y, x + 110, y + 70), 8, fill=art.pick(((190, 192, 196), (40, 60, 130), (20, 20, 22)))
        )
        centres.append((x + 55, y + 10))
    for _ in range(art.whole(3, 16)):
        a, b = art.pick(centres), art.pick(centres)
        jitter = [art.rng.gauss(0, 40) for _ in range(4)]
        _wire(art, draw, (a[0] + jitter[0], a[1] + jitter[1]), (b[0] + jitter[2], b[1] + jitter[3]), art.whole(3, 6))
    return camera(art, lit(art, canvas))


def close_up(art: Art) -> Image.Image:
    """A part of a board from near: what lies off the middle is out of focus."""
    flat = art.pick((board, board, module))(art)
    flat = flat.resize((flat.width * 2, flat.height * 2), Image.Resampling.BICUBIC)
    if art.chance(0.6):
        part = chip(art)
        part.thumbnail((int(flat.width * 0.4), int(flat.height * 0.4)))
        flat.paste(part, (art.whole(0, flat.width - part.width), art.whole(0, flat.height - part.height)), part)
    w, h = int(flat.width * art.between(0.3, 0.6)), int(flat.height * art.between(0.3, 0.6))
    x, y = art.whole(0, flat.width - w), art.whole(0, flat.height - h)
    turned = flat.rotate(art.between(-30, 30), Image.Resampling.BICUBIC, fillcolor=flat.getpixel((2, 2)))
    near = turned.crop((x, y, x + w, y + h)).resize((620, int(620 * h / w)), Image.Resampling.BICUBIC)
    soft = near.filter(ImageFilter.GaussianBlur(art.between(2, 8)))
    field = clouds(near.size, art.grain, 2, 1)
    sharp = Image.fromarray((255 * (field > art.between(0.2, 0.5))).astype("uint8")).filter(
        ImageFilter.GaussianBlur(40)
    )
    return camera(art, lit(art, Image.composite(near, soft, sharp)))


def _shown(art: Art, part: Image.Image) -> Image.Image:
    """On white, on a plain colour, or on a table."""
    part = part.convert("RGBA").rotate(
        art.pick((0.0, 0.0, art.between(-35, 35), 90.0)), Image.Resampling.BICUBIC, expand=True
    )
    if art.chance(0.5):
        return on_desk(art, part, 0.15, (0.35, 1.05))
    ground = art.pick(((255, 255, 255), (255, 255, 255), (238, 238, 240), (24, 24, 26), art.colour()))
    canvas = Image.new(
        "RGB", (int(part.width * art.between(1.02, 2.2)), int(part.height * art.between(1.02, 2.2))), ground
    )
    canvas.paste(part, ((canvas.width - part.width) // 2, (canvas.height - part.height) // 2), part)
    if art.chance(0.5):
        grain = clouds(canvas.size, art.grain, 3, 2)[..., None]
        canvas = to_image(np.asarray(canvas).astype(np.float32) * (0.9 + 0.2 * grain))
    return camera(art, canvas)


def gadget(art: Art) -> Image.Image:
    """One of all these."""
    draw = art.rng.random()
    if draw < 0.22:
        return _shown(art, chip(art))
    if draw < 0.42:
        return _shown(art, breadboard(art))
    if draw < 0.62:
        return wired(art)
    if draw < 0.78:
        return close_up(art)
    if draw < 0.9:
        return _shown(art, _display(art))
    # A row of boards or chips, as a shelf or an overview shows them.
    canvas = desk(art, (820, 520)) if art.chance(0.5) else Image.new("RGB", (820, 520), (255, 255, 255))
    for index in range(art.whole(3, 8)):
        part = art.pick((module, board, chip, _display))(art).convert("RGBA")
        part.thumbnail((190, 230))
        canvas.paste(part, (20 + index % 4 * 200, 20 + index // 4 * 250), part)
    return camera(art, canvas)
