"""Long benign prose that is at hand wherever the recipe runs: the documentation inside of Python itself."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence

MODULES = (
    "argparse", "asyncio", "collections", "contextlib", "csv", "datetime", "decimal", "difflib", "doctest", "email",
    "fractions", "ftplib", "functools",
    "heapq", "http.client", "imaplib", "inspect", "ipaddress", "itertools", "json", "locale", "logging", "mailbox",
    "optparse", "pathlib", "pdb",
    "pickletools", "random", "re", "shutil", "smtplib", "statistics", "string", "subprocess", "tarfile", "tempfile",
    "textwrap", "threading",
    "traceback", "turtle", "typing", "unittest", "urllib.request", "uuid", "xml.etree.ElementTree", "zipfile",
)  # fmt: skip


HELD_MODULES = (
    "ast", "bdb", "calendar", "cmd", "codecs", "concurrent.futures", "configparser", "copy", "ctypes", "curses",
    "dataclasses", "enum", "filecmp", "fileinput", "getpass", "gettext", "glob", "graphlib", "gzip", "hashlib", "hmac",
    "http.cookiejar", "http.server", "importlib", "io", "multiprocessing", "netrc", "operator", "os", "pickle",
    "pkgutil", "platform", "poplib", "pprint", "profile", "queue", "sched", "secrets", "select", "selectors", "shelve",
    "shlex", "signal", "socket", "socketserver", "sqlite3", "ssl", "struct", "sysconfig", "tokenize", "trace", "types",
    "urllib.parse", "urllib.robotparser", "weakref", "webbrowser", "wsgiref.util", "xml.sax", "xmlrpc.client",
    "zipimport", "zoneinfo",
)  # fmt: skip
"""What no head trains on: these take part in weighing and calibrating."""


def python_pages(modules: Sequence[str] = MODULES) -> list[str]:
    """Docstrings of Python's standard library (PSF licence)."""
    pages = []
    for name in modules:
        module = importlib.import_module(name)
        found = [inspect.getdoc(module) or ""]
        for _, member in sorted(inspect.getmembers(module)):
            if inspect.isclass(member) or inspect.isfunction(member):
                found.append(inspect.getdoc(member) or "")
        pages += _joined([text for text in found if len(text) > 40], 1800)
    return sorted(set(pages))


def _joined(parts: list[str], size: int) -> list[str]:
    joined = [""]
    for part in parts:
        if len(joined[-1]) > size:
            joined.append("")
        joined[-1] += ("\n\n" if joined[-1] else "") + part[: 2 * size]
    return [text for text in joined if len(text) > 200]
