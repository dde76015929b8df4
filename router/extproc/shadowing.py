"""Builds the shadow of a policy: with the machinery that serves where that is enough, else with its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from router.config.load import LoadedPolicy
from router.config.problems import PolicyError
from router.config.shadow import load_shadow
from router.extproc.asking import signals_of
from router.extproc.machinery import Machinery, SetupError, needs_of, open_machinery, open_packs
from router.extproc.shadow import Other, Shadow
from router.inference.fetching import FetchingUnavailableError
from router.inference.reading import ReaderUnavailableError
from router.inference.remote.errors import RemoteError, RemoteSetupError
from router.packs.files import PackError
from router.records.basis import stored_basis
from router.records.redecide import Redecider
from router.records.store import ShadowRow
from router.signals.resources import SignalSetupError
from router.telemetry.instruments import Instruments

logger = logging.getLogger(__name__)


async def shadow_of(
    loaded: LoadedPolicy,
    machinery: Machinery,
    instruments: Instruments,
    put: Callable[[ShadowRow], None] | None,
) -> Shadow | None:
    """The policy's shadow; None where there is none, and where it cannot be had, which costs no request anything."""
    if loaded.shadow is None:
        return None
    own: Machinery | None = None
    try:
        other = await asyncio.to_thread(load_shadow, loaded)
        assert other is not None
        packs = await asyncio.to_thread(open_packs, other)
        needs = needs_of(other, packs, 1)
        if not machinery.needs.covers(needs):
            own = await asyncio.to_thread(open_machinery, needs, packs, asyncio.get_running_loop())
        signals = await signals_of(other, own or machinery)
        basis = await asyncio.to_thread(stored_basis, loaded, dict(machinery.needs.packs))
        redecider = Redecider(other.policy, await asyncio.to_thread(stored_basis, other, dict(needs.packs)))
    except Exception as error:
        if own is not None:
            own.close()
        for why in _reasons(error):
            fields = {"policy": loaded.policy.digest, "why": why}
            logger.error("no shadow policy, the policy goes on without", extra={"fields": fields})
        return None
    names = (decision.name for decision in other.policy.all_decisions)
    instruments.names.admit("shadow", ("default", *names))
    executors = [one.executor for one in (machinery, own) if one is not None]
    return Shadow(
        loaded.shadow,
        Other(other.policy, signals, redecider, other.limits.decision_ms / 1000),
        loaded.policy,
        basis,
        executors,
        instruments,
        put,
        own.close if own is not None else lambda: None,
    )


def _reasons(error: Exception) -> Sequence[str]:
    """In words, where the error is one of those that are made for people."""
    match error:
        case PolicyError():
            return error.lines()
        case SetupError():
            return error.reasons
        case PackError() | SignalSetupError() | ReaderUnavailableError() | FetchingUnavailableError():
            return (str(error),)
        case RemoteError() | RemoteSetupError():
            return (f"a remote encoder cannot be used: {error}",)
    return (f"it could not be built: {type(error).__name__}",)
