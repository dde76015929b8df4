"""A hub on loopback: the paths, headers and errors of the real one that its client relies on, and faults on demand."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "5f3ac1c0" * 5
LARGE = (".safetensors", ".model", "tokenizer.json")


@dataclass
class Repo:
    """One model repository; the faults are what its tests ask for."""

    files: dict[str, bytes]
    gated: bool = False
    claimed: dict[str, str] = field(default_factory=dict)
    """Digest that the hub says, where it is not the true one."""
    cut_once: set[str] = field(default_factory=set)
    """Files whose first download breaks off half way."""


@dataclass
class StandInHub:
    """`requests` holds method, path and Range header, in order."""

    repos: dict[str, Repo] = field(default_factory=dict)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    endpoint: str = ""

    def add(self, name: str, folder: Path) -> Repo:
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        self.repos[name] = Repo({str(path.relative_to(folder)): path.read_bytes() for path in paths})
        return self.repos[name]

    def downloads(self, file: str) -> list[str]:
        """Range headers of the downloads of this file."""
        return [span for method, path, span in self.requests if method == "GET" and path.endswith(f"/{file}")]


@contextmanager
def serving() -> Iterator[StandInHub]:
    hub = StandInHub()

    class Handler(_Handler):
        state = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    state: StandInHub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.state.requests.append((self.command, path, self.headers.get("Range", "")))
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            self._info(match[1], match[2] or "main", body)
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._file(match[1], match[2], match[3], body)
        else:
            self._error(404, "EntryNotFound", "Entry not found", body)

    def _info(self, name: str, revision: str, body: bool) -> None:
        repo = self._repo(name, revision, body)
        if repo is None:
            return
        siblings = []
        for path, data in repo.files.items():
            sibling: dict[str, object] = {
                "rfilename": path,
                "size": len(data),
                "blobId": repo.claimed.get(path) or _blob(data),
            }
            if path.endswith(LARGE):
                sibling["lfs"] = {"sha256": _claimed(repo, path), "size": len(data), "pointerSize": 134}
            siblings.append(sibling)
        document = {"_id": "1", "id": name, "modelId": name, "sha": COMMIT, "private": False, "disabled": False,
                    "gated": "manual" if repo.gated else False, "tags": ["license:apache-2.0"], "downloads": 0,
                    "likes": 0, "siblings": siblings, "cardData": {"license": "apache-2.0"}}  # fmt: skip
        self._send(200, json.dumps(document).encode(), {"Content-Type": "application/json"}, body)

    def _file(self, name: str, revision: str, path: str, body: bool) -> None:
        repo = self._repo(name, revision, body)
        if repo is None:
            return
        if repo.gated:
            message = f"Access to model {name} is restricted. You must have access to it and be authenticated."
            self._error(401, "GatedRepo", message, body)
            return
        if path not in repo.files:
            self._error(404, "EntryNotFound", "Entry not found", body)
            return
        data = repo.files[path]
        etag = _claimed(repo, path) if path.endswith(LARGE) else _blob(data)
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes",
                   "Content-Type": "application/octet-stream"}  # fmt: skip
        if path.endswith(LARGE):
            headers |= {"X-Linked-ETag": f'"{etag}"', "X-Linked-Size": str(len(data))}
        status, start = 200, 0
        if match := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "")):
            status, start = 206, int(match[1])
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        if body and path in repo.cut_once:
            repo.cut_once.remove(path)
            self._send(status, data[start:], headers, True, stop_after=len(data) // 2)
            return
        self._send(status, data[start:], headers, body)

    def _repo(self, name: str, revision: str, body: bool) -> Repo | None:
        repo = self.state.repos.get(name)
        if repo is None:
            self._error(401, "", "Invalid username or password.", body)
        elif revision not in ("main", COMMIT):
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}", body)
            repo = None
        return repo

    def _error(self, status: int, code: str, message: str, body: bool) -> None:
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self._send(status, json.dumps({"error": message}).encode(), headers, body)

    def _send(
        self, status: int, data: bytes, headers: dict[str, str], body: bool, stop_after: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data[:stop_after])
        if stop_after is not None:
            self.wfile.flush()
            self.close_connection = True


def _blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _claimed(repo: Repo, path: str) -> str:
    return repo.claimed.get(path) or hashlib.sha256(repo.files[path]).hexdigest()
