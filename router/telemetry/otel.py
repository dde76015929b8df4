"""Sets up what a worker exports by, from the `OTEL_*` variables of the environment. Without any nothing is exported.

The SDK's own constructors read most of the variables; here is what they leave open: which exporters there are, and over
which protocol. An export that cannot be set up, or has nobody to take it, costs no request anything. Not the place
where spans are made or anything is measured.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final, Literal, TypeVar

from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricExporter,
    MetricReader,
)
from opentelemetry.sdk.metrics.view import View
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from router.telemetry.catalogue import SCOPE
from router.telemetry.context import Joiner
from router.telemetry.histograms import Histograms, PeriodicReader
from router.telemetry.propagation import W3C, Configured, Propagation
from router.telemetry.sdk_log import speak_for_the_sdk
from router.telemetry.sink import Sink

logger = logging.getLogger(__name__)

CLOSE_SECONDS: Final = 2.0
"""How long the end of the process waits for what is still to be exported."""

ABORT_SECONDS: Final = 0.5
"""And for an exporter that was told to give up."""

Of = Literal["TRACES", "METRICS"]
End = Callable[[], object]
T = TypeVar("T")

PROTOCOLS: Final = ("http/protobuf", "grpc")
"""The first is the default, as OpenTelemetry's specification asks."""


class TelemetryError(ValueError):
    """A variable that asks for what there is not. The text is for the operator."""


@dataclass(frozen=True, slots=True)
class Exporting:
    """What a worker exports by. `joiner` and `sink` are there where spans are exported."""

    resource: Resource
    meter: Meter
    joiner: Joiner | None
    sink: Sink | None
    endings: tuple[End, ...] = ()
    abortings: tuple[End, ...] = ()

    def close(self) -> None:
        """Export what is left, for about CLOSE_SECONDS at most. Blocks."""
        if not _at_once(self.endings, CLOSE_SECONDS):
            _at_once(self.abortings, ABORT_SECONDS)


def set_up(
    worker: int,
    readers: Sequence[MetricReader] = (),
    views: Sequence[View] = (),
    histograms: Histograms | None = None,
) -> Exporting:
    """By the environment, for the worker with this index. `readers` get the metrics too, whatever is exported.

    Of `histograms`, what is exported has all.

    Raises nothing: what cannot be set up is said in the log, and left out.
    """
    speak_for_the_sdk()
    resource = resource_of(worker)
    periodic = _made("METRICS", lambda word: _periodic(_metric_exporter(word), histograms or Histograms()))
    meters = MeterProvider(
        [*readers, *(made for made, _ in periodic)],
        resource,
        # Nothing is measured within a span, so there is none to be an example.
        exemplar_filter=AlwaysOffExemplarFilter(),
        shutdown_on_exit=False,
        views=views,
    )
    batches = _made("TRACES", lambda word: _batch(_span_exporter(word), meters))
    joiner = _joiner(resource) if batches else None
    scope = InstrumentationScope(SCOPE, version("pointsman"))
    sink = Sink([made for made, _ in batches], RandomIdGenerator(), resource, scope) if joiner is not None else None
    return Exporting(
        resource,
        meters.get_meter(SCOPE, version("pointsman")),
        joiner,
        sink,
        (*(made.shutdown for made, _ in batches), meters.shutdown),
        (*(abort for _, abort in batches), *(abort for _, abort in periodic)),
    )


def _periodic(exporter: MetricExporter, histograms: Histograms) -> tuple[MetricReader, End]:
    return PeriodicReader(exporter, histograms), exporter.shutdown


def _batch(exporter: SpanExporter, meters: MeterProvider) -> tuple[BatchSpanProcessor, End]:
    return BatchSpanProcessor(exporter, meter_provider=meters), exporter.shutdown


def _joiner(resource: Resource) -> Joiner | None:
    """None where nothing can be traced by what the environment asks for."""
    try:
        # For the sampler that the environment asks for; no live span is ever made.
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        words = {word.strip() for word in os.environ.get("OTEL_PROPAGATORS", "tracecontext,baggage").split(",")}
        propagation = W3C() if "tracecontext" in words <= {"tracecontext", "baggage"} else _propagation()
        return Joiner(provider.sampler, provider.id_generator, propagation, SCOPE, baggage="baggage" in words)
    except Exception as error:
        why = f"nothing is traced: OTEL_PROPAGATORS or OTEL_TRACES_SAMPLER cannot be used ({type(error).__name__})"
        logger.error("telemetry not exported", extra={"fields": {"why": why}})
        return None


