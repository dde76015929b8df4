"""TLS of the admin address: its certificate and the authorities of its clients. Files that are renewed are followed."""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 10.0


class TlsError(Exception):
    """Files that cannot be used; the text says which and why, and quotes nothing of them."""


@dataclass(frozen=True, slots=True)
class AdminTls:
    """PEM files. With `client_ca` only clients that these authorities vouch for are let in."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file of these."""
        return tuple(filter(None, (self.cert, self.key, self.client_ca)))

    def context(self) -> ssl.SSLContext:
        """A context of what stands in the files now; raises TlsError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # A resumed session would bring in a client whose authority is not trusted any more.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        self.load_into(context)
        return context

    def load_into(self, context: ssl.SSLContext) -> None:
        """Serve by the files from the next connection on; raises TlsError."""
        try:
            context.load_cert_chain(self.cert, self.key, password=_no_password)
        except (OSError, ValueError) as error:
            raise TlsError(f"{self.cert} and {self.key}: {_why(error)}") from None
        if self.client_ca is not None:
            try:
                context.load_verify_locations(self.client_ca)
            except (OSError, ValueError) as error:
                raise TlsError(f"{self.client_ca}: {_why(error)}") from None
            context.verify_mode = ssl.CERT_REQUIRED

    def stamp(self) -> tuple[tuple[int, int, int], ...]:
        """What tells changed files without reading them; raises OSError."""
        found = (file.stat() for file in self.files)
        return tuple((status.st_ino, status.st_mtime_ns, status.st_size) for status in found)

    async def follow(self, context: ssl.SSLContext, look_seconds: float = LOOK_SECONDS) -> None:
        """Load a certificate that was renewed, until cancelled. Authorities are only ever added to while serving."""
        seen = self.stamp()
        while True:
            await asyncio.sleep(look_seconds)
            try:
                stamp = await asyncio.to_thread(self.stamp)
                if stamp == seen:
                    continue
                # A pair that does not fit together must not reach the context that serves.
                await asyncio.to_thread(self.context)
                await asyncio.to_thread(self.load_into, context)
            except (OSError, TlsError) as error:
                logger.warning("admin certificate not taken over", extra={"fields": {"why": str(error)}})
                continue
            seen = stamp
            logger.info("admin certificate taken over", extra={"fields": {"file": self.cert.name}})


def _no_password() -> str:
    raise ValueError("the key has a password")


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"they do not hold, or do not fit together ({error.reason or 'no PEM'})"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error)
