"""A worker process: `python -m router.extproc.worker`, as the supervisor runs it. What it does is `life.py`'s."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

import uvloop

from router.config.load import load_policy
from router.config.problems import PolicyError
from router.extproc.certificates import TlsFiles
from router.extproc.life import DRAIN_GRACE, DRAIN_NOTICE, serve
from router.extproc.lifeline import end_with_supervisor
from router.extproc.options import WorkerOptions
from router.extproc.sockets import SocketUnavailableError
from router.telemetry.log import configure_logging, quieten_grpc

logger = logging.getLogger(__name__)


def main() -> int:
    """0 after a drain, 1 when it could not even say that it is not ready.

    With `--check` it only finds out whether this code can read the policy, and serves nothing.
    """
    quieten_grpc()
    options, check = _read_options()
    end_with_supervisor(DRAIN_NOTICE + DRAIN_GRACE + 1)
    try:
        if check:
            load_policy(options.config)
        elif uvloop.run(serve(options)):
            # Otherwise the end would wait for the thread that hangs.
            logging.shutdown()
            os._exit(1)
    except (PolicyError, SocketUnavailableError) as error:
        logger.error("not ready", extra={"fields": {"worker": options.index, "why": str(error)}})
        return 1
    return 0


def _read_options() -> tuple[WorkerOptions, bool]:
    parser = argparse.ArgumentParser(prog="python -m router.extproc.worker")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--index", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--socket-mode", type=lambda text: int(text, 8), default=0o600)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--feedback", type=Path)
    parser.add_argument("--listen", type=_host_and_port)
    parser.add_argument("--tls-cert", type=Path)
    parser.add_argument("--tls-key", type=Path)
    parser.add_argument("--tls-client-ca", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--log-format", choices=("json", "console"), default="json")
    parser.add_argument("--log-level", default="INFO")
    options = parser.parse_args()
    configure_logging(options.log_format, options.log_level)
    read = WorkerOptions(
        options.config,
        options.socket,
        options.index,
        options.threads,
        options.socket_mode,
        options.state,
        options.feedback,
        options.listen,
        TlsFiles(options.tls_cert, options.tls_key, options.tls_client_ca) if options.tls_cert else None,
    )
    return read, options.check


def _host_and_port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


if __name__ == "__main__":
    sys.exit(main())
