"""Where workers listen, as flags say it, for `serve` and for `envoy`: unix sockets, or ports with or without TLS.

It refuses what would let anybody on the network ask a worker by oversight.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from router.cli.output import DOES_NOT_HOLD, WRONG_USE, Stop, address_or_stop, complain
from router.config.bootstrap import Address, WorkerTls
from router.config.runtime import worker_address
from router.extproc.certificates import CertificateError, CertificateFiles, TlsFiles


@dataclass(frozen=True, slots=True)
class Listening:
    """TCP addresses, one a worker, and what they are secured with."""

    addresses: tuple[Address, ...]
    tls: TlsFiles | None


def listening_or_stop(
    listen: str, count: int, cert: Path | None, key: Path | None, client_ca: Path | None, insecure: bool
) -> Listening | None:
    """What the flags of `serve` say; None where workers have unix sockets. Raises Stop for what cannot be meant."""
    if not listen:
        if cert or key or client_ca or insecure:
            raise _wrong("--tls-cert, --tls-key, --tls-client-ca and --insecure go with --listen")
        return None
    first = address_or_stop(listen, "--listen")
    if (cert is None) != (key is None) or (client_ca is not None and cert is None):
        raise _wrong("--tls-cert and --tls-key go together, and --tls-client-ca with both")
    tls = TlsFiles(cert, key, client_ca) if cert is not None and key is not None else None
    if tls is None and not insecure and not ipaddress.ip_address(first.host).is_loopback:
        raise _wrong(
            f"--listen {listen} can be reached from other machines, and whoever reaches it is answered in the clear; "
            "give it --tls-cert, --tls-key and --tls-client-ca, or say --insecure"
        )
    if tls is not None:
        try:
            CertificateFiles(tls).read()
        except CertificateError as error:
            complain(str(error))
            raise Stop(DOES_NOT_HOLD) from None
    return Listening(_addresses(first, count, "--listen"), tls)


def workers_at_or_stop(
    at: str, count: int, ca: Path | None, name: str, cert: Path | None, key: Path | None
) -> tuple[tuple[Address, ...], WorkerTls | None]:
    """What the flags of `envoy` say: addresses, none where workers have unix sockets. Raises Stop."""
    if not at and (ca or name or cert or key):
        raise _wrong("--workers-ca, --workers-name, --workers-cert and --workers-key go with --workers-at")
    if not at:
        return (), None
    host, _, port = at.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise _wrong(f"--workers-at takes a host and a port, as in 10.0.0.7:9000 or judges.internal:9000; not {at!r}")
    if (cert is None) != (key is None) or ((cert or name) and ca is None):
        raise _wrong("--workers-cert and --workers-key go together, and they and --workers-name with --workers-ca")
    for file in filter(None, (ca, cert, key)):
        if not file.is_absolute():
            raise _wrong(f"Envoy may run elsewhere, so give it a full path; not {str(file)!r}")
    tls = None
    if ca is not None:
        tls = WorkerTls(str(ca), name or host, str(cert) if cert else None, str(key) if key else None)
    return _addresses(Address(host, int(port)), count, "--workers-at"), tls


def _addresses(first: Address, count: int, flag: str) -> tuple[Address, ...]:
    try:
        return tuple(worker_address(first, index) for index in range(count))
    except ValueError as error:
        raise _wrong(f"{flag}: {error}") from None


def _wrong(message: str) -> Stop:
    complain(message)
    return Stop(WRONG_USE)
