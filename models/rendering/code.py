"""Source code that never ran, and how editors show it: tokens with roles, themes, gutters, tabs, side bars."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from . import words
from .art import Art, Colour, gradient, grid_text, mix, rounded, shadowed
from .fonts import Face
from .looks import camera, lit


@dataclass(frozen=True)
class Theme:
    """An editor's colours by role."""

    ground: Colour
    text: Colour
    keyword: Colour
    string: Colour
    comment: Colour
    number: Colour
    call: Colour
    kind: Colour

    @property
    def dark(self) -> bool:
        """Whether letters are lighter than their ground."""
        return sum(self.ground) < 384

    @property
    def dim(self) -> Colour:
        """For what should not catch the eye."""
        return mix(self.ground, self.text, 0.4)

    @property
    def panel(self) -> Colour:
        """For bars and trees beside the text."""
        return mix(self.ground, (0, 0, 0) if self.dark else (120, 120, 130), 0.18)


def _theme(*values: str) -> Theme:
    colours = [(int(v[0:2], 16), int(v[2:4], 16), int(v[4:6], 16)) for v in values]
    return Theme(*colours)


THEMES = (
    _theme("1e1e1e", "d4d4d4", "569cd6", "ce9178", "6a9955", "b5cea8", "dcdcaa", "4ec9b0"),
    _theme("282c34", "abb2bf", "c678dd", "98c379", "5c6370", "d19a66", "61afef", "e5c07b"),
    _theme("002b36", "839496", "859900", "2aa198", "586e75", "d33682", "268bd2", "b58900"),
    _theme("fdf6e3", "657b83", "859900", "2aa198", "93a1a1", "d33682", "268bd2", "b58900"),
    _theme("272822", "f8f8f2", "f92672", "e6db74", "75715e", "ae81ff", "a6e22e", "66d9ef"),
    _theme("282a36", "f8f8f2", "ff79c6", "f1fa8c", "6272a4", "bd93f9", "50fa7b", "8be9fd"),
    _theme("1e1e2e", "cdd6f4", "cba6f7", "a6e3a1", "6c7086", "fab387", "89b4fa", "f9e2af"),
    _theme("eff1f5", "4c4f69", "8839ef", "40a02b", "9ca0b0", "fe640b", "1e66f5", "df8e1d"),
    _theme("ffffff", "24292e", "d73a49", "032f62", "6a737d", "005cc5", "6f42c1", "e36209"),
    _theme("ffffff", "000000", "0000ff", "a31515", "008000", "098658", "795e26", "267f99"),
    _theme("ffffff", "080808", "0033b3", "067d17", "8c8c8c", "1750eb", "00627a", "000000"),
    _theme("2b2b2b", "a9b7c6", "cc7832", "6a8759", "808080", "6897bb", "ffc66d", "a9b7c6"),
    _theme("2e3440", "d8dee9", "81a1c1", "a3be8c", "4c566a", "b48ead", "88c0d0", "8fbcbb"),
    _theme("0d1117", "c9d1d9", "ff7b72", "a5d6ff", "8b949e", "79c0ff", "d2a8ff", "ffa657"),
    _theme("1a1b26", "a9b1d6", "bb9af7", "9ece6a", "565f89", "ff9e64", "7aa2f7", "2ac3de"),
    _theme("fbf1c7", "3c3836", "9d0006", "79740e", "928374", "8f3f71", "076678", "b57614"),
    _theme("282828", "ebdbb2", "fb4934", "b8bb26", "928374", "d3869b", "83a598", "fabd2f"),
)

