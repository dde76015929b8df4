"""A record in one sentence: what became of the request, by which decision, and because of what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from router.admin.pages.evidence import Seen
from router.admin.pages.rendering import figure, score
from router.admin.pages.trees import asked_of

Document = Mapping[str, Any]
REASONS_SHOWN: Final = 3

_DEEDS: Final = {"route": "Sent to", "refuse": "Refused", "clarify": "Answered with a question"}
_UNJUDGED: Final = {"route": "Let through without being judged", "refuse": "Refused without being judged"}


@dataclass(frozen=True, slots=True)
class Because:
    """A signal and what is said of it, as in `image/radiograph` and `scored 0.97 over 0.50 in image 2`."""

    signal: str
    said: str
    state: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """`opening` names the deed; `decision` who did it, empty where nobody did; then why."""

    opening: str
    model: str
    by: str
    decision: str
    because: tuple[Because, ...]
    more: int
    closing: str


def sentence(record: Document, signals: Mapping[str, Seen]) -> Sentence:
    """The record's sentence; `signals` are its answers by name."""
    opening, model = _deed(record)
    if record.get("failure"):
        return Sentence(opening, "", "", "", (), 0, record["failure"].replace("_", " "))
    won = next((one for one in record.get("decisions", ()) if one["name"] == record["decision"]), None)
    if won is None:
        return Sentence(opening, model, "", "", (), 0, _without_winner(record))
    tree = won["tree"]
    leaves = list(dict.fromkeys(_decisive(tree, tree["state"])))
    because = [_because(signals, *leaf) for leaf in leaves]
    told = tuple(because[:REASONS_SHOWN])
    closing = ""
    if tree["state"] != "true":
        closing = "what could not be answered counts as matched there"
    return Sentence(
        opening,
        model,
        "guard" if won["guard"] else "decision",
        won["name"],
        told,
        len(because) - len(told),
        closing,
    )


def _deed(record: Document) -> tuple[str, str]:
    would = "" if record.get("enforced", True) else "Would have been "
    kind = record.get("outcome") or ""
    words = _UNJUDGED.get(kind, "Not judged") if record.get("failure") else _DEEDS.get(kind, "Handled")
    if would:
        words = would + words[0].lower() + words[1:]
    return words, (record.get("model") or "") if kind == "route" else ""


def _without_winner(record: Document) -> str:
    if record.get("reason") == "requested_model":
        return "the request named this model and the policy respects that"
    selection = record.get("selection") or {}
    if selection.get("reason") == "no_capable_model":
        return "no model that it may go to can take it"
    if selection.get("from") == "default_model":
        return "no decision matched, and this is the default model"
    return "no decision matched"


def _decisive(root: Document, state: str) -> Iterator[tuple[str, str, str]]:
    """Leaves by which the tree has its state: name, state, and the bounds that the condition sets itself."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node["kind"] == "signal":
            yield node["signal"], node["state"], asked_of(node)
            continue
        children = node.get("children", ())
        if node["kind"] == "not":
            waiting.extend(children)
            continue
        telling = [child for child in children if child["state"] == node["state"]]
        decides_alone = node["state"] == {"any": "true", "all": "false"}.get(node["kind"])
        if decides_alone:
            telling = sorted(telling, key=lambda child: -(child.get("confidence") or 0.0))[:1]
        waiting.extend(reversed(telling))


def _because(signals: Mapping[str, Seen], name: str, state: str, asked: str) -> Because:
    answer = signals.get(name)
    if answer is None:
        return Because(name, "was not asked", state)
    if answer.state == "unknown":
        return Because(name, f"{answer.word} ({answer.reason})" if answer.reason else f"is {answer.word}", state)
    return Because(name, _measured(answer, asked) + _where(answer), state)


def _measured(answer: Seen, asked: str) -> str:
    label = f" as “{answer.label}”" if answer.kind == "derived" and answer.label else ""
    if asked:
        number = answer.score if answer.value is None else answer.value
        shown = "" if number is None else f" {figure(round(number, 4))}"
        return f"is{shown}{label} (asked: {asked})"
    if answer.bound is not None and answer.bound.counted and answer.value is not None:
        side = "over" if answer.value >= answer.bound.at else "under"
        return f"counted {figure(answer.value)}, {side} {figure(answer.bound.at)}"
    if answer.score is None or (answer.value is not None and (answer.bound is None or answer.bound.counted)):
        return ("matched" if answer.state == "true" else "did not match") + label
    if answer.bound is None:
        return f"scored {score(answer.score)}{label}"
    side = "over" if answer.score >= answer.bound.at else "under"
    return f"scored {score(answer.score)} {side} {score(answer.bound.at)}{label}"


def _where(answer: Seen) -> str:
    if not answer.images or answer.state != "true":
        return ""
    shown = ", ".join(map(str, answer.images[:4]))
    more = len(answer.images) - 4
    return f" in image{'s' if len(answer.images) > 1 else ''} {shown}" + (f" and {more} more" if more > 0 else "")
