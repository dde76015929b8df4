"""Goods on plain grounds, plates of food, and what belongs nowhere else: codes, icons, gradients, textures."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from . import words
from .art import Art, Colour, clouds, fit, gradient, hsv, mix, shade, text_within, to_image
from .looks import camera, desk, lit, on_desk


def _shaded(art: Art, size: tuple[int, int], mask: Image.Image, colour: Colour) -> Image.Image:
    """A rounded look for a flat shape: light from one side."""
    width, height = size
    x = np.mgrid[0:height, 0:width][1].astype(np.float32) / width
    middle = art.between(0.3, 0.5)
    light = 1.15 - 1.6 * (x - middle) ** 2
    body = to_image(np.array(colour, dtype=np.float32)[None, None] * light[..., None])
    body.putalpha(mask)
    return body


def product(art: Art) -> Image.Image:
    """One article on a plain ground."""
    size = (520, 560)
    ground: Colour = art.pick(((255, 255, 255), (255, 255, 255), (240, 240, 238), (225, 220, 212), art.pale()))
    canvas = gradient(size, ground, shade(ground, art.between(0.86, 1.0)), 90)
    mask = Image.new("L", size, 0)
    draw = ImageDraw.Draw(mask)
    kind = art.pick(("bottle", "carton", "mug", "shirt", "box", "can"))
    if kind == "bottle":
        draw.rounded_rectangle((190, 180, 330, 500), 30, fill=255)
        draw.polygon([(200, 190), (320, 190), (285, 120), (235, 120)], fill=255)
        draw.rectangle((235, 60, 285, 125), fill=255)
    elif kind == "carton":
        draw.rectangle((170, 150, 350, 500), fill=255)
        draw.polygon([(170, 152), (350, 152), (330, 90), (190, 90)], fill=255)
    elif kind == "mug":
        draw.rounded_rectangle((150, 180, 350, 440), 24, fill=255)
        draw.arc((320, 220, 440, 380), -90, 90, fill=255, width=26)
    elif kind == "shirt":
        draw.polygon(
            [
                (180, 90),
                (340, 90),
                (470, 180),
                (420, 250),
                (360, 215),
                (360, 500),
                (160, 500),
                (160, 215),
                (100, 250),
                (50, 180),
            ],
            fill=255,
        )
        draw.ellipse((215, 60, 305, 125), fill=0)
    elif kind == "box":
        draw.polygon([(120, 200), (300, 240), (300, 500), (120, 440)], fill=255)
        draw.polygon([(300, 240), (430, 190), (430, 430), (300, 500)], fill=225)
        draw.polygon([(120, 200), (250, 160), (430, 190), (300, 240)], fill=245)
    else:
        draw.rounded_rectangle((180, 120, 340, 490), 22, fill=255)
    body = _shaded(art, size, mask, art.colour((0.1, 0.9), (0.3, 1.0)))
    on = ImageDraw.Draw(body)
    face = art.bold()
    text = art.pick(words.GOODS).upper() if kind != "shirt" else art.pick(("RUN", "CLUB", "1984", "HELLO"))
    if kind != "box":
        on.rectangle((196, 270, 324, 360), fill=(*art.pale(), 255))
        on.text((260, 315), text, font=face.at(fit(on, text, face, 34, 116)), fill=(*art.dark(), 255), anchor="mm")
    shadow = Image.new("L", size, 0)
    ImageDraw.Draw(shadow).ellipse((130, 470, 410, 520), fill=120)
    canvas.paste((40, 40, 40), (0, 0, *size), shadow.filter(ImageFilter.GaussianBlur(14)))
    body = body.filter(ImageFilter.GaussianBlur(0.8)).rotate(art.rng.gauss(0, 5), Image.Resampling.BICUBIC)
    canvas.paste(body, (0, 0), body)
    return camera(art, canvas)


def food(art: Art) -> Image.Image:
    """A plate from above."""
    size = (520, 460)
    canvas = desk(art, size)
    draw = ImageDraw.Draw(canvas)
    cx, cy, r = 260 + art.whole(-30, 30), 230 + art.whole(-20, 20), art.whole(150, 210)
    plate: Colour = art.pick(((245, 245, 242), (235, 230, 220), (70, 75, 85)))
    draw.ellipse((cx - r, cy - r * 0.9, cx + r, cy + r * 0.9), fill=shade(plate, 0.85))
    draw.ellipse((cx - r * 0.97, cy - r * 0.88, cx + r * 0.97, cy + r * 0.86), fill=plate)
    for _ in range(art.whole(3, 6)):
        colour = art.pick(
            (
                (200, 60, 40),
                (230, 170, 60),
                (90, 140, 50),
                (150, 90, 50),
                (240, 220, 160),
                (120, 60, 40),
                (220, 110, 50),
            )
        )
        for _piece in range(art.whole(6, 26)):
            a, d = art.between(0, math.tau), art.between(0, 0.6) * r
            x, y, s = cx + d * math.cos(a), cy + d * 0.85 * math.sin(a), art.between(0.05, 0.16) * r
            tint = shade(colour, art.between(0.75, 1.25))
            draw.ellipse((x - s, y - s * art.between(0.5, 1), x + s, y + s * art.between(0.5, 1)), fill=tint)
            draw.ellipse((x - s * 0.5, y - s * 0.5, x, y - s * 0.1), fill=mix(tint, (255, 255, 255), 0.35))
    return camera(art, lit(art, canvas.filter(ImageFilter.GaussianBlur(1.2))))


def qr_code(art: Art) -> Image.Image:
    """Not decodable: finder squares and random modules."""
    count = art.pick((21, 25, 29, 33, 41))
    cell = 10
    modules = art.grain.random((count, count)) < 0.5
    dark = art.pick(((0, 0, 0), (0, 0, 0), art.dark()))
    for top, left in ((0, 0), (0, count - 7), (count - 7, 0)):
        modules[top : top + 8, left : left + 8] = False
        modules[top : top + 7, left : left + 7] = True
        modules[top + 1 : top + 6, left + 1 : left + 6] = False
        modules[top + 2 : top + 5, left + 2 : left + 5] = True
    flat = np.where(modules[..., None], np.array(dark), 255).astype(np.uint8)
    image = Image.fromarray(flat).resize((count * cell, count * cell), Image.Resampling.NEAREST)
    quiet = Image.new("RGB", (image.width + 80, image.height + 80), (255, 255, 255))
    quiet.paste(image, (40, 40))
    return quiet if art.chance(0.4) else on_desk(art, quiet)


def barcode(art: Art) -> Image.Image:
    """Bars and digits, printed or photographed."""
    image = Image.new("RGB", (520, 260), (255, 255, 255))
    draw = ImageDraw.Draw(image)
    x = 40
    while x < 480:
        wide = art.pick((2, 2, 4, 6))
        draw.rectangle((x, 30, x + wide, 190), fill=(0, 0, 0))
        x += wide + art.pick((2, 4, 6))
    draw.text((260, 200), " ".join(art.digits(12)), font=art.sans().at(28), fill=(0, 0, 0), anchor="ma")
    if art.chance(0.4):
        # As a scanner's camera sees it: close, grey, out of focus.
        near = image.crop((art.whole(0, 120), 0, art.whole(380, 520), 260)).rotate(
            art.rng.gauss(0, 8), Image.Resampling.BICUBIC, fillcolor=(150, 150, 150)
        )
        return lit(art, near.convert("L").filter(ImageFilter.GaussianBlur(art.between(0.5, 4))).convert("RGB"))
    return image if art.chance(0.3) else on_desk(art, image)


def icon(art: Art) -> Image.Image:
    """An icon, a logo, a face of dots and arcs, alone on its ground."""
    size = (400, 400)
    ground: Colour = art.pick(((255, 255, 255), (255, 255, 255), (255, 255, 255), (0, 0, 0), art.pale()))
    image = Image.new("RGB", size, ground)
    draw = ImageDraw.Draw(image)
    colour = art.vivid()
    style = art.whole(0, 5)
    if style == 0:
        draw.ellipse((60, 60, 340, 340), fill=(255, 204, 60))
        for x in (150, 250):
            draw.ellipse((x - 16, 140, x + 16, 190), fill=(90, 60, 30))
        draw.arc((120, 160, 280, 290), art.whole(10, 40), art.whole(140, 170), fill=(90, 60, 30), width=14)
    elif style == 1:
        draw.rounded_rectangle((70, 70, 330, 330), art.whole(10, 90), fill=colour)
        points = [
            (
                200 + 90 * math.cos(math.tau * i / 5 - 1.57) * (1 if i % 2 else 0.9),
                200 + 90 * math.sin(math.tau * i / 5 - 1.57),
            )
            for i in range(5)
        ]
        draw.polygon(points, fill=(255, 255, 255))
    elif style == 2:
        for index in range(art.whole(2, 5)):
            r = 150 - index * 32
            draw.ellipse((200 - r, 200 - r, 200 + r, 200 + r), fill=art.vivid())
    elif style == 3:
        text = art.pick(words.COMPANIES).split()[0]
        face = art.bold()
        text_within(draw, (200, 200), text, face, 90, 360, colour, "mm")
    elif style == 4:
        for index in range(art.whole(3, 9)):
            x, y, r = art.whole(80, 320), art.whole(80, 320), art.whole(20, 100)
            draw.ellipse(
                (x - r, y - r * 0.8, x + r, y + r * 0.8),
                fill=shade((215, 215, 220), art.between(0.9, 1.05)) if index else colour,
            )
    else:
        points = [
            (
                200 + (150 if i % 2 else 70) * math.cos(math.tau * i / 12),
                200 + (150 if i % 2 else 70) * math.sin(math.tau * i / 12),
            )
            for i in range(12)
        ]
        draw.polygon(points, fill=colour)
    return image


def figure(art: Art) -> Image.Image:
    """A drawn person, cloud, sun, flower or colour wheel in flat colours, as stickers and clip art have them."""
    size = (420, 420)
    image = Image.new("RGB", size, art.pick(((255, 255, 255), (255, 255, 255), (0, 0, 0), art.pale())))
    draw = ImageDraw.Draw(image)
    style = art.pick(("person", "person", "cloud", "sun", "flower", "wheel", "sign"))
    if style == "person":
        skin: Colour = art.pick(((255, 204, 80), (240, 190, 150), (190, 130, 90), (120, 80, 60)))
        hair, shirt = art.pick(((40, 30, 25), (110, 70, 40), (200, 160, 80))), art.vivid()
        draw.rounded_rectangle((90, 290, 330, 470), 70, fill=shirt)
        draw.ellipse((120, 60, 300, 210), fill=hair)
        draw.rectangle((180, 240, 240, 310), fill=shade(skin, 0.9))
        draw.ellipse((130, 80, 290, 280), fill=skin)
        draw.pieslice((125, 62, 295, 230), 180, 360, fill=hair)
        for x in (178, 242):
            draw.ellipse((x - 9, 165, x + 9, 185), fill=(60, 45, 35))
        draw.arc((170, 190, 250, 245), 20, 160, fill=(120, 60, 40), width=6)
        if art.chance(0.4):
            draw.line((120, 420, art.whole(20, 100), art.whole(230, 330)), fill=skin, width=34)
    elif style == "cloud":
        grey = shade((210, 213, 218), art.between(0.8, 1.15))
        for x, y, r in ((140, 250, 70), (210, 200, 95), (290, 250, 75), (210, 265, 80)):
            draw.ellipse((x - r, y - r, x + r, y + r), fill=grey)
    elif style == "sun":
        for index in range(12):
            angle = math.tau * index / 12
            draw.line(
                (
                    210 + 110 * math.cos(angle),
                    210 + 110 * math.sin(angle),
                    210 + 160 * math.cos(angle),
                    210 + 160 * math.sin(angle),
                ),
                fill=(250, 180, 40),
                width=14,
            )
        draw.ellipse((120, 120, 300, 300), fill=(255, 205, 60))
    elif style == "flower":
        colour = art.vivid()
        draw.line((210, 220, 215, 410), fill=(60, 130, 60), width=14)
        for index in range(art.whole(5, 9)):
            angle = index * 0.8
            px, py = 210 + 70 * math.cos(angle), 190 + 70 * math.sin(angle)
            draw.ellipse((px - 52, py - 52, px + 52, py + 52), fill=shade(colour, art.between(0.85, 1.1)))
        draw.ellipse((175, 155, 245, 225), fill=(250, 210, 70))
    elif style == "wheel":
        for index in range(180):
            draw.pieslice((60, 60, 360, 360), index * 2, index * 2 + 2.5, fill=hsv(index / 180, 1, 1))
    else:
        draw.rounded_rectangle((60, 60, 360, 360), 40, fill=art.vivid())
        draw.ellipse((180, 100, 240, 160), fill=(255, 255, 255))
        draw.rectangle((175, 175, 245, 330), fill=(255, 255, 255))
    return image


def gradient_image(art: Art) -> Image.Image:
    """Colours that flow into each other."""
    size = (480, 320)
    if art.chance(0.4):
        return gradient(size, art.colour(), art.colour(), art.between(0, 360))
    hue = art.rng.random()
    first, second = clouds(size, art.grain, 2, 2), clouds(size, art.grain, 3, 2)
    a, b, c = (np.array(hsv(hue + shift, 0.6, 0.9), dtype=float) for shift in (0, 0.2, 0.45))
    return to_image(
        a * (1 - first[..., None]) + b * first[..., None] * (1 - second[..., None]) + c * (first * second)[..., None]
    )


def texture(art: Art) -> Image.Image:
    """A surface without an object."""
    size = (440, 440)
    colour = np.array(art.colour((0, 0.4), (0.3, 0.9)), dtype=float)
    style = art.whole(0, 3)
    y, x = np.mgrid[0:440, 0:440].astype(float)
    if style == 0:
        field = clouds(size, art.grain, 40, 4, 0.8)
    elif style == 1:
        field = 0.5 + 0.5 * np.sin((x + 40 * clouds(size, art.grain, 3, 3)) / art.between(3, 20))
    elif style == 2:
        field = ((x // 40 + y // 40) % 2) * 0.5 + 0.3 * clouds(size, art.grain, 20, 3)
    else:
        field = clouds((440, 440), art.grain, 3, 2) * 0.4 + np.repeat(art.grain.random((1, 440)), 440, axis=0) * 0.4
    image = to_image(colour[None, None] * (0.5 + 0.8 * field[..., None]))
    if art.chance(0.3):
        draw = ImageDraw.Draw(image)
        points = [(art.whole(0, 440), art.whole(0, 440)) for _ in range(4)]
        draw.line(points, fill=shade((90, 90, 90), 0.5), width=art.whole(1, 4))
    return image.convert("L").convert("RGB") if art.chance(0.4) else image
