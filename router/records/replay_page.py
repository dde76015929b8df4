"""What a replay came to, as one HTML file that needs nothing else: no scripts, nothing fetched, no content."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from router.records.replay import Replay


def render(came: Replay, policy: str) -> str:
    """The page's text; `policy` is what the new policy is called."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    most = max((tally.count for tally in came.changes.values()), default=1)
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return environment.get_template("replay.html.j2").render(came=came, policy=policy, made=made, most=most)
