"""Screens of software: dialogs, forms, dashboards, settings, shops, chats; on desktops, in browsers, on phones."""

from __future__ import annotations

from PIL import Image, ImageDraw

from . import words
from .art import Art, Colour, gradient, luminance, mix, rounded, shade, shadowed
from .charts import mini_chart


class Sheet:
    """One screen's palette and faces, and the widgets drawn with them."""

    def __init__(self, art: Art, size: tuple[int, int]) -> None:
        self.art = art
        dark = art.chance(0.25)
        self.ground: Colour = (
            art.pick(((24, 24, 28), (32, 33, 36), (18, 18, 18), (40, 44, 52)))
            if dark
            else art.pick(((255, 255, 255), (250, 250, 252), (242, 243, 245), (255, 255, 255)))
        )
        self.ink: Colour = (232, 232, 236) if dark else (33, 37, 41)
        self.accent = art.colour((0.5, 0.9), (0.5, 0.9))
        self.panel = mix(self.ground, (255, 255, 255) if dark else (100, 110, 130), 0.08)
        self.rule = mix(self.ground, self.ink, 0.16)
        self.face, self.bold = art.sans(), art.bold()
        self.point = art.between(12, 17)
        self.radius = art.pick((0, 2, 4, 8, 12))
        self.canvas = Image.new("RGB", size, self.ground)
        self.draw = ImageDraw.Draw(self.canvas)
        self.language = art.pick(("en", "en", "en", "fr", "de", "es"))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        scale: float = 1.0,
        ink: Colour | None = None,
        bold: bool = False,
        anchor: str = "la",
    ) -> float:
        """Write at a place; returns the width."""
        font = (self.bold if bold else self.face).at(self.point * scale)
        self.draw.text((x, y), text, font=font, fill=ink or self.ink, anchor=anchor)
        return float(self.draw.textlength(text, font=font))

    def label(self, count: int) -> str:
        """Words in the screen's language."""
        return words.title(self.art, count, self.language)

    def muted(self) -> Colour:
        """The colour of secondary text."""
        return mix(self.ground, self.ink, 0.55)

    def button(self, x: float, y: float, text: str, primary: bool) -> float:
        """Draw a button; returns its width."""
        width = self.draw.textlength(text, font=self.face.at(self.point)) + 2 * self.point
        box = (x, y, x + width, y + self.point * 2.1)
        if primary:
            self.draw.rounded_rectangle(box, self.radius, fill=self.accent)
            self.text(
                x + self.point,
                y + self.point * 0.45,
                text,
                ink=(255, 255, 255) if luminance(self.accent) < 0.7 else (20, 20, 20),
            )
        else:
            self.draw.rounded_rectangle(box, self.radius, fill=self.panel, outline=self.rule)
            self.text(x + self.point, y + self.point * 0.45, text)
        return float(width)

    def field(self, x: float, y: float, width: float, name: str, value: str) -> float:
        """A label over an input; returns the height."""
        self.text(x, y, name, 0.9, self.muted())
        top = y + self.point * 1.4
        self.draw.rounded_rectangle(
            (x, top, x + width, top + self.point * 2.1), self.radius, fill=self.ground, outline=self.rule
        )
        self.text(x + 8, top + self.point * 0.45, value, ink=self.ink if self.art.chance(0.6) else self.muted())
        if self.art.chance(0.25):
            ax, ay = x + width - 18, top + self.point
            self.draw.polygon([(ax, ay - 3), (ax + 10, ay - 3), (ax + 5, ay + 4)], fill=self.muted())
        return self.point * 4.4

    def toggle(self, x: float, y: float) -> None:
        """A switch, on or off."""
        on = self.art.chance(0.5)
        w, h = self.point * 2.4, self.point * 1.3
        self.draw.rounded_rectangle((x, y, x + w, y + h), h / 2, fill=self.accent if on else self.rule)
        cx = x + w - h / 2 if on else x + h / 2
        self.draw.ellipse((cx - h * 0.4, y + h * 0.1, cx + h * 0.4, y + h * 0.9), fill=(255, 255, 255))

    def check(self, x: float, y: float, round_: bool = False) -> None:
        """A check box or a radio button."""
        size = self.point
        on = self.art.chance(0.5)
        if round_:
            self.draw.ellipse((x, y, x + size, y + size), outline=self.accent, width=2)
            if on:
                self.draw.ellipse((x + 4, y + 4, x + size - 4, y + size - 4), fill=self.accent)
            return
        self.draw.rounded_rectangle(
            (x, y, x + size, y + size), 2, fill=self.accent if on else self.ground, outline=self.rule
        )
        if on:
            self.draw.line(
                (x + size * 0.2, y + size * 0.5, x + size * 0.45, y + size * 0.75, x + size * 0.85, y + size * 0.25),
                fill=(255, 255, 255),
                width=2,
            )

    def icon(self, x: float, y: float, size: float, colour: Colour | None = None) -> None:
        """A simple shape in place of an icon."""
        colour = colour or self.art.pick((self.accent, self.muted(), self.art.vivid()))
        shape = self.art.whole(0, 4)
        box = (x, y, x + size, y + size)
        if shape == 0:
            self.draw.ellipse(box, fill=colour)
        elif shape == 1:
            self.draw.rounded_rectangle(box, size * 0.25, fill=colour)
        elif shape == 2:
            self.draw.rounded_rectangle(box, size * 0.2, outline=colour, width=max(1, int(size / 10)))
        elif shape == 3:
            self.draw.polygon([(x + size / 2, y), (x + size, y + size), (x, y + size)], fill=colour)
        else:
            for row in range(3):
                self.draw.line(
                    (x, y + size * (0.2 + 0.3 * row), x + size, y + size * (0.2 + 0.3 * row)),
                    fill=colour,
                    width=max(1, int(size / 9)),
                )

    def picture(self, box: tuple[int, int, int, int]) -> None:
        """A gradient in place of a photo."""
        size = (max(1, box[2] - box[0]), max(1, box[3] - box[1]))
        self.canvas.paste(
            gradient(
                size,
                self.art.colour((0.1, 0.7), (0.4, 1)),
                self.art.colour((0.1, 0.7), (0.3, 1)),
                self.art.between(0, 360),
            ),
            box[:2],
        )

    def rows(self, box: tuple[float, float, float, float], kind: str) -> None:
        """Fill a box with list entries, settings or table rows."""
        left, top, right, bottom = box
        pitch = self.point * self.art.between(2.4, 4.6)
        y = top
        while y + pitch <= bottom:
            if kind == "table":
                for column in range(4):
                    x = left + (right - left) * column / 4
                    self.text(
                        x + 8,
                        y + pitch * 0.25,
                        self.art.pick(
                            (
                                words.surname(self.art),
                                self.art.digits(4),
                                words.city(self.art),
                                f"{self.art.whole(1, 28)}/0{self.art.whole(1, 9)}/2025",
                                "Active",
                            )
                        ),
                    )
            else:
                self.icon(left + 10, y + pitch * 0.2, pitch * 0.55)
                self.text(left + pitch + 4, y + pitch * 0.14, self.label(self.art.whole(1, 4)))
                if pitch > self.point * 3:
                    self.text(
                        left + pitch + 4,
                        y + pitch * 0.14 + self.point * 1.4,
                        words.sentence(self.art, self.art.whole(3, 7), self.language),
                        0.85,
                        self.muted(),
                    )
                if kind == "settings":
                    self.toggle(right - self.point * 3.2, y + pitch * 0.25)
                elif self.art.chance(0.4):
                    self.text(
                        right - 12,
                        y + pitch * 0.2,
                        f"{self.art.whole(0, 23):02d}:{self.art.whole(0, 59):02d}",
                        0.85,
                        self.muted(),
                        anchor="ra",
                    )
            self.draw.line((left, y + pitch, right, y + pitch), fill=self.rule)
            y += pitch

    def side_bar(self, width: int, height: int, top: int) -> None:
        """Navigation along the left edge."""
        colour = self.art.pick((self.panel, shade(self.accent, 0.45), self.panel, (38, 44, 58)))
        self.draw.rectangle((0, top, width, height), fill=colour)
        ink: Colour = (235, 235, 240) if luminance(colour) < 0.5 else (50, 54, 60)
        y = top + 20.0
        chosen = self.art.whole(0, 6)
        for index in range(int((height - top) / (self.point * 2.6))):
            if index == chosen:
                self.draw.rounded_rectangle(
                    (8, y - 6, width - 8, y + self.point * 1.6), self.radius, fill=mix(colour, self.accent, 0.4)
                )
            self.icon(16, y, self.point, ink)
            self.text(24 + self.point, y - 1, self.label(self.art.whole(1, 2)), 0.95, ink)
            y += self.point * 2.6