KEYWORDS: Mapping[str, str] = {
    "py": (
        "def class return if else elif for while in import from as with try except raise None True False and "
        "or not lambda self async await yield"
    ),
    "js": (
        "const let var function return if else for while import from export default class new async await "
        "null true false this typeof interface type"
    ),
    "go": (
        "func package import return if else for range var const type struct interface map chan go defer nil true false"
    ),
    "rs": (
        "fn let mut pub use struct enum impl match if else for in while return self Some None Ok Err mod "
        "trait where async move"
    ),
    "cpp": (
        "int void char float double return if else for while class struct public private include define "
        "using namespace const auto template typename new"
    ),
    "java": (
        "public private class static void int String return if else for while new import package final this "
        "extends implements null true false throws"
    ),
    "sql": (
        "SELECT FROM WHERE JOIN LEFT ON GROUP BY ORDER INSERT INTO VALUES UPDATE SET CREATE TABLE AND OR NOT "
        "NULL AS LIMIT COUNT PRIMARY KEY"
    ),
    "yaml": "true false null",
    "json": "true false null",
    "html": "div span class href body head script html input button form",
    "sh": "if then fi for in do done echo export function case esac while exit return local set",
}
COMMENT = {"py": "#", "yaml": "#", "sh": "#", "sql": "--", "html": "<!--"}
SUFFIX = {
    "py": "py",
    "js": "ts",
    "go": "go",
    "rs": "rs",
    "cpp": "cpp",
    "java": "java",
    "sql": "sql",
    "yaml": "yaml",
    "json": "json",
    "html": "html",
    "sh": "sh",
}

VERBS = [
    "get",
    "set",
    "load",
    "parse",
    "update",
    "build",
    "find",
    "make",
    "read",
    "write",
    "send",
    "check",
    "merge",
    "split",
    "sort",
    "open",
    "close",
    "init",
    "render",
    "handle",
    "fetch",
    "apply",
    "count",
]
NOUNS = [
    "user",
    "item",
    "node",
    "value",
    "index",
    "config",
    "buffer",
    "token",
    "order",
    "path",
    "result",
    "cache",
    "event",
    "row",
    "key",
    "data",
    "request",
    "response",
    "state",
    "list",
    "total",
    "image",
    "file",
    "queue",
]


def name(art: Art, language: str) -> str:
    """A made-up identifier in the language's manner."""
    first, second = art.pick(VERBS), art.pick(NOUNS)
    third = art.pick(NOUNS) if art.chance(0.25) else ""
    if language in ("js", "java", "go"):
        return first + second.title() + third.title()
    return "_".join(part for part in (first, second, third) if part)


def _expression(art: Art, language: str) -> str:
    noun, other = art.pick(NOUNS), art.pick(NOUNS)
    return art.pick(
        (
            f"{noun}",
            f"{art.whole(0, 4096)}",
            f'"{art.pick(words.GOODS).lower()}_{other}"',
            f"{noun}.{other}",
            f"{name(art, language)}({noun}, {other})",
            f"{noun}[{art.whole(0, 9)}]",
            f"{noun} + {other} * {art.whole(2, 99)}",
            f"len({noun})" if language in ("py", "go") else f"{noun}.length",
            f"{noun} == {other}",
            f'{name(art, language)}("{words.city(art)}")',
        )
    )


def _statement(art: Art, language: str) -> str:
    noun, value = art.pick(NOUNS), _expression(art, language)
    call = f"{art.pick(NOUNS)}.{name(art, language)}({value})"
    end = "" if language in ("py", "go") else ";"
    declare = {
        "py": "",
        "js": art.pick(("const ", "let ")),
        "go": "",
        "rs": art.pick(("let ", "let mut ")),
        "cpp": art.pick(("int ", "auto ")),
        "java": art.pick(("int ", "String ")),
    }
    assign = " := " if language == "go" else " = "
    return art.pick(
        (
            f"{declare[language]}{noun}{assign}{value}{end}",
            f"{call}{end}",
            f"return {value}{end}",
            f"{noun}.{art.pick(NOUNS)} = {value}{end}",
        )
    )


