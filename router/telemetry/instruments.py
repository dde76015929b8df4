"""The instruments that the project writes to, by name, in one place.

Only OpenTelemetry's API is used: without an SDK every instrument is a no-op. Attributes are kinds and labels, never
content. Not the place where exporters are set up.
"""

from __future__ import annotations

from dataclasses import dataclass

from opentelemetry.metrics import Counter, Meter, UpDownCounter, get_meter


@dataclass(frozen=True, slots=True)
class Instruments:
    """What a worker counts.

    `failures` counts requests that got the policy's failure outcome, by `kind`; `unexpected_messages` counts messages
    that a rightly configured Envoy does not send, by `kind`; `abandoned` counts requests whose client left undecided.
    `parity_misses` counts ways in which a pack was not what its golden vectors say, by `pack` and `stage`; what could
    not even be opened is of the stage `setup`. `policy_reloads` counts changes of the policy file, by `outcome`.
    `records_dropped` counts decision records that were to be kept and were lost, by `reason`.
    `ready` is 1 for a worker that takes requests, else 0, so that its sum is the number of those.
    """

    failures: Counter
    unexpected_messages: Counter
    abandoned: Counter
    parity_misses: Counter
    policy_reloads: Counter
    records_dropped: Counter
    ready: UpDownCounter


def create_instruments(meter: Meter | None = None) -> Instruments:
    """The instruments of this meter; of the global provider's meter `pointsman` when none is given."""
    meter = meter or get_meter("pointsman")
    return Instruments(
        failures=meter.create_counter(
            "pointsman.exchange.failures", unit="{request}", description="Requests that could not be judged."
        ),
        unexpected_messages=meter.create_counter(
            "pointsman.exchange.unexpected_messages", unit="{message}", description="Messages of a misconfigured Envoy."
        ),
        abandoned=meter.create_counter(
            "pointsman.exchange.abandoned", unit="{request}", description="Requests whose client left undecided."
        ),
        parity_misses=meter.create_counter(
            "pointsman.parity.misses", unit="{miss}", description="Golden vectors that a pack did not meet."
        ),
        policy_reloads=meter.create_counter(
            "pointsman.policy.reloads", unit="{reload}", description="Changed policies, taken over or refused."
        ),
        records_dropped=meter.create_counter(
            "pointsman.records.dropped", unit="{record}", description="Decision records that could not be kept."
        ),
        ready=meter.create_up_down_counter(
            "pointsman.worker.ready", unit="{worker}", description="Workers that take requests."
        ),
    )
