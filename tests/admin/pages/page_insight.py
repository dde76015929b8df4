"""An insight over the real pipeline of the demo's policy: what it shows are decisions that were really made."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from examples.demo.showcase import showcase
from router.admin.insight import Document, Filter, NobodyAnswersError
from router.config.lint import lint
from router.config.load import LoadedPolicy, load_policy
from router.extproc.house import House
from router.extproc.inspection.showing import parity_document, policy_document
from router.inference.gate import check_encoders
from router.inference.ledger import Ledger
from router.request.apis import detect
from router.request.errors import RequestError

DEMO = Path(__file__).parents[3] / "examples" / "demo" / "policy.yaml"


class PageInsight:
    """Remembers what it was told; explains with a real house where it has one."""

    def __init__(self, policy: Document, parity: Document | None = None, records: list[Document] | None = None) -> None:
        self.shown_policy: Document | None = policy
        self.shown_parity: Document = parity or {"workers": []}
        self.records = records or []
        self.quiet: list[Document] = []
        self.house: House | None = None
        self.asked: list[tuple[str, dict[str, str], bytes]] = []

    def tell(self, record: Document, seconds_ago: float = 0.0) -> Document:
        """Remember a whole record as the newest."""
        at = (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat(timespec="milliseconds")
        told = {"status": None, "failure": None, "captured": None, "worker": 0, "remembered": "worker", **record}
        told["at"] = at.replace("+00:00", "Z")
        self.records.insert(0, told)
        return told

    async def decisions(self, wanted: Filter) -> list[Document]:
        found = [record for record in self.records if _takes(wanted, record)]
        return [{key: value for key, value in one.items() if key != "decisions"} for one in found[: wanted.limit]]

    async def record(self, identifier: str) -> Document | None:
        return next((one for one in self.records if one["record"] == identifier), None)

    async def policy(self) -> Document:
        if self.shown_policy is None:
            raise NobodyAnswersError
        hits = Counter(one["decision"] for one in self.records)
        return {**self.shown_policy, "hits": dict(hits)}

    async def parity(self) -> Document:
        return self.shown_parity

    async def explain(self, path: str, headers: dict[str, str], body: bytes) -> Document:
        self.asked.append((path, headers, body))
        assert self.house is not None
        return await explained(self.house, path, headers, body)

    async def metrics(self) -> bytes:
        return b""

    def silent(self) -> list[Document]:
        return self.quiet


async def explained(house: House, path: str, headers: dict[str, str], body: bytes) -> Document:
    """What the pipeline decides, as a worker tells it."""
    api = detect("POST", path, house.loaded.policy.apis)
    if api is None:
        message = "This is no path of an LLM request."
        return {"error": {"status": 0, "code": "no_llm_request", "message": message, "pointer": None}}
    try:
        judgement = await house.pipeline.judge_body(api, body, headers)
    except RequestError as error:
        told = {"status": error.status, "code": error.code, "message": error.message, "pointer": error.pointer or None}
        return {"error": told}
    answer = judgement.answer
    would = {
        "status": getattr(answer, "status", None),
        "headers": [list(pair) for pair in answer.headers],
        "body_changed": False,
    }
    return {**judgement.record.whole(), "worker": 0, "would": would}


async def showcase_records(house: House) -> list[Document]:
    """A whole record of every request of the showcase."""
    records = []
    for case in showcase():
        body = json.dumps({"model": "auto", "messages": list(case.messages)}).encode()
        told = await explained(house, "/v1/chat/completions", {}, body)
        told.pop("would")
        records.append(told)
    return records


def demo_policy() -> LoadedPolicy:
    return load_policy(DEMO)


def policy_of(loaded: LoadedPolicy) -> Document:
    """The policy's whole document."""
    findings = [
        {
            "severity": each.finding.level,
            "kind": each.finding.kind,
            "message": each.finding.message,
            "line": each.problem.line,
            "column": each.problem.column,
        }
        for each in lint(loaded)
    ]
    return {
        "digest": loaded.policy.digest,
        "path": loaded.path.name,
        "document": loaded.source.text.decode(),
        "workers": [{"worker": 0, "digest": loaded.policy.digest}],
        "findings": findings,
        "findings_complete": True,
        "hits": {},
        **policy_document(loaded),
    }


def parity_of(house: House) -> Document:
    """The packs' document of one worker, after one check."""
    ledger = Ledger()
    check_encoders(house.machinery.encoders, ledger)
    rows: list[dict[str, Any]] = [{"worker": 0, **parity_document(house, ledger, ())}]
    return {"workers": rows}


def _takes(wanted: Filter, record: Document) -> bool:
    signals: dict[str, Any] = record["signals"]
    return (
        wanted.decision in ("", record["decision"])
        and wanted.outcome in ("", record["outcome"])
        and wanted.model in ("", record["model"])
        and (not wanted.signal or bool(signals.get(wanted.signal, {}).get("matched")))
        and (not wanted.failed or any(one["status"] != "observed" for one in signals.values()))
    )