def _block(art: Art, language: str, depth: int, room: int) -> list[str]:
    pad = ("    " if language != "js" else "  ") * depth
    lines: list[str] = []
    for _ in range(art.whole(1, 5)):
        if len(lines) >= room:
            break
        if depth < 4 and art.chance(0.3):
            condition = _expression(art, language)
            if language == "py":
                lines.append(
                    pad
                    + art.pick(
                        (
                            f"if {condition}:",
                            f"for {art.pick(NOUNS)} in {art.pick(NOUNS)}s:",
                            f"with open({art.pick(NOUNS)}) as f:",
                            "try:",
                        )
                    )
                )
                opener = lines[-1]
                lines += _block(art, language, depth + 1, room - len(lines))
                if opener.strip() == "try:":
                    lines += [pad + "except ValueError as error:", pad + "    raise"]
            else:
                bare = language in ("go", "rs")
                lines.append(
                    pad
                    + (
                        f"if {condition} {{"
                        if bare
                        else art.pick((f"if ({condition}) {{", f"for (int i = 0; i < {art.pick(NOUNS)}; i++) {{"))
                    )
                )
                lines += _block(art, language, depth + 1, room - len(lines))
                lines.append(pad + "}")
        elif art.chance(0.12):
            lines.append(pad + COMMENT.get(language, "//") + " " + words.sentence(art, art.whole(3, 9)))
        else:
            lines.append(pad + _statement(art, language))
    return lines


def _function(art: Art, language: str) -> list[str]:
    title, noun, other = name(art, language), art.pick(NOUNS), art.pick(NOUNS)
    heads = {
        "py": f"def {title}({noun}, {other}=None):",
        "js": art.pick((f"function {title}({noun}, {other}) {{", f"export const {title} = async ({noun}) => {{")),
        "go": f"func {title}({noun} string, {other} int) error {{",
        "rs": f"pub fn {title}({noun}: &str, {other}: usize) -> Result<u32> {{",
        "cpp": f"int {title}(const char *{noun}, int {other}) {{",
        "java": f"public static int {title}(String {noun}, int {other}) {{",
    }
    lines = [heads[language]]
    if language == "py" and art.chance(0.5):
        lines.append('    """' + words.sentence(art, art.whole(4, 9)) + '"""')
    lines += _block(art, language, 1, 14)
    return [*lines, "", ""] if language == "py" else [*lines, "}", ""]


def _opening(art: Art, language: str) -> list[str]:
    a, b = art.pick(NOUNS), art.pick(NOUNS)
    return {
        "py": [f"import {a}s", f"from {b}s import {a.title()}, {b.title()}", ""],
        "js": [f"import {{ {a}, {b} }} from './{a}s';", ""],
        "go": [f"package {a}", "", f'import "{b}s"', ""],
        "rs": [f"use std::{a}::{b.title()};", ""],
        "cpp": [f"#include <{a}.h>", f'#include "{b}.hpp"', ""],
        "java": [f"package com.{a}.{b};", "", f"import java.{a}.{b.title()};", ""],
    }[language]


