"""Encoders and classifiers on ONNX Runtime.

ONNX Runtime keeps a device identifier and queues usage events for its vendor unless this variable is set before it
is first imported; a sidecar that sees every request must not.
"""

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
