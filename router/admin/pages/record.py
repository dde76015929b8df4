"""One record, prepared for its view. The playground's answers are shown the same way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from router.admin.pages.evidence import bounds_of, seen
from router.admin.pages.listing import OUTCOMES
from router.admin.pages.pictures import pictures_of, silent_images
from router.admin.pages.rendering import clock, count, milliseconds, size
from router.admin.pages.sentence import sentence
from router.admin.pages.trees import trees_of
from router.admin.pages.waterfall import waterfall

Document = Mapping[str, Any]

_FROM: Final = {
    "route": "the decision's candidates",
    "fallback": "the decision's fallback",
    "policy_fallback": "the policy's fallback",
    "requested_model": "the model that the request named",
    "default_model": "the default model",
}


def record_view(record: Document, policy: Document | None, now: datetime) -> dict[str, Any]:
    """What `record.html.j2` needs. Thresholds are drawn where the policy that decided is the one that serves."""
    current = policy is not None and policy.get("digest") == record.get("policy")
    bounds = bounds_of(policy) if current else {}
    answers = {name: seen(name, one, bounds.get(name)) for name, one in sorted((record.get("signals") or {}).items())}
    pictures = pictures_of(record, answers.values())
    order = {"unknown": 0, "true": 1, "false": 2}
    failure = record.get("failure") or ""
    return {
        "at": record.get("at") or "",
        "images": record.get("images") or 0,
        "duration_ms": record.get("duration_ms"),
        "observed_only": record.get("enforced") is False,
        "identifier": record.get("record") or "",
        "tone": "failure" if failure else record.get("outcome") or "",
        "outcome": "failed" if failure else OUTCOMES.get(record.get("outcome") or "", "handled"),
        "failure": failure,
        "time": clock(record.get("at"), now),
        "sentence": sentence(record, answers),
        "facts": _facts(record),
        "digests": _digests(record, current),
        "current": current,
        "signals": sorted(answers.values(), key=lambda one: (order[one.state], one.score is None, -(one.score or 0.0))),
        "skipped": record.get("skipped") or (),
        "trees": trees_of(record, answers),
        "bars": waterfall(record, answers.values()),
        "pictures": pictures,
        "silent_images": silent_images(record, pictures),
        "texts": (record.get("captured") or {}).get("text") or (),
        "selection": _selection(record),
        "would": record.get("would"),
        "as_json": json.dumps(_without_captured(record), indent=2, ensure_ascii=True),
    }


def _facts(record: Document) -> list[tuple[str, str]]:
    """Size and kind of the request, in words."""
    rows = [
        ("API", record.get("api")),
        ("model asked for", record.get("requested_model")),
        ("profile", record.get("profile")),
        ("turns", record.get("turns")),
        ("images", record.get("images")),
        ("body", None if record.get("body_bytes") is None else size(record["body_bytes"])),
        ("answer", "streamed" if record.get("stream") else None),
        ("took", None if record.get("duration_ms") is None else milliseconds(record["duration_ms"])),
        ("status", record.get("status")),
        ("worker", record.get("worker")),
        ("found in", "the store" if record.get("remembered") == "store" else None),
    ]
    return [(name, str(value)) for name, value in rows if value is not None]


def _digests(record: Document, current: bool) -> list[tuple[str, str, str]]:
    """Name, digest, remark."""
    rows = []
    if record.get("policy"):
        remark = "the policy that serves now" if current else "not the policy that serves now"
        rows.append(("policy", record["policy"], remark))
    packs: dict[str, list[str]] = {}
    for name, one in sorted((record.get("signals") or {}).items()):
        if one.get("pack"):
            packs.setdefault(one["pack"], []).append(name)
    rows += [("pack", digest, f"asked by {_few(names)}") for digest, names in packs.items()]
    state = (record.get("selection") or {}).get("state")
    if state:
        rows.append(("selection state", state["digest"], f"version {state['version']}"))
    return rows


def _few(names: list[str]) -> str:
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {count(len(names) - 4, 'other')}"


def _selection(record: Document) -> dict[str, Any] | None:
    told = record.get("selection")
    if not told:
        return None
    return {
        "by": told.get("by") or "",
        "source": _FROM.get(told.get("from", ""), told.get("from", "")),
        "reason": (told.get("reason") or "").replace("_", " "),
        "seed": told.get("seed") or "",
        "tokens": told.get("text_tokens"),
        "output_tokens": told.get("output_tokens"),
        "candidates": [{**one, "chosen": one["model"] == record.get("model")} for one in told.get("candidates") or ()],
        "filtered": list((told.get("filtered") or {}).items()),
    }


def _without_captured(record: Document) -> dict[str, Any]:
    """The record for copying: what was captured stays where it is shown."""
    return {key: value for key, value in record.items() if key != "captured"}
