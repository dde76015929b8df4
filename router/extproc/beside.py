"""What goes on beside the judging of requests, after each was answered: capturing its content, and a shadow policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from router.config.load import REDACTING_FAMILIES, LoadedPolicy, SignalSpec
from router.extproc.capturing import Capturer, Redactor
from router.extproc.shadow import Shadow
from router.inference.executor import InferenceExecutor
from router.records.capture import keys_of
from router.records.record import DecisionRecord
from router.records.store import ContentRow
from router.request.view import RequestView
from router.signals.base import Signal, SignalName
from router.signals.places import ALL_ROLES


@dataclass(frozen=True, slots=True)
class Beside:
    """Of one policy; neither of the two where it wants neither. Belongs to one event loop."""

    capturer: Capturer | None = None
    shadow: Shadow | None = None

    def take(self, record: DecisionRecord, view: RequestView, body: bytes) -> None:
        """A request that was answered; never waits."""
        if self.capturer is not None:
            self.capturer.take(record, view, body)
        if self.shadow is not None:
            self.shadow.take(record, view, body)

    def attend(self, quiet_for: Callable[[], float]) -> None:
        """Give way to requests: see `Courtesy.attend`."""
        if self.shadow is not None:
            self.shadow.attend(quiet_for)

    async def settled(self) -> None:
        """Return once nothing waits."""
        for one in (self.capturer, self.shadow):
            if one is not None:
                await one.settled()

    def close(self) -> None:
        """Take nothing more, and drop what waits."""
        for one in (self.capturer, self.shadow):
            if one is not None:
                one.close()


def redacts(loaded: LoadedPolicy, name: SignalName) -> bool:
    """Whether the signal has to say what must not be kept, also where no decision reads it."""
    capture = loaded.records.capture if loaded.records else None
    return capture is not None and capture.redact and name.family in REDACTING_FAMILIES


def _redactor(spec: SignalSpec, signals: Mapping[SignalName, Signal]) -> Redactor:
    settings = spec.settings
    # One that reads the images of some roles alone says nothing of the others.
    every = set(getattr(settings, "roles", ())) == set(ALL_ROLES)
    return Redactor(signals[spec.name], getattr(settings, "threshold", 0.0), settings.reads_images and every)


def capturer_of(
    loaded: LoadedPolicy,
    signals: Mapping[SignalName, Signal],
    executor: InferenceExecutor,
    put: Callable[[ContentRow], None],
) -> Capturer | None:
    """What captures under this policy; None where it wants nothing captured. Reads keys: StoreError, SealError."""
    if loaded.records is None:
        return None
    placed = loaded.records.placed(loaded.base).capture
    if placed is None:
        return None
    redactors = [_redactor(spec, signals) for spec in loaded.signals if redacts(loaded, spec.name)]
    read = {name for spec in loaded.signals for name in spec.settings.trusted_headers}
    return Capturer(placed, keys_of(placed), redactors, read, executor, put)
