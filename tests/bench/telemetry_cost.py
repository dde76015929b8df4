"""What traces, metrics and records cost a request, against none of them; both in one paired run.

    python tests/bench/telemetry_cost.py [--requests 2000]

Two workers under the same keyword-only policy: one with OpenTelemetry off and no records, one that traces every request
to an OTLP receiver, exports metrics there too, and keeps records in SQLite. Goal: added p50 at most 1.10 times.
"""

from __future__ import annotations

import argparse
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from paired import HOST, POLICY, measure, pointsman, ratio, request_body, rounded, running

RECORDS = "records: {{path: records.db}}\n"


class Sink(BaseHTTPRequestHandler):
    """Takes what is exported, and counts its bytes."""

    taken = 0
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        Sink.taken += len(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000, help="counted requests to each")
    requests = parser.parse_args().requests
    sink = ThreadingHTTPServer((HOST, 0), Sink)
    threading.Thread(target=sink.serve_forever, daemon=True).start()
    on = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{HOST}:{sink.server_port}", "OTEL_METRIC_EXPORT_INTERVAL": "5000"}
    workers = {
        "off": pointsman(environment={"OTEL_SDK_DISABLED": "true"}),
        "on": pointsman(POLICY + RECORDS, on),
    }
    with running(workers) as place:
        found = measure(place, requests, request_body(1024))
    sink.shutdown()
    if not Sink.taken:
        raise RuntimeError("nothing was exported")
    ratios = {key: ratio(found, key, "on", "off") for key in ("added_p50_ms", "p99_ms", "cpu_us")}
    print(json.dumps({**rounded(found), "exported_bytes": Sink.taken, "on_to_off": ratios}, indent=2))


if __name__ == "__main__":
    main()
