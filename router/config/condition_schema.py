"""The JSON Schema of conditions and of summands, whose reading is code: `conditions.py` and `projections.py`.

What a family's answers have is known here, so that a range of what has no number is refused; whether a name stands in
the policy is not.
"""

from __future__ import annotations

from typing import Any, Final

from router.config.conditions import PREDICATES
from router.config.projections import MAX_WEIGHT
from router.config.schema import ProjectionSettings
from router.signals.registry import FAMILIES, Family

Schema = dict[str, Any]

DEFS: Final = "#/$defs/"
PROJECTIONS: Final = tuple(ProjectionSettings.model_fields)
NAME: Final[Schema] = {"type": "string", "minLength": 1}
ONE_END_EACH: Final[Schema] = {
    "allOf": [
        {"not": {"required": list(ends), "properties": {end: {"type": "number"} for end in ends}}}
        for ends in (("gte", "gt"), ("lte", "lt"))
    ]
}
"""Whether a bound belongs to a range is said once."""


def condition() -> Schema:
    """Of a condition tree; refers to itself as `Condition`."""
    children: Schema = {"type": "array", "minItems": 1, "items": {"$ref": f"{DEFS}Condition"}}
    return {
        "description": "A condition tree: an operator, or a signal or projection with what is asked of it.",
        "type": "object",
        "properties": {
            "all": children | {"description": "True when all of these are."},
            "any": children | {"description": "True when one of these is."},
            "at_least": {
                "type": "integer",
                "minimum": 1,
                "description": "How many of those under `of` have to be true.",
            },
            "of": children | {"description": "What at_least counts."},
            "not": {"$ref": f"{DEFS}Condition", "description": "True when this is false; unknown stays unknown."},
            **_asking(),
        },
        "additionalProperties": False,
        "oneOf": [{"required": [key]} for key in ("all", "any", "at_least", "not", *FAMILIES, *PROJECTIONS)],
        "dependentRequired": {"at_least": ["of"], "of": ["at_least"]},
        "dependentSchemas": {
            "all": {"maxProperties": 1},
            "any": {"maxProperties": 1},
            "at_least": {"maxProperties": 2},
            "not": {"maxProperties": 1},
            **_askable(),
        },
        **ONE_END_EACH,
    }


def score_input() -> Schema:
    """Of one entry under a score's `inputs`."""
    return {
        "description": "A summand: a signal or projection, how much it weighs, and what of it is added.",
        "type": "object",
        "properties": {
            **_asking(),
            "weight": {
                "type": "number",
                "minimum": -MAX_WEIGHT,
                "maximum": MAX_WEIGHT,
                "description": "What it is multiplied by.",
            },
            "by": {
                "anyOf": [{"enum": ["match", "score", "value"]}, {"type": "null"}],
                "description": "match: 1 when it matched, else 0; score: its score; value: its count or measure. "
                "Omitted: match with a predicate, value for a score, else the score where the family has one.",
            },
        },
        "required": ["weight"],
        "additionalProperties": False,
        "oneOf": [{"required": [key]} for key in (*FAMILIES, *PROJECTIONS)],
        "dependentSchemas": _askable(),
        **ONE_END_EACH,
    }


def _asking() -> dict[str, Schema]:
    """The keys that name a signal or projection, and those of what is asked of it."""
    bounds = {
        "gte": "Its number is this or greater.",
        "gt": "Its number is greater than this.",
        "lte": "Its number is this or less.",
        "lt": "Its number is less than this.",
    }
    label: Schema = {
        "anyOf": [NAME, {"type": "array", "minItems": 1, "items": NAME}],
        "description": "Its label is this, or one of these.",
    }
    return {
        **{key: reference(key) for key in (*FAMILIES, *PROJECTIONS)},
        **{key: {"type": "number", "description": told} for key, told in bounds.items()},
        "label": label,
    }


def reference(key: str) -> Schema:
    """Of the name of a signal or projection of that family."""
    section = "projections" if key in PROJECTIONS else "signals"
    told = f"The name of one of those under {section}.{key}."
    builtins = sorted(FAMILIES[key].builtins) if key in FAMILIES else []
    if not builtins:
        return {**NAME, "description": told}
    return {**NAME, "description": f"{told} Needs no definition: {', '.join(builtins)}.", "examples": builtins}


def _askable() -> dict[str, Schema]:
    """By what is named, the predicates that it does not take, and those that it needs."""
    rules: dict[str, Schema] = {}
    for family, row in FAMILIES.items():
        refused = [key for key in PREDICATES if (not row.labels if key == "label" else not measures(row))]
        if refused:
            rules[family] = {"properties": dict.fromkeys(refused, False)}
    rules["score"] = {"properties": {"label": False}}
    bounds = [key for key in PREDICATES if key != "label"]
    rules["band"] = {"required": ["label"], "properties": dict.fromkeys(bounds, False)}
    return rules


def measures(row: Family) -> bool:
    """Whether the family's answers have a number."""
    return row.counts or row.scores != "none"
