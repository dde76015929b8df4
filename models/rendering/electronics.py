"""Circuit boards with their parts, and what is inside the chips: wafers, dies and layouts."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from .art import Art, Colour, clouds, hsv, mix, shade, speckle, to_image
from .looks import camera, lit, on_desk


def _chip(art: Art, draw: ImageDraw.ImageDraw, x: int, y: int, w: int, h: int) -> None:
    pin: Colour = (190, 190, 185)
    for px in range(x + 4, x + w - 4, 7):
        draw.rectangle((px, y - 5, px + 3, y + h + 5), fill=pin)
    if art.chance(0.6):
        for py in range(y + 4, y + h - 4, 7):
            draw.rectangle((x - 5, py, x + w + 5, py + 3), fill=pin)
    body: Colour = art.pick(((28, 28, 30), (40, 40, 44), (22, 22, 24), (180, 180, 182)))
    draw.rectangle((x, y, x + w, y + h), fill=body)
    draw.ellipse((x + 4, y + 4, x + 10, y + 10), fill=shade(body, 1.6))
    if w > 40:
        draw.text(
            (x + w / 2, y + h / 2),
            f"{art.letters(3)}{art.digits(3)}",
            font=art.sans().at(min(16, w / 6)),
            fill=(190, 190, 190),
            anchor="mm",
        )


def board(art: Art) -> Image.Image:
    """A populated board, flat and from above."""
    w, h = art.pick(((640, 420), (520, 520), (420, 600), (760, 320), (600, 460)))
    mask: Colour = art.pick(
        (
            (20, 110, 60),
            (15, 80, 45),
            (25, 60, 130),
            (25, 25, 28),
            (150, 25, 30),
            (90, 40, 120),
            (235, 235, 230),
            (40, 120, 80),
            (0, 95, 100),
        )
    )
    image = Image.new("RGB", (w, h), mask)
    draw = ImageDraw.Draw(image)
    trace = mix(mask, (230, 230, 150), 0.22)
    gold: Colour = art.pick(((212, 175, 90), (200, 200, 195), (190, 150, 70)))
    for _ in range(art.whole(30, 120)):
        x, y = art.whole(0, w), art.whole(0, h)
        points = [(x, y)]
        for _step in range(art.whole(2, 5)):
            dx, dy = art.pick(((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1)))
            run = art.whole(10, 120)
            x, y = x + dx * run, y + dy * run
            points.append((x, y))
        draw.line(points, fill=trace, width=art.pick((1, 2, 2, 4)))
    for _ in range(art.whole(40, 160)):
        x, y = art.whole(4, w - 4), art.whole(4, h - 4)
        draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=gold)
        draw.point((x, y), fill=(30, 30, 30))
    white: Colour = (235, 235, 230) if sum(mask) < 500 else (30, 30, 30)
    small = art.sans()
    for _ in range(art.whole(20, 70)):
        x, y = art.whole(10, w - 30), art.whole(10, h - 20)
        across = art.chance(0.5)
        pw, ph = (14, 7) if across else (7, 14)
        body = art.pick(((170, 130, 90), (25, 25, 25), (200, 180, 150), (120, 90, 60)))
        draw.rectangle(
            (x - 3, y, x + pw + 3, y + ph) if across else (x, y - 3, x + pw, y + ph + 3), fill=(205, 205, 200)
        )
        draw.rectangle((x, y, x + pw, y + ph), fill=body)
        if art.chance(0.4):
            draw.text((x, y + ph + 1), f"{art.pick('RCDLQU')}{art.whole(1, 99)}", font=small.at(9), fill=white)
    for _ in range(art.whole(2, 9)):
        cw, ch = art.whole(24, 110), art.whole(24, 90)
        _chip(art, draw, art.whole(8, max(9, w - cw - 8)), art.whole(8, max(9, h - ch - 8)), cw, ch)
    for _ in range(art.whole(1, 4)):
        count = art.whole(4, 20)
        x, y = art.whole(6, max(7, w - count * 13)), art.pick((8, h - 30, art.whole(8, h - 40)))
        rows = art.pick((1, 2))
        draw.rectangle(
            (x - 3, y - 3, x + count * 13, y + rows * 13), fill=art.pick(((20, 20, 20), mask, (240, 230, 200)))
        )
        for index in range(count * rows):
            px, py = x + index % count * 13, y + index // count * 13
            draw.rectangle((px + 2, py + 2, px + 8, py + 8), fill=gold)
    for _ in range(art.whole(0, 5)):
        x, y, r = art.whole(20, w - 20), art.whole(20, h - 20), art.whole(8, 24)
        colour = art.pick(((190, 192, 196), (40, 50, 90), (30, 30, 30)))
        draw.ellipse((x - r, y - r, x + r, y + r), fill=shade(colour, 0.7))
        draw.ellipse((x - r + 2, y - r + 2, x + r - 3, y + r - 3), fill=colour)
    for _ in range(art.whole(0, 3)):
        bw, bh = art.whole(30, 70), art.whole(26, 60)
        x, y = art.pick((0, w - bw)), art.whole(0, h - bh)
        draw.rectangle(
            (x, y, x + bw, y + bh),
            fill=art.pick(((200, 202, 205), (225, 225, 228), (30, 30, 32))),
            outline=(120, 120, 120),
        )
        draw.rectangle((x + 6, y + 6, x + bw - 6, y + bh // 2), fill=(60, 60, 62))
    for x, y in ((14, 14), (w - 14, 14), (14, h - 14), (w - 14, h - 14)):
        if art.chance(0.8):
            draw.ellipse((x - 9, y - 9, x + 9, y + 9), fill=gold)
            draw.ellipse((x - 5, y - 5, x + 5, y + 5), fill=(250, 250, 250))
    if art.chance(0.7):
        draw.text(
            (art.whole(20, w // 2), art.whole(20, h - 40)),
            art.pick(("DEV KIT v1.2", "REV B", "SENSOR NODE", f"{art.letters(3)}-{art.digits(4)}", "MCU BOARD")),
            font=art.bold().at(18),
            fill=white,
        )
    if art.chance(0.15):
        rw, rh = int(w * 0.5), int(h * 0.5)
        draw.rectangle((w // 4, h // 4, w // 4 + rw, h // 4 + rh), fill=(18, 20, 24), outline=(90, 90, 95))
    return image


def module(art: Art) -> Image.Image:
    """A narrow development board: pins along both sides, a shielded radio, a socket, two buttons."""
    w, h = art.whole(170, 300), art.whole(360, 640)
    mask: Colour = art.pick(
        (
            (24, 24, 26),
            (24, 24, 26),
            (20, 70, 130),
            (15, 100, 60),
            (180, 30, 40),
            (90, 45, 120),
            (240, 240, 238),
            (230, 170, 180),
        )
    )
    image = Image.new("RGB", (w, h), mask)
    draw = ImageDraw.Draw(image)
    white: Colour = (230, 230, 228) if sum(mask) < 500 else (40, 40, 44)
    gold: Colour = art.pick(((212, 175, 90), (200, 200, 195)))
    pitch = art.whole(18, 26)
    small = art.sans()
    for y in range(12, h - 14, pitch):
        for x, anchor, tx in ((6, "lm", 24), (w - 18, "rm", w - 24)):
            draw.ellipse((x, y, x + 12, y + 12), fill=gold)
            draw.ellipse((x + 4, y + 4, x + 8, y + 8), fill=(30, 30, 30))
            if art.chance(0.8):
                draw.text(
                    (tx, y + 6),
                    art.pick(("GND", "3V3", "5V", "TX", "RX", "D1", "A0", f"{art.whole(0, 40)}", "SDA", "SCL", "EN")),
                    font=small.at(10),
                    fill=white,
                    anchor=anchor,
                )
    left, right = w * 0.22, w * 0.78
    if art.chance(0.7):
        tall = h * art.between(0.25, 0.38)
        draw.rectangle((left, 6, right, 6 + tall), fill=(198, 200, 203), outline=(130, 130, 132))
        draw.text(
            ((left + right) / 2, 6 + tall * 0.5),
            f"{art.letters(3)}{art.digits(2)}-{art.letters(4)}",
            font=small.at(14),
            fill=(70, 70, 74),
            anchor="mm",
        )
        for step in range(8):
            draw.line((left, 6 + step * 4, left + 22 + step * 3, 6 + step * 4), fill=gold, width=2)
    elif art.chance(0.5):
        draw.rectangle((left - 10, h * 0.08, right + 10, h * 0.5), fill=(12, 13, 16), outline=(80, 80, 84), width=4)
    for _ in range(art.whole(1, 4)):
        size = art.whole(20, int(w * 0.36))
        _chip(
            art,
            draw,
            int(art.between(left, max(left + 1, right - size))),
            int(art.between(h * 0.42, h * 0.78)),
            size,
            size,
        )
    for _ in range(art.whole(8, 26)):
        px, py = art.between(left, right - 12), art.between(h * 0.4, h * 0.9)
        draw.rectangle((px - 3, py, px + 13, py + 6), fill=(205, 205, 200))
        draw.rectangle((px, py, px + 10, py + 6), fill=art.pick(((170, 130, 90), (25, 25, 25), (120, 90, 60))))
    for button in (left - 6, right - 24):
        draw.rectangle((button, h - 70, button + 28, h - 42), fill=(200, 202, 205))
        draw.ellipse((button + 7, h - 63, button + 21, h - 49), fill=(30, 30, 32))
    draw.rectangle((w * 0.36, h - 40, w * 0.64, h), fill=(205, 207, 210), outline=(120, 120, 124))
    return image


def _pinout(art: Art, flat: Image.Image) -> Image.Image:
    """A board on white with lines that name its parts, as manuals print it."""
    canvas = Image.new("RGB", (flat.width + 460, flat.height + 80), (255, 255, 255))
    canvas.paste(flat, (230, 40))
    draw = ImageDraw.Draw(canvas)
    face = art.sans()
    colour = art.pick(((40, 110, 190), (200, 40, 40), (30, 30, 30), (230, 120, 30)))
    for side in (0, 1):
        for index in range(art.whole(3, 9)):
            y = 50 + index * (flat.height - 20) / 9
            x = 216 if side == 0 else flat.width + 244
            target = art.between(0.1, 0.5) if side == 0 else art.between(0.5, 0.9)
            draw.line((x, y, 230 + flat.width * target, y + art.whole(-10, 10)), fill=colour, width=2)
            text = art.pick(
                (
                    "USB port",
                    "Reset button",
                    "GPIO header",
                    "Antenna",
                    "Power LED",
                    "SD card",
                    "Boot",
                    "5 V regulator",
                    "Microphone",
                    "Battery",
                    "JTAG",
                    "Ethernet",
                )
            )
            if art.chance(0.4):
                box = (x - 150, y - 12, x, y + 12) if side == 0 else (x, y - 12, x + 150, y + 12)
                draw.rectangle(box, fill=mix(colour, (255, 255, 255), 0.75))
            draw.text(
                (x - 6 if side == 0 else x + 6, y),
                text,
                font=face.at(17),
                fill=(30, 30, 34),
                anchor="rm" if side == 0 else "lm",
            )
    return canvas


def _isometric(art: Art, flat: Image.Image) -> Image.Image:
    """Seen at a slant on white, as shops show it."""
    size = (640, 520)
    turn, squash = art.between(-60, 60), art.between(0.45, 0.9)
    turned = flat.convert("RGBA").rotate(turn, Image.Resampling.BICUBIC, expand=True)
    turned = turned.resize((turned.width, int(turned.height * squash)), Image.Resampling.BICUBIC)
    turned.thumbnail((int(size[0] * art.between(0.6, 0.98)), int(size[1] * art.between(0.6, 0.98))))
    canvas = Image.new("RGB", size, art.pick(((255, 255, 255), (255, 255, 255), (242, 242, 244))))
    x, y = (size[0] - turned.width) // 2, (size[1] - turned.height) // 2
    edge = Image.new("RGBA", turned.size, (60, 60, 58, 255))
    edge.putalpha(turned.getchannel("A"))
    canvas.paste(edge, (x, y + 7), edge)
    canvas.paste(turned, (x, y), turned)
    return canvas


def pcb(art: Art) -> Image.Image:
    """A board, photographed, drawn for a manual or shown in a shop."""
    image = module(art) if art.chance(0.4) else board(art)
    form = art.rng.random()
    if form < 0.14:
        return _pinout(
            art, image.resize((min(420, image.width), int(image.height * min(420, image.width) / image.width)))
        )
    if form < 0.38:
        return _isometric(art, image)
    if form < 0.44:
        canvas = Image.new("RGB", (900, 620), (255, 255, 255))
        for index in range(6):
            part = module(art) if art.chance(0.5) else board(art)
            part.thumbnail((250, 260))
            canvas.paste(part, (30 + index % 3 * 290, 30 + index // 3 * 300))
        return canvas
    chance = art.rng.random()
    if chance < 0.35:
        ground = Image.new(
            "RGB",
            (int(image.width * art.between(1.05, 1.7)), int(image.height * art.between(1.05, 1.7))),
            art.pick(((255, 255, 255), (255, 255, 255), (240, 240, 240), (20, 20, 20))),
        )
        turned = image.convert("RGBA").rotate(
            art.pick((0.0, 0.0, 90.0, art.between(-30, 30))), Image.Resampling.BICUBIC, expand=True
        )
        turned.thumbnail(ground.size)
        ground.paste(turned, ((ground.width - turned.width) // 2, (ground.height - turned.height) // 2), turned)
        return ground
    if chance < 0.75:
        return on_desk(art, image, 0.16, (0.6, 1.1))
    return camera(art, lit(art, image))


def _cells(art: Art, draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int], colours: list[Colour]) -> None:
    left, top, right, bottom = box
    kind = art.pick(("rows", "grid", "wires"))
    if kind == "rows":
        pitch = art.whole(4, 14)
        for y in range(top, bottom, pitch):
            x = left
            while x < right:
                wide = art.whole(2, 16)
                draw.rectangle((x, y, min(right, x + wide), min(bottom, y + pitch - 2)), fill=art.pick(colours))
                x += wide + 1
    elif kind == "grid":
        pitch = art.whole(3, 9)
        a, b = art.pick(colours), art.pick(colours)
        for y in range(top, bottom, pitch):
            draw.line((left, y, right, y), fill=a)
        for x in range(left, right, pitch):
            draw.line((x, top, x, bottom), fill=b)
    else:
        for _ in range(art.whole(10, 40)):
            if art.chance(0.5):
                y = art.whole(top, bottom)
                draw.line((left, y, right, y), fill=art.pick(colours), width=art.whole(1, 4))
            else:
                x = art.whole(left, right)
                draw.line((x, top, x, bottom), fill=art.pick(colours), width=art.whole(1, 4))


def die(art: Art) -> Image.Image:
    """A chip seen under a microscope, or drawn as a layout."""
    w, h = art.pick(((520, 520), (600, 420), (420, 600)))
    layout = art.chance(0.25)
    hue = art.rng.random()
    base: Colour = (
        art.pick(((250, 250, 250), (10, 10, 14)))
        if layout
        else hsv(hue, art.between(0.15, 0.6), art.between(0.35, 0.75))
    )
    image = Image.new("RGB", (w, h), base)
    draw = ImageDraw.Draw(image)
    colours = (
        [art.vivid() for _ in range(5)]
        if layout
        else [hsv(hue + art.rng.gauss(0, 0.08), art.between(0.1, 0.6), art.between(0.3, 1.0)) for _ in range(6)]
    )
    margin = art.whole(10, 44)
    if art.chance(0.6):
        for x in range(margin, w - margin, 34):
            for y in (6, h - 26):
                draw.rectangle((x, y, x + 20, y + 20), fill=colours[0], outline=shade(colours[0], 0.5))
        for y in range(margin, h - margin, 34):
            for x in (6, w - 26):
                draw.rectangle((x, y, x + 20, y + 20), fill=colours[0], outline=shade(colours[0], 0.5))
    columns, rows = art.whole(2, 5), art.whole(2, 5)
    for column in range(columns):
        for row in range(rows):
            x0, y0 = margin + column * (w - 2 * margin) // columns + 4, margin + row * (h - 2 * margin) // rows + 4
            x1, y1 = (
                margin + (column + 1) * (w - 2 * margin) // columns - 4,
                margin + (row + 1) * (h - 2 * margin) // rows - 4,
            )
            _cells(art, draw, (x0, y0, x1, y1), art.rng.sample(colours, 3))
    for _ in range(art.whole(2, 10)):
        colour = art.pick(colours)
        x, y = art.whole(0, w), art.whole(0, h)
        x2, y2 = art.whole(0, w), art.whole(0, h)
        draw.line((x, y, x2, y, x2, y2), fill=colour, width=art.whole(2, 9))
    if art.chance(0.4):
        zoom = art.between(0.2, 0.6)
        x, y = int(art.rng.random() * w * (1 - zoom)), int(art.rng.random() * h * (1 - zoom))
        image = image.crop((x, y, x + int(w * zoom), y + int(h * zoom))).resize((w, h), Image.Resampling.BICUBIC)
    if layout:
        return image
    values = np.asarray(image).astype(float) * (0.85 + 0.3 * clouds((w, h), art.grain, 3, 3)[..., None])
    return speckle(
        to_image(values).filter(ImageFilter.GaussianBlur(art.between(0.6, 2.4))), art.grain, art.between(2, 8)
    )


def wafer(art: Art) -> Image.Image:
    """A whole wafer, or a die on it."""
    if art.chance(0.65):
        return die(art)
    size = (520, 520)
    w = 520
    y, x = np.mgrid[0:w, 0:w].astype(float)
    r, angle = np.hypot(x - w / 2, y - w / 2), np.arctan2(y - w / 2, x - w / 2)
    turn = art.between(0, 6)
    shimmer = (angle + turn) / 6.283 + r / w * art.between(0.2, 1.4) + clouds(size, art.grain, 2, 2) * 0.3
    rainbow = np.stack([0.5 + 0.5 * np.sin(6.283 * (shimmer + shift)) for shift in (0, 0.33, 0.66)], -1)
    tint = art.between(0.2, 0.7)
    values = 255 * (rainbow * tint + 0.6 * (1 - tint))
    image = to_image(values)
    draw = ImageDraw.Draw(image)
    pitch = art.whole(14, 44)
    bins = art.chance(0.3)
    for px in range(0, w, pitch):
        for py in range(0, w, pitch):
            if bins:
                draw.rectangle(
                    (px, py, px + pitch - 2, py + pitch - 2),
                    fill=art.pick(((60, 170, 80), (60, 170, 80), (60, 170, 80), (200, 60, 50), (230, 200, 60))),
                )
            else:
                draw.rectangle((px, py, px + pitch - 2, py + pitch - 2), outline=(70, 70, 80))
    disc = Image.fromarray(((r < w * 0.46) * 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(1))
    ground = Image.new("RGB", size, art.pick(((255, 255, 255), (15, 15, 18), (200, 200, 205), art.dark())))
    return camera(art, Image.composite(image, ground, disc))
