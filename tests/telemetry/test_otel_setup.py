"""What is exported by which variables of the environment."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.trace import SpanContext
from trace_collector import PATIENCE, over_grpc, over_http, plain

from router.telemetry import otel
from router.telemetry.otel import Exporting, resource_of, set_up
from router.telemetry.sdk_log import SPOKEN_FOR

MIB = 1 << 20


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    spoken_for = logging.getLogger(SPOKEN_FOR)
    before = spoken_for.propagate, list(spoken_for.handlers)
    yield
    spoken_for.propagate, spoken_for.handlers = before


def one_span(exporting: Exporting, name: str = "a") -> SpanContext:
    assert exporting.sink is not None
    context = exporting.sink.root()
    exporting.sink.put(name, context, None, 1, 2, {"k": ("a", "b")})
    return context


def test_nothing_is_exported_unless_it_is_asked_for() -> None:
    exporting = set_up(0)
    assert (exporting.joiner, exporting.sink) == (None, None)
    exporting.close()


@pytest.mark.parametrize(
    ("protocol", "collector"), [("grpc", over_grpc), ("http/protobuf", over_http), (None, over_http)]
)
def test_an_endpoint_turns_both_on_over_the_protocol_that_is_asked_for(
    protocol: str | None, collector: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector() as (endpoint, received):  # type: ignore[operator]
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret%20word")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a,service.instance.id=pod")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "gateway")
        if protocol is not None:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        exporting = set_up(4)
        exporting.meter.create_counter("things").add(1)
        context = one_span(exporting)
        exporting.close()
        [span] = received.until(1)
        assert span.span_id.hex() == f"{context.span_id:016x}"
        assert plain(span.attributes) == {"k": ["a", "b"]}
        assert "things" in received.metrics
    assert all(headers["x-key"] == "secret word" for headers in received.headers)
    for resource in received.resources:
        assert (resource["service.name"], resource["service.instance.id"], resource["team"]) == (
            "gateway",
            "pod/4",
            "a",
        )


def test_each_kind_of_telemetry_has_an_endpoint_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with over_grpc() as (endpoint, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")
        exporting = set_up(0)
        exporting.meter.create_counter("things").add(1)
        one_span(exporting)
        exporting.close()
        received.until(1)
        assert not received.metrics


@pytest.mark.parametrize(
    "settings",
    [
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_TRACES_EXPORTER": "zipkin"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TIMEOUT": "soon"},
        {"OTEL_BSP_MAX_QUEUE_SIZE": "1", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2"},
    ],
)
def test_what_is_turned_off_or_cannot_be_used_is_left_out(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    exporting = set_up(0)
    assert exporting.sink is None
    exporting.close()
    meant = settings.get("OTEL_SDK_DISABLED") or settings.get("OTEL_TRACES_EXPORTER") == "none"
    said = [record for record in caplog.records if record.getMessage() == "telemetry not exported"]
    assert len(said) == (0 if meant else 1)


def test_a_sampler_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
    exporting = set_up(0)
    assert exporting.joiner is not None
    assert not exporting.joiner.join({}, {}).sampled
    assert exporting.joiner.join({"traceparent": f"00-{'1' * 32}-{'2' * 16}-01"}, {}).sampled
    exporting.close()


def test_several_exporters_and_the_console(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console, none,console")
    exporting = set_up(0)
    one_span(exporting, "shown")
    exporting.close()
    assert capsys.readouterr().out.count('"name": "shown"') == 1


def test_readers_get_metrics_though_nothing_is_exported() -> None:
    reader = InMemoryMetricReader()
    exporting = set_up(0, [reader])
    exporting.meter.create_counter("things").add(2)
    assert reader.get_metrics_data() is not None
    exporting.close()


def test_a_worker_is_an_instance_of_its_own() -> None:
    assert resource_of(0).attributes["service.instance.id"] != resource_of(1).attributes["service.instance.id"]
    assert resource_of(0).attributes["service.name"] == "pointsman"
    assert resource_of(0).attributes["service.version"]


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_a_collector_that_hangs_holds_up_the_end_no_longer_than_is_said(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel, "CLOSE_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600")
        exporting = set_up(0)
        one_span(exporting)
        ended = threading.Event()

        def close() -> None:
            exporting.close()
            ended.set()

        threading.Thread(target=close, daemon=True).start()
        assert ended.wait(PATIENCE)


def test_nothing_that_is_put_waits_for_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")
    exporting = set_up(0)
    for _ in range(5000):
        one_span(exporting)
    limit = time.monotonic() + PATIENCE
    exporting.close()
    assert time.monotonic() < limit


def tell_one_span(
    listener: socket.socket, collector: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Export a span over HTTP to what answers at the listener, and be done."""
    threading.Thread(target=collector, args=(listener,), daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"http://127.0.0.1:{listener.getsockname()[1]}/")
    exporting = set_up(0)
    one_span(exporting)
    exporting.close()


def test_an_answer_of_a_collector_that_never_ends_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = 0
    ended = threading.Event()

    def pour(listener: socket.socket) -> None:
        nonlocal sent
        client, _ = listener.accept()
        with client, contextlib.suppress(OSError):
            client.settimeout(PATIENCE)
            client.recv(65536)
            client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 4000000000\r\n\r\n")
            while sent < 64 * MIB:
                sent += client.send(bytes(65536))
        ended.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        tell_one_span(listener, pour, monkeypatch)
        assert ended.wait(PATIENCE)
    # What the kernel held of it comes on top of what was read.
    assert sent < 32 * MIB


@pytest.mark.parametrize("status", ["301 Moved Permanently", "304 Not Modified", "307 Temporary Redirect"])
def test_a_redirection_is_no_collector_that_took_it(
    status: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[bytes] = []

    def answer(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client:
                    asked.append(client.recv(65536))
                    client.sendall(f"HTTP/1.1 {status}\r\nlocation: /else\r\ncontent-length: 0\r\n\r\n".encode())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        tell_one_span(listener, answer, monkeypatch)
    said = [record.__dict__["fields"]["why"] for record in caplog.records if record.getMessage() == "telemetry"]
    assert [text.partition(" batch")[0] for text in said] == ["Failed to export ..."]
    assert len(asked) == 1
