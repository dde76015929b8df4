"""How verbs speak: results on standard output, errors on standard error, exit codes by name."""

from __future__ import annotations

import ipaddress
import json
import re
from pathlib import Path
from typing import Any, Final

from rich import markup
from rich.console import Console

from router.config.bootstrap import Address
from router.config.load import LoadedPolicy, load_policy
from router.config.problems import PolicyError

FINE = 0
DOES_NOT_HOLD = 1
WRONG_USE = 2

# Without emoji, since a place in a file may read `policy.yaml:100:18`.
errors = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
out = Console(highlight=False, emoji=False)


_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Stop(Exception):
    """Ends a verb with an exit code after it has said why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def escape(text: str) -> str:
    """Whatever it says, it is no markup, and no instruction to the terminal."""
    return markup.escape(_CONTROL.sub(" ", text))


def complain(message: str) -> None:
    """Say what is wrong, on standard error."""
    errors.print(f"[bold red]error:[/] {escape(message)}")


def note(message: str) -> None:
    """Say something beside the result, on standard error."""
    errors.print(escape(message))


def print_json(value: Any) -> None:
    """One JSON document on standard output, with what may instruct a terminal or is no Unicode text escaped."""
    print(_CONTROL.sub(_escaped, json.dumps(value, indent=2, ensure_ascii=False)))


def _escaped(control: re.Match[str]) -> str:
    # Outside strings there is none but the line breaks, which are not among them.
    return f"\\u{ord(control[0]):04x}"


def file_or_stop(path: Path) -> None:
    """Raises Stop after saying so where the path is no file."""
    if not path.is_file():
        complain(f"{path}: {'is no file' if path.exists() else 'no such file'}")
        raise Stop(WRONG_USE)


def policy_or_stop(path: Path) -> LoadedPolicy:
    """The loaded policy; raises Stop after printing its problems."""
    file_or_stop(path)
    try:
        return load_policy(path)
    except PolicyError as error:
        for line in error.lines():
            complain(line)
        raise Stop(DOES_NOT_HOLD) from None


def worker_count(text: str, cores: int) -> int:
    """`auto` is one worker a core; raises Stop for what is no count."""
    if text == "auto":
        return cores
    if text.isascii() and text.isdigit() and 1 <= int(text) <= 256:
        return int(text)
    complain(f"--workers takes a number from 1 to 256, or auto; not {text!r}")
    raise Stop(WRONG_USE)


def address_or_stop(text: str, flag: str) -> Address:
    """The address that a flag gives, its port not 0; raises Stop for what is none."""
    host, _, port = text.rpartition(":")
    try:
        parsed = ipaddress.ip_address(host.strip("[]"))
        number = int(port)
        if not 0 < number < 65536:
            raise ValueError
    except ValueError:
        complain(f"{flag} takes an IP address and a port, as in 127.0.0.1:10000 or [::1]:10000; not {text!r}")
        raise Stop(WRONG_USE) from None
    return Address(str(parsed), number)