def _flat(art: Art, language: str, count: int) -> list[str]:
    """Languages without functions."""
    lines: list[str] = []
    while len(lines) < count:
        a, b, c = art.pick(NOUNS), art.pick(NOUNS), art.pick(NOUNS)
        if language == "sql":
            lines += [
                f"SELECT {a}.id, {a}.{b}, COUNT({c}.id) AS total",
                f"FROM {a}s AS {a}",
                f"LEFT JOIN {c}s {c} ON {c}.{a}_id = {a}.id",
                f"WHERE {a}.{b} > {art.whole(1, 999)} AND {a}.name = '{words.city(art)}'",
                f"GROUP BY {a}.id",
                f"ORDER BY total DESC LIMIT {art.whole(5, 100)};",
                "",
            ]
        elif language == "yaml":
            lines += [
                f"{a}s:",
                f"  - name: {words.city(art).lower().replace(' ', '-')}",
                f"    {b}: {art.whole(1, 9000)}",
                f'    {c}: "{art.pick(words.GOODS)}"',
                f"    enabled: {art.pick(('true', 'false'))}",
                f"  # {words.sentence(art, 5)}",
            ]
        elif language == "json":
            lines += [
                "  {",
                f'    "{a}": "{words.city(art)}",',
                f'    "{b}": {art.whole(1, 9000)},',
                f'    "{c}": [{art.whole(1, 9)}, {art.whole(1, 9)}, {art.whole(1, 9)}],',
                f'    "{a}_{b}": {art.pick(("true", "null", "false"))}',
                "  },",
            ]
        elif language == "html":
            lines += [
                f'<div class="{a}-{b}">',
                f'  <span id="{c}">{words.title(art, 3)}</span>',
                f'  <a href="/{a}/{b}">{art.pick(words.GOODS)}</a>',
                "  <!-- " + words.sentence(art, 4) + " -->",
                f'  <input type="text" name="{c}">',
                "</div>",
            ]
        else:
            lines += [
                f"{a.upper()}_{b.upper()}=${{1:-{art.whole(1, 99)}}}",
                f'if [ -z "${a.upper()}" ]; then',
                f'  echo "{words.sentence(art, 4)}"',
                "  exit 1",
                "fi",
                f"for {c} in *.{art.pick(('txt', 'log', 'csv'))}; do",
                f'  {art.pick(("grep", "sed", "cat", "wc"))} -l "${c}" | sort',
                "done",
                f"# {words.sentence(art, 5)}",
            ]
    return lines[:count]


def program(art: Art, language: str, count: int) -> list[str]:
    """So many lines that read like the language."""
    if language in ("sql", "yaml", "json", "html", "sh"):
        return _flat(art, language, count)
    lines = _opening(art, language)
    while len(lines) < count:
        lines += _function(art, language)
    return lines[:count]


_TOKEN = re.compile(r"(#.*|//.*|--.*|<!--.*)|(\"[^\"]*\"?|'[^']*'?)|(\b\d[\d._]*\b)|([A-Za-z_]\w*)(?=(\(?))|(\s+)|(.)")


def tokens(line: str, language: str, theme: Theme) -> list[tuple[str, Colour]]:
    """The line in pieces with their colours."""
    known = KEYWORDS[language].split()
    found: list[tuple[str, Colour]] = []
    for match in _TOKEN.finditer(line):
        comment, string, number, word, opens = (
            match.group(1),
            match.group(2),
            match.group(3),
            match.group(4),
            match.group(5),
        )
        text = match.group(0)
        if comment is not None and (text.startswith(COMMENT.get(language, "//"))):
            colour = theme.comment
        elif comment is not None:
            found.append((text[0], theme.text))
            found += tokens(text[1:], language, theme)
            continue
        elif string is not None:
            colour = theme.string
        elif number is not None:
            colour = theme.number
        elif word is not None:
            colour = (
                theme.keyword
                if word in known
                else theme.call
                if opens
                else theme.kind
                if word[0].isupper()
                else theme.text
            )
        else:
            colour = theme.text
        found.append((text, colour))
    return found


def draw_line(
    draw: ImageDraw.ImageDraw,
    place: tuple[float, float],
    parts: Sequence[tuple[str, Colour]],
    face: Face,
    size: float,
    cell: float,
) -> None:
    """Draw coloured pieces on a fixed pitch."""
    x, y = place
    for text, colour in parts:
        if face.fixed:
            draw.text((x, y), text, font=face.at(size), fill=colour)
        else:
            grid_text(draw, (x, y), text, face, size, cell, colour)
        x += cell * len(text)


def cell_width(draw: ImageDraw.ImageDraw, face: Face, size: float) -> float:
    """The pitch of one letter."""
    return float(draw.textlength("M" * 20, font=face.at(size))) / 20 if face.fixed else size * 0.62


