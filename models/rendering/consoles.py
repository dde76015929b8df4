"""More terminals than `terminal` draws: text interfaces, tiled desktops, pictures behind the text, any colours."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from . import words
from .art import Art, Colour, clouds, gradient, hsv, luminance, mix, rounded, shade, shadowed, to_image
from .code import NOUNS, THEMES, Theme, cell_width, draw_line, on_screen
from .terminal import BLOCKS, CLASSIC, _command, _prompt, _session


def any_theme(art: Art) -> Theme:
    """A known theme, or one that nobody has published: some ground, and inks that can be read on it."""
    if art.chance(0.4):
        return art.pick(CLASSIC if art.chance(0.5) else THEMES)
    light = art.chance(0.35)
    hue, grey = art.rng.random(), art.between(0.0, 0.5)
    ground = hsv(hue, grey * (0.3 if light else 1.0), art.between(0.88, 1.0) if light else art.between(0.0, 0.28))
    value = (0.25, 0.6) if light else (0.7, 1.0)
    inks = [art.colour((0.25, 0.9), value) for _ in range(6)]
    text = mix(ground, (0, 0, 0) if light else (255, 255, 255), art.between(0.65, 1.0))
    return Theme(ground, text, *inks)


def _behind(art: Art, size: tuple[int, int], theme: Theme) -> Image.Image:
    """What shows through a translucent window: a wallpaper, dimmed towards the theme's ground."""
    if art.chance(0.4):
        back = gradient(size, art.vivid(), art.vivid(), art.between(0, 360))
    else:
        first, second = clouds(size, art.grain, art.whole(1, 5), 3), clouds(size, art.grain, art.whole(1, 5), 3)
        first, second = first * art.between(20, 255), second * art.between(20, 255)
        share = np.abs([art.between(-1, 1) for _ in range(3)])
        back = to_image(first[..., None] * share + second[..., None] * (1 - share))
    if art.chance(0.5):
        draw = ImageDraw.Draw(back)
        for _ in range(art.whole(1, 8)):
            x, y, r = art.whole(0, size[0]), art.whole(0, size[1]), art.whole(20, size[1])
            draw.polygon([(x + r * math.cos(a), y + r * math.sin(a)) for a in range(art.whole(3, 9))], fill=art.vivid())
        back = back.filter(ImageFilter.GaussianBlur(art.pick((0, 3, 20))))
    return Image.blend(back, Image.new("RGB", size, theme.ground), art.between(0.35, 0.95))


def _typed(art: Art, area: Image.Image, theme: Theme, point: float, fill: float = 1.0) -> None:
    """A session written onto the area, from its top."""
    draw = ImageDraw.Draw(area)
    face = art.mono()
    cell, pitch = cell_width(draw, face, point), point * art.between(1.15, 1.5)
    rows = max(1, int(area.height / pitch * fill))
    lines = _session(art, theme, rows)
    lines = lines[-rows:] if art.chance(0.5) else lines[:rows]
    for row, parts in enumerate(lines):
        draw_line(draw, (cell * 0.8, row * pitch + 4), parts, face, point, cell)


def _few_lines(art: Art) -> Image.Image:
    """One or two prompts in large letters, as documentation of shells shows them."""
    theme = any_theme(art)
    point = art.between(16, 40)
    area = Image.new("RGB", (art.whole(420, 1000), round(point * art.between(1.6, 6))), theme.ground)
    draw = ImageDraw.Draw(area)
    face = art.mono()
    cell, y = cell_width(draw, face, point), point * 0.3
    user, style = art.pick(words.GIVEN).lower(), art.whole(0, 7)
    while y < area.height - point:
        text = [
            *_prompt(art, theme, style, user, "host"),
            (_command(art), theme.text),
            ("█" * art.chance(0.3), theme.text),
        ]
        for parts in [text, *art.pick(BLOCKS)(art, theme)[: art.whole(0, 2)]]:
            draw_line(draw, (cell * 0.6, y), parts, face, point, cell)
            y += point * 1.35
    return area


