"""Moves a running worker to a new policy: looks for a change, builds the new house beside the old, and swaps them.

Requests in flight finish under the policy that they began with. A policy that does not hold, or that a running worker
cannot take over, changes nothing and is told of.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from router.config.load import LoadedPolicy, parse_policy
from router.config.problems import PolicyError
from router.config.yaml_source import read_file
from router.extproc.house import House, move_in
from router.extproc.machinery import SetupError
from router.extproc.readiness import Door, Readiness
from router.telemetry.instruments import Instruments

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Between looks at the policy file. Looking works where no event comes: with mounted ConfigMaps and network folders."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells a changed file without reading it."""

    inode: int
    modified: int
    size: int


class PolicyFile:
    """The policy file as it was read last."""

    def __init__(self, path: Path, digest: str) -> None:
        """`digest` is that of the policy that serves."""
        self._path = path
        self._digest = digest
        # The file may have changed since it was read: only its text can tell.
        self._stamp: Stamp | None = None
        self._seen: Stamp | None = None

    def changed(self) -> bytes | None:
        """The file's text if it is another one than before; blocks. A file that cannot be read now is no change.

        A file that is being written is a policy without its end, which may hold and lack a guard: what has changed
        since the last look, or while it is read, is left for the next one.
        """
        stamp = _stamp(self._path)
        seen, self._seen = self._seen, stamp
        if stamp is None or stamp == self._stamp or stamp != seen:
            return None
        text = self._read()
        if _stamp(self._path) != stamp:
            return None
        self._stamp = stamp
        digest = None if text is None else hashlib.sha256(text).hexdigest()
        if digest is None or digest == self._digest:
            return None
        self._digest = digest
        return text

    def reread(self) -> bytes | None:
        """The file's text, changed or not; None where it cannot be read. Blocks."""
        self._stamp = self._seen = _stamp(self._path)
        text = self._read()
        if text is not None:
            self._digest = hashlib.sha256(text).hexdigest()
        return text

    def _read(self) -> bytes | None:
        try:
            return read_file(self._path)
        except OSError as error:
            logger.warning("policy not read", extra={"fields": {"file": self._path.name, "why": error.strerror}})
            return None


async def changed(file: PolicyFile, asked: asyncio.Event) -> bytes:
    """The file's text, once it is another one or somebody `asked` for it."""
    while True:
        if asked.is_set():
            asked.clear()
            text = await asyncio.to_thread(file.reread)
        else:
            text = await asyncio.to_thread(file.changed)
        if text is not None:
            return text
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asked.wait(), LOOK_SECONDS)


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return Stamp(status.st_ino, status.st_mtime_ns, status.st_size)


class Tenure:
    """The house that serves, and the move to the next. Belongs to one event loop."""

    def __init__(self, house: House, door: Door, readiness: Readiness, instruments: Instruments, threads: int) -> None:
        self.house = house
        self._door = door
        self._readiness = readiness
        self._instruments = instruments
        self._threads = threads
        self._leaving: set[asyncio.Task[None]] = set()

    async def watch(self, asked: asyncio.Event, moved: Callable[[House], None]) -> None:
        """Move whenever the policy file changes, and whenever `asked`, also to the same policy; until cancelled.

        `moved` is told of each new house.
        """
        file = PolicyFile(self.house.loaded.path, self.house.loaded.policy.digest)
        while True:
            if await self.move(await changed(file, asked)):
                moved(self.house)

    async def move(self, text: bytes) -> bool:
        """Serve by this policy from now on, if it holds; whether it does."""
        began = time.monotonic()
        old = self.house
        try:
            loaded = await asyncio.to_thread(parse_policy, text, old.loaded.path)
            _refuse_what_needs_a_restart(old.loaded, loaded)
            new = await move_in(loaded, self._threads, old)
        except PolicyError as error:
            return self._stay(error.lines())
        except SetupError as error:
            return self._stay(error.reasons)
        except Exception as error:
            # Whatever a new policy brings about, the old one goes on; the message may quote it.
            logger.exception("policy not taken over")
            return self._stay((f"it could not be built: {type(error).__name__}",))
        if not self._door.open:
            # The canary shut it meanwhile: what it found is not undone by a change of policy.
            new.beside.close()
            if new.machinery is not old.machinery:
                new.machinery.close()
            return False
        self.house = new
        gone = self._door.hand_over(new.loaded.policy, new.pipeline)
        self._leave(old, gone)
        self._instruments.policy_reloads.add(1, {"outcome": "taken_over"})
        fields = {"policy": new.loaded.policy.digest, "seconds": round(time.monotonic() - began, 3)}
        logger.info("policy taken over", extra={"fields": fields})
        self._readiness.moved(new.loaded.policy.digest)
        return True

    def _stay(self, reasons: tuple[str, ...] | list[str]) -> bool:
        self._instruments.policy_reloads.add(1, {"outcome": "refused"})
        for reason in reasons:
            fields = {"policy": self.house.loaded.policy.digest, "why": reason}
            logger.error("policy refused, the former one goes on", extra={"fields": fields})
        self._readiness.stayed(reasons)
        return False

    def _leave(self, old: House, gone: asyncio.Event) -> None:
        """Close what the old house alone needed, once its last request has been judged."""
        if old.machinery is self.house.machinery:
            return

        async def close() -> None:
            await gone.wait()
            old.machinery.close()

        task = asyncio.create_task(close())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    def close(self) -> None:
        """Close everything; call it when nothing is judged any more."""
        for task in self._leaving:
            task.cancel()
        self.house.close()


def _refuse_what_needs_a_restart(old: LoadedPolicy, new: LoadedPolicy) -> None:
    """Envoy is set up with some keys of the policy as well; raises SetupError with those that have changed."""
    was, now = _shared_with_envoy(old), _shared_with_envoy(new)
    reasons = [
        f"{key} was {was[key]} and is {now[key]}: Envoy is set up with it too; render its bootstrap again and restart "
        "both"
        for key in was
        if was[key] != now[key]
    ]
    reasons += [
        f"upstreams: Envoy does not know cluster {cluster} at {endpoint}; render its bootstrap again and restart both"
        for cluster, endpoint in sorted(_endpoints(new) - _endpoints(old))
    ]
    if reasons:
        raise SetupError(reasons)


def _shared_with_envoy(loaded: LoadedPolicy) -> dict[str, str]:
    """What `pointsman envoy` renders of the policy that a new Envoy has to know of; values as words."""
    policy = loaded.policy
    return {
        "the larger of limits.body_bytes and limits.decoded_bytes": str(loaded.limits.wire_bytes),
        "limits.decision_ms": str(loaded.limits.decision_ms),
        "observe_only": _word(policy.observe_only),
        "gateway_api_inference": _word(policy.gateway_api_inference),
        "strip_from_clients": _words(policy.strip_from_clients),
        "responses.usage": _word(loaded.responses.usage),
        "whether there are responses.checks": _word(bool(loaded.checks)),
        "trusted_metadata (its namespaces)": _words(
            path.partition(":")[0] for path in policy.trusted_metadata.values()
        ),
        "trusted_attributes": _words(policy.trusted_attributes.values()),
    }


def _endpoints(loaded: LoadedPolicy) -> set[tuple[str, str]]:
    """Clusters that `pointsman envoy` renders. One that is gone harms nobody: no request is sent there any more."""
    return {(each.cluster, each.endpoint) for each in loaded.policy.upstreams if each.endpoint is not None}


def _word(holds: bool) -> str:
    return "true" if holds else "false"


def _words(names: Iterable[str]) -> str:
    return f"[{', '.join(sorted(set(names)))}]"
