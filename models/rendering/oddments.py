"""What belongs to no class and should be told from all: emblems, doodles, shapes, blossoms, tickets, surfaces."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from . import words
from .art import Art, Colour, clouds, gradient, hsv, luminance, mix, shade, text_within, to_image
from .looks import camera, lit, on_desk


def _outline(art: Art, centre: tuple[float, float], radius: float) -> list[tuple[float, float]]:
    """A closed shape: a star, a rounded blob, a polygon, a petal ring."""
    kind = art.pick(("star", "blob", "polygon", "petals"))
    count = art.whole(3, 9)
    phase = art.between(0, math.tau)
    waves = [(art.whole(2, 5), art.between(0, 0.3), art.between(0, math.tau)) for _ in range(3)]
    points = []
    for step in range(90):
        angle = math.tau * step / 90
        reach = 1.0
        if kind == "star":
            reach = 0.45 + 0.55 * abs((angle * count / math.tau) % 1 * 2 - 1)
        elif kind == "blob":
            reach = 0.8 + sum(size * math.sin(rate * angle + shift) for rate, size, shift in waves) / 2
        elif kind == "polygon":
            reach = math.cos(math.pi / count) / math.cos((angle % (math.tau / count)) - math.pi / count)
        else:
            reach = 0.55 + 0.45 * abs(math.sin(angle * count / 2))
        points.append(
            (centre[0] + radius * reach * math.cos(angle + phase), centre[1] + radius * reach * math.sin(angle + phase))
        )
    return points


def emblem(art: Art) -> Image.Image:
    """A logo or an app's icon: shapes in few colours, perhaps with a name, on a plain ground."""
    size = art.pick(((420, 420), (420, 420), (640, 300), (600, 340), (256, 256)))
    ground: Colour = art.pick(
        ((255, 255, 255), (255, 255, 255), (0, 0, 0), (245, 245, 247), art.vivid(), art.dark(), art.pale())
    )
    image = Image.new("RGB", size, ground)
    draw = ImageDraw.Draw(image)
    palette = [art.vivid() for _ in range(art.whole(1, 4))]
    named = size[0] > size[1] or art.chance(0.25)
    centre = (
        size[0] * (0.22 if named and size[0] > size[1] else 0.5),
        size[1] * (0.4 if named and size[0] == size[1] else 0.5),
    )
    radius = min(size) * art.between(0.2, 0.42)
    if art.chance(0.3):
        box = (centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius)
        draw.rounded_rectangle(box, radius * art.between(0.1, 0.6), fill=art.pick(palette))
        radius *= 0.7
    for layer in range(art.whole(1, 4)):
        at = (centre[0] + art.rng.gauss(0, radius * 0.2), centre[1] + art.rng.gauss(0, radius * 0.2))
        points = _outline(art, at, radius * (1 - layer * 0.22))
        colour = ground if layer and art.chance(0.3) else art.pick(palette)
        if art.chance(0.2):
            draw.line([*points, points[0]], fill=colour, width=art.whole(4, 16), joint="curve")
        else:
            draw.polygon(points, fill=colour)
    if named:
        text = art.pick(words.COMPANIES).split()[0]
        text = text.upper() if art.chance(0.3) else text.lower() if art.chance(0.4) else text
        face = art.pick((art.bold, art.sans, art.serif))()
        ink = art.pick((palette[0], (30, 30, 34) if luminance(ground) > 0.5 else (250, 250, 250)))
        if size[0] > size[1]:
            text_within(draw, (size[0] * 0.4, size[1] / 2), text, face, 90, size[0] * 0.55, ink, "lm")
        else:
            text_within(draw, (size[0] / 2, size[1] * 0.86), text, face, 60, size[0] * 0.8, ink, "mm")
    return image


def doodle(art: Art) -> Image.Image:
    """Lines and flat areas that a child or a drawing program leaves."""
    size = (480, art.whole(340, 520))
    image = Image.new("RGB", size, art.pick(((255, 255, 255), (255, 255, 255), art.pale())))
    draw = ImageDraw.Draw(image)
    for _ in range(art.whole(2, 12)):
        colour = art.pick(((20, 20, 20), art.vivid(), art.dark()))
        x, y = art.between(0, size[0]), art.between(0, size[1])
        if art.chance(0.4):
            points = _outline(art, (x, y), art.between(15, 130))
            if art.chance(0.5):
                draw.polygon(points, fill=mix(colour, (255, 255, 255), art.between(0, 0.6)))
            draw.line([*points, points[0]], fill=colour, width=art.whole(1, 6), joint="curve")
            continue
        angle, points = art.between(0, math.tau), []
        for _step in range(art.whole(10, 70)):
            angle += art.rng.gauss(0, 0.5)
            x, y = x + 12 * math.cos(angle), y + 12 * math.sin(angle)
            points.append((x, y))
        draw.line(points, fill=colour, width=art.whole(1, 7), joint="curve")
    return image


