"""Fields of short requests, and what else conversations say."""

from __future__ import annotations

from pathlib import Path

from models.report.outcome import Found, found
from models.report.running import policy_of, run, said
from models.report.sets import rows, sample
from router.evaluation.markdown import label_table


def measure(data: Path, folder: Path, limit: int, seed: int) -> tuple[tuple[str, ...], list[Found], list[str]]:
    """Sizes, figures and tables."""
    short = sample(rows(data, "authored/domain"), limit * 2, seed)
    chats = sample(rows(data, "authored/conversations"), limit, seed)
    cases = [
        said(f"short/{index}", row["text"], labels={"domain/topic": row["label"]}) for index, row in enumerate(short)
    ]
    done = run(policy_of({"domain": {"topic": {}}}), cases, folder, "domain")
    (labels,) = done.report.labels
    found_rows = found("short requests: right field", labels.accuracy, labels.accuracy.n, least=0.75)
    found_rows.append(Found("short requests: macro-F1", labels.accuracy.n, labels.macro_f1, least=0.72))
    if labels.answered:
        sure = labels.answered
        found_rows += found("short requests: right where it answers", sure, sure.n, least=0.9)
        found_rows.append(Found("short requests: share that it answers", labels.accuracy.n, sure.n / labels.accuracy.n))
    talk = [
        {
            "name": f"chats/{index}",
            "body": row["request"],
            "expect": {
                "signals": {"reask/again": row["expect"]["reask"]},
                "labels": {"domain/topic": row["expect"]["topic"]},
            },
        }
        for index, row in enumerate(chats)
    ]
    spoken = run(policy_of({"domain": {"topic": {}}, "reask": {"again": {}}}), talk, folder, "conversations")
    reask = spoken.figures("reask/again", ["chats"])
    found_rows += found("conversations: right field of the last turn", spoken.report.labels[0].accuracy, len(chats))
    found_rows += found("conversations: questions asked again that are found", reask.recall, reask.positives)
    found_rows += found("conversations: false alarms of these", reask.false_positives, reask.negatives)
    sizes = (f"{len(short)} short requests of 14 fields", f"{len(chats)} conversations")
    return sizes, found_rows, [label_table(labels)]
