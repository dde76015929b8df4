"""What there is to be seen of the running workers, as documents of plain JSON: the contract between asking and showing.

`asking.py` gets them from the workers; pages and the JSON answers show them. No document holds content of a request,
save what a policy had captured, under `captured`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which handled requests are wanted; what is empty does not matter. The newest `limit` of them are.

    `outcome` is `route`, `refuse` or `clarify`. `signal` is the name of one that matched, as in `image/radiograph`.
    `failed`: at least one signal was not observed, or the request could not be judged at all. `since` is a moment in
    RFC 3339, or a span such as `90m`, `12h` or `7d` back from now.
    """

    decision: str = ""
    outcome: str = ""
    model: str = ""
    signal: str = ""
    failed: bool = False
    since: str = ""
    limit: int = 100


class WrongFilterError(ValueError):
    """A filter that says nothing, such as a `since` that is no time; the text is for who wrote it."""


class Insight(Protocol):
    """Asks all workers; one that does not answer in about a second is left out and is among `silent`."""

    async def decisions(self, wanted: Filter) -> list[Document]:
        """Handled LLM requests, the newest first, of the few hundred that each worker remembers.

        Each is what a record's `summary()` gives, and `at` (when it came, RFC 3339 in UTC with milliseconds), `worker`
        (index), `status` (of our own answer; None where the request went on), and `failure`: None, or the kind or code
        of one that could not be read or judged. Such a one has the same keys, `decision` is `failure`, `reason` is the
        same as `failure`, `signals` is empty, and what is not known is None. Raises WrongFilterError.
        """

    async def record(self, identifier: str) -> Document | None:
        """One request by its record's identifier; None where nobody knows it (any more).

        As in `decisions`, and `decisions`: its trees, which a record's `whole()` gives: a list of {name, guard,
        priority, considered, matched (True, False, or None: could not change the outcome), tree}. A tree is {kind:
        `signal`, `all`, `any`, `at_least` or `not`, state: `true`, `false`, `unknown` or `open` (not asked),
        confidence, signal and within and labels for a leaf, least for `at_least`, children}. `captured` is None, or
        {"text": [str], "images": [{"index", "media_type", "data_base64"}]}. `remembered` tells where it was found:
        `worker` or `store`; in a store there is no `worker` (None) and no `status`.
        """

    async def policy(self) -> Document:
        """The policy that is served.

        {
          "digest": str, "path": str (name of the file), "document": str (YAML as written),
          "workers": [{"worker": int, "digest": str}],       of those that answered; others than `digest` for moments
          "findings": [{"severity": "error" | "warning" | "note", "kind", "message", "line", "column"}],
          "findings_complete": bool                          False where there was no time to prove more
          "decisions": [{"name", "profile": str | None, "priority": int, "guard": bool,
                         "on_unknown": "match" | "no_match", "outcome": "route" | "refuse" | "clarify",
                         "models": [str], "select": str | None, "status": int | None, "code": str | None,
                         "condition": {"kind", "signal"?, "within"?, "labels"?, "least"?, "children"?}}],
          "default_model": str, "on_failure": "closed" | "open", "observe_only": bool,
          "signals": [{"name": "image/radiograph", "family", "threshold": float | None, "asked": bool,
                       "matching": [float | None, float | None] | None}],     range of the score that is a match
          "projections": [{"name": "band/risk_level", "kind": "partition" | "score" | "band", "of": [signal names],
                           "labels": [str], "threshold": float | None}],
          "upstreams": [{"model", "cluster", "rewrite_model", "modalities": [str] | None, "context_tokens": int | None,
                         "quality": float | None, "price": {"input_per_million", "output_per_million"} | None}],
          "hits": {decision: count}                          over all workers, since each began to serve this policy
        }

        Raises NobodyAnswersError where no worker does.
        """

    async def parity(self) -> Document:
        """How far the packs that serve are from their references.

        {"workers": [{"worker": int, "interval": float (seconds between checks, 0: at the start only), "packs": [
            {"reference": str (as the policy names it, or `text` / `vision`), "name", "digest",
             "towers": [{"kind": "text" | "vision" | "patches" | "classifier", "precision", "measure": `cosine` or
                        `probability difference`, "gate": float | None, "worst": float | None, "mean": float | None,
                        "drift_allowed": bool}],              figures of the export, None where the pack has none
             "last_check": RFC 3339 | None, "cosine": float | None (least of the last check),
             "difference": float | None (greatest of the last check, of a classifier), "misses": [str]}]}]}
        """

    async def explain(self, path: str, headers: dict[str, str], body: bytes) -> Document:
        """What would be decided about a POST of this body, by a worker that serves; nothing is recorded.

        What a record's `whole()` gives, and `worker` and `would`: {"status": int | None (of our own answer), "headers":
        [[name, value]] set on the request or on our answer, "body_changed": bool}. Or {"error": {"status": int (what
        the client would get, or 503 where nobody has time to explain), "code", "message", "pointer": str | None}}.
        """

    async def metrics(self) -> bytes:
        """The metrics of all workers in Prometheus' text format, with the label `worker`."""

    def silent(self) -> list[Document]:
        """Workers that did not answer when asked last: {"worker": int, "why": str}."""


class NobodyAnswersError(Exception):
    """No worker answers: they start, they end, or they hang; `/readyz` tells which."""