def _browser(art: Art, page: Image.Image) -> Image.Image:
    bar = art.whole(56, 74)
    dark = art.chance(0.2)
    ground: Colour = (45, 46, 50) if dark else (222, 225, 230)
    framed = Image.new("RGB", (page.width, page.height + bar), ground)
    draw = ImageDraw.Draw(framed)
    face = art.sans()
    tab: Colour = (60, 61, 66) if dark else (255, 255, 255)
    draw.rounded_rectangle((70, 6, 280, bar / 2 + 6), 8, fill=tab)
    draw.text((86, 12), words.title(art, 2), font=face.at(13), fill=(210, 210, 210) if dark else (60, 60, 60))
    draw.rectangle((0, bar / 2, page.width, bar), fill=tab)
    draw.rounded_rectangle((90, bar / 2 + 4, page.width - 90, bar - 4), 12, fill=ground)
    draw.text(
        (104, bar / 2 + 7),
        f"https://{words.surname(art).lower()}.example/{words.city(art).lower().replace(' ', '-')}",
        font=face.at(12),
        fill=(170, 170, 170) if dark else (90, 90, 90),
    )
    for index in range(3):
        draw.ellipse(
            (14 + index * 18, 12, 25 + index * 18, 23), fill=((255, 95, 86), (255, 189, 46), (39, 201, 63))[index]
        )
    framed.paste(page, (0, bar))
    return framed