def _propagation() -> Propagation:
    # Reads OTEL_PROPAGATORS when it is imported, and raises for a word that it does not know.
    from opentelemetry.propagate import get_global_textmap  # noqa: PLC0415

    return Configured(get_global_textmap())


def resource_of(worker: int) -> Resource:
    """What is exported is of this worker: `OTEL_RESOURCE_ATTRIBUTES` go first, a worker is an instance of its own."""
    given = Resource.create()
    instance = os.environ.get("HOSTNAME") or socket.gethostname()
    if "service.instance.id=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        instance = str(given.attributes.get(SERVICE_INSTANCE_ID, instance))
    own = {SERVICE_INSTANCE_ID: f"{instance}/{worker}"}
    if str(given.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        own[SERVICE_NAME] = SCOPE
    if SERVICE_VERSION not in given.attributes:
        own[SERVICE_VERSION] = version("pointsman")
    return given.merge(Resource(own))


def _made(of: Of, make: Callable[[str], T]) -> list[T]:
    """What the environment asks for, as far as it can be made."""
    made: list[T] = []
    for word in _asked_for(of):
        try:
            made.append(make(word))
        except TelemetryError as error:
            logger.error("telemetry not exported", extra={"fields": {"why": str(error)}})
        except Exception as error:
            # The message may hold a header with a credential; the type can't.
            why = f"the {word} exporter of {of.lower()} could not be set up: {type(error).__name__}"
            logger.error("telemetry not exported", extra={"fields": {"why": why}})
    return made


def _asked_for(of: Of) -> list[str]:
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    words = os.environ.get(f"OTEL_{of}_EXPORTER", "").strip()
    if not words:
        # Said nothing, but where to: that is meant to be used.
        words = "otlp" if _said(of, "ENDPOINT") else "none"
    given = dict.fromkeys(word.strip().lower() for word in words.split(","))
    return [word for word in given if word not in ("", "none")]


def _said(of: Of, what: str) -> str:
    """The variable of this kind of telemetry, else that of all."""
    own = os.environ.get(f"OTEL_EXPORTER_OTLP_{of}_{what}", "").strip()
    return own or os.environ.get(f"OTEL_EXPORTER_OTLP_{what}", "").strip()


def _protocol(of: Of) -> str:
    protocol = _said(of, "PROTOCOL") or PROTOCOLS[0]
    if protocol not in PROTOCOLS:
        named = f"OTEL_EXPORTER_OTLP_PROTOCOL (or OTEL_EXPORTER_OTLP_{of}_PROTOCOL)"
        raise TelemetryError(f"{named} is none of {', '.join(PROTOCOLS)}")
    return protocol


def _unknown(of: Of) -> TelemetryError:
    return TelemetryError(f"OTEL_{of}_EXPORTER has a word that is none of otlp, console, none")


def _span_exporter(word: str) -> SpanExporter:
    if word == "console":
        return ConsoleSpanExporter(out=sys.stdout)
    if word != "otlp":
        raise _unknown("TRACES")
    # What is not used is not loaded: an exporter takes some 10 MB and a tenth of a second.
    if _protocol("TRACES") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as OverGrpc  # noqa: PLC0415

        return OverGrpc()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as OverHttp  # noqa: PLC0415

    from router.telemetry.bounded_session import BoundedSession  # noqa: PLC0415

    return OverHttp(session=BoundedSession())


def _metric_exporter(word: str) -> MetricExporter:
    if word == "console":
        return ConsoleMetricExporter(out=sys.stdout)
    if word != "otlp":
        raise _unknown("METRICS")
    if _protocol("METRICS") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (  # noqa: PLC0415
            OTLPMetricExporter as OverGrpc,
        )

        return OverGrpc()
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415
        OTLPMetricExporter as OverHttp,
    )

    from router.telemetry.bounded_session import BoundedSession  # noqa: PLC0415

    return OverHttp(session=BoundedSession())


def _at_once(calls: Sequence[End], seconds: float) -> bool:
    """Make these calls side by side, and leave behind what takes longer; whether nothing did."""
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=call, name="telemetry end", daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)