def _titled(art: Art, area: Image.Image, theme: Theme) -> Image.Image:
    """With a title bar, tabs or a status line of some system."""
    bar = art.whole(18, 40)
    colour = mix(theme.ground, art.pick(((128, 128, 128), (255, 255, 255), art.vivid())), art.between(0.1, 0.9))
    framed = Image.new("RGB", (area.width, area.height + bar), colour)
    framed.paste(area, (0, bar))
    draw = ImageDraw.Draw(framed)
    ink: Colour = (20, 20, 22) if luminance(colour) > 0.5 else (235, 235, 235)
    face = art.sans()
    title = art.pick(
        ("bash", "zsh", "Terminal", "Konsole", f"{art.pick(NOUNS)} - fish", "root@server: /", "cmd.exe", "PuTTY")
    )
    if art.chance(0.4):
        for index in range(art.whole(2, 5)):
            x = 70 + index * 150
            draw.rectangle((x, 4, x + 144, bar), fill=mix(colour, theme.ground, 0.6 if index else 1.0))
            draw.text(
                (x + 10, bar / 2),
                f"{index + 1}: {art.pick(NOUNS)}",
                font=face.at(bar * 0.42),
                fill=theme.text,
                anchor="lm",
            )
    else:
        draw.text((area.width / 2, bar / 2), title, font=face.at(bar * 0.5), fill=ink, anchor="mm")
    if art.chance(0.6):
        for index, dot in enumerate(((255, 95, 86), (255, 189, 46), (39, 201, 63))):
            left = 10 + index * bar * 0.6
            draw.ellipse((left, bar * 0.3, left + bar * 0.4, bar * 0.7), fill=dot)
    return framed


def _window(art: Art) -> Image.Image:
    theme = any_theme(art)
    size = (art.whole(460, 1200), art.whole(220, 760))
    area = _behind(art, size, theme) if art.chance(0.35) else Image.new("RGB", size, theme.ground)
    _typed(art, area, theme, art.between(10, 26), art.pick((1.0, 1.0, 0.5, 0.25)))
    return _titled(art, area, theme) if art.chance(0.6) else area


def console(art: Art) -> Image.Image:
    """A terminal window in any colours, alone, over others, or on a desktop."""
    draw = art.rng.random()
    if draw < 0.3:
        return on_screen(art, _few_lines(art))
    if draw < 0.7:
        return on_screen(art, _window(art))
    size = art.pick(((1280, 720), (1280, 800), (1366, 768), (1000, 800)))
    canvas = _behind(art, size, Theme(*[art.colour() for _ in range(8)]))
    if draw < 0.85:
        # A tiling desktop: windows side by side, a thin bar above or below.
        gap = art.pick((0, 6, 14))
        bar = art.whole(14, 26)
        columns = art.whole(1, 3)
        wide = size[0] // columns
        theme = any_theme(art)
        for column in range(columns):
            rows = art.whole(1, 3)
            tall = (size[1] - bar) // rows
            for row in range(rows):
                area = Image.new("RGB", (wide - 2 * gap, tall - 2 * gap), theme.ground)
                _typed(art, area, theme, art.between(9, 16), art.pick((1.0, 0.6, 0.3)))
                ImageDraw.Draw(area).rectangle(
                    (0, 0, area.width - 1, area.height - 1), outline=theme.keyword, width=min(2, gap)
                )
                canvas.paste(area, (column * wide + gap, bar + row * tall + gap))
        ImageDraw.Draw(canvas).rectangle((0, 0, size[0], bar), fill=shade(theme.ground, 0.8))
        return canvas
    for _ in range(art.whole(1, 4)):
        window = _window(art)
        window.thumbnail((int(size[0] * art.between(0.4, 0.9)), int(size[1] * art.between(0.4, 0.9))))
        place = (art.whole(0, max(1, size[0] - window.width)), art.whole(0, max(1, size[1] - window.height)))
        shadowed(canvas, rounded(window, art.pick((0, 8, 12))), place, 14, 140, 8)
    return canvas


