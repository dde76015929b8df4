"""Terminal windows: prompts, listings, logs, builds, stack traces, full-screen tools."""

from __future__ import annotations

from PIL import Image, ImageDraw

from . import words
from .art import Art, Colour, mix
from .code import NOUNS, THEMES, Theme, _theme, cell_width, draw_line, name, on_screen

Parts = list[tuple[str, Colour]]

CLASSIC = (
    _theme("000000", "cccccc", "00cd00", "cdcd00", "7f7f7f", "cd00cd", "5c5cff", "00cdcd"),
    _theme("000000", "ffffff", "00ff00", "ffff55", "808080", "ff55ff", "5555ff", "55ffff"),
    _theme("300a24", "ffffff", "8ae234", "fce94f", "888a85", "ad7fa8", "729fcf", "34e2e2"),
    _theme("012456", "eeedf0", "f9f1a5", "16c60c", "767676", "b4009e", "3b78ff", "61d6d6"),
    _theme("0c0c0c", "cccccc", "13a10e", "c19c00", "767676", "881798", "0037da", "3a96dd"),
    _theme("ffffff", "000000", "008000", "808000", "808080", "800080", "0000cc", "008080"),
    _theme("001100", "33ff33", "33ff33", "66ff66", "118811", "33ff33", "99ff99", "33ff33"),
    _theme("1c1c1c", "d0d0d0", "87d787", "d7af5f", "6c6c6c", "af87d7", "5f87d7", "5fd7d7"),
)


def _prompt(art: Art, theme: Theme, style: int, user: str, host: str) -> Parts:
    folder = art.pick(
        ("~", "~/src", f"~/{art.pick(NOUNS)}", f"/var/log/{art.pick(NOUNS)}", "/etc", f"~/code/{art.pick(NOUNS)}")
    )
    if style == 0:
        return [(f"{user}@{host}", theme.keyword), (":", theme.text), (folder, theme.call), ("$ ", theme.text)]
    if style == 1:
        return [
            ("> ", theme.keyword),
            (folder, theme.kind),
            (" git:(", theme.call),
            ("main", theme.number),
            (") ", theme.call),
        ]
    if style == 2:
        return [(f"PS C:\\Users\\{user}> ", theme.text)]
    if style == 3:
        return [(f"[{user}@{host} {folder}]# ", theme.text)]
    if style == 4:
        return [("$ ", theme.dim)]
    if style == 6:
        return [
            ("#1 ", theme.keyword),
            (f"{user} ", theme.call),
            ("(master*) ", theme.string),
            (f"{folder} ", theme.number),
            ("λ ", theme.text),
        ]
    return [(f"{user} ", theme.number), ("in ", theme.dim), (f"{folder} ", theme.kind), ("% ", theme.keyword)]


def _command(art: Art) -> str:
    a, b = art.pick(NOUNS), art.pick(NOUNS)
    return art.pick(
        (
            "ls -la",
            "git status",
            "git log --oneline",
            f"cd {a}",
            f"cat {a}.log | grep {b}",
            f"docker run -it {a}:latest",
            "docker ps",
            f"python {a}_{b}.py",
            "npm install",
            "make test",
            f"ssh {b}@10.0.{art.whole(0, 9)}.{art.whole(2, 250)}",
            "kubectl get pods",
            f"cargo build --{b}",
            "pytest -q",
            "top",
            "df -h",
            f"curl -s http://localhost:{art.whole(1000, 9999)}/{a}",
            "sudo apt update",
            f"tail -f /var/log/{a}.log",
            "go test ./...",
            f"vim {a}.conf",
            "history",
            f"grep -rn {a} src/",
            "pip list",
            "ps aux",
            f"ping {a}.local",
        )
    )


def _listing(art: Art, theme: Theme) -> list[Parts]:
    rows: list[Parts] = []
    for _ in range(art.whole(3, 14)):
        folder = art.chance(0.4)
        mode = ("d" if folder else "-") + art.pick(("rwxr-xr-x", "rw-r--r--", "rw-------"))
        size = f"{art.whole(1, 99999):>7}"
        rows.append(
            [
                (
                    f"{mode} {art.whole(1, 9)} root root {size} {art.pick(words.MONTHS).title()}"
                    f" {art.whole(1, 28):>2} {art.whole(0, 23):02d}:{art.whole(0, 59):02d} ",
                    theme.text,
                ),
                (name(art, "py"), theme.call if folder else theme.text),
            ]
        )
    return rows


