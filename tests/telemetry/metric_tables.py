"""All metrics with a sample each, as they are exposed, and as docs/metrics.md has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client.parser import text_string_to_metric_families

from router.telemetry.catalogue import METRICS
from router.telemetry.histograms import Histograms
from router.telemetry.instruments import Instruments, create_instruments
from router.telemetry.prometheus import Exposition
from router.telemetry.tally import HistogramTally
from router.telemetry.views import views


@contextmanager
def exposed() -> Iterator[tuple[Instruments, Exposition]]:
    """Instruments whose metrics are exposed as a worker's are."""
    histograms = Histograms()
    exposition = Exposition(histograms)
    provider = MeterProvider([exposition.reader], views=views(), shutdown_on_exit=False)
    try:
        yield create_instruments(provider.get_meter("pointsman"), histograms), exposition
    finally:
        provider.shutdown()


def add_to_all(instruments: Instruments) -> None:
    """One sample of each metric, with every label that it can have."""
    by_name = {metric.name: metric for metric in METRICS}
    for metric in METRICS:
        if metric.kind.startswith("observable"):
            instruments.sources[metric.name] = lambda metric=metric: [(1.0, dict.fromkeys(metric.labels, "x"))]
    for field in Instruments.__slots__:
        instrument = getattr(instruments, field)
        name = getattr(instrument, "name", "")
        if isinstance(instrument, HistogramTally):
            instrument.record(1, *("x" for _ in instrument.labels))
        elif name in by_name:
            instrument.add(1, dict.fromkeys(by_name[name].labels, "x"))


def sample_page() -> bytes:
    """A worker's text with a sample of each metric."""
    with exposed() as (instruments, exposition):
        add_to_all(instruments)
        return exposition.text()


def exposed_names() -> dict[str, str]:
    """What Prometheus calls each metric, by OpenTelemetry's name: found by exposing one after the other."""
    names = {}
    for metric in METRICS:
        histograms = Histograms()
        exposition = Exposition(histograms)
        provider = MeterProvider([exposition.reader], views=views(), shutdown_on_exit=False)
        meter = provider.get_meter("pointsman")
        match metric.kind:
            case "counter":
                meter.create_counter(metric.name, metric.unit).add(1)
            case "up_down_counter":
                meter.create_up_down_counter(metric.name, metric.unit).add(1)
            case "histogram":
                # Histograms are told beside what a meter has.
                meter.create_counter("another").add(1)
                histograms.tallies[metric.name].record(1, *("x" for _ in metric.labels))
            case "observable_counter":
                meter.create_observable_counter(metric.name, [_one], metric.unit)
            case "observable_up_down_counter":
                meter.create_observable_up_down_counter(metric.name, [_one], metric.unit)
            case "observable_gauge":
                meter.create_observable_gauge(metric.name, [_one], metric.unit)
        families = list(text_string_to_metric_families(exposition.text().decode()))
        provider.shutdown()
        [family] = [family for family in families if family.name not in ("target_info", "another")]
        names[metric.name] = f"{family.name}_total" if family.type == "counter" else family.name
    return names


def rows() -> list[str]:
    """The rows of the table in docs/metrics.md."""
    names = exposed_names()
    return [
        f"| `{metric.name}` | {metric.kind.replace('_', ' ')} | `{metric.unit}` | "
        f"{', '.join(f'`{label}`' for label in metric.labels)} | {metric.description} | `{names[metric.name]}` |"
        for metric in METRICS
    ]


def _one(_: object) -> list[Observation]:
    return [Observation(1)]