def _dialog(art: Art) -> Image.Image:
    sheet = Sheet(art, (art.whole(420, 680), art.whole(240, 560)))
    width, height = sheet.canvas.size
    bar = 36
    sheet.draw.rectangle((0, 0, width, bar), fill=art.pick((sheet.panel, sheet.accent, sheet.ground)))
    sheet.text(14, 9, sheet.label(2), bold=True)
    sheet.text(width - 16, 9, "x", anchor="ra")
    y = bar + 20.0
    for line in range(art.whole(1, 3)):
        sheet.text(
            24, y, words.sentence(art, art.whole(4, 9), sheet.language), ink=sheet.ink if line == 0 else sheet.muted()
        )
        y += sheet.point * 1.7
    while y < height - sheet.point * 8:
        kind = art.whole(0, 3)
        if kind == 0:
            y += sheet.field(
                24, y, width - 48, sheet.label(2), art.pick((words.city(art), words.surname(art), art.digits(5), ""))
            )
        elif kind == 1:
            sheet.check(24, y, art.chance(0.3))
            sheet.text(24 + sheet.point * 1.7, y, sheet.label(art.whole(2, 5)))
            y += sheet.point * 2.2
        elif kind == 2:
            sheet.draw.rounded_rectangle((24, y, width - 24, y + 8), 4, fill=sheet.rule)
            sheet.draw.rounded_rectangle((24, y, 24 + (width - 48) * art.rng.random(), y + 8), 4, fill=sheet.accent)
            y += sheet.point * 2
        else:
            y += sheet.point
    x = width - 30.0
    for index, text in enumerate(
        art.pick(
            (
                ("OK", "Cancel"),
                ("Save", "Cancel", "Apply"),
                ("Yes", "No"),
                ("Weiter", "Abbrechen"),
                ("Enregistrer", "Annuler"),
                ("Delete", "Keep"),
            )
        )
    ):
        wide = sheet.draw.textlength(text, font=sheet.face.at(sheet.point)) + 2 * sheet.point
        x -= wide + 8
        sheet.button(x, height - sheet.point * 3, text, index == 0)
    if art.chance(0.5):
        return sheet.canvas
    back = _app(art) if art.chance(0.6) else gradient((1000, 680), art.colour(), art.colour(), 45)
    back = Image.blend(back, Image.new("RGB", back.size, (0, 0, 0)), art.between(0, 0.5))
    top = rounded(sheet.canvas, sheet.radius)
    shadowed(back, top, (max(0, (back.width - width) // 2), max(0, (back.height - height) // 2)), 14, 150)
    return back


def _app(art: Art) -> Image.Image:
    sheet = Sheet(art, art.pick(((1000, 680), (1100, 620), (900, 700), (1200, 640))))
    width, height = sheet.canvas.size
    top = art.whole(40, 60)
    head = art.pick((sheet.panel, sheet.accent, sheet.ground))
    sheet.draw.rectangle((0, 0, width, top), fill=head)
    ink: Colour = (250, 250, 250) if luminance(head) < 0.55 else (40, 40, 46)
    sheet.text(18, top * 0.3, art.pick(words.COMPANIES), 1.2, ink, True)
    for index in range(art.whole(2, 5)):
        sheet.text(width * 0.35 + index * 110, top * 0.34, sheet.label(1), 1.0, ink)
    sheet.draw.ellipse((width - 50, top * 0.2, width - 50 + top * 0.6, top * 0.8), fill=art.vivid())
    left = 0
    if art.chance(0.65):
        left = art.whole(150, 240)
        sheet.side_bar(left, height, top)
    x, y = left + 28, top + 24
    sheet.text(x, y, sheet.label(art.whole(1, 3)), 1.6, bold=True)
    if art.chance(0.6):
        sheet.button(width - 150, y, art.pick(("New", "Add", "Export", "Save", "Hinzufügen", "Créer")), True)
    y += int(sheet.point * 3)
    body = art.pick(("table", "list", "settings", "form", "cards", "dashboard"))
    if body in ("table", "list", "settings"):
        sheet.rows((x, y, width - 28, height - 20), body)
    elif body == "form":
        column = (width - x - 60) / 2
        for index in range(12):
            fy = y + (index // 2) * sheet.point * 4.6
            if fy < height - 90:
                sheet.field(
                    x + (index % 2) * (column + 20),
                    fy,
                    column,
                    sheet.label(art.whole(1, 3)),
                    art.pick((words.city(art), words.surname(art), art.digits(6), "Select...")),
                )
        sheet.button(x, height - 50, art.pick(("Submit", "Save", "Envoyer", "Senden")), True)
    elif body == "cards":
        across, size = art.whole(2, 5), 0
        size = (width - x - 20) // across
        for index in range(across * 3):
            cx, cy = x + (index % across) * size, y + (index // across) * int(size * 1.05)
            if cy < height:
                sheet.picture((cx, cy, cx + size - 16, cy + int(size * 0.6)))
                sheet.text(cx + 4, cy + size * 0.64, sheet.label(2))
                sheet.text(
                    cx + 4,
                    cy + size * 0.64 + sheet.point * 1.5,
                    words.money(words.price(art), art.pick(("$", "€", "£"))),
                    0.9,
                    sheet.muted(),
                )
    else:
        for index in range(4):
            bx = x + index * (width - x - 20) // 4
            sheet.draw.rounded_rectangle(
                (bx, y, bx + (width - x - 20) // 4 - 14, y + 78), sheet.radius, fill=sheet.panel, outline=sheet.rule
            )
            sheet.text(bx + 12, y + 10, sheet.label(2), 0.85, sheet.muted())
            sheet.text(bx + 12, y + 34, f"{art.whole(1, 99999):,}", 1.7, bold=True)
        for index in range(2):
            bx = x + index * (width - x - 20) // 2
            box = (bx, y + 96, bx + (width - x - 20) // 2 - 14, height - 24)
            sheet.draw.rounded_rectangle(box, sheet.radius, fill=sheet.panel, outline=sheet.rule)
            sheet.text(bx + 12, y + 104, sheet.label(3), bold=True)
            if art.chance(0.5):
                mini_chart(art, sheet.canvas, (bx + 14, y + 132, box[2] - 14, box[3] - 14), sheet.accent)
            else:
                sheet.rows((bx + 10, y + 134, box[2] - 10, box[3] - 10), "list")
    return sheet.canvas


def _phone(art: Art) -> Image.Image:
    sheet = Sheet(art, (430, art.whole(780, 930)))
    sheet.point = art.between(14, 19)
    width, height = sheet.canvas.size
    sheet.text(22, 8, f"{art.whole(0, 23)}:{art.whole(0, 59):02d}", 0.85)
    sheet.draw.rounded_rectangle((width - 50, 10, width - 22, 22), 3, outline=sheet.ink)
    sheet.draw.rectangle((width - 48, 12, width - 30, 20), fill=sheet.ink)
    head = art.pick((sheet.ground, sheet.accent, sheet.panel))
    sheet.draw.rectangle((0, 34, width, 90), fill=head)
    sheet.text(54, 50, sheet.label(2), 1.2, (250, 250, 250) if luminance(head) < 0.5 else (30, 30, 36), True)
    sheet.text(20, 50, "<", 1.3)
    body = art.pick(("chat", "list", "settings", "login", "cards", "article"))
    bottom = height - 66 if art.chance(0.6) else height - 10
    if body == "chat":
        y = 110.0
        while y < bottom - 80:
            mine = art.chance(0.5)
            lines = [words.sentence(art, art.whole(3, 5), sheet.language) for _ in range(art.whole(1, 3))]
            tall = len(lines) * sheet.point * 1.4 + 18
            box = (110, y, width - 16, y + tall) if mine else (16, y, width - 110, y + tall)
            sheet.draw.rounded_rectangle(box, 16, fill=sheet.accent if mine else sheet.panel)
            for index, line in enumerate(lines):
                sheet.text(
                    box[0] + 14,
                    y + 9 + index * sheet.point * 1.4,
                    line,
                    0.85,
                    (255, 255, 255) if mine and luminance(sheet.accent) < 0.65 else sheet.ink,
                )
            y += tall + 12
    elif body in ("list", "settings"):
        sheet.rows((10, 100, width - 10, bottom), body)
    elif body == "login":
        sheet.icon(width / 2 - 50, 150, 100, sheet.accent)
        sheet.text(width / 2, 290, sheet.label(2), 1.6, bold=True, anchor="ma")
        y = 360.0
        for name in (art.pick(("Email", "E-Mail", "Username")), art.pick(("Password", "Passwort", "PIN"))):
            y += sheet.field(40, y, width - 80, name, art.pick(("", "user@mail.example", "********")))
        sheet.draw.rounded_rectangle((40, y + 20, width - 40, y + 70), sheet.radius + 6, fill=sheet.accent)
        sheet.text(
            width / 2, y + 34, art.pick(("Sign in", "Log in", "Anmelden", "Continue")), ink=(255, 255, 255), anchor="ma"
        )
    elif body == "cards":
        y = 104
        while y < bottom - 60:
            tall = art.whole(120, 220)
            sheet.picture((16, y, width - 16, min(bottom, y + tall)))
            if y + tall + 40 < bottom:
                sheet.text(20, y + tall + 6, sheet.label(3), bold=True)
                sheet.text(
                    20, y + tall + 6 + sheet.point * 1.5, words.sentence(art, 6, sheet.language), 0.85, sheet.muted()
                )
            y += tall + 70
    else:
        sheet.picture((0, 92, width, 300))
        y = 316.0
        sheet.text(20, y, sheet.label(3), 1.5, bold=True)
        y += sheet.point * 2.6
        while y < bottom - sheet.point * 2:
            sheet.text(20, y, words.sentence(art, art.whole(5, 7), sheet.language), 0.9)
            y += sheet.point * 1.5
    if bottom < height - 20:
        sheet.draw.rectangle((0, bottom, width, height), fill=sheet.panel)
        for index in range(4):
            sheet.icon(width * (index + 0.5) / 4 - 14, bottom + 14, 28)
    screen = sheet.canvas
    chance = art.rng.random()
    if chance < 0.7:
        return screen
    count = art.pick((1, 2, 3))
    framed = Image.new(
        "RGB",
        (count * 500 + 60, height + 140),
        art.pick(((255, 255, 255), (240, 242, 245), art.colour((0.2, 0.6), (0.6, 1)))),
    )
    for index in range(count):
        body_ = Image.new("RGB", (width + 24, height + 24), (20, 20, 24))
        body_.paste(
            screen
            if index == 0
            else screen.transpose(Image.Transpose.FLIP_TOP_BOTTOM).transpose(Image.Transpose.FLIP_TOP_BOTTOM),
            (12, 12),
        )
        shadowed(framed, rounded(body_, 48), (40 + index * 500, 56), 18, 90)
    return framed


def _menu(art: Art) -> Image.Image:
    sheet = Sheet(art, (art.whole(220, 420), art.whole(260, 640)))
    width, height = sheet.canvas.size
    y = 12.0
    chosen = art.whole(0, 10)
    index = 0
    while y < height - sheet.point * 1.5:
        if index == chosen:
            sheet.draw.rectangle(
                (4, y - 4, width - 4, y + sheet.point * 1.5), fill=mix(sheet.ground, sheet.accent, 0.35)
            )
        if art.chance(0.6):
            sheet.icon(12, y, sheet.point)
        sheet.text(20 + sheet.point, y, sheet.label(art.whole(1, 3)))
        if art.chance(0.3):
            sheet.text(
                width - 12, y, art.pick(("Ctrl+C", ">", "F5", "Alt+F4", "Ctrl+S")), ink=sheet.muted(), anchor="ra"
            )
        y += sheet.point * 2
        if art.chance(0.15):
            sheet.draw.line((6, y - 6, width - 6, y - 6), fill=sheet.rule)
        index += 1
    sheet.draw.rectangle((0, 0, width - 1, height - 1), outline=sheet.rule)
    return sheet.canvas


def ui_screenshot(art: Art) -> Image.Image:
    """A screen of some program, whole or in part."""
    kind = art.pick(("app", "app", "phone", "phone", "dialog", "menu"))
    image = {"app": _app, "phone": _phone, "dialog": _dialog, "menu": _menu}[kind](art)
    if kind == "app" and art.chance(0.4):
        image = _browser(art, image)
    if art.chance(0.15):
        w, h = int(image.width * art.between(0.5, 0.95)), int(image.height * art.between(0.5, 0.95))
        x, y = art.whole(0, image.width - w), art.whole(0, image.height - h)
        image = image.crop((x, y, x + w, y + h))
    if art.chance(0.08):
        draw = ImageDraw.Draw(image)
        x, y = art.whole(0, image.width // 2), art.whole(0, image.height // 2)
        draw.rectangle((x, y, x + art.whole(60, 300), y + art.whole(30, 120)), outline=(220, 30, 30), width=3)
    return image