def code_area(art: Art, size: tuple[int, int], theme: Theme, face: Face, point: float, language: str) -> Image.Image:
    """Lines with gutter, current line, selection and diff marks as it happens."""
    width, height = size
    canvas = Image.new("RGB", size, theme.ground)
    draw = ImageDraw.Draw(canvas)
    cell = cell_width(draw, face, point)
    pitch = point * art.between(1.25, 1.6)
    rows = int(height / pitch) + 1
    lines = program(art, language, rows if not art.chance(0.15) else max(4, rows // art.whole(2, 3)))
    numbers = art.chance(0.75)
    first = art.whole(1, 400) if art.chance(0.5) else 1
    gutter = cell * 5 if numbers else cell
    shift = 0
    diff = art.chance(0.1)
    current = art.whole(0, max(0, len(lines) - 1))
    guides = art.chance(0.3)
    for row, line in enumerate(lines):
        y = row * pitch + 4
        if diff and art.chance(0.35):
            tint = art.pick(((46, 160, 67), (248, 81, 73)))
            draw.rectangle((0, y, width, y + pitch), fill=mix(theme.ground, tint, 0.25))
        elif row == current and art.chance(0.8):
            draw.rectangle((0, y, width, y + pitch), fill=mix(theme.ground, theme.text, 0.08))
        if numbers:
            label = str(first + row)
            draw_line(
                draw,
                (cell * (4 - len(label)), y),
                [(label, theme.text if row == current else theme.dim)],
                face,
                point,
                cell,
            )
        depth = (len(line) - len(line.lstrip())) // 4
        if guides:
            for level in range(depth):
                x = gutter + level * 4 * cell
                draw.line((x, y, x, y + pitch), fill=mix(theme.ground, theme.text, 0.15))
        if row in (current - 1, current + 2) and art.chance(0.15):
            draw.rectangle(
                (gutter + 4 * cell, y, gutter + cell * max(6, len(line)), y + pitch),
                fill=mix(theme.ground, theme.kind, 0.3),
            )
        draw_line(draw, (gutter + shift, y), tokens(line, language, theme), face, point, cell)
        if art.chance(0.03) and line.strip():
            x = gutter + cell * (len(line) - len(line.lstrip()))
            for step in range(0, int(cell * len(line.strip())), 4):
                draw.line((x + step, y + pitch - 3, x + step + 2, y + pitch - 1), fill=(230, 60, 60))
    if art.chance(0.4):
        map_left = width - int(width * 0.09)
        for row in range(0, rows * 3):
            indent = art.whole(0, 12)
            draw.line(
                (map_left + indent, row * 3, map_left + indent + art.whole(2, 50), row * 3),
                fill=mix(theme.ground, theme.text, 0.3),
            )
    return canvas


def _tabs(
    art: Art, draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int], theme: Theme, face: Face, language: str
) -> None:
    left, top, right, bottom = box
    draw.rectangle(box, fill=theme.panel)
    x = left
    for index in range(art.whole(1, 5)):
        text = f"{art.pick(NOUNS)}_{art.pick(NOUNS)}.{SUFFIX[language]}"
        size = (bottom - top) * 0.45
        wide = draw.textlength(text, font=face.at(size)) + 40
        if x + wide > right:
            return
        if index == 0:
            draw.rectangle((x, top, x + wide, bottom), fill=theme.ground)
            draw.line((x, top, x + wide, top), fill=theme.call, width=2)
        draw.text(
            (x + 16, top + (bottom - top) * 0.22),
            text,
            font=face.at(size),
            fill=theme.text if index == 0 else theme.dim,
        )
        x += int(wide)


def _tree(
    art: Art, draw: ImageDraw.ImageDraw, box: tuple[int, int, int, int], theme: Theme, face: Face, point: float
) -> None:
    left, top, right, bottom = box
    draw.rectangle(box, fill=theme.panel)
    draw.text(
        (left + 12, top + 6),
        art.pick(("EXPLORER", "Project", "FILES", "src")),
        font=face.at(point * 0.8),
        fill=theme.dim,
    )
    y = top + point * 2
    while y < bottom - point:
        indent = art.whole(0, 3) * 14
        text = art.pick(NOUNS) + art.pick(("", "s", "_" + art.pick(NOUNS)))
        text += art.pick(("", ".py", ".ts", ".md", ".json", ".rs", ".go", ".yaml"))
        if art.chance(0.06):
            draw.rectangle((left, y - 2, right, y + point * 1.3), fill=mix(theme.panel, theme.call, 0.25))
        draw.text((left + 16 + indent, y), text, font=face.at(point * 0.85), fill=mix(theme.panel, theme.text, 0.8))
        y += point * 1.55
        if art.chance(0.03):
            break


def editor(art: Art) -> Image.Image:
    """A whole editor window, or only its text."""
    theme = art.pick(THEMES)
    language = art.pick(("py", "py", "js", "js", "go", "rs", "cpp", "java", "sql", "yaml", "json", "html", "sh"))
    mono, sans = art.mono(), art.sans()
    width, height = art.pick(((1100, 700), (960, 640), (1200, 620), (800, 800), (760, 420), (1000, 560), (700, 900)))
    point = art.between(11, 22)
    if art.chance(0.3):
        return code_area(art, (width, height), theme, mono, point, language)
    canvas = Image.new("RGB", (width, height), theme.ground)
    draw = ImageDraw.Draw(canvas)
    top = 0
    if art.chance(0.7):
        bar = art.whole(22, 34)
        draw.rectangle((0, 0, width, bar), fill=mix(theme.panel, theme.text, 0.06))
        if art.chance(0.5):
            for index, colour in enumerate(((255, 95, 86), (255, 189, 46), (39, 201, 63))):
                draw.ellipse((12 + index * 20, bar / 2 - 6, 24 + index * 20, bar / 2 + 6), fill=colour)
        else:
            draw.text(
                (14, bar * 0.2),
                art.pick(
                    ("File  Edit  Selection  View  Go  Run  Help", "File  Edit  View  Navigate  Code  Refactor  Tools")
                ),
                font=sans.at(bar * 0.48),
                fill=theme.text,
            )
        draw.text(
            (width / 2, bar * 0.5),
            f"{art.pick(NOUNS)}.{SUFFIX[language]} - {art.pick(('editor', 'workspace', 'Code', 'project'))}",
            font=sans.at(bar * 0.45),
            fill=theme.dim,
            anchor="mm",
        )
        top = bar
    left = 0
    bottom = height
    if art.chance(0.6):
        foot = art.whole(18, 26)
        colour = art.pick((theme.panel, (0, 122, 204), theme.kind, (104, 33, 122)))
        draw.rectangle((0, height - foot, width, height), fill=colour)
        draw.text(
            (10, height - foot * 0.85),
            f"main*   Ln {art.whole(1, 300)}, Col {art.whole(1, 80)}   UTF-8   {language}",
            font=sans.at(foot * 0.58),
            fill=(240, 240, 240) if sum(colour) < 400 else (40, 40, 40),
        )
        bottom -= foot
    if art.chance(0.35):
        rail = art.whole(36, 52)
        draw.rectangle((0, top, rail, bottom), fill=mix(theme.panel, (0, 0, 0), 0.15))
        for index in range(5):
            y = top + 18 + index * rail
            draw.rounded_rectangle((rail * 0.3, y, rail * 0.7, y + rail * 0.4), 4, outline=theme.dim, width=2)
        left += rail
    if art.chance(0.45):
        side = int(width * art.between(0.14, 0.26))
        _tree(art, draw, (left, top, left + side, bottom), theme, sans, point)
        left += side
    if art.chance(0.75):
        bar = art.whole(28, 40)
        _tabs(art, draw, (left, top, width, top + bar), theme, sans, language)
        top += bar
    if art.chance(0.18):
        panel = int((bottom - top) * art.between(0.2, 0.35))
        draw.rectangle((left, bottom - panel, width, bottom), fill=theme.panel)
        draw.text((left + 14, bottom - panel + 6), "PROBLEMS   OUTPUT   TERMINAL", font=sans.at(12), fill=theme.dim)
        for row in range(int((panel - 30) / (point * 1.4))):
            draw.text(
                (left + 14, bottom - panel + 28 + row * point * 1.4),
                words.sentence(art, art.whole(3, 9)),
                font=mono.at(point * 0.85),
                fill=theme.text,
            )
        bottom -= panel
    split = art.chance(0.15)
    columns = 2 if split else 1
    each = (width - left) // columns
    for index in range(columns):
        canvas.paste(
            code_area(art, (each - index, bottom - top), theme, mono, point, language), (left + index * (each + 1), top)
        )
    return canvas


def _on_wallpaper(art: Art, window: Image.Image) -> Image.Image:
    margin = art.whole(30, 110)
    size = (window.width + 2 * margin, window.height + 2 * margin)
    canvas = gradient(size, art.colour((0.2, 0.9), (0.3, 1.0)), art.colour((0.2, 0.9), (0.3, 1.0)), art.between(0, 180))
    if art.chance(0.4):
        canvas.paste(art.pick(((255, 255, 255), (240, 240, 240), (171, 184, 195), (60, 60, 70))), (0, 0, *size))
    shadowed(canvas, rounded(window, art.whole(0, 14)), (margin, margin), 16, 130, 10)
    return canvas


def on_screen(art: Art, window: Image.Image) -> Image.Image:
    """How a window reaches a user: cropped, on wallpaper, or as a photo of the monitor."""
    chance = art.rng.random()
    if chance < 0.15:
        return _on_wallpaper(art, window)
    if chance < 0.30:
        w, h = int(window.width * art.between(0.4, 0.95)), int(window.height * art.between(0.4, 0.95))
        x, y = art.whole(0, window.width - w), art.whole(0, window.height - h)
        return window.crop((x, y, x + w, y + h))
    if chance < 0.36:
        turned = window.rotate(art.rng.gauss(0, 3), Image.Resampling.BICUBIC, expand=True, fillcolor=(25, 25, 28))
        return camera(art, lit(art, turned))
    return window


def _notebook(art: Art) -> Image.Image:
    theme = art.pick([theme for theme in THEMES if not theme.dark] + [THEMES[0]])
    width, height = 900, art.whole(600, 900)
    canvas = Image.new("RGB", (width, height), theme.ground)
    draw = ImageDraw.Draw(canvas)
    mono, sans = art.mono(), art.sans()
    y = 20
    while y < height - 60:
        if art.chance(0.25):
            draw.text((110, y), words.title(art, 4), font=sans.at(26), fill=theme.text)
            y += 50
            continue
        lines = art.whole(2, 8)
        box = lines * 22 + 16
        draw.text((16, y + 8), f"In [{art.whole(1, 99)}]:", font=mono.at(15), fill=theme.keyword)
        draw.rectangle((110, y, width - 30, y + box), fill=theme.panel, outline=theme.dim)
        area = program(art, "py", lines + 3)[3:]
        cell = cell_width(draw, mono, 16)
        for row, line in enumerate(area):
            draw_line(draw, (120, y + 8 + row * 22), tokens(line, "py", theme), mono, 16, cell)
        y += box + 8
        if art.chance(0.6):
            for _ in range(art.whole(1, 4)):
                draw.text(
                    (120, y),
                    f"{art.pick(NOUNS)}  {art.between(0, 100):.4f}  {art.digits(5)}",
                    font=mono.at(15),
                    fill=theme.text,
                )
                y += 20
        y += 16
    return canvas


def code_screenshot(art: Art) -> Image.Image:
    """An editor or a notebook as it reaches a user."""
    return on_screen(art, _notebook(art) if art.chance(0.1) else editor(art))
