"""The instruments that the project writes to, by name, in one place.

What counts uses OpenTelemetry's API alone: without an SDK it is a no-op. Attributes are kinds and names of the
policy, never content. What they are called and measured in stands in `catalogue.py`; exporters are set up elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from opentelemetry.metrics import CallbackOptions, Counter, Meter, Observation, UpDownCounter, get_meter

from router.telemetry import catalogue
from router.telemetry.catalogue import Metric
from router.telemetry.histograms import Histograms
from router.telemetry.names import Names
from router.telemetry.tally import HistogramTally, Pace, Reading, Tally
from router.telemetry.views import MOST_SERIES

SAMPLED_REQUESTS: Final = 20
"""A second, whose signals' times are taken: each is a point of a histogram, and a request may have dozens."""

Source = Callable[[], Iterable[Reading]]
"""What an observable instrument reads now. Called in the thread of whoever collects; must be quick and not raise."""


@dataclass(frozen=True, slots=True)
class Instruments:
    """What a worker counts.

    `requests` counts LLM requests by what was decided, `observations` answers of signals and projections; `failures`
    those requests that got the policy's failure outcome, by `kind`; `unreadable` those that the client has to mend, by
    `code`. `unexpected_messages` counts messages that a rightly configured Envoy does not send, by `kind`; `abandoned`
    counts requests whose client left undecided. `parity_misses` counts ways in which a pack was not what its golden
    vectors say, by `pack` and `stage`; what could not even be opened is of the stage `setup`. `policy_reloads` counts
    changes of the policy file, by `outcome`. `records_dropped` counts what was to be kept of requests and was lost,
    by `kind`, `telemetry_dropped` what was to be told of them and was lost, both by `reason`. `shadow_compared` counts
    requests that a shadow policy decided as well, `shadow_differences` those that it decides otherwise, `from` one
    decision `to` another, and `shadow_left_out` those that it could not decide, by `reason`. `responses_checked` counts
    responses that the policy checks, by `outcome`. `ready` is 1 for a worker that takes requests, else 0, so that its
    sum is the number of those.

    `names` says which names may be labels, `pace` of which requests the times of signals are taken. `sources` has what
    observable instruments read, by their names; one that has no source says nothing.
    """

    requests: Tally
    decision_duration: HistogramTally
    unreadable: Counter
    failures: Counter
    unexpected_messages: Counter
    abandoned: Counter
    body_size: HistogramTally
    images: HistogramTally
    image_size: HistogramTally
    observations: Tally
    signal_duration: HistogramTally
    parity_misses: Counter
    policy_reloads: Counter
    shadow_compared: Counter
    shadow_differences: Counter
    shadow_left_out: Counter
    token_usage: HistogramTally
    operation_duration: HistogramTally
    first_chunk: HistogramTally
    token_speed: HistogramTally
    cost: Counter
    responses: Counter
    responses_checked: Counter
    records_dropped: Counter
    telemetry_dropped: Counter
    ready: UpDownCounter
    names: Names = field(default_factory=Names)
    pace: Pace = field(default_factory=lambda: Pace(SAMPLED_REQUESTS))
    sources: dict[str, Source] = field(default_factory=dict)


def create_instruments(meter: Meter | None = None, histograms: Histograms | None = None) -> Instruments:
    """The instruments of this meter, and these histograms.

    Without them: of the global provider's meter `pointsman`, and histograms that nobody reads.
    """
    meter = meter or get_meter(catalogue.SCOPE)
    tallies = (histograms or Histograms()).tallies

    def counter(metric: Metric) -> Counter:
        return meter.create_counter(metric.name, metric.unit, metric.description)

    made = Instruments(
        requests=Tally(catalogue.REQUESTS.labels, MOST_SERIES - 1),
        decision_duration=tallies[catalogue.DECISION_DURATION.name],
        unreadable=counter(catalogue.UNREADABLE),
        failures=counter(catalogue.FAILURES),
        unexpected_messages=counter(catalogue.UNEXPECTED_MESSAGES),
        abandoned=counter(catalogue.ABANDONED),
        body_size=tallies[catalogue.BODY_SIZE.name],
        images=tallies[catalogue.IMAGES.name],
        image_size=tallies[catalogue.IMAGE_SIZE.name],
        observations=Tally(catalogue.OBSERVATIONS.labels, MOST_SERIES - 1),
        signal_duration=tallies[catalogue.SIGNAL_DURATION.name],
        parity_misses=counter(catalogue.PARITY_MISSES),
        policy_reloads=counter(catalogue.POLICY_RELOADS),
        shadow_compared=counter(catalogue.SHADOW_COMPARED),
        shadow_differences=counter(catalogue.SHADOW_DIFFERENCES),
        shadow_left_out=counter(catalogue.SHADOW_LEFT_OUT),
        token_usage=tallies[catalogue.TOKEN_USAGE.name],
        operation_duration=tallies[catalogue.OPERATION_DURATION.name],
        first_chunk=tallies[catalogue.FIRST_CHUNK.name],
        token_speed=tallies[catalogue.TOKEN_SPEED.name],
        cost=counter(catalogue.COST),
        responses=counter(catalogue.RESPONSES),
        responses_checked=counter(catalogue.RESPONSES_CHECKED),
        records_dropped=counter(catalogue.RECORDS_DROPPED),
        telemetry_dropped=counter(catalogue.TELEMETRY_DROPPED),
        ready=meter.create_up_down_counter(catalogue.READY.name, catalogue.READY.unit, catalogue.READY.description),
    )
    made.sources[catalogue.REQUESTS.name] = made.requests.readings
    made.sources[catalogue.OBSERVATIONS.name] = made.observations.readings
    for metric in catalogue.METRICS:
        callbacks = [_reader(made.sources, metric.name)]
        if metric.kind == "observable_gauge":
            meter.create_observable_gauge(metric.name, callbacks, metric.unit, metric.description)
        elif metric.kind == "observable_up_down_counter":
            meter.create_observable_up_down_counter(metric.name, callbacks, metric.unit, metric.description)
        elif metric.kind == "observable_counter":
            meter.create_observable_counter(metric.name, callbacks, metric.unit, metric.description)
    return made


def _reader(sources: Mapping[str, Source], name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def read(_: CallbackOptions) -> Iterable[Observation]:
        source = sources.get(name)
        return [] if source is None else [Observation(value, labels) for value, labels in source()]

    return read
