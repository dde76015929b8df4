"""`python -m examples.demo [--once] [--json] [--port N]`: the whole of Pointsman on one machine, in a minute."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from examples.demo.rows import Row, send_showcase
from examples.demo.stack import Stack, StackError, running_stack

MAX_PORT = 65536
PIPED_WIDTH = 150
"""Columns where there is no terminal to ask."""


def main() -> int:
    """0 when every row came out as expected, 1 otherwise, 130 when interrupted before that was known."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="send the showcase, end everything, and exit")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON on standard output")
    parser.add_argument("--stream", action="store_true", help="ask for streamed answers")
    parser.add_argument(
        "--port", type=int, default=10000, help="Envoy's port on loopback, if it is free (default 10000)"
    )
    options = parser.parse_args()
    if not 0 < options.port < MAX_PORT:
        parser.error(f"--port takes a number from 1 to {MAX_PORT - 1}")

    console = Console(stderr=options.json, highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)
    stop = threading.Event()
    # SIGTERM ends the demo as Ctrl-C does, and both do where the shell has them ignored, as for a job behind `&`.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        with running_stack(lambda line: console.print(f"[dim]{line}[/]"), preferred_port=options.port) as stack:
            rows = list(send_showcase(stack, stream=options.stream))
            show(rows, stack, console, as_json=options.json)
            expected = sum(row.as_expected for row in rows)
            console.print(f"{expected} of {len(rows)} came out as expected.")
            if not options.once:
                if stack.port_taken:
                    console.print(f"Port {options.port} is taken; Envoy got another.")
                console.print(
                    f"\nUp at [bold]{stack.url}/v1[/]; point any OpenAI client there. Records: {stack.log}\n"
                    "Ctrl-C ends everything."
                )
                stop.wait()
            return 0 if all(row.as_expected for row in rows) else 1
    except StackError as error:
        console.print(f"[bold red]error:[/] {error}", markup=True)
        return 1
    except KeyboardInterrupt:
        console.print("\nended")
        return 0 if not options.once else 130


def _interrupt(*_: object) -> None:
    """Once: a second signal must not keep the first from ending what was started."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def show(rows: list[Row], stack: Stack, console: Console, *, as_json: bool) -> None:
    """The rows: a table for people, and JSON for machines."""
    if as_json:
        print(json.dumps([row.as_json() for row in rows], indent=2))
    table = Table(
        "asked", box=SIMPLE_HEAD, caption="added: the time that Pointsman held the request", caption_justify="left"
    )
    for title in ("seen (score, image)", "decision", "answered by", "status", "added"):
        table.add_column(title, overflow="fold")
    for row in rows:
        mark = "" if row.as_expected else "\n[bold red]" + "; ".join(row.misses) + "[/]"
        table.add_row(
            row.asked,
            "\n".join(row.seen) or "-",
            row.decision + mark,
            row.upstream,
            str(row.status),
            f"{row.added_ms:.1f} ms",
        )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
