"""What Envoy's access logs and later filters are told of a decision, as dynamic metadata.

Words of the policy's author and identifiers of ours; nothing that a client wrote.
"""

from __future__ import annotations

from router.records.record import DecisionRecord

Metadata = tuple[tuple[str, str], ...]


def metadata_of(record: DecisionRecord) -> Metadata:
    """Keys and values in the namespace `pointsman`; what there is not, such as the model of a refusal, is left out."""
    pairs = (
        ("decision", record.decision),
        ("outcome", record.outcome),
        ("reason", record.verdict.reason),
        ("profile", record.verdict.profile),
        ("model", record.model),
        ("cluster", record.cluster),
        ("record", record.record),
    )
    return tuple((key, value) for key, value in pairs if value)


def metadata_of_failure(decision: str, outcome: str, reason: str, record: str) -> Metadata:
    """As `metadata_of`, for a request that was not judged; `reason` says why, in our own words."""
    return (("decision", decision), ("outcome", outcome), ("reason", reason), ("record", record))