def _short_listing(art: Art, theme: Theme) -> list[Parts]:
    return [
        [(f"{name(art, 'py')[:16]:<18}", art.pick((theme.call, theme.text, theme.keyword))) for _ in range(4)]
        for _ in range(art.whole(1, 6))
    ]


def _log(art: Art, theme: Theme) -> list[Parts]:
    rows: list[Parts] = []
    bracket = art.chance(0.5)
    for _ in range(art.whole(5, 20)):
        level, colour = art.pick(
            (
                ("INFO", theme.keyword),
                ("INFO", theme.keyword),
                ("WARN", theme.string),
                ("ERROR", (230, 70, 70)),
                ("DEBUG", theme.dim),
            )
        )
        stamp = (
            f"2025-{art.whole(1, 12):02d}-{art.whole(1, 28):02d} {art.whole(0, 23):02d}"
            f":{art.whole(0, 59):02d}:{art.whole(0, 59):02d}"
        )
        rows.append(
            [
                (f"{stamp} ", theme.dim),
                (f"[{level}] " if bracket else f"{level:<6}", colour),
                (f"{art.pick(NOUNS)}.{name(art, 'py')}: ", theme.kind),
                (words.sentence(art, art.whole(3, 9)), theme.text),
            ]
        )
    return rows


def _trace(art: Art, theme: Theme) -> list[Parts]:
    red: Colour = (240, 80, 80)
    if art.chance(0.5):
        rows: list[Parts] = [[("Traceback (most recent call last):", theme.text)]]
        for _ in range(art.whole(2, 7)):
            rows += [
                [
                    (
                        f'  File "/app/{art.pick(NOUNS)}/{name(art, "py")}.py", line {art.whole(1, 900)}'
                        f", in {name(art, 'py')}",
                        theme.text,
                    )
                ],
                [(f"    {art.pick(NOUNS)} = {name(art, 'py')}({art.pick(NOUNS)})", theme.text)],
            ]
        return [
            *rows,
            [
                (art.pick(("ValueError", "KeyError", "TypeError", "ConnectionError")), red),
                (f": {words.sentence(art, 6).lower()}", theme.text),
            ],
        ]
    rows = [
        [
            ('Exception in thread "main" ', theme.text),
            (f"java.lang.{art.pick(('NullPointer', 'IllegalState', 'Runtime'))}Exception", red),
        ]
    ]
    return rows + [
        [
            (
                f"    at com.{art.pick(NOUNS)}.{art.pick(NOUNS).title()}.{name(art, 'java')}"
                f"({art.pick(NOUNS).title()}.java:{art.whole(1, 900)})",
                theme.text,
            )
        ]
        for _ in range(art.whole(4, 12))
    ]


def _build(art: Art, theme: Theme) -> list[Parts]:
    rows: list[Parts] = []
    for step in range(art.whole(4, 14)):
        done = art.whole(1, 20)
        rows.append(
            art.pick(
                (
                    [
                        ("   Compiling ", theme.keyword),
                        (f"{art.pick(NOUNS)}-{art.pick(NOUNS)} v0.{art.whole(1, 30)}.{done}", theme.text),
                    ],
                    [(f"[{step + 1}/{step + 9}] ", theme.call), (f"RUN {_command(art)}", theme.text)],
                    [(f"{'#' * done}{'.' * (20 - done)} {done * 5}%  {art.whole(1, 90)}.{done} MB/s", theme.text)],
                    [
                        ("PASS ", theme.keyword),
                        (f"{art.pick(NOUNS)}/{name(art, 'js')}.test.ts ", theme.text),
                        (f"({art.whole(1, 900)} ms)", theme.dim),
                    ],
                    [("FAIL ", (230, 70, 70)), (f"tests/test_{art.pick(NOUNS)}.py::{name(art, 'py')}", theme.text)],
                    [("warning: ", theme.string), (words.sentence(art, 7), theme.text)],
                )
            )
        )
    return rows