def _ball(size: int, colour: Colour, light: tuple[float, float]) -> Image.Image:
    y, x = np.mgrid[0:size, 0:size].astype(float) / size * 2 - 1
    depth = np.sqrt(np.clip(1 - x**2 - y**2, 0, 1))
    shine = np.clip(0.35 + 0.65 * (depth * 0.7 + x * light[0] + y * light[1]), 0, 1.2)
    gloss = np.clip(depth * 0.7 + x * light[0] + y * light[1], 0, 1) ** 24 * 200
    ball = to_image(np.array(colour, dtype=float) * shine[..., None] + gloss[..., None]).convert("RGBA")
    ball.putalpha(Image.fromarray(((x**2 + y**2 < 1) * 255).astype(np.uint8)))
    return ball


def shapes(art: Art) -> Image.Image:
    """Balls and bars in space, as wallpapers have them."""
    size = art.pick(((560, 350), (480, 480), (350, 560)))
    first = art.colour((0.2, 0.9), (0.2, 1.0))
    canvas = gradient(size, first, shade(first, art.between(0.3, 1.2)), art.between(0, 360)).convert("RGB")
    light = (art.between(-0.7, 0.7), art.between(-0.7, 0))
    hue = art.rng.random()
    for _ in range(art.whole(2, 12)):
        colour = hsv(hue + art.rng.gauss(0, 0.12), art.between(0.2, 0.9), art.between(0.4, 1))
        wide = art.whole(24, 240)
        if art.chance(0.6):
            part = _ball(wide, colour, light)
        else:
            part = gradient((wide, max(8, wide // art.whole(2, 8))), colour, shade(colour, 0.5), 90).convert("RGBA")
            part = part.rotate(art.between(0, 180), Image.Resampling.BICUBIC, expand=True)
        canvas.paste(part, (art.whole(-60, size[0]), art.whole(-60, size[1])), part)
    return canvas.filter(ImageFilter.GaussianBlur(art.pick((0, 0, 2, 6))))


def blossom(art: Art) -> Image.Image:
    """Petals or leaves from near, before a ground out of focus."""
    size = art.pick(((520, 400), (420, 520), (480, 480)))
    green = hsv(art.between(0.18, 0.42), art.between(0.3, 0.8), art.between(0.15, 0.6))
    values = np.array(green, dtype=float) * (0.5 + clouds(size, art.grain, 3, 4)[..., None])
    canvas = to_image(values).filter(ImageFilter.GaussianBlur(8))
    for _ in range(art.whole(1, 9)):
        radius = art.between(40, 190)
        centre = (art.between(0.1, 0.9) * size[0], art.between(0.1, 0.9) * size[1])
        colour = art.pick((art.colour((0.3, 0.9), (0.6, 1.0)), shade(green, 1.5), (245, 240, 240), (200, 120, 50)))
        layer = Image.new("RGBA", size, (0, 0, 0, 0))
        draw = ImageDraw.Draw(layer)
        count = art.whole(4, 14)
        for index in range(count * 2):
            angle = math.tau * index / count + art.rng.gauss(0, 0.1)
            reach = radius * (0.6 if index < count else 0.4)
            x, y = centre[0] + reach * math.cos(angle), centre[1] + reach * math.sin(angle)
            petal = [
                (
                    x + radius * 0.5 * math.cos(angle) * math.cos(a) - radius * 0.22 * math.sin(angle) * math.sin(a),
                    y + radius * 0.5 * math.sin(angle) * math.cos(a) + radius * 0.22 * math.cos(angle) * math.sin(a),
                )
                for a in np.linspace(0, math.tau, 20)
            ]
            draw.polygon(petal, fill=(*shade(colour, art.between(0.75, 1.15)), 255))
        r = radius * art.between(0.1, 0.25)
        draw.ellipse(
            (centre[0] - r, centre[1] - r, centre[0] + r, centre[1] + r),
            fill=(*art.pick(((230, 190, 60), (90, 60, 30))), 255),
        )
        layer = layer.filter(ImageFilter.GaussianBlur(art.between(0.5, 4)))
        canvas.paste(layer, (0, 0), layer)
    texture = clouds(size, art.grain, 30, 3, 0.8)[..., None]
    return camera(art, lit(art, to_image(np.asarray(canvas) * (0.85 + 0.3 * texture))))


def ticket(art: Art) -> Image.Image:
    """A label, a sticker or a ticket: a few big words, a code of bars, a torn edge."""
    size = (art.whole(300, 560), art.whole(160, 300))
    ground = art.pick(((255, 255, 255), art.pale(), art.colour((0.3, 0.8), (0.7, 1.0))))
    image = Image.new("RGB", size, ground)
    draw = ImageDraw.Draw(image)
    ink: Colour = art.pick(((20, 20, 20), art.dark()))
    face = art.bold()
    text = art.pick(
        (
            "TICKET",
            "FRAGILE",
            "ADMIT ONE",
            "PRIORITY",
            "SALE",
            f"{art.letters(3)} {art.digits(4)}",
            f"No. {art.digits(6)}",
        )
    )
    text_within(draw, (size[0] / 2, size[1] * 0.28), text, face, 70, size[0] * 0.85, ink, "mm")
    if art.chance(0.6):
        x = size[0] * 0.1
        while x < size[0] * 0.9:
            wide = art.pick((1, 2, 3, 5))
            draw.rectangle((x, size[1] * 0.5, x + wide, size[1] * 0.82), fill=ink)
            x += wide + art.pick((1, 2, 4))
    draw.text((size[0] / 2, size[1] * 0.9), art.digits(12), font=art.mono().at(18), fill=ink, anchor="mm")
    if art.chance(0.4):
        for y in range(6, size[1], 14):
            draw.ellipse((size[0] - 7, y, size[0] + 7, y + 9), fill=(60, 60, 60))
    return image if art.chance(0.15) else on_desk(art, image, 0.2, (0.4, 1.3))


def surface(art: Art) -> Image.Image:
    """Metal, concrete, cloth or wood from near, with a scratch, a crack, a stain or a dent."""
    size = art.pick(((440, 440), (300, 520), (520, 300)))
    grey = art.between(40, 210)
    base = np.array([grey * art.rng.gauss(1, 0.06) for _ in range(3)])
    streaks = np.repeat(art.grain.random((size[1], 1)), size[0], axis=1)
    kind = art.pick(("brushed", "cast", "woven", "grained"))
    y, x = np.mgrid[0 : size[1], 0 : size[0]].astype(float)
    if kind == "brushed":
        field = 0.5 * streaks + 0.5 * clouds(size, art.grain, 2, 2)
    elif kind == "cast":
        field = clouds(size, art.grain, art.whole(6, 60), 4, 0.8)
    elif kind == "woven":
        step = art.between(3, 12)
        field = 0.5 + 0.25 * np.sin(x / step) + 0.25 * np.sin(y / step) + 0.2 * clouds(size, art.grain, 4, 3)
    else:
        field = 0.5 + 0.3 * np.sin((y + 90 * clouds(size, art.grain, 3, 3)) / art.between(3, 14))
    image = to_image(base * (0.55 + 0.8 * field[..., None]))
    draw = ImageDraw.Draw(image)
    for _ in range(art.whole(0, 5)):
        px, py = art.between(0, size[0]), art.between(0, size[1])
        colour = shade((int(grey), int(grey), int(grey)), art.pick((0.4, 0.6, 1.6)))
        if art.chance(0.5):
            points, angle = [(px, py)], art.between(0, math.tau)
            for _step in range(art.whole(2, 14)):
                angle += art.rng.gauss(0, 0.4)
                px, py = px + 24 * math.cos(angle), py + 24 * math.sin(angle)
                points.append((px, py))
            draw.line(points, fill=colour, width=art.whole(1, 4))
        else:
            draw.polygon(_outline(art, (px, py), art.between(6, 60)), fill=colour)
    image = image.filter(ImageFilter.GaussianBlur(art.between(0, 2.5)))
    grey_only = image.convert("L").convert("RGB") if art.chance(0.6) else image
    return lit(art, grey_only) if art.chance(0.5) else grey_only


def oddment(art: Art) -> Image.Image:
    """One of these, emblems most often."""
    return art.pick((emblem, emblem, doodle, shapes, blossom, ticket, surface))(art)
