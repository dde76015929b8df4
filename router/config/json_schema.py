"""A JSON Schema (draft 2020-12) of policy files, for editors and for whoever writes policies by program.

Made from the models that read the file, so that descriptions, defaults and bounds are the same; conditions, whose
reading is code, come from `condition_schema.py`. The schema accepts whatever the loader accepts, but for numbers and
booleans in quotes or in each other's place and blanks around a header's name, and refuses what is wrong in itself.
Whether names refer to anything is only known to the loader.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema

from router.config.condition_schema import DEFS, NAME, ONE_END_EACH, Schema, condition, measures, reference, score_input
from router.config.family_docs import family_docs
from router.config.schema import (
    BandSettings,
    DecisionSettings,
    IntervalSettings,
    PartitionSettings,
    PolicyFile,
    ProfileSettings,
    RespondSettings,
    ScoreSettings,
    UpstreamSettings,
)
from router.config.selecting import PickSettings, SelectSettings, WeightedSettings
from router.signals.registry import FAMILIES
from router.signals.settings import SignalSettings

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def _one_of(*keys: str) -> Schema:
    """Exactly one of the keys has a value; null is none."""
    return {"oneOf": [{"required": [key], "properties": {key: {"not": {"type": "null"}}}} for key in keys]}


_RULES: Final[Mapping[type[BaseModel], Schema]] = {
    DecisionSettings: _one_of("route", "respond"),
    RespondSettings: _one_of("clarify", "message")
    | {
        "if": {"required": ["clarify"], "properties": {"clarify": {"type": "string"}}},
        "then": {"properties": {"status": {"type": "null"}, "code": {"type": "null"}}},
    },
    ProfileSettings: {
        "anyOf": [
            {"required": ["models"], "properties": {"models": {"minItems": 1}}},
            {"required": ["header"], "properties": {"header": {"type": "object"}}},
        ]
    },
    PartitionSettings: {
        "if": {"required": ["method"], "properties": {"method": {"const": "softmax"}}},
        "else": {"properties": {"temperature": False, "none": False, "threshold": False}},
    },
    IntervalSettings: ONE_END_EACH,
    SelectSettings: {"minProperties": 1, "maxProperties": 1},
    PickSettings: {"minProperties": 1, "maxProperties": 1},
    WeightedSettings: {
        "if": {"required": ["sticky"], "properties": {"sticky": {"const": "header"}}},
        "then": {"required": ["header"], "properties": {"header": {"minLength": 1}}},
        "else": {"properties": {"header": {"maxLength": 0}}},
    },
}
"""What models check across their keys, as far as a schema can say it."""


def policy_schema() -> Schema:
    """The schema of a whole policy file, as JSON's types."""
    models: list[type[BaseModel]] = [PolicyFile, *(row.settings for row in FAMILIES.values())]
    refs, made = models_json_schema([(model, "validation") for model in models])
    defs: dict[str, Schema] = made["$defs"]
    refer = {model: ref for (model, _), ref in refs.items()}
    for each in defs.values():
        _tidy(each)
        _describe(each, defs)
    for model, rule in _RULES.items():
        defs[model.__name__] |= rule
    _open_up(defs)
    root = defs.pop(PolicyFile.__name__)
    root["properties"]["signals"] |= _signals({family: refer[row.settings] for family, row in FAMILIES.items()})
    return {
        "$schema": DIALECT,
        "title": "Pointsman policy",
        **root,
        "$defs": dict(sorted((defs | {"Condition": condition(), "ScoreInput": score_input()}).items())),
    }


def policy_schema_text() -> str:
    """The schema as it stands in the repository."""
    return json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n"


def _open_up(defs: Mapping[str, Schema]) -> None:
    """Put what code reads in the place of what the models take as it comes."""
    decision = defs[DecisionSettings.__name__]["properties"]
    decision["when"] = {"$ref": f"{DEFS}Condition"} | decision["when"]
    defs[ScoreSettings.__name__]["properties"]["inputs"]["items"] = {"$ref": f"{DEFS}ScoreInput"}
    endpoint = defs[UpstreamSettings.__name__]["properties"]["endpoint"]
    endpoint["anyOf"][0]["pattern"] = "^[hH][tT][tT][pP][sS]?://[^/?#]+/?[?#]*$"
    for each in defs[SelectSettings.__name__]["properties"].values():
        # A word without settings stands for the defaults, which these do not have.
        if "required" in defs[each["anyOf"][0]["$ref"].removeprefix(DEFS)]:
            each["anyOf"] = each["anyOf"][:1]
    members = "|".join((*FAMILIES, "score"))
    defs[PartitionSettings.__name__]["properties"]["of"] |= {
        "items": {"type": "string", "pattern": f"^({members})/."},
        "uniqueItems": True,
    }
    measured = [*(family for family, row in FAMILIES.items() if measures(row)), "partition", "score"]
    band = defs[BandSettings.__name__]["properties"]["of"]
    band["anyOf"] = [
        NAME,
        {
            "type": "object",
            "properties": {family: reference(family) for family in measured},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
    ]


def _describe(schema: Schema, defs: Mapping[str, Schema]) -> None:
    """Say again at a property what only its model says, where the library leaves that out as said twice."""
    for each in schema.get("properties", {}).values():
        if "$ref" in each:
            each.setdefault("description", defs[each["$ref"].removeprefix(DEFS)]["description"])


def _signals(refs: Mapping[str, Schema]) -> Schema:
    """The families, each a mapping of names to its settings."""
    families = {}
    for family, row in FAMILIES.items():
        names: Schema = {"pattern": "^[A-Za-z0-9_-]+$"}
        if row.builtins:
            names["not"] = {"enum": sorted(row.builtins)}
        families[family] = {
            "description": family_docs(family).opening,
            "type": "object",
            "propertyNames": names,
            "additionalProperties": {"anyOf": [refs[family], {"type": "null"}]}
            if _needs_nothing(row.settings)
            else refs[family],
        }
    return {"properties": families, "additionalProperties": False}


def _needs_nothing(settings: type[SignalSettings]) -> bool:
    """Whether a signal may be written as its name alone."""
    try:
        settings.model_validate({})
    except ValidationError:
        return False
    return True


def _tidy(schema: Schema) -> None:
    """Drop titles and defaults that only repeat a key, and close mappings whose keys have a pattern."""
    schema.pop("title", None)
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    if "patternProperties" in schema:
        schema.setdefault("additionalProperties", False)
    for keyword in ("properties", "patternProperties"):
        for each in schema.get(keyword, {}).values():
            _tidy(each)
    for keyword in ("anyOf", "oneOf", "prefixItems"):
        for each in schema.get(keyword, ()):
            _tidy(each)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            _tidy(schema[keyword])
