"""How near a pack has to come to its reference, by precision: what the exporter asks, and what a manifest may ask.

Numbers only, so that verification has them without torch.
"""

from __future__ import annotations

from router.packs.parts import Precision

# Least cosine against PyTorch over the golden inputs. The int8 one lies between image towers with SmoothQuant (0.999)
# and without it where activations have outliers (0.9955).
COSINE_GATE: dict[Precision, float] = {"fp32": 0.99999, "int8": 0.998, "bf16": 0.9995}
# Greatest difference of a probability.
PROBABILITY_GATE: dict[Precision, float] = {"fp32": 0.0001, "int8": 0.05, "bf16": 0.02}
# What a serving machine may lose beyond the figure of the exporting one: kernels of few bits differ between processors.
SERVING_SLACK = 0.0005
PROBABILITY_SLACK = 0.01


def least_bound(precision: Precision) -> float:
    """The lowest `min_cosine` that an exporter writes for a pack without drift."""
    # Exporters round down to six places.
    return COSINE_GATE[precision] - (0 if precision == "fp32" else SERVING_SLACK + 1e-6)


def greatest_bound(precision: Precision) -> float:
    """The highest `max_difference` that an exporter writes for a pack without drift."""
    return PROBABILITY_GATE[precision] + (0 if precision == "fp32" else PROBABILITY_SLACK + 1e-6)
