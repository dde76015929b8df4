"""Stub upstreams: each speaks OpenAI chat completions, plain and streamed, and says which cluster it is.

Run as `python -m examples.demo.upstreams CLUSTER=PORT ...`; all listen on loopback and live in one process.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOST = "127.0.0.1"


def answer_text(cluster: str, model: str) -> str:
    """What a stub answers; the showcase reads the cluster from it."""
    return f"[{cluster}] answered as {model}"


def chunks(cluster: str, model: str, identifier: str) -> Iterator[dict[str, Any]]:
    """The events of a streamed completion."""
    base = {"id": identifier, "object": "chat.completion.chunk", "created": int(time.time()), "model": model}
    yield {**base, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
    for word in answer_text(cluster, model).split(" "):
        yield {**base, "choices": [{"index": 0, "delta": {"content": word + " "}, "finish_reason": None}]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def completion(cluster: str, model: str, identifier: str) -> dict[str, Any]:
    """A whole completion."""
    message = {"role": "assistant", "content": answer_text(cluster, model)}
    return {
        "id": identifier,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }


class StubHandler(BaseHTTPRequestHandler):
    """One request. `x-upstream-cluster` in the response says who answered, whatever the body is."""

    protocol_version = "HTTP/1.1"
    cluster = ""

    def do_GET(self) -> None:
        models = {"object": "list", "data": [{"id": self.cluster, "object": "model", "owned_by": "stub", "created": 0}]}
        self._json(200, models)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path.split("?")[0] != "/v1/chat/completions":
            self._json(200, {"cluster": self.cluster, "bytes": len(body)})
            return
        try:
            request = json.loads(body)
            model = str(request["model"])
        except (ValueError, KeyError, TypeError):
            self._json(400, {"error": {"message": "the stub cannot read this body", "type": "invalid_request_error"}})
            return
        identifier = f"chatcmpl-{self.cluster}-{time.monotonic_ns()}"
        if request.get("stream"):
            self._stream(chunks(self.cluster, model, identifier))
        else:
            self._json(200, completion(self.cluster, model, identifier))

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _json(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("x-upstream-cluster", self.cluster)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Iterator[dict[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("x-upstream-cluster", self.cluster)
        self.end_headers()
        for event in [*(json.dumps(e) for e in events), "[DONE]"]:
            data = f"data: {event}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


class StubServer(ThreadingHTTPServer):
    """Threads end with the process; a client that has gone is not an error worth a traceback."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


def serve_stub(cluster: str, port: int) -> StubServer:
    """Start one stub in a thread of its own; port 0 takes a free one (`server_address` says which)."""
    handler = type("Handler", (StubHandler,), {"cluster": cluster})
    server = StubServer((HOST, port), handler)
    threading.Thread(target=server.serve_forever, name=f"stub-{cluster}", daemon=True).start()
    return server


def main() -> None:
    for argument in sys.argv[1:]:
        cluster, _, port = argument.rpartition("=")
        serve_stub(cluster, int(port))
    print("stubs are up", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
