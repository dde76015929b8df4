"""What Pointsman adds to a request, against a bare ext_proc that only names a cluster; all in one paired run.

    python tests/bench/added_latency.py [--requests 2000] [--body 1024 | --image 1000000] [--connections 1] [--block 20]

Three Envoys stand before the same upstream: without ext_proc, with the echo on grpc.aio and uvloop, with Pointsman and
a keyword-only policy. Clients on keep-alive connections send blocks of requests to the three in a shuffled order, again
and again. Goals: added p50 and CPU at most 1.15 times the echo's, p99 over 16 connections at most 1.5 times; added p50
at most 1.3 times with an image of megabytes, which the policy does not look at.
"""

from __future__ import annotations

import argparse
import json
import platform

from paired import BLOCK, echo, image_body, measure, pointsman, ratio, request_body, rounded, running


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000, help="counted requests to each of the three")
    parser.add_argument("--body", type=int, default=1024, help="bytes of a request's body, all of it text")
    parser.add_argument("--image", type=int, default=0, help="in its place, bytes of a body that is an image")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--block", type=int, default=BLOCK, help="requests of a connection before the next one's turn")
    options = parser.parse_args()
    body = image_body(options.image) if options.image else request_body(options.body)
    with running({"echo": echo(), "pointsman": pointsman()}) as place:
        found = measure(place, options.requests, body, options.connections, options.block)
    ratios = {key: ratio(found, key, "pointsman", "echo") for key in ("added_p50_ms", "p99_ms", "cpu_us")}
    machine = f"{platform.machine()}, {platform.python_implementation()} {platform.python_version()}"
    report = {"machine": machine, "body_bytes": len(body), **rounded(found), "pointsman_to_echo": ratios}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
