"""A collector in the test's own process: takes OTLP over gRPC and over HTTP, and gives what it got."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

PATIENCE = 60.0


@dataclass
class Received:
    """What was exported: spans with their resource and scope, names of metrics, headers of the calls.

    Over HTTP also every body as it was before it was compressed, by the path that it came to.
    """

    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    scopes: set[str] = field(default_factory=set)
    metrics: set[str] = field(default_factory=set)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: dict[str, list[bytes]] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def take_traces(self, request: trace_service_pb2.ExportTraceServiceRequest, headers: dict[str, str]) -> None:
        with self.changed:
            self.headers.append(headers)
            for of_resource in request.resource_spans:
                self.resources.append(plain(of_resource.resource.attributes))
                for of_scope in of_resource.scope_spans:
                    self.scopes.add(of_scope.scope.name)
                    self.spans.extend(of_scope.spans)
            self.changed.notify_all()

    def take_metrics(self, request: metrics_service_pb2.ExportMetricsServiceRequest, headers: dict[str, str]) -> None:
        with self.changed:
            self.headers.append(headers)
            for of_resource in request.resource_metrics:
                self.resources.append(plain(of_resource.resource.attributes))
                self.metrics.update(metric.name for scope in of_resource.scope_metrics for metric in scope.metrics)
            self.changed.notify_all()

    def until(self, count: int, of: Callable[[Span], bool] = lambda _: True) -> list[Span]:
        """The spans that are so, once there are so many; blocks. Those of one request may come in several batches."""
        limit = time.monotonic() + PATIENCE
        with self.changed:
            while len(found := [span for span in self.spans if of(span)]) < count:
                if not self.changed.wait(limit - time.monotonic()):
                    pytest.fail(f"waited for {count} spans; there are {[span.name for span in self.spans]}")
            return found


class _Traces(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self, received: Received) -> None:
        self._received = received

    def Export(self, request: Any, context: Any) -> Any:
        self._received.take_traces(request, dict(context.invocation_metadata()))
        return trace_service_pb2.ExportTraceServiceResponse()


class _Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
    def __init__(self, received: Received) -> None:
        self._received = received

    def Export(self, request: Any, context: Any) -> Any:
        self._received.take_metrics(request, dict(context.invocation_metadata()))
        return metrics_service_pb2.ExportMetricsServiceResponse()


@contextmanager
def over_grpc() -> Iterator[tuple[str, Received]]:
    """Its endpoint, and what it gets."""
    received = Received()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(_Traces(received), server)
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(_Metrics(received), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"http://127.0.0.1:{port}", received
    finally:
        server.stop(None).wait()


@contextmanager
def over_http() -> Iterator[tuple[str, Received]]:
    """Its endpoint, and what it gets."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            received.bodies.setdefault(self.path, []).append(body)
            if self.path == "/v1/traces":
                received.take_traces(trace_service_pb2.ExportTraceServiceRequest.FromString(body), headers)
            else:
                received.take_metrics(metrics_service_pb2.ExportMetricsServiceRequest.FromString(body), headers)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def plain(attributes: Any) -> dict[str, Any]:
    """Attributes as Python has them."""
    pairs: list[KeyValue] = list(attributes)
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind) if kind else None
