"""How the SDK aggregates the project's instruments: their buckets, the labels they may have, how many series."""

from __future__ import annotations

from typing import Final

from opentelemetry.sdk.metrics.view import DefaultAggregation, ExplicitBucketHistogramAggregation, View

from router.telemetry.catalogue import METRICS

MOST_SERIES: Final = 2000
"""Of each metric in a worker; what comes beyond is added up in one series with `otel.metric.overflow`."""


def views() -> list[View]:
    """One view a metric; labels that the table does not name are left out."""
    return [
        View(
            instrument_name=metric.name,
            attribute_keys=set(metric.labels),
            aggregation=ExplicitBucketHistogramAggregation(metric.buckets) if metric.buckets else DefaultAggregation(),
            aggregation_cardinality_limit=MOST_SERIES,
        )
        for metric in METRICS
    ]
