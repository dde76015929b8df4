"""Personal data by its spans, harmless texts that must not seem to have any, and secrets by halves of their set."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from models.report.outcome import Found, found
from models.report.running import Run, policy_of, run, said
from models.report.sets import Row, rows, sample, secrets_half, texts
from models.text.pii_data import digest, joined, part_of, seen
from router.evaluation.markdown import figure, table
from router.evaluation.run import Came
from router.evaluation.statistics import wilson
from router.packs.store import open_pack

CHECKED: Final = ("EMAIL_ADDRESS", "CREDIT_CARD", "US_SSN", "IP_ADDRESS", "IBAN_CODE", "PHONE_NUMBER")
"""Types that patterns find, with check digits where there are any, and that the set has."""

HARMLESS: Final = (
    "authored/long_benign",
    "authored/security_docs",
    "authored/domain",
    "sources/benign_instructions",
    "sources/gpteacher",
)

NOTES: Final = {("patterns", "authored/long_benign"): "one of the 40 does hold addresses: of members"}

PEOPLE: Final = Path(__file__).with_name("people.txt")
"""What the head took for people in harmless texts, judged by hand; what nobody judged counts as a mistake."""

PIECE_OF_A_PROGRAM: Final = re.compile(
    r"utils\.|secrets\.New|\[a-z|\[a-zA|^sourceContent$|%s$|/(?:services|workflows|triggers|webhookb2)/$|(?:-|LTAI)$"
    r'|^"type": "service_account"$'
)
"""Fixtures that are no texts but pieces of the scanner's program, such as a pattern or the beginning of a key."""


def measure_pii(data: Path, folder: Path, limit: int, seed: int) -> tuple[tuple[str, ...], list[Found], list[str]]:
    """Sizes, figures and tables."""
    person = _has_head("pii")
    signals: dict[str, Any] = {"patterns": {}}
    if person:
        signals["person"] = {"types": ["PERSON"]}
    spans = sample(rows(data, "sources/presidio_pii"), limit * 4, seed)
    learned = {marked.text for marked in seen(data)}
    harmless = {name: sample([t for t in texts(data, name) if t not in learned], limit, seed) for name in HARMLESS}
    cases = [said(f"pii/{i}", row["text"], signals=_expected(row, signals)) for i, row in enumerate(spans)]
    for name, some in harmless.items():
        quiet = {f"pii/{each}": False for each in signals}
        cases += [said(f"{name}/{i}", text, signals=quiet) for i, text in enumerate(some)]
    done = run(policy_of({"pii": signals}), cases, folder, "pii")
    came = {each.case.name: each for each in done.came}
    pairs = [(row, came[f"pii/{i}"]) for i, row in enumerate(spans)]
    rows_found, by_type = _patterns(pairs)
    if person:
        rows_found += _person(pairs)
    rows_found += _quiet(done, signals, harmless)
    if person:
        rows_found += _nobody(came, harmless)
    sizes = (f"{len(spans)} texts with spans", f"{sum(map(len, harmless.values()))} harmless texts")
    return sizes, rows_found, [by_type]


def _has_head(name: str) -> bool:
    pack = open_pack("starter", "text", Path("/nowhere"))
    heads = getattr(pack.manifest, "heads", None)
    return any(each.name == name for each in getattr(heads, "heads", ()))


def _expected(row: Row, signals: dict[str, Any]) -> dict[str, bool]:
    kinds = {span["type"] for span in row["spans"]}
    told = {"pii/patterns": bool(kinds & set(CHECKED)), "pii/person": "PERSON" in kinds}
    # Patterns look for more types than the set marks.
    return {name: value for name, value in told.items() if name.split("/")[1] in signals and (value or not kinds)}


def _told(came: Came, signal: str) -> list[tuple[str, int, int]]:
    seen = came.observations.get(signal)
    if seen is None or not seen.matched:
        return []
    return [(each.label, *each.span) for each in seen.evidence if each.span is not None]


def _overlaps(span: dict[str, Any], start: int, end: int) -> bool:
    return bool(start < span["end"] and span["start"] < end)


def _patterns(pairs: Sequence[tuple[Row, Came]]) -> tuple[list[Found], str]:
    there, hits, told, right = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for row, came in pairs:
        seen = [each for each in _told(came, "pii/patterns") if each[0] in CHECKED]
        for span in row["spans"]:
            if span["type"] in CHECKED:
                there[span["type"]] += 1
                hits[span["type"]] += any(k == span["type"] and _overlaps(span, a, b) for k, a, b in seen)
        for kind, start, end in seen:
            told[kind] += 1
            right[kind] += any(span["type"] == kind and _overlaps(span, start, end) for span in row["spans"])
    kept = found("patterns: recall of values", wilson(hits.total(), there.total()), there.total(), least=0.97)
    kept += found("patterns: precision of values", wilson(right.total(), told.total()), told.total(), least=0.97)
    lines = [
        (kind, str(there[kind]), figure(wilson(hits[kind], there[kind])), figure(wilson(right[kind], told[kind])))
        for kind in CHECKED
    ]
    return kept, table(("type", "values", "recall", "precision"), lines)


