"""Metrics as Prometheus scrapes them: a worker writes its own, whoever is scraped joins those of all workers.

The text format 0.0.4. Joining goes by lines and their grammar: a worker's text is some thousand lines, each of which
only needs a label more. What does not keep to the grammar costs its worker its place on the page, never the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from opentelemetry.sdk.metrics.export import MetricReader
from prometheus_client import CollectorRegistry, generate_latest

from router.telemetry.histograms import Histograms, PrometheusReader

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

SCRAPED: Final = "pointsman_worker_scraped"
"""1 for a worker whose metrics are on the page, 0 for one that gave none or whose text cannot be read."""

_SCRAPED_HELP: Final = "Whether the metrics of a worker are on this page."

_NAME: Final = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL: Final = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
_VALUE: Final = r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+|Inf)|NaN"
_SAMPLE: Final = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)?\}})? ({_VALUE})")
_HEAD: Final = re.compile(rf"# (HELP|TYPE) ({_NAME}) ?(.*)")
_OF_A_WORKER: Final = re.compile(r'(?:^|,)worker="')

_SUFFIXES: Final = {
    "counter": ("",),
    "gauge": ("",),
    "untyped": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("", "_sum", "_count"),
}


class Exposition:
    """The metrics of this process. `reader` belongs to the MeterProvider; nothing is shared with other registries."""

    def __init__(self, histograms: Histograms) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self.reader: MetricReader = PrometheusReader(histograms, registry=self._registry, scope_info_enabled=False)

    def text(self) -> bytes:
        """All metrics as they are now. Collects them: takes some milliseconds, best spent in a thread."""
        return generate_latest(self._registry)


class MalformedError(Exception):
    """A text that is no exposition; says which line, and quotes nothing of it."""


@dataclass(slots=True)
class _Family:
    """A metric with its samples, as lines."""

    help: str = ""
    type: str = ""
    samples: list[str] = field(default_factory=list)


def join(texts: Mapping[int, bytes]) -> bytes:
    """One page of the texts of workers, by their index: each family once, each sample with a label `worker` more.

    An empty text is that of a worker that did not answer.
    """
    families: dict[str, _Family] = {}
    scraped = {}
    notes = []
    for worker, text in sorted(texts.items()):
        try:
            own = _families(text, worker)
            _check_types(own, families)
        except MalformedError as error:
            notes.append(f"# worker {worker} is left out: {error}\n")
            own = {}
        scraped[worker] = int(bool(own))
        for name, family in own.items():
            there = families.setdefault(name, _Family(family.help, family.type))
            there.samples += family.samples
    up = [f'{SCRAPED}{{worker="{worker}"}} {value}' for worker, value in scraped.items()]
    families[SCRAPED] = _Family(_SCRAPED_HELP, "gauge", up)
    return "".join((*notes, *_lines(families))).encode()


def _lines(families: Mapping[str, _Family]) -> Iterator[str]:
    for name, family in families.items():
        yield f"# HELP {name} {family.help}\n# TYPE {name} {family.type}\n"
        for sample in family.samples:
            yield f"{sample}\n"


def _families(text: bytes, worker: int) -> dict[str, _Family]:
    """The families of a text, their samples labelled; raises MalformedError."""
    try:
        lines = text.decode().split("\n")
    except UnicodeDecodeError:
        raise MalformedError("it is not UTF-8") from None
    if lines.pop():
        raise MalformedError("it ends in the middle of a line")
    families: dict[str, _Family] = {}
    seen: set[str] = set()
    name = ""
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        if line[0] == "#":
            name = _headed(line, number, name, families)
            continue
        sample = _SAMPLE.fullmatch(line)
        family = families.get(name)
        if sample is None or family is None or not family.type:
            raise MalformedError(f"line {number} is no sample of a metric")
        if sample[1].removeprefix(name) not in _SUFFIXES[family.type] or not sample[1].startswith(name):
            raise MalformedError(f"line {number} belongs to another metric")
        labels = sample[2] or ""
        series = f"{sample[1]}{{{labels}}}"
        if series in seen or _OF_A_WORKER.search(labels):
            raise MalformedError(f"line {number} is there twice, or another worker's")
        seen.add(series)
        more = f",{labels}" if labels else ""
        family.samples.append(f'{sample[1]}{{worker="{worker}"{more}}} {sample[3]}')
    return families


def _headed(line: str, number: int, name: str, families: dict[str, _Family]) -> str:
    """The name of the family that this comment is about, which is then there; any other comment changes nothing."""
    head = _HEAD.fullmatch(line)
    if head is None:
        return name
    if head[2] != name and head[2] in families:
        raise MalformedError(f"line {number} comes back to a metric")
    if head[2] == SCRAPED:
        raise MalformedError(f"line {number} is of a metric that no worker has")
    family = families.setdefault(head[2], _Family())
    if head[1] == "HELP":
        family.help = head[3]
    elif head[3] not in _SUFFIXES or family.type or family.samples:
        raise MalformedError(f"line {number} gives a metric no type, or a second one")
    else:
        family.type = head[3]
    return head[2]


def _check_types(own: Mapping[str, _Family], families: Mapping[str, _Family]) -> None:
    """Raise MalformedError where a family has no type, or another one than before on the page."""
    for name, family in own.items():
        if not family.type or (name in families and families[name].type != family.type):
            raise MalformedError(f"{name} has another type than in other workers, or none")
