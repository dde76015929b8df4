from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from router.config.imports.writing import WIDTH, Entry, to_yaml
from router.config.yaml_source import parse_yaml

_texts = st.text(st.characters(exclude_categories=()), max_size=20) | st.sampled_from(
    [
        "no",
        "null",
        "1e3",
        "0x1f",
        "a: b",
        "- a",
        "# a",
        "2024-01-01",
        "~",
        "",
        " a ",
        "a  b",
        "on",
        "1_000",
        "é",
        "\u2028",
    ]
)
_data = st.recursive(
    _texts | st.booleans() | st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=20,
)


def commented(value: Any, comment: str) -> Any:
    """The data with a comment on every entry of a mapping."""
    if isinstance(value, dict):
        return {key: Entry(commented(inner, comment), (comment,)) for key, inner in value.items()}
    return [Entry(commented(inner, comment), (comment,)) for inner in value] if isinstance(value, list) else value


@given(st.dictionaries(_texts, _data, min_size=1, max_size=4), _texts)
def test_what_is_written_is_read_as_it_was(data: dict[str, Any], comment: str) -> None:
    for document in (data, commented(data, comment)):
        text = to_yaml(document, [comment])
        assert parse_yaml(Path("x.yaml"), text.encode()).data == data


def test_short_values_stand_on_one_line_and_long_ones_do_not() -> None:
    text = to_yaml({"short": {"a": [1, 2]}, "long": {"words": ["word " * 9 + "end"] * 4}}, ["Heading."])
    assert text.startswith("# Heading.\nshort: {a: [1, 2]}\n\nlong:\n  words:\n    - word word")
    assert all(len(line) <= WIDTH for line in text.splitlines())