def _columns(art: Art, theme: Theme) -> list[Parts]:
    heads = art.pick(
        (
            ("NAME", "READY", "STATUS", "RESTARTS", "AGE"),
            ("CONTAINER", "IMAGE", "STATUS", "PORTS", "NAMES"),
            ("Filesystem", "Size", "Used", "Avail", "Use%"),
            ("PID", "USER", "CPU%", "MEM%", "COMMAND"),
        )
    )
    rows: list[Parts] = [[("".join(f"{head:<16}" for head in heads), theme.text)]]
    for _ in range(art.whole(3, 12)):
        cells = (
            f"{art.pick(NOUNS)}-{art.code(4).lower()}",
            f"{art.whole(0, 3)}/{art.whole(1, 3)}",
            art.pick(("Running", "Pending", "Up 3 hours", "Error")),
            str(art.whole(0, 99)),
            f"{art.whole(1, 60)}m",
        )
        rows.append([("".join(f"{cell:<16}" for cell in cells), theme.text if not art.chance(0.15) else (230, 80, 80))])
    return rows


def _history(art: Art, theme: Theme) -> list[Parts]:
    return [
        [(f"{art.code(7).lower()} ", theme.string), (words.sentence(art, art.whole(3, 8)).rstrip("."), theme.text)]
        for _ in range(art.whole(4, 16))
    ]


def _prose(art: Art, theme: Theme) -> list[Parts]:
    rows: list[Parts] = [
        [
            (
                f"usage: {art.pick(NOUNS)} [-h] [--{art.pick(NOUNS)} {art.pick(NOUNS).upper()}"
                f"] {{start,stop,{art.pick(NOUNS)}}}",
                theme.text,
            )
        ],
        [("", theme.text)],
    ]
    return rows + [
        [(f"  --{art.pick(NOUNS):<14}", theme.kind), (words.sentence(art, art.whole(4, 9)), theme.text)]
        for _ in range(art.whole(4, 12))
    ]


def _fetch(art: Art, theme: Theme) -> list[Parts]:
    """A system summary beside a drawing of letters."""
    rows: list[Parts] = []
    ink = art.pick((theme.keyword, theme.call, theme.number))
    facts = (
        "OS: Debian 12",
        "Kernel: 6.1.0",
        f"Uptime: {art.whole(1, 90)} mins",
        f"Packages: {art.whole(200, 3000)}",
        "Shell: bash 5.2",
        f"Terminal: {art.pick(NOUNS)}",
        f"CPU: {art.whole(2, 32)} cores",
        f"Memory: {art.whole(500, 9000)} MiB",
    )
    for index in range(12):
        drawing = "".join(
            art.pick(".:-=+*#%@/\\ ") if abs(column - 10) < 10 - abs(index - 6) else " " for column in range(22)
        )
        fact = facts[index % len(facts)] if index < len(facts) else ""
        head, _, rest = fact.partition(":")
        rows.append([(drawing + "  ", ink), (head + (":" if rest else ""), theme.kind), (rest, theme.text)])
    return rows


BLOCKS = (_fetch, _listing, _short_listing, _log, _trace, _build, _columns, _history, _prose)


def _session(art: Art, theme: Theme, rows: int) -> list[Parts]:
    style, user, host = (
        art.whole(0, 7),
        art.pick(words.GIVEN).lower(),
        art.pick(("web01", "debian", "laptop", "prod-3", "localhost", "build")),
    )
    lines: list[Parts] = []
    only_log = art.chance(0.2)
    while len(lines) < rows:
        if not only_log:
            lines.append([*_prompt(art, theme, style, user, host), (_command(art), theme.text)])
        lines += (_log if only_log else art.pick(BLOCKS))(art, theme)
        if art.chance(0.25):
            lines.append([])
        if art.chance(0.08):
            break
    if art.chance(0.8) and not only_log:
        lines.append([*_prompt(art, theme, style, user, host), ("█", theme.text)])
    return lines


