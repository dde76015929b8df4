"""Every metric of the project in one table: name, kind, unit, labels and buckets.

Instruments, views and docs/metrics.md are made of it or held against it. Names, units and buckets are those of
OpenTelemetry's semantic conventions where they have some. Not the place where anything is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SCOPE: Final = "pointsman"
"""What OpenTelemetry calls the instrumentation scope: the meter, and who made a span."""

Kind = Literal[
    "counter", "up_down_counter", "histogram", "observable_counter", "observable_up_down_counter", "observable_gauge"
]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `unit` is UCUM's, in braces for what is merely counted; `labels` are all that it ever has.

    `buckets` are a histogram's upper bounds, in the metric's unit.
    """

    name: str
    kind: Kind
    unit: str
    description: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""HTTP's buckets, which begin at 5 ms, and three below: most decisions take less."""

SIGNAL_SECONDS: Final = (0.00001, 0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
"""From a look at a header to an image that is read."""

OPERATION_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""As the GenAI conventions ask for `gen_ai.client.operation.duration` and `.time_to_first_chunk`."""

TOKENS: Final = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
"""As the GenAI conventions ask for `gen_ai.client.token.usage`."""

BYTES: Final = (256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
COUNTS: Final = (0, 1, 2, 4, 8, 16, 32, 64)
SPEEDS: Final = (1, 2.5, 5, 10, 25, 50, 75, 100, 250, 500, 1000)

# Requests and decisions
REQUESTS: Final = Metric(
    "pointsman.requests",
    "observable_counter",
    "{request}",
    "LLM requests that were answered or let go on.",
    ("decision", "outcome", "model", "api", "enforced"),
)
DECISION_DURATION: Final = Metric(
    "pointsman.decision.duration",
    "histogram",
    "s",
    "Time from a whole request to its answer.",
    ("decision", "outcome"),
    SECONDS,
)
UNREADABLE: Final = Metric(
    "pointsman.requests.unreadable", "counter", "{request}", "Requests whose body cannot be read.", ("code", "api")
)
FAILURES: Final = Metric(
    "pointsman.exchange.failures", "counter", "{request}", "Requests that could not be judged.", ("kind",)
)
UNEXPECTED_MESSAGES: Final = Metric(
    "pointsman.exchange.unexpected_messages", "counter", "{message}", "Messages of a misconfigured Envoy.", ("kind",)
)
ABANDONED: Final = Metric(
    "pointsman.exchange.abandoned", "counter", "{request}", "Requests whose client left undecided."
)
BODY_SIZE: Final = Metric(
    "pointsman.request.body.size", "histogram", "By", "Size of request bodies, as sent.", ("api",), BYTES
)
IMAGES: Final = Metric(
    "pointsman.request.images", "histogram", "{image}", "Images of a request, of all its turns.", ("api",), COUNTS
)
IMAGE_SIZE: Final = Metric(
    "pointsman.request.image.size", "histogram", "By", "Size of images that requests brought along.", ("api",), BYTES
)

# Signals
OBSERVATIONS: Final = Metric(
    "pointsman.signal.observations",
    "observable_counter",
    "{observation}",
    "Answers of signals and projections.",
    ("family", "signal", "status", "matched"),
)
SIGNAL_DURATION: Final = Metric(
    "pointsman.signal.duration",
    "histogram",
    "s",
    "Time that a signal took for its answer, of a sample of requests.",
    ("family", "signal", "status"),
    SIGNAL_SECONDS,
)

# Models and queue
QUEUE_DEPTH: Final = Metric(
    "pointsman.inference.queue.depth", "observable_gauge", "{job}", "Jobs that wait for a model thread."
)
JOBS_RUNNING: Final = Metric("pointsman.inference.jobs.running", "observable_gauge", "{job}", "Jobs in model threads.")
JOBS: Final = Metric(
    "pointsman.inference.jobs", "observable_counter", "{job}", "Jobs for model threads, by what came of them.", ("end",)
)
REMOTE_CALLS: Final = Metric(
    "pointsman.remote.calls",
    "observable_counter",
    "{call}",
    "Calls to servers that run encoders, by how they ended; `retried` counts those that were made once more.",
    ("tower", "end"),
)
CACHE_LOOKUPS: Final = Metric(
    "pointsman.cache.lookups",
    "observable_counter",
    "{lookup}",
    "Questions to the cache of encoded content.",
    ("kind", "result"),
)
CACHE_BYTES: Final = Metric(
    "pointsman.cache.size", "observable_gauge", "By", "Memory of the cache of encoded content.", ("kind",)
)
CACHE_ENTRIES: Final = Metric(
    "pointsman.cache.entries", "observable_gauge", "{entry}", "Entries of the cache of encoded content.", ("kind",)
)
CACHE_LIMIT: Final = Metric(
    "pointsman.cache.limit", "observable_gauge", "By", "Memory that the cache of encoded content may take."
)

# Parity
PARITY_MISSES: Final = Metric(
    "pointsman.parity.misses", "counter", "{miss}", "Golden vectors that a pack did not meet.", ("pack", "stage")
)
PARITY_COSINE: Final = Metric(
    "pointsman.parity.cosine",
    "observable_gauge",
    "1",
    "Least cosine to the reference's embeddings in a pack's last check.",
    ("pack", "tower"),
)
PARITY_DIFFERENCE: Final = Metric(
    "pointsman.parity.difference",
    "observable_gauge",
    "1",
    "Greatest difference to the reference's probabilities in a classifier pack's last check.",
    ("pack",),
)
PARITY_AGE: Final = Metric(
    "pointsman.parity.age",
    "observable_gauge",
    "s",
    "Time since a pack was held against its golden vectors.",
    ("pack", "tower"),
)

# Policy
POLICY_RELOADS: Final = Metric(
    "pointsman.policy.reloads", "counter", "{reload}", "Changed policies, taken over or refused.", ("outcome",)
)
POLICY_INFO: Final = Metric(
    "pointsman.policy.info", "observable_gauge", "{policy}", "1 for the policy that serves.", ("digest",)
)
SHADOW_COMPARED: Final = Metric(
    "pointsman.shadow.compared", "counter", "{request}", "Requests that the shadow policy decided as well."
)
SHADOW_DIFFERENCES: Final = Metric(
    "pointsman.shadow.differences",
    "counter",
    "{request}",
    "Requests that the shadow policy decides otherwise.",
    ("from", "to"),
)
SHADOW_LEFT_OUT: Final = Metric(
    "pointsman.shadow.left_out",
    "counter",
    "{request}",
    "Requests that the shadow policy was to decide as well and could not.",
    ("reason",),
)

# Responses and cost
TOKEN_USAGE: Final = Metric(
    "gen_ai.client.token.usage",
    "histogram",
    "{token}",
    "Tokens of requests and answers, as the upstream counts them.",
    ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.token.type"),
    TOKENS,
)
OPERATION_DURATION: Final = Metric(
    "gen_ai.client.operation.duration",
    "histogram",
    "s",
    "Time from sending a request to its upstream to the end of the answer.",
    ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type"),
    OPERATION_SECONDS,
)
FIRST_CHUNK: Final = Metric(
    "gen_ai.client.operation.time_to_first_chunk",
    "histogram",
    "s",
    "Time from sending a request to its upstream to the first piece of a streamed answer.",
    ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"),
    OPERATION_SECONDS,
)
TOKEN_SPEED: Final = Metric(
    "pointsman.response.tokens",
    "histogram",
    "{token}/s",
    "Tokens a second of an answer, while they came.",
    ("model",),
    SPEEDS,
)
COST: Final = Metric(
    "pointsman.response.cost",
    "counter",
    "{currency}",
    "What answers cost by the policy's prices, in its currency.",
    ("model", "decision"),
)
RESPONSES: Final = Metric(
    "pointsman.responses",
    "counter",
    "{response}",
    "Responses of upstreams that were looked at.",
    ("model", "decision", "status", "unread"),
)
RESPONSES_CHECKED: Final = Metric(
    "pointsman.responses.checked", "counter", "{response}", "Responses that the policy checks.", ("outcome",)
)

# Worker
READY: Final = Metric("pointsman.worker.ready", "up_down_counter", "{worker}", "Workers that take requests.")
HELD_BYTES: Final = Metric(
    "pointsman.worker.held",
    "observable_gauge",
    "By",
    "Request bodies in hand, with what has come of those on their way.",
)
HELD_LIMIT: Final = Metric("pointsman.worker.held_limit", "observable_gauge", "By", "Bodies that may be in hand.")
RECORDS_DROPPED: Final = Metric(
    "pointsman.records.dropped",
    "counter",
    "{record}",
    "Decision records, and what lies beside them, by `kind`, that could not be kept.",
    ("kind", "reason"),
)
TELEMETRY_DROPPED: Final = Metric(
    "pointsman.telemetry.dropped", "counter", "{item}", "What was to be told of requests and was lost.", ("reason",)
)
LOG_LINES_DROPPED: Final = Metric(
    "pointsman.log.lines.dropped", "observable_counter", "{line}", "Lines of the log that nobody took in time."
)
PROCESS_MEMORY: Final = Metric(
    "process.memory.usage", "observable_up_down_counter", "By", "Physical memory that the process uses."
)
PROCESS_CPU: Final = Metric("process.cpu.time", "observable_counter", "s", "CPU time of the process.")

METRICS: Final = tuple(value for value in tuple(vars().values()) if isinstance(value, Metric))
"""All of them, in the order in which they stand here."""
