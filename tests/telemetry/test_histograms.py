"""Histograms of our own: readers see of them what they would see of the SDK's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View

from router.telemetry.catalogue import BODY_SIZE, BYTES, OPERATION_DURATION
from router.telemetry.histograms import Histograms, PeriodicReader, PrometheusReader
from router.telemetry.names import OTHER
from router.telemetry.prometheus import Exposition
from router.telemetry.tally import HistogramTally
from tests.telemetry.histogram_reader import HistogramReader

DELTA, CUMULATIVE = AggregationTemporality.DELTA, AggregationTemporality.CUMULATIVE

Points = dict[str, list[tuple[dict[str, Any], tuple[Any, ...]]]]


@contextmanager
def kept(temporality: AggregationTemporality) -> Iterator[tuple[Histograms, HistogramReader, Any]]:
    """Our histograms, a reader, and the SDK's own histogram beside them, under the name `theirs`."""
    histograms = Histograms()
    reader = HistogramReader(histograms, temporality)
    view = View(instrument_name="theirs", aggregation=ExplicitBucketHistogramAggregation(BYTES))
    provider = MeterProvider([reader], views=[view], shutdown_on_exit=False)
    meter = provider.get_meter("pointsman")
    meter.create_counter("another").add(1)
    yield histograms, reader, meter.create_histogram("theirs")
    provider.shutdown()


def points(reader: HistogramReader) -> Points:
    data = reader.get_metrics_data()
    assert data is not None
    found: Points = {}
    for metric in (m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics):
        if hasattr(metric.data.data_points[0], "bucket_counts"):
            assert metric.data.aggregation_temporality is reader._preferred_temporality[Histogram]  # type: ignore[index]
            found[metric.name] = sorted(
                [
                    (dict(p.attributes), (p.count, p.sum, tuple(p.bucket_counts), tuple(p.explicit_bounds)))
                    for p in metric.data.data_points
                ],
                key=str,
            )
    return found


VALUES = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 1 << 28)), max_size=20)


@given(rounds=st.lists(VALUES, min_size=1, max_size=4), temporality=st.sampled_from([DELTA, CUMULATIVE]))
def test_readers_see_what_they_see_of_the_sdks_own(rounds: list[Any], temporality: AggregationTemporality) -> None:
    with kept(temporality) as (histograms, reader, theirs):
        ours = histograms.tallies[BODY_SIZE.name]
        for values in rounds:
            for api, value in values:
                ours.record(value, api)
                theirs.record(value, {"api": api})
            seen = points(reader) if values or temporality is CUMULATIVE else {}
            assert seen.get(BODY_SIZE.name) == seen.get("theirs")


def test_what_did_not_happen_again_is_not_told_again_where_only_news_are_wanted() -> None:
    with kept(DELTA) as (histograms, reader, theirs):
        histograms.tallies[BODY_SIZE.name].record(300, "a")
        theirs.record(1)
        assert BODY_SIZE.name in points(reader)
        theirs.record(1)
        assert BODY_SIZE.name not in points(reader)


def test_a_label_without_a_value_is_left_out() -> None:
    with kept(CUMULATIVE) as (histograms, reader, _):
        histograms.tallies[OPERATION_DURATION.name].record(0.5, "chat", "openai", "m", "")
        [(labels, _)] = points(reader)[OPERATION_DURATION.name]
    assert labels == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
    }


def test_series_past_the_bound_are_added_up_in_one() -> None:
    tally = HistogramTally(("name",), (1.0, 2.0), most=2)
    for number in range(5):
        tally.record(1.5, f"n{number}")
    assert {labels: buckets.counts for labels, buckets in tally.series().items()} == {
        (("name", "n0"),): [0, 1, 0],
        (("name", "n1"),): [0, 1, 0],
        (("name", OTHER),): [0, 3, 0],
    }


def test_they_are_exposed_to_prometheus() -> None:
    histograms = Histograms()
    exposition = Exposition(histograms)
    provider = MeterProvider([exposition.reader], shutdown_on_exit=False)
    provider.get_meter("pointsman").create_counter("another").add(1)
    histograms.tallies[BODY_SIZE.name].record(1024, "openai.chat")
    histograms.tallies[BODY_SIZE.name].record(1025, "openai.chat")
    text = exposition.text().decode()
    provider.shutdown()
    assert 'pointsman_request_body_size_bytes_bucket{api="openai.chat",le="1024"} 1.0' in text
    assert 'pointsman_request_body_size_bytes_bucket{api="openai.chat",le="+Inf"} 2.0' in text
    assert 'pointsman_request_body_size_bytes_sum{api="openai.chat"} 2049.0' in text
    assert isinstance(exposition.reader, PrometheusReader)


class Kept(MetricExporter):
    def __init__(self, temporality: AggregationTemporality) -> None:
        super().__init__({Histogram: temporality})
        self.exported: list[MetricsData] = []

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **_: Any) -> MetricExportResult:
        self.exported.append(metrics_data)
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 30_000, **_: Any) -> None:
        pass


@pytest.mark.parametrize("temporality", [DELTA, CUMULATIVE])
def test_an_exporter_gets_them_as_it_wants_them_and_they_can_be_sent(temporality: AggregationTemporality) -> None:
    histograms, exporter = Histograms(), Kept(temporality)
    provider = MeterProvider([PeriodicReader(exporter, histograms)], shutdown_on_exit=False)
    provider.get_meter("pointsman").create_counter("another").add(1)
    for _ in range(2):
        histograms.tallies[BODY_SIZE.name].record(300, "openai.chat")
        provider.force_flush()
    provider.shutdown()
    counts, starts = [], []
    for data in exporter.exported[:2]:
        [metric] = [
            metric
            for resource in encode_metrics(data).resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == BODY_SIZE.name
        ]
        [point] = metric.histogram.data_points
        assert metric.histogram.aggregation_temporality == temporality.value
        assert not point.HasField("min") and not point.HasField("max")
        counts.append(point.count)
        starts.append((point.start_time_unix_nano, point.time_unix_nano))
    if temporality is DELTA:
        assert counts == [1, 1]
        assert starts[1][0] == starts[0][1]
    else:
        assert counts == [1, 2]
        assert starts[1][0] == starts[0][0] == histograms.began