def _full_screen(art: Art, size: tuple[int, int], theme: Theme) -> Image.Image:
    """A monitor, a file manager, a colour table: boxes drawn in text."""
    width, height = size
    canvas = Image.new("RGB", size, theme.ground)
    draw = ImageDraw.Draw(canvas)
    face = art.mono()
    point = art.between(11, 18)
    cell = cell_width(draw, face, point)
    pitch = point * 1.3
    columns, rows = int(width / cell), int(height / pitch)
    kind = art.pick(("panes", "monitor", "colours", "panes"))
    if kind == "colours":
        for row in range(rows - 2):
            for column in range(0, columns - 8, 8):
                colour = art.colour((0.2, 1), (0.2, 1))
                draw.rectangle((column * cell, row * pitch, (column + 7) * cell, (row + 1) * pitch - 2), fill=colour)
                draw_line(
                    draw,
                    ((column + 1) * cell, row * pitch),
                    [(f"{art.whole(0, 255):>4}", (255, 255, 255) if art.chance(0.5) else (0, 0, 0))],
                    face,
                    point,
                    cell,
                )
        return canvas
    if kind == "monitor":
        for row in range(min(8, rows // 4)):
            share = art.whole(1, 30)
            draw_line(
                draw,
                (cell, row * pitch + 4),
                [
                    (f"{row:>3}[", theme.text),
                    ("|" * share, theme.keyword),
                    (" " * (30 - share), theme.text),
                    (f"{share * 3}%]", theme.dim),
                ],
                face,
                point,
                cell,
            )
        top = min(8, rows // 4) + 1
        draw.rectangle((0, top * pitch, width, (top + 1) * pitch), fill=theme.keyword)
        draw_line(
            draw,
            (cell, top * pitch),
            [("  PID USER      PRI  NI  VIRT   RES   SHR S CPU% MEM%   TIME+  Command", theme.ground)],
            face,
            point,
            cell,
        )
        for row in range(top + 1, rows - 1):
            draw_line(
                draw,
                (cell, row * pitch),
                [
                    (
                        f"{art.whole(1, 32000):>5} {art.pick(words.GIVEN).lower():<9} 20   0 {art.whole(10, 999):>4}"
                        f"M {art.whole(1, 99):>4}M {art.whole(100, 9999):>5} S {art.whole(0, 99):>4}"
                        f" {art.whole(0, 9):>4}  {art.whole(0, 9)}:{art.whole(10, 59)}.{art.whole(10, 99)}"
                        f" ",
                        theme.text,
                    ),
                    (f"/usr/bin/{name(art, 'py')}", theme.kind),
                ],
                face,
                point,
                cell,
            )
        return canvas
    across = art.pick((1, 2, 2, 3))
    each = columns // across
    for pane in range(across):
        splits = art.pick((1, 2, 3))
        tall = rows // splits
        for split in range(splits):
            x, y = pane * each * cell, split * tall * pitch
            draw.rectangle(
                (x + cell / 2, y + pitch / 2, x + (each - 0.5) * cell, y + (tall - 0.5) * pitch),
                outline=art.pick((theme.keyword, theme.dim, theme.call)),
            )
            draw.text((x + 2 * cell, y), f" {art.pick(NOUNS).title()} ", font=face.at(point), fill=theme.keyword)
            content = art.pick((_log, _history, _short_listing, _columns, _build))
            lines: list[Parts] = []
            while len(lines) < tall - 2:
                lines += content(art, theme)
            for row, parts in enumerate(lines[: tall - 2]):
                text = [(part[: each - 3], colour) for part, colour in parts]
                kept: Parts = []
                room = each - 3
                for part, colour in text:
                    kept.append((part[:room], colour))
                    room = max(0, room - len(part))
                draw_line(draw, (x + cell, y + (row + 1) * pitch), kept, face, point, cell)
    draw.rectangle((0, height - pitch, width, height), fill=mix(theme.ground, theme.call, 0.5))
    draw_line(
        draw,
        (cell, height - pitch),
        [
            (
                f"[0] 0:bash* 1:{art.pick(NOUNS)}-  {art.pick(('q quit  ? help', 'F1 Help  F10 Quit', '12:04'))}",
                theme.text,
            )
        ],
        face,
        point,
        cell,
    )
    return canvas


def _window(art: Art) -> Image.Image:
    theme = art.pick(CLASSIC) if art.chance(0.6) else art.pick(THEMES)
    size = art.pick(((960, 600), (1100, 640), (800, 500), (720, 420), (1000, 300), (640, 640), (1200, 700), (900, 180)))
    if art.chance(0.2):
        area = _full_screen(art, size, theme)
    else:
        area = Image.new("RGB", size, theme.ground)
        draw = ImageDraw.Draw(area)
        face = art.mono()
        point = art.between(11, 22)
        cell = cell_width(draw, face, point)
        pitch = point * art.between(1.15, 1.45)
        rows = int(size[1] / pitch)
        lines = _session(art, theme, rows if not art.chance(0.25) else max(2, rows // art.whole(2, 4)))
        for row, parts in enumerate(lines[-rows:] if art.chance(0.5) else lines[:rows]):
            draw_line(draw, (cell * 0.8, row * pitch + 4), parts, face, point, cell)
    if not art.chance(0.6):
        return area
    bar = art.whole(22, 36)
    framed = Image.new(
        "RGB",
        (area.width, area.height + bar),
        mix(theme.ground, (128, 128, 128), 0.35) if art.chance(0.6) else (225, 225, 228),
    )
    draw = ImageDraw.Draw(framed)
    ink: Colour = (230, 230, 230) if sum(framed.getpixel((2, 2))) < 400 else (60, 60, 60)  # type: ignore[arg-type]
    if art.chance(0.6):
        for index, colour in enumerate(((255, 95, 86), (255, 189, 46), (39, 201, 63))):
            draw.ellipse((12 + index * 20, bar / 2 - 6, 24 + index * 20, bar / 2 + 6), fill=colour)
    else:
        draw.text((area.width - 90, bar * 0.2), "_  []  X", font=art.sans().at(bar * 0.5), fill=ink)
    title = art.pick(
        (
            f"{art.pick(words.GIVEN).lower()}@laptop: ~",
            "bash - 80x24",
            "Terminal",
            "zsh",
            "Windows PowerShell",
            "Command Prompt",
            f"ssh {art.pick(NOUNS)}",
        )
    )
    draw.text((area.width / 2, bar / 2), title, font=art.sans().at(bar * 0.5), fill=ink, anchor="mm")
    framed.paste(area, (0, bar))
    return framed


def _banner(art: Art) -> Image.Image:
    """A few lines of prompt and output, as shell themes show themselves; with coloured segments now and then."""
    theme = art.pick(CLASSIC) if art.chance(0.5) else art.pick(THEMES)
    point = art.between(14, 24)
    size = (art.whole(640, 1100), art.whole(90, 330))
    area = Image.new("RGB", size, theme.ground)
    draw = ImageDraw.Draw(area)
    face = art.mono()
    cell, pitch = cell_width(draw, face, point), point * 1.4
    segments = art.chance(0.5)
    user = art.pick(words.GIVEN).lower()
    colours = [art.vivid() for _ in range(4)]
    y = 6.0
    while y < size[1] - pitch:
        if segments:
            x = 4.0
            for index, text in enumerate((f" {user}@host ", f" ~/{art.pick(NOUNS)} ", " main ✔ ")[: art.whole(1, 3)]):
                wide = cell * len(text)
                draw.rectangle((x, y, x + wide, y + pitch - 2), fill=colours[index])
                draw_line(
                    draw,
                    (x, y),
                    [(text, (20, 20, 20) if sum(colours[index]) > 380 else (240, 240, 240))],
                    face,
                    point,
                    cell,
                )
                draw.polygon(
                    [(x + wide, y), (x + wide + cell, y + pitch / 2 - 1), (x + wide, y + pitch - 2)],
                    fill=colours[index],
                )
                x += wide + cell
            draw_line(draw, (x + cell * 0.4, y), [(_command(art), theme.text)], face, point, cell)
        else:
            draw_line(
                draw,
                (6, y),
                [*_prompt(art, theme, art.whole(0, 7), user, "host"), (_command(art), theme.text)],
                face,
                point,
                cell,
            )
        y += pitch
        for parts in art.pick(BLOCKS)(art, theme)[: art.whole(0, 6)]:
            draw_line(draw, (6, y), parts, face, point, cell)
            y += pitch
    return area


def terminal_screenshot(art: Art) -> Image.Image:
    """A terminal as it reaches a user."""
    if art.chance(0.3):
        return on_screen(art, _banner(art))
    window = _window(art)
    if art.chance(0.08):
        # Several windows, one over the other, as galleries of colour themes show them.
        back = Image.new(
            "RGB", (window.width + 260, window.height + 220), art.pick(((255, 255, 255), (20, 20, 26), art.colour()))
        )
        for step in range(4):
            back.paste(window if step == 3 else _window(art).resize(window.size), (step * 80, (3 - step) * 60))
        return back
    return on_screen(art, window)
