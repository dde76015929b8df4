"""Sends one request and holds its decision against what is expected: smoke.py URL|HOST:PORT BODY DECISION [FOLDER]

With a URL it is a client of Envoy's; with HOST:PORT it asks a worker as Envoy would, by TLS with the certificates of
the FOLDER.
"""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

import grpc

from router.proto import ext_proc_pb2 as pb

TIMEOUT_SECONDS = 30
PATH = "/v1/chat/completions"


def by_http(url: str, body: bytes) -> str | None:
    """The decision, which an error of the upstream has too."""
    request = urllib.request.Request(url + PATH, body, {"content-type": "application/json"})  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
            return answer.headers["x-pointsman-decision"]
    except urllib.error.HTTPError as error:
        print(f"status {error.code}")
        return error.headers["x-pointsman-decision"]


def by_ext_proc(address: str, body: bytes, folder: Path | None) -> str | None:
    """What a worker tells Envoy to set."""
    head = {":method": "POST", ":path": PATH, "content-type": "application/json", "content-length": str(len(body))}
    pairs = [pb.HeaderValue(key=key, raw_value=value.encode()) for key, value in head.items()]
    with channel(address, folder) as connection:
        process = connection.stream_stream(
            "/envoy.service.ext_proc.v3.ExternalProcessor/Process",
            request_serializer=pb.ProcessingRequest.SerializeToString,
            response_deserializer=pb.ProcessingResponse.FromString,
        )
        messages = [
            pb.ProcessingRequest(request_headers=pb.HttpHeaders(headers=pb.HeaderMap(headers=pairs))),
            pb.ProcessingRequest(request_body=pb.HttpBody(body=body, end_of_stream=True)),
        ]
        for answer in process(iter(messages), timeout=TIMEOUT_SECONDS):
            replied = answer.immediate_response.headers.set_headers
            routed = answer.request_body.response.header_mutation.set_headers
            for option in (*replied, *routed):
                if option.header.key == "x-pointsman-decision":
                    return option.header.raw_value.decode()
    return None


def channel(address: str, folder: Path | None) -> grpc.Channel:
    """To a worker, which is asked for its certificate and shown ours."""
    if folder is None:
        return grpc.insecure_channel(address)
    authorities, key, certificate = (folder / name for name in ("ca.crt", "tls.key", "tls.crt"))
    if not authorities.exists():
        # By `tls.mode: server` it may be missing: then only this very certificate will do.
        authorities = certificate
    parts = [path.read_bytes() for path in (authorities, key, certificate)]
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(*parts))


def main() -> int:
    """0 when the decision is the expected one."""
    where, body, expected = sys.argv[1], sys.argv[2].encode(), sys.argv[3]
    json.loads(body)
    folder = Path(sys.argv[4]) if len(sys.argv) > 4 else None
    found = by_http(where, body) if where.startswith("http") else by_ext_proc(where, body, folder)
    print(f"decision: {found}")
    return 0 if found is not None and expected in ("", found) else 1


if __name__ == "__main__":
    sys.exit(main())
