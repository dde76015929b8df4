"""The files by which a worker proves who it is over TCP, and knows its clients; read again when they change.

It hands over what was read only when the files fit together, so that a pair that is half replaced is never used. What
is done with it is the server's.
"""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the chain of a certificate, its key without a password, and the authorities whose clients are let in.

    Without `client_ca` whoever connects is let in.
    """

    cert: Path
    key: Path
    client_ca: Path | None = None

    @property
    def all(self) -> tuple[Path, ...]:
        """Every file of these."""
        return (self.cert, self.key) if self.client_ca is None else (self.cert, self.key, self.client_ca)


@dataclass(frozen=True, slots=True, repr=False)
class Certificates:
    """What stood in the files, as PEM, and what TLS for HTTP/2 is served with by it."""

    cert: bytes
    key: bytes
    client_ca: bytes | None
    context: ssl.SSLContext


class CertificateError(Exception):
    """Files that cannot be used; the text says which and why, for the operator, and quotes nothing of them."""


_Stamp = tuple[tuple[int, int, int], ...]


class CertificateFiles:
    """The files and when they were read last. Not for several threads at once, save for the one that asks `changed`."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._seen: _Stamp | None = None

    def read(self) -> Certificates:
        """What stands in the files now; raises CertificateError."""
        self._seen = seen = _stamp(self._files)
        context = _context(self._files)
        try:
            cert, key, *rest = (file.read_bytes() for file in self._files.all)
        except OSError as error:
            raise CertificateError(f"{error.filename}: {error.strerror}") from error
        if _stamp(self._files) != seen:
            # What was checked may not be what was read.
            self._seen = None
            raise CertificateError("the files of the certificate changed while they were read")
        return Certificates(cert, key, rest[0] if rest else None, context)

    def changed(self) -> Certificates | None:
        """What stands in the files, if they are others than before and fit together; logs when they do not."""
        try:
            if _stamp(self._files) == self._seen:
                return None
            found = self.read()
        except CertificateError as error:
            logger.warning("certificates not taken over", extra={"fields": {"why": str(error)}})
            return None
        logger.info("certificates taken over", extra={"fields": {"file": self._files.cert.name}})
        return found


def _stamp(files: TlsFiles) -> _Stamp:
    """What tells changed files without reading them; links are followed, as secrets are mounted by them."""
    found = []
    for file in files.all:
        try:
            status = file.stat()
        except OSError as error:
            raise CertificateError(f"{file}: {error.strerror}") from error
        found.append((status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(found)


def _context(files: TlsFiles) -> ssl.SSLContext:
    """Raises CertificateError unless the key is the certificate's and the authorities can be read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    # A resumed session would bring in a client whose authority is not trusted any more.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    try:
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise CertificateError(f"{files.cert} and {files.key}: {_why(error)}") from error
    if files.client_ca is None:
        return context
    try:
        context.load_verify_locations(files.client_ca)
    except (OSError, ValueError) as error:
        raise CertificateError(f"{files.client_ca}: {_why(error)}") from error
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _no_password() -> str:
    # OpenSSL would ask on the terminal otherwise.
    raise ValueError("the key has a password")


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "no PEM of that kind").replace("_", " ").lower()
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
