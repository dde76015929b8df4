"""The names of the headers that Pointsman sets.

Their values are model names, cluster names, decision names and record identifiers. They are relied upon to be visible
ASCII (0x21 to 0x7E); `router.config` refuses a policy whose names are not.
"""

from __future__ import annotations

from typing import Final

CLUSTER: Final = "x-pointsman-cluster"
MODEL: Final = "x-pointsman-model"
DECISION: Final = "x-pointsman-decision"
RECORD: Final = "x-pointsman-record"

GATEWAY_MODEL: Final = "x-gateway-model-name"
"""The Gateway API Inference Extension's name for MODEL, set where the policy asks for it."""

NO_DECISION: Final = "default"
"""Value of `x-pointsman-decision` when no decision matched."""
