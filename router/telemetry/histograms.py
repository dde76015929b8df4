"""The project's histograms: kept by tallies of our own, and handed to each metric reader with what the SDK collects.

The SDK's own take a dozen times as long a point, and a request has several; what readers and exporters see is the
same. OpenTelemetry's API has no histogram that is read when metrics are collected, as counters are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import Histogram as Instrument
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricsData,
    PeriodicExportingMetricReader,
)

from router.telemetry.catalogue import METRICS, SCOPE
from router.telemetry.tally import Buckets, HistogramTally
from router.telemetry.views import MOST_SERIES

_METRICS: Final = tuple(metric for metric in METRICS if metric.kind == "histogram")

_Series = Mapping[tuple[tuple[str, str], ...], Buckets]


class Histograms:
    """All of a worker, by name."""

    def __init__(self) -> None:
        self.began: Final = time.time_ns()
        self.tallies: Final[Mapping[str, HistogramTally]] = {
            metric.name: HistogramTally(metric.labels, metric.buckets, MOST_SERIES - 1) for metric in _METRICS
        }


class Handing:
    """Hands the histograms to one reader, in the `temporality` that it wants: since the start, or since the last time.

    Belongs to the thread that collects, as the SDK sees to it.
    """

    def __init__(self, histograms: Histograms, temporality: AggregationTemporality) -> None:
        self._histograms = histograms
        self._temporality = temporality
        self._former: dict[str, _Series] = {}
        self._since = histograms.began

    def added(self, collected: MetricsData) -> MetricsData:
        """What was collected, and the histograms in the project's own scope, which others may stand beside."""
        if not collected.resource_metrics or not collected.resource_metrics[0].scope_metrics:
            return collected
        resource, *resources = collected.resource_metrics
        ours, *others = sorted(resource.scope_metrics, key=lambda one: one.scope.name != SCOPE)
        ours = replace(ours, metrics=[*ours.metrics, *self._metrics()])
        return MetricsData(resource_metrics=[replace(resource, scope_metrics=[ours, *others]), *resources])

    def _metrics(self) -> list[Metric]:
        now = time.time_ns()
        found = []
        for metric in _METRICS:
            tally = self._histograms.tallies[metric.name]
            series = tally.series()
            told = (
                series if self._temporality is AggregationTemporality.CUMULATIVE else self._fresh(metric.name, series)
            )
            points = [_point(labels, one, tally.bounds, self._since, now) for labels, one in told.items()]
            if points:
                data = Histogram(data_points=points, aggregation_temporality=self._temporality)
                found.append(Metric(metric.name, metric.description, metric.unit, data))
        if self._temporality is AggregationTemporality.DELTA:
            self._since = now
        return found

    def _fresh(self, name: str, series: _Series) -> _Series:
        """What came since the last time, of the series to which anything came."""
        former = self._former.get(name, {})
        self._former[name] = series
        fresh = {}
        for labels, now in series.items():
            then = former.get(labels)
            if then is None:
                fresh[labels] = now
            elif then.counts != now.counts:
                counts = [one - other for one, other in zip(now.counts, then.counts, strict=True)]
                fresh[labels] = Buckets(counts, now.total - then.total)
        return fresh


class PrometheusReader(PrometheusMetricReader):
    """The SDK's, which sees the histograms too."""

    def __init__(self, histograms: Histograms, **options: Any) -> None:
        """`options` are the SDK's."""
        super().__init__(**options)
        self._handing = Handing(histograms, AggregationTemporality.CUMULATIVE)

    def _receive_metrics(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> None:
        super()._receive_metrics(self._handing.added(metrics_data), timeout_millis, **kwargs)


class PeriodicReader(PeriodicExportingMetricReader):
    """The SDK's, which exports the histograms too."""

    def __init__(self, exporter: MetricExporter, histograms: Histograms) -> None:
        # Before the SDK's thread begins to collect. The wish is the exporter's, as the SDK's own reader reads it.
        wanted = exporter._preferred_temporality or {}
        self._handing = Handing(histograms, wanted.get(Instrument, AggregationTemporality.CUMULATIVE))
        super().__init__(exporter)

    def _receive_metrics(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> None:
        super()._receive_metrics(self._handing.added(metrics_data), timeout_millis, **kwargs)


def _point(
    labels: tuple[tuple[str, str], ...], buckets: Buckets, bounds: tuple[float, ...], since: int, now: int
) -> HistogramDataPoint:
    # The least and the greatest are optional in OTLP, and None is how the SDK's encoder leaves them out.
    unsaid: Any = None
    return HistogramDataPoint(
        attributes=dict(labels),
        start_time_unix_nano=since,
        time_unix_nano=now,
        count=sum(buckets.counts),
        sum=buckets.total,
        bucket_counts=buckets.counts,
        explicit_bounds=bounds,
        min=unsaid,
        max=unsaid,
    )