def _fill(
    art: Art,
    draw: ImageDraw.ImageDraw,
    box: tuple[int, int, int, int],
    theme: Theme,
    metrics: tuple[float, float, float],
) -> None:
    """One box of a text interface, in cells: bars, curves, a list with a chosen row, a tree, a form, keys, text."""
    cell, pitch, point = metrics
    left, top, right, bottom = box
    wide, tall = right - left - 2, bottom - top - 1
    if wide < 16 or tall < 2:
        return
    face = art.mono()
    kind = art.pick(("bars", "curve", "list", "tree", "form", "keys", "text", "text", "hex"))

    def put(row: int, column: int, text: str, ink: Colour) -> None:
        draw_line(
            draw,
            ((left + 1 + column) * cell, (top + 1 + row) * pitch),
            [(text[: max(0, wide - column)], ink)],
            face,
            point,
            cell,
        )

    if kind == "bars":
        for row in range(tall):
            put(row, 0, f"{art.pick(NOUNS)[:8]:<9}", theme.text)
            x, y = (left + 11) * cell, (top + 1 + row) * pitch
            draw.rectangle(
                (x, y + 2, x + art.between(0, 1) * max(1, wide - 12) * cell, y + pitch - 3),
                fill=art.pick((theme.keyword, theme.call, theme.string)),
            )
    elif kind == "curve":
        level = 0.5
        for column in range(wide * 2):
            level = min(1.0, max(0.05, level + art.rng.gauss(0, 0.12)))
            x, base = (left + 1 + column / 2) * cell, (top + 1 + tall) * pitch
            draw.rectangle((x, base - level * tall * pitch * 0.95, x + cell / 2 - 1, base), fill=theme.keyword)
    elif kind == "list":
        chosen = art.whole(0, tall)
        for row in range(tall):
            if row == chosen:
                draw.rectangle(
                    ((left + 1) * cell, (top + 1 + row) * pitch, (right - 1) * cell, (top + 2 + row) * pitch),
                    fill=theme.call,
                )
            put(
                row,
                0,
                f"{art.pick(NOUNS):<14} {art.whole(1, 9999):>6} {art.pick(words.MONTHS).title()} {art.whole(1, 28):>2}",
                theme.ground if row == chosen else theme.text,
            )
    elif kind == "tree":
        for row in range(tall):
            depth = art.whole(0, 3)
            put(
                row,
                0,
                "│  " * depth + art.pick(("├─ ", "└─ ")) + art.pick(NOUNS),
                theme.kind if art.chance(0.4) else theme.text,
            )
    elif kind == "form":
        for row in range(0, tall - 1, 2):
            put(row, 0, f"{art.pick(NOUNS).title()[:9]}:", theme.text)
            x, y = (left + 12) * cell, (top + 1 + row) * pitch
            draw.rectangle(
                (x, y, (right - 2) * cell, y + pitch), fill=mix(theme.ground, theme.text, 0.15), outline=theme.dim
            )
            put(row, 12, art.pick(NOUNS), theme.string)
    elif kind == "keys":
        for row in range(0, tall - 1, 3):
            for column in range(0, wide - 5, 8):
                x, y = (left + 1 + column) * cell, (top + 1 + row) * pitch
                fill = art.pick((theme.dim, theme.call, theme.string))
                draw.rectangle((x, y, x + 7 * cell, y + 2.6 * pitch), fill=fill)
                draw.text(
                    (x + 3.5 * cell, y + 1.3 * pitch),
                    art.pick("0123456789+-=%C"),
                    font=face.at(point),
                    fill=theme.ground,
                    anchor="mm",
                )
    elif kind == "hex":
        for row in range(tall):
            put(row, 0, f"{row * 16:08x}  " + " ".join(f"{art.whole(0, 255):02x}" for _ in range(16)), theme.text)
    else:
        rows = 0
        while rows < tall:
            for parts in art.pick(BLOCKS)(art, theme)[: tall - rows]:
                room, kept = wide, []
                for part, ink in parts:
                    kept.append((part[:room], ink))
                    room = max(0, room - len(part))
                draw_line(draw, ((left + 1) * cell, (top + 1 + rows) * pitch), kept, face, point, cell)
                rows += 1


def text_interface(art: Art) -> Image.Image:
    """A full-screen program in a terminal: boxes with titles, a bar of keys, all on one grid of cells."""
    theme = any_theme(art)
    size = (art.whole(600, 1240), art.whole(360, 820))
    area = Image.new("RGB", size, theme.ground)
    draw = ImageDraw.Draw(area)
    point = art.between(10, 20)
    face = art.mono()
    cell, pitch = cell_width(draw, face, point), point * art.between(1.15, 1.35)
    columns, rows = int(size[0] / cell), int(size[1] / pitch) - 1
    x = 0
    while x < columns - 8:
        wide = min(columns - x, art.whole(18, 60))
        y = 1
        while y < rows - 3:
            tall = min(rows - y, art.whole(5, 22))
            if art.chance(0.75):
                draw.rounded_rectangle(
                    ((x + 0.5) * cell, (y + 0.5) * pitch, (x + wide - 0.5) * cell, (y + tall - 0.3) * pitch),
                    art.pick((0, 0, 5)),
                    outline=art.pick((theme.dim, theme.keyword, theme.call, theme.text)),
                )
            _fill(art, draw, (x, y, x + wide, y + tall - 1), theme, (cell, pitch, point))
            title = f" {art.pick(NOUNS).title()} "
            at = (x + 2) * cell
            draw.rectangle((at, y * pitch, at + len(title) * cell, (y + 0.95) * pitch), fill=theme.ground)
            draw_line(draw, (at, y * pitch), [(title, theme.keyword)], face, point, cell)
            y += tall
        x += wide
    for edge in (0, rows):
        if art.chance(0.7):
            draw.rectangle(
                (0, edge * pitch, size[0], (edge + 1) * pitch), fill=art.pick((theme.call, theme.keyword, theme.panel))
            )
            keys = "  ".join(
                f"{key} {art.pick(NOUNS).title()}" for key in ("F1", "^X", "q", "/", "Tab")[: art.whole(2, 5)]
            )
            draw_line(
                draw, (cell, edge * pitch), [(keys, theme.ground if art.chance(0.7) else theme.text)], face, point, cell
            )
    return on_screen(art, _titled(art, area, theme) if art.chance(0.4) else area)
