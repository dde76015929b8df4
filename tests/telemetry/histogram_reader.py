"""A reader that keeps what it is handed, the project's histograms among it."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics import Histogram
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader, MetricsData

from router.telemetry.histograms import Handing, Histograms


class HistogramReader(InMemoryMetricReader):
    def __init__(
        self, histograms: Histograms, temporality: AggregationTemporality = AggregationTemporality.CUMULATIVE
    ) -> None:
        super().__init__(preferred_temporality={Histogram: temporality})
        self._handing = Handing(histograms, temporality)

    def _receive_metrics(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> None:
        super()._receive_metrics(self._handing.added(metrics_data), timeout_millis, **kwargs)
