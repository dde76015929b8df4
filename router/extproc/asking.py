"""Builds the signals that a policy asks, over the models that are open."""

from __future__ import annotations

import asyncio

from router.config.load import LoadedPolicy
from router.extproc.machinery import Machinery, asked
from router.signals.base import Signal, SignalName
from router.signals.registry import FAMILIES
from router.signals.resources import Resources


async def signals_of(loaded: LoadedPolicy, machinery: Machinery) -> dict[SignalName, Signal]:
    """Built and prepared; raises SignalSetupError."""
    encoders = machinery.encoders
    resources = Resources(
        encoders.text, encoders.vision, encoders.classifiers, machinery.reader, loaded.base, encoders.heads
    )
    # Files that signals name are read here, and long lists of patterns compiled.
    signals = await asyncio.to_thread(_build_signals, loaded, resources)
    for built in signals.values():
        await built.prepare()
    return signals


def _build_signals(loaded: LoadedPolicy, resources: Resources) -> dict[SignalName, Signal]:
    return {spec.name: FAMILIES[spec.name.family].build(spec.name, spec.settings, resources) for spec in asked(loaded)}
