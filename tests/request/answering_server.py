"""A server on loopback that reads requests as Pointsman does, and gives whatever answers a test wants."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from router.request.apis import detect, parse
from router.request.reply import Reply
from router.request.view import RequestView

Answer = Callable[[RequestView], Reply]


@contextmanager
def serving(answer: Answer, seen: list[RequestView] | None = None) -> Iterator[str]:
    """The address of the server, without a slash; `seen` gets every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            api = detect("POST", self.path)
            assert api is not None
            view = parse(api, body)
            if seen is not None:
                seen.append(view)
            reply = answer(view)
            self.send_response(reply.status)
            self.send_header("content-type", reply.content_type)
            self.send_header("content-length", str(len(reply.body)))
            for name, value in reply.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
