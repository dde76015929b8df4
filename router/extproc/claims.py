"""What filters in front have found out about a request and Envoy passes on: dynamic metadata and attributes, as text.

A policy names the few that it reads, and reads them as it does trusted headers. Unlike those no client can send them.
"""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.struct_pb2 import Struct, Value

from router.extproc.head import RequestHead


def with_claims(head: RequestHead, metadata: Mapping[str, str], attributes: Mapping[str, str]) -> Mapping[str, str]:
    """The request's headers, and under these names what Envoy passed on in place of any header that a client sent.

    `metadata` maps a name to `namespace:key:key`, `attributes` to an attribute of Envoy's. A name whose value is not
    there, or is no text, is missing.
    """
    if not metadata and not attributes:
        return head.headers
    claims = {name: value for name, value in head.headers.items() if name not in metadata and name not in attributes}
    for name, path in metadata.items():
        namespace, *keys = path.split(":")
        _put(claims, name, _value_at(head.metadata.get(namespace), keys))
    for name, attribute in attributes.items():
        for struct in head.attributes.values():
            _put(claims, name, _value_at(struct, [attribute]))
    return claims


def _put(claims: dict[str, str], name: str, value: Value | None) -> None:
    text = _text(value)
    if text is not None:
        # As the bytes of a header are read.
        claims[name] = text.encode().decode("latin-1")


def _value_at(struct: Struct | None, keys: list[str]) -> Value | None:
    value = None
    for key in keys:
        if struct is None or key not in struct.fields:
            return None
        value = struct.fields[key]
        struct = value.struct_value if value.HasField("struct_value") else None
    return value


def _text(value: Value | None) -> str | None:
    if value is None:
        return None
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "bool_value":
            return "true" if value.bool_value else "false"
        case "number_value":
            number = value.number_value
            return str(int(number)) if number.is_integer() else repr(number)
        case "list_value":
            return _list(list(value.list_value.values))
    return None


def _list(values: list[Value]) -> str | None:
    """As a header has several values. One that has a comma itself could pass for two, so then there is none."""
    texts = [value.string_value for value in values if value.HasField("string_value")]
    if len(texts) != len(values) or any("," in text for text in texts):
        return None
    return ",".join(texts)
