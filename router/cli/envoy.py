"""`pointsman envoy`: the bootstrap that goes with a policy."""

from __future__ import annotations

import os
from pathlib import Path

from router.cli.output import DOES_NOT_HOLD, FINE, Stop, address_or_stop, complain, policy_or_stop, worker_count
from router.config.bootstrap import Address, BootstrapInputs, UpstreamCluster, render_bootstrap
from router.config.load import LoadedPolicy
from router.config.runtime import worker_socket

MESSAGE_TIMEOUT_SLACK = 1.0
"""Seconds that Envoy waits beyond the time in which a worker decides, so that the worker's own answer comes first."""


def run_envoy(policy: Path, listen: str, admin: str, workers: str, runtime_dir: Path) -> int:
    """Print the bootstrap; exit code 1 when the policy does not hold, 2 for wrong use."""
    try:
        loaded = policy_or_stop(policy)
        count = worker_count(workers, os.cpu_count() or 1)
        listen_address = address_or_stop(listen, "--listen")
        admin_address = address_or_stop(admin, "--admin") if admin else None
    except Stop as stop:
        return stop.code
    try:
        inputs = _inputs(loaded, listen_address, admin_address, count, runtime_dir)
    except ValueError as error:
        complain(f"{policy}: {error}")
        return DOES_NOT_HOLD
    print(render_bootstrap(inputs), end="")
    return FINE


def _inputs(
    loaded: LoadedPolicy, listen: Address, admin: Address | None, count: int, runtime_dir: Path
) -> BootstrapInputs:
    policy = loaded.policy
    clusters = {u.cluster: UpstreamCluster(u.cluster, u.endpoint) for u in policy.upstreams if u.endpoint is not None}
    return BootstrapInputs(
        listen=listen,
        worker_sockets=tuple(str(worker_socket(runtime_dir, index)) for index in range(count)),
        clusters=tuple(clusters.values()),
        default_cluster=policy.upstream(policy.default_model).cluster,
        on_failure=policy.on_failure,
        body_bytes=loaded.limits.body_bytes,
        message_timeout=loaded.limits.decision_ms / 1000 + MESSAGE_TIMEOUT_SLACK,
        admin=admin,
    )
