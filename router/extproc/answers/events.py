"""What one event of a streamed answer adds to its texts and calls, by the shape of each API's events.

What has no shape that is known here is read as `wholes.py` reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from router.extproc.answers.pieces import Called, Ended, Key, Piece, Said
from router.extproc.answers.wholes import (
    BASE64,
    OF_A_CALL,
    UNREAD,
    call_in,
    escaped,
    is_word,
    number_of,
    texts_and_calls,
    word_of,
    written,
)


def read_event(event: object) -> Iterator[Piece]:
    """The pieces of one event's data. Pointers are those that an answer in one piece would have, where it has any."""
    if not isinstance(event, dict):
        yield from texts_and_calls(event, "", "")
        return
    kind = event.get("type")
    choices = event.get("choices")
    if isinstance(choices, list):
        for place, choice in enumerate(choices):
            yield from _of_choice(choice, place)
        # An event may have the shape of another API's as well, and be read as such.
        event = {name: value for name, value in event.items() if name != "choices"}
    if isinstance(kind, str) and kind.startswith("response."):
        yield from _of_response(event, kind)
    elif isinstance(kind, str) and kind.startswith("content_block_"):
        yield from _of_block(event, kind)
    else:
        yield from texts_and_calls(event, "", "")


def _of_choice(choice: object, place: int) -> Iterator[Piece]:
    """A choice of a chat completion's chunk, or of a completion's."""
    if not isinstance(choice, dict):
        yield from texts_and_calls(choice, f"/choices/{place}", "")
        return
    index = number_of(choice.get("index"), place)
    key, pointer = ("choice", index), f"/choices/{index}"
    for name, value in choice.items():
        if name in ("delta", "message"):
            yield from _more(value, key, f"{pointer}/message", name)
        elif name == "text" and isinstance(value, str):
            yield from _more(value, (*key, name), f"{pointer}/{name}", "")
        elif name not in UNREAD:
            yield from texts_and_calls(value, f"{pointer}/{name}", name)
    if choice.get("finish_reason"):
        yield Ended(key)


def _of_block(event: Mapping[str, Any], kind: str) -> Iterator[Piece]:
    """An event about one block of Anthropic's."""
    index = number_of(event.get("index"), 0)
    key, pointer = ("block", index), f"/content/{index}"
    if kind == "content_block_stop":
        yield Ended(key)
        return
    body = event.get("content_block" if kind == "content_block_start" else "delta")
    if isinstance(body, dict) and isinstance(body.get("partial_json"), str):
        yield Called(key, pointer, "", "", body["partial_json"])
        return
    call = call_in(body)
    if call is None:
        yield from _more(body, key, pointer, "")
        return
    # The real input comes in pieces behind an empty one.
    name, arguments, others = call
    yield Called(key, pointer, word_of(body, "id"), name, "" if arguments in ("{}", '""') else arguments)
    yield from texts_and_calls(others, pointer, "")


def _of_response(event: Mapping[str, Any], kind: str) -> Iterator[Piece]:
    """An event of OpenAI's Responses."""
    index = number_of(event.get("output_index"), 0)
    item, pointer = ("item", index), f"/output/{index}"
    stem, _, step = kind.rpartition(".")
    part = (*item, stem, number_of(event.get("content_index"), 0), number_of(event.get("summary_index"), 0))
    delta = event.get("delta")
    if step == "delta" and isinstance(delta, str):
        if "_call" in stem:
            yield Called(item, pointer, "", "", delta)
        elif not (stem.endswith("audio") and BASE64.match(delta)):
            yield from _more(delta, part, pointer, "")
        return
    if kind == "response.output_item.added":
        call = call_in(event.get("item"))
        if call is not None:
            name, arguments, others = call
            yield Called(item, pointer, word_of(event["item"], "call_id"), name, "" if arguments == '""' else arguments)
            yield from texts_and_calls(others, pointer, "")
            return
    if kind == "response.output_item.done":
        yield Ended(item)
    elif step == "done" and "_call" not in stem:
        yield Ended(part)
    if "item" in event:
        yield from texts_and_calls(event["item"], pointer, "")
    others = {name: value for name, value in event.items() if name not in ("item", "response", "name")}
    yield from texts_and_calls(others, pointer, "")
    if "response" in event:
        yield from texts_and_calls(event["response"], "", "")


def _more(value: object, key: Key, pointer: str, name: str) -> Iterator[Piece]:
    """What a delta adds; lists in it have members that say their own index."""
    match value:
        case str():
            if value and not is_word(name, value):
                yield Said(key, pointer, value)
        case list():
            for place, item in enumerate(value):
                at = number_of(item.get("index"), place) if isinstance(item, dict) else place
                yield from _more(item, (*key, at), f"{pointer}/{at}", name)
        case dict():
            for inner, item in value.items():
                if inner in UNREAD:
                    continue
                if inner in ("tool_calls", "function_call"):
                    yield from _calls(item, (*key, inner), f"{pointer}/{inner}")
                else:
                    yield from _more(item, (*key, inner), f"{pointer}/{escaped(inner)}", inner)
        case _:
            pass


def _calls(value: object, key: Key, pointer: str) -> Iterator[Piece]:
    """Calls in a chunk of a chat completion."""
    for place, call in enumerate(value if isinstance(value, list) else [value]):
        if not isinstance(call, dict):
            yield from _more(call, key, pointer, "")
            continue
        at = number_of(call.get("index"), place)
        body = next((call[inner] for inner in ("function", "custom") if isinstance(call.get(inner), dict)), call)
        arguments = body.get("arguments", body.get("input"))
        text = "" if arguments is None else arguments if isinstance(arguments, str) else written(arguments)
        yield Called((*key, at), f"{pointer}/{at}", word_of(call, "id"), word_of(body, "name"), text)
        others = {name: item for name, item in call.items() if name not in (*OF_A_CALL, "function", "custom")}
        others |= {name: item for name, item in body.items() if name not in (*OF_A_CALL, "function", "custom")}
        yield from texts_and_calls(others, f"{pointer}/{at}", "")