def _person(pairs: Sequence[tuple[Row, Came]]) -> list[Found]:
    """On templates that the head's training never saw; names beside each other are one, as they are when served."""
    there = hits = told = right = 0
    for row, came in pairs:
        if part_of(row["template"]) != "test":
            continue
        marked = sorted((span["start"], span["end"], span["type"]) for span in row["spans"] if span["type"] == "PERSON")
        names = [{"start": start, "end": end} for start, end, _ in joined(row["text"], marked)]
        seen = _told(came, "pii/person")
        there += len(names)
        told += len(seen)
        hits += sum(any(_overlaps(span, a, b) for _, a, b in seen) for span in names)
        right += sum(any(_overlaps(span, a, b) for span in names) for _, a, b in seen)
    recall, precision = wilson(hits, there), wilson(right, told)
    kept = found("PERSON, unseen templates: recall by overlap", recall, there)
    kept += found("PERSON, unseen templates: precision by overlap", precision, told)
    if recall and precision and hits and right:
        f1 = 2 * recall.value * precision.value / (recall.value + precision.value)
        kept.append(Found("PERSON, unseen templates: F1 by overlap", there, f1, least=0.88))
    return kept


def _quiet(done: Run, signals: dict[str, Any], harmless: dict[str, list[str]]) -> list[Found]:
    kept = []
    for signal in signals:
        for name, some in harmless.items():
            alarms = done.figures(f"pii/{signal}", [name]).false_positives
            what = f"{signal}: harmless texts flagged, {name.split('/')[1]}"
            if signal == "person":
                kept += found(what, alarms, len(some), note="people of history, of stories and of examples among them")
            else:
                kept += found(what, alarms, len(some), most=0.03, note=NOTES.get((signal, name), ""))
    return kept


def _nobody(came: Mapping[str, Came], harmless: Mapping[str, list[str]]) -> list[Found]:
    """Texts in which something is told and nothing of it is a person's name, as `PEOPLE` says."""
    names = {line.split("\t")[0]: {word[1:] for word in line.split("\t") if word[0] == "+"} for line in _judged()}
    kept = []
    for name, some in harmless.items():
        wrong = 0
        for index, text in enumerate(some):
            told = {" ".join(text[start:end].split()) for _, start, end in _told(came[f"{name}/{index}"], "pii/person")}
            wrong += bool(told) and not told & names.get(digest(text), set())
        what = f"person: harmless texts flagged that name nobody, {name.split('/')[1]}"
        note = "judged by hand: who is named, in life or in a story, is no mistake"
        kept += found(what, wilson(wrong, len(some)), len(some), most=0.03, note=note)
    return kept


def _judged() -> list[str]:
    lines = PEOPLE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def measure_secrets(data: Path, folder: Path, limit: int, seed: int) -> tuple[tuple[str, ...], list[Found], list[str]]:
    """Sizes, figures and tables."""
    harmless = {name: sample(texts(data, name), limit, seed) for name in HARMLESS}
    cases = []
    for index, row in enumerate(rows(data, "sources/secrets_fixtures")):
        text = base64.b64decode(row["text_base64"]).decode()
        secret = row["label"] != "not_secret"
        half = secrets_half(row).replace(" ", "_")
        group = "piece" if secret and PIECE_OF_A_PROGRAM.search(text.strip()) else half
        cases.append(said(f"{group}/{index}", text, signals={"secret/credential": secret}))
    for name, some in harmless.items():
        cases += [said(f"{name}/{i}", text, signals={"secret/credential": False}) for i, text in enumerate(some)]
    done = run(policy_of({"secret": {"credential": {}}}), cases, folder, "secrets")
    kept, sizes = [], []
    for half in ("held_out", "tuning"):
        each = done.figures("secret/credential", [half])
        goal, name = (0.90, 0.95) if half == "held_out" else (None, None), half.replace("_", " ")
        note = "its misses were seen before shapes of more vendors were added" if half == "held_out" else ""
        kept += found(f"{name} half: recall", each.recall, each.positives, least=goal[0], note=note)
        told = round(each.precision.n) if each.precision else 0
        kept += found(f"{name} half: precision", each.precision, told, least=goal[1])
        sizes.append(f"{name} half: {each.positives} secrets, {each.negatives} that are none")
    alarms = done.figures("secret/credential", list(harmless))
    kept += found("harmless texts flagged", alarms.false_positives, alarms.negatives)
    pieces = sum(case["name"].startswith("piece/") for case in cases)
    return (*sizes, f"{pieces} fixtures left out that are pieces of a scanner's program"), kept, []
