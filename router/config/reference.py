"""Writes the reference of signal families, `docs/signals.md`, from their modules' docstrings and settings.

Nothing is said here that is not said there; whatever in the page is wrong is wrong in `router/signals/`. The guide to
the rest of a policy is written by hand, in `docs/policy.md`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic_core import PydanticUndefined

from router.config.condition_schema import Schema
from router.config.family_docs import family_docs
from router.config.json_schema import policy_schema, policy_schema_text
from router.signals.registry import FAMILIES, Family

SCHEMA_FILE: Final = "policy.schema.json"
SIGNALS_FILE: Final = "signals.md"

_INTRODUCTION: Final = """\
# Signals

<!-- Written by `pointsman schema --write docs` from the modules in router/signals/; changes belong there. -->

A signal asks one question about the request. It is defined under `signals`, as family, name and settings, and asked for
by conditions and projections as `{family: name}`; see [policy.md](policy.md). A definition that keeps every default may
be left empty: `secret: {credential: {}}`.

An answer says whether the signal **matched**, and, by family, has a **score** in 0-1, a **value** in a unit of its own,
and a **label**. Predicates `gte`, `gt`, `lte` and `lt` compare the value where the family has one, else the score. What
could not be judged is unknown, never "no match"."""


def signals_reference() -> str:
    """The page, in Markdown."""
    defs = policy_schema()["$defs"]
    sections = (_section(family, row, defs) for family, row in FAMILIES.items())
    return "\n\n".join([_INTRODUCTION, "\n".join(_contents()), *sections]) + "\n"


def write_reference(folder: Path) -> tuple[Path, ...]:
    """Write the JSON Schema and the page into the folder; their paths. OSError where that is not possible."""
    texts = {SCHEMA_FILE: policy_schema_text(), SIGNALS_FILE: signals_reference()}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return tuple(folder / name for name in texts)


def _contents() -> Iterator[str]:
    yield "| family | asks for | score | value | label | needs |"
    yield "|---|---|---|---|---|---|"
    for family, row in FAMILIES.items():
        needs = ", ".join(f"`encoders.{tower}`" for tower in sorted(row.needs)) or "-"
        has = ["-" if row.scores == "none" else row.scores, _yes(row.counts), _yes(row.labels)]
        opening = family_docs(family).opening.removesuffix(".")
        yield f"| [`{family}`](#{family}) | {_cell(opening)} | {' | '.join(has)} | {needs} |"


def _yes(true: bool) -> str:
    return "yes" if true else "-"


def _section(family: str, row: Family, defs: dict[str, Schema]) -> str:
    docs = family_docs(family)
    module = row.settings.__module__.replace(".", "/")
    parts = [f"## {family}", docs.opening, f"```yaml\nsignals:\n{_indented(docs.snippet)}\n```", docs.text]
    if row.builtins:
        names = ", ".join(f"`{name}`" for name in row.builtins)
        parts.append(f"Names that need no definition: {names}.")
    parts.append("\n".join(_keys(row, defs)))
    parts.append(f"Source: [{module}.py](../{module}.py)")
    return "\n\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else "" for line in text.splitlines())


def _keys(row: Family, defs: dict[str, Schema]) -> Iterator[str]:
    yield "| key | takes | default | what it says |"
    yield "|---|---|---|---|"
    for key, schema in defs[row.settings.__name__]["properties"].items():
        default = row.settings.model_fields[key].get_default(call_default_factory=True, validated_data={})
        yield f"| `{key}` | {_takes(schema, defs)} | {_default(default)} | {_cell(schema['description'])} |"


def _default(value: Any) -> str:
    if value is PydanticUndefined:
        return "required"
    if value is None:
        return "-"
    if isinstance(value, tuple):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _takes(schema: Schema, defs: dict[str, Schema]) -> str:
    """The kind of value, in words."""
    if "$ref" in schema:
        return _takes(defs[schema["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in schema:
        kinds = (_takes(each, defs) for each in schema["anyOf"] if each.get("type") != "null")
        return " or ".join(dict.fromkeys(kinds))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    match schema.get("type"):
        case "array":
            return f"list of {_takes(schema.get('items', {}), defs)}"
        case "object":
            inner: Schema = schema.get("additionalProperties") or next(
                iter(schema.get("patternProperties", {}).values()), {}
            )
            return f"mapping of names to {_takes(inner, defs)}"
        case "integer":
            return f"whole number{_range(schema)}"
        case "number":
            return f"number{_range(schema)}"
        case "boolean":
            return "`true`, `false`"
        case _:
            return "text"


def _range(schema: Schema) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    least = f" from {low:g}" if low is not None else f" above {above:g}" if above is not None else ""
    most = f" to {high:g}" if high is not None else f" below {below:g}" if below is not None else ""
    return least + most


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
