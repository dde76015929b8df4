"""How the SDK aggregates the project's instruments: the labels they may have, and how many series."""

from __future__ import annotations

from typing import Final

from opentelemetry.sdk.metrics.view import View

from router.telemetry.catalogue import METRICS

MOST_SERIES: Final = 2000
"""Of each metric in a worker; what comes beyond is added up in one series with `otel.metric.overflow`."""


def views() -> list[View]:
    """One a metric that the SDK keeps, which histograms are not; labels that the table does not name are left out."""
    return [
        View(
            instrument_name=metric.name,
            attribute_keys=set(metric.labels),
            aggregation_cardinality_limit=MOST_SERIES,
        )
        for metric in METRICS
        if metric.kind != "histogram"
    ]
