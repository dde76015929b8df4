"""Binds a worker's gRPC server: to a unix socket, or to a TCP address, in the clear or with TLS.

It knows what stands at an address already, and how certificates are replaced while serving. What is served is
`service.py`'s.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from router.extproc.certificates import CertificateError, CertificateFiles, Certificates, TlsFiles
from router.extproc.sockets import SocketUnavailableError, claim_socket


def bind(server: grpc.aio.Server, address: str, tls: TlsFiles | None) -> Path | None:
    """Bind to `unix:/path` or `host:port`; the path of the socket, if it is one.

    With `tls`, clients of the TCP address must speak TLS, and have a certificate where there is a `client_ca`; the
    files are looked at with each new connection. Raises SocketUnavailableError where somebody else listens, or where
    the files cannot be used.
    """
    if address.startswith("unix:"):
        socket = Path(address.removeprefix("unix:"))
        claim_socket(socket)
        server.add_insecure_port(address)
        return socket
    try:
        if tls is None:
            server.add_insecure_port(address)
        else:
            server.add_secure_port(address, _credentials(CertificateFiles(tls)))
    except RuntimeError as error:
        # gRPC's own words are pages of what it tried.
        raise SocketUnavailableError(f"{address} cannot be bound: in use, or no address of this machine") from error
    except CertificateError as error:
        raise SocketUnavailableError(str(error)) from error
    return None


def _credentials(files: CertificateFiles) -> grpc.ServerCredentials:
    first = files.read()

    def newer() -> grpc.ServerCertificateConfiguration | None:
        found = files.changed()
        return None if found is None else _configuration(found)

    # The stubs forget that None, for no change, is an answer too.
    fetch: Any = newer
    return grpc.dynamic_ssl_server_credentials(_configuration(first), fetch, first.client_ca is not None)


def _configuration(found: Certificates) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(found.key, found.cert)], found.client_ca)
