"""What the schema library found wrong, in the words of YAML and with a place in the file."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from router.config.problems import Location, Problem, did_you_mean
from router.config.yaml_source import YamlSource


def translate(details: ErrorDetails, prefix: Location, model: type[BaseModel], source: YamlSource) -> Problem:
    """The problem behind a validation error of `model`, whose data stands at `prefix` in the file."""
    inner: Location = tuple(details["loc"])
    location = (*prefix, *inner)
    kind = details["type"]
    if kind == "extra_forbidden":
        word = str(inner[-1])
        owner = _model_at(model, inner[:-1])
        known = list(owner.model_fields) if owner else []
        hint = did_you_mean(word, known) or f"; known are {', '.join(known)}"
        return source.problem(location, f'unknown key "{word}"{hint}', at_key=True)
    if kind == "missing":
        return source.problem(location, f'needs the key "{inner[-1]}"')
    return source.problem(location, _message(details))


def _message(details: ErrorDetails) -> str:
    """What is wrong, in the words of YAML rather than of the library that noticed it."""
    context = details.get("ctx", {})
    match details["type"]:
        case "literal_error":
            return f"must be {context['expected']}"
        case "model_type" | "dict_type":
            return "must be a mapping"
        case "tuple_type" | "list_type":
            return "must be a list"
        case "too_short":
            return f"needs at least {context['min_length']} entry"
        case "string_type":
            return "must be text; quote it if it looks like a number"
        case "string_too_short":
            return "must not be empty"
        case "string_pattern_mismatch":
            return f"must match {context['pattern']}"
        case "int_parsing" | "int_type" | "int_from_float":
            return "must be a whole number"
        case "float_parsing" | "float_type":
            return "must be a number"
        case "bool_parsing" | "bool_type":
            return "must be true or false"
        case _:
            message = str(details["msg"]).removeprefix("Value error, ")
            return message[:1].lower() + message[1:]


def _model_at(model: type[BaseModel], location: Location) -> type[BaseModel] | None:
    """The model class that describes the place, following fields, optionals and sequences."""
    here: type[BaseModel] | None = model
    for key in location:
        if isinstance(key, int):
            continue
        field = here.model_fields.get(key) if here else None
        here = _model_in(field.annotation) if field else None
    return here


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
