"""`pointsman schema`: the JSON Schema of policies, for editors; and what the repository's docs keep of it."""

from __future__ import annotations

from pathlib import Path

from router.cli.output import DOES_NOT_HOLD, FINE, WRONG_USE, complain, note
from router.config.json_schema import policy_schema_text
from router.config.reference import write_reference


def run_schema(write: Path | None) -> int:
    """Print the schema, or write it and the reference of signals into a folder."""
    if write is None:
        print(policy_schema_text(), end="")
        return FINE
    if not write.is_dir():
        complain(f"{write}: {'is no folder' if write.exists() else 'no such folder'}")
        return WRONG_USE
    try:
        written = write_reference(write)
    except OSError as error:
        complain(f"{write}: cannot be written: {error.strerror}")
        return DOES_NOT_HOLD
    for path in written:
        note(f"wrote {path}")
    return FINE
