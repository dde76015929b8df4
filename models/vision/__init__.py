"""The recipe of the starter vision pack: train, calibrate, export, measure.

Needs torch, which the served project never imports; only `measure` runs without it.
"""

import os

# As `router.inference` does: no usage events for the run time's vendor.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
