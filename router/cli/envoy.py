"""`pointsman envoy`: the bootstrap that goes with a policy."""

from __future__ import annotations

from pathlib import Path

from router.cli.listening import workers_at_or_stop
from router.cli.output import DOES_NOT_HOLD, FINE, Stop, address_or_stop, complain, policy_or_stop, worker_count
from router.config.bootstrap import Address, BootstrapInputs, UpstreamCluster, WorkerTls, render_bootstrap
from router.config.load import LoadedPolicy
from router.config.runtime import usable_cores, worker_socket

MESSAGE_TIMEOUT_SLACK = 1.0
"""Seconds that Envoy waits beyond the time in which a worker decides, so that the worker's own answer comes first."""


def run_envoy(
    policy: Path,
    listen: str,
    admin: str,
    workers: str,
    runtime_dir: Path,
    workers_at: str = "",
    workers_ca: Path | None = None,
    workers_name: str = "",
    workers_cert: Path | None = None,
    workers_key: Path | None = None,
) -> int:
    """Print the bootstrap; exit code 1 when the policy does not hold, 2 for wrong use."""
    try:
        loaded = policy_or_stop(policy)
        count = worker_count(workers, usable_cores())
        listen_address = address_or_stop(listen, "--listen")
        admin_address = address_or_stop(admin, "--admin") if admin else None
        addresses, tls = workers_at_or_stop(workers_at, count, workers_ca, workers_name, workers_cert, workers_key)
    except Stop as stop:
        return stop.code
    try:
        sockets = () if addresses else tuple(str(worker_socket(runtime_dir, index)) for index in range(count))
        inputs = _inputs(loaded, listen_address, admin_address, sockets, addresses, tls)
    except ValueError as error:
        complain(f"{policy}: {error}")
        return DOES_NOT_HOLD
    print(render_bootstrap(inputs), end="")
    return FINE


def _inputs(
    loaded: LoadedPolicy,
    listen: Address,
    admin: Address | None,
    sockets: tuple[str, ...],
    addresses: tuple[Address, ...],
    tls: WorkerTls | None,
) -> BootstrapInputs:
    policy = loaded.policy
    clusters = {u.cluster: UpstreamCluster(u.cluster, u.endpoint) for u in policy.upstreams if u.endpoint is not None}
    return BootstrapInputs(
        listen=listen,
        worker_sockets=sockets,
        clusters=tuple(clusters.values()),
        default_cluster=policy.upstream(policy.default_model).cluster,
        # Whoever only looks must not be missed when it is not there.
        on_failure="open" if policy.observe_only else policy.on_failure,
        body_bytes=loaded.limits.wire_bytes,
        message_timeout=loaded.limits.decision_ms / 1000 + MESSAGE_TIMEOUT_SLACK,
        gateway_api_inference=policy.gateway_api_inference,
        strip_from_clients=policy.strip_from_clients,
        read_responses=loaded.responses.usage,
        check_responses=bool(loaded.responses.checks),
        forwarded_metadata=tuple(sorted({path.partition(":")[0] for path in policy.trusted_metadata.values()})),
        attributes=tuple(sorted(set(policy.trusted_attributes.values()))),
        admin=admin,
        worker_addresses=addresses,
        worker_tls=tls,
    )
