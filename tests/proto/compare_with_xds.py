"""Compares every message of our subset with Envoy's published API, and prints what differs as JSON.

Run in a process of its own: the API's package installs top-level modules that other packages have too.
"""

from __future__ import annotations

import json
import sys

from envoy.config.core.v3 import base_pb2
from envoy.extensions.filters.http.ext_proc.v3 import processing_mode_pb2
from envoy.service.ext_proc.v3 import external_processor_pb2
from envoy.type.v3 import http_status_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from router.proto import ext_proc_pb2

PUBLISHED = (external_processor_pb2, base_pb2, http_status_pb2, processing_mode_pb2)

CODE_KEPT_AS_A_NUMBER = ("HttpStatus", "code")
"""An enum in the API, an int32 here: the wire form is the same, and every code fits."""


def published(ours: Descriptor) -> Descriptor | None:
    """The API's message of this name."""
    for module in PUBLISHED:
        if ours.name in module.DESCRIPTOR.message_types_by_name:
            return module.DESCRIPTOR.message_types_by_name[ours.name]
    return None


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def shape_problems(ours: Descriptor, theirs: Descriptor) -> list[str]:
    """Fields of ours that are not the API's, by number, type, label, oneof and enum values."""
    problems = []
    for field in ours.fields:
        where = f"{ours.name}.{field.name}"
        other = theirs.fields_by_number.get(field.number)
        if other is None or other.name != field.name:
            problems.append(f"{where}: number {field.number} is {other.name if other else 'free'} there")
            continue
        if field.is_repeated != other.is_repeated:
            problems.append(f"{where}: repeated differs")
        if field.type != other.type and (ours.name, field.name) != CODE_KEPT_AS_A_NUMBER:
            problems.append(f"{where}: type {field.type} is {other.type} there")
        oneofs = [part.containing_oneof.name if part.containing_oneof else None for part in (field, other)]
        if oneofs[0] != oneofs[1]:
            problems.append(f"{where}: in oneof {oneofs[0]}, there {oneofs[1]}")
        if field.message_type and not is_map(field) and field.message_type.name != other.message_type.name:
            problems.append(f"{where}: a {field.message_type.name}, there a {other.message_type.name}")
        if field.enum_type and other.enum_type:
            values = [{v.name: v.number for v in part.enum_type.values} for part in (field, other)]
            if values[0] != values[1]:
                problems.append(f"{where}: enum values {values[0]}, there {values[1]}")
    return problems


def scalar(field: FieldDescriptor) -> object:
    """A value that is not the default."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            return b"\x00\xffbytes" if field.type == FieldDescriptor.TYPE_BYTES else "tëxt"
        case FieldDescriptor.CPPTYPE_BOOL:
            return True
        case FieldDescriptor.CPPTYPE_ENUM:
            return field.enum_type.values[-1].number
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return 0.5
        case _:
            return 503


def fill(message: Message, pattern: Descriptor, choice: int, depth: int = 0) -> Message:
    """Set every field that `pattern` has; of each oneof the member that `choice` falls on."""
    if message.DESCRIPTOR.full_name == "google.protobuf.Struct":
        message.update({"key": "value", "list": [1.5, None, True, {"deep": "value"}]})
        return message
    for field in pattern.fields:
        oneof = field.containing_oneof
        if oneof is not None and oneof.fields[choice % len(oneof.fields)].name != field.name:
            continue
        target = message.DESCRIPTOR.fields_by_number[field.number]
        if is_map(field):
            entry = field.message_type.fields_by_name["value"]
            for key in ("first", "second"):
                if entry.message_type is not None:
                    fill(getattr(message, target.name)[key], entry.message_type, choice, depth + 1)
                else:
                    getattr(message, target.name)[key] = scalar(entry)
        elif field.message_type is not None:
            if depth > 6:
                continue
            slot = getattr(message, target.name)
            for one in (slot.add(), slot.add()) if field.is_repeated else (slot,):
                one.SetInParent()
                fill(one, field.message_type, choice, depth + 1)
        elif field.is_repeated:
            getattr(message, target.name).extend([scalar(field), scalar(field)])
        else:
            setattr(message, target.name, scalar(field))
    return message


def plain(message: Message, pattern: Descriptor) -> dict[int, object]:
    """What is set, by number, of the fields that `pattern` has."""
    values: dict[int, object] = {}
    for field, value in message.ListFields():
        wanted = pattern.fields_by_number.get(field.number)
        if wanted is None:
            continue
        if is_map(field):
            entry = wanted.message_type.fields_by_name["value"]
            deep = entry.message_type is not None
            values[field.number] = {k: plain(v, entry.message_type) if deep else v for k, v in value.items()}
        elif field.message_type is None:
            values[field.number] = list(value) if field.is_repeated else value
        elif field.is_repeated:
            values[field.number] = [plain(one, wanted.message_type) for one in value]
        else:
            values[field.number] = plain(value, wanted.message_type)
    return values


def round_trip_problems(ours: Descriptor, theirs: Descriptor, choice: int) -> list[str]:
    """Ours read as theirs, theirs read as ours, and theirs through ours without losing what ours does not know."""
    our_class, their_class = GetMessageClass(ours), GetMessageClass(theirs)
    problems = []
    mine = fill(our_class(), ours, choice)
    if plain(their_class.FromString(mine.SerializeToString()), ours) != plain(mine, ours):
        problems.append(f"{ours.name}: ours reads differently there (choice {choice})")
    common = fill(their_class(), ours, choice)
    if plain(our_class.FromString(common.SerializeToString()), ours) != plain(common, ours):
        problems.append(f"{ours.name}: theirs reads differently here (choice {choice})")
    if plain(mine, ours) != plain(common, ours):
        problems.append(f"{ours.name}: the same values are not the same message (choice {choice})")
    whole = fill(their_class(), theirs, choice)
    through = our_class.FromString(whole.SerializeToString()).SerializeToString()
    if their_class.FromString(through) != whole:
        problems.append(f"{ours.name}: loses fields that it does not know (choice {choice})")
    return problems


def compare() -> dict[str, list[str]]:
    """Problems by message; the round trips are made when the shapes fit, since they could not be read otherwise."""
    messages = ext_proc_pb2.DESCRIPTOR.message_types_by_name
    pairs = {name: (ours, published(ours)) for name, ours in messages.items()}
    shapes = {
        name: shape_problems(ours, theirs) if theirs else [f"{name}: no such message there"]
        for name, (ours, theirs) in pairs.items()
    }
    if any(shapes.values()):
        return shapes
    return {
        name: [problem for choice in range(choices(ours)) for problem in round_trip_problems(ours, theirs, choice)]
        for name, (ours, theirs) in pairs.items()
    }


def choices(message: Descriptor) -> int:
    """So many fillings that each member of a oneof has its turn, here and one level down."""
    return max((len(oneof.fields) for oneof in message.oneofs), default=3)


def compare_service() -> list[str]:
    ours = ext_proc_pb2.DESCRIPTOR.services_by_name["ExternalProcessor"].methods_by_name
    theirs = external_processor_pb2.DESCRIPTOR.services_by_name["ExternalProcessor"].methods_by_name
    shapes = [
        {
            name: (m.input_type.name, m.output_type.name, m.client_streaming, m.server_streaming)
            for name, m in methods.items()
        }
        for methods in (ours, theirs)
    ]
    return [] if shapes[0] == shapes[1] else [f"service: {shapes[0]}, there {shapes[1]}"]


if __name__ == "__main__":
    json.dump({**compare(), "ExternalProcessor": compare_service()}, sys.stdout)
