"""A stub in the place of a model: answers every chat completion with the model's name. Run: upstream.py PORT"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Stub(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """A completion, or 400 for what is no JSON."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            model = str(json.loads(body).get("model"))
        except (ValueError, AttributeError):
            self._answer(
                400, {"error": {"message": "The stub cannot read this body.", "type": "invalid_request_error"}}
            )
            return
        message = {"role": "assistant", "content": f"answered as {model}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        head = {"id": "chatcmpl-stub", "object": "chat.completion", "created": 0, "model": model}
        self._answer(200, {**head, "choices": [choice], "usage": usage})

    def log_message(self, *args: object) -> None:
        """Nothing of a request is logged."""

    def _answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("", int(sys.argv[1])), Stub).serve_forever()
