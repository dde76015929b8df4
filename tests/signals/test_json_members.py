from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.signals.json_members import as_text, read_path, values_at

DOCUMENT = {
    "a": {"b": [1, {"c": "x"}, {"c": ["y", "z"]}]},
    "https://example.com/roles": ["admin"],
    "til~de": 1,
    "none": None,
    "": {"": 5},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.b.0", [1]),
        ("a.b.c", ["x", "y", "z"]),
        ("a.b.2.c.1", ["z"]),
        ("a.b.9", []),
        ("a.b." + "9" * 5_000, []),
        ("a.b.²", []),
        ("a.missing", []),
        ("a.b.0.c", []),
        ("/a/b/1/c", ["x"]),
        ("/https:~1~1example.com~1roles", ["admin"]),
        ("/til~0de", [1]),
        ("//", [5]),
        ("none", [None]),
        ("none.x", []),
    ],
)
def test_values_by_their_path(path: str, expected: list[object]) -> None:
    assert list(values_at(DOCUMENT, read_path(path))) == expected


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", "/~", "/a~2", "/~01~"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"path|pointer"):
        read_path(path)


def test_deep_lists_are_walked_without_recursion() -> None:
    value: object = "x"
    for _ in range(50_000):
        value = [value]
    assert list(values_at({"a": value}, ("a",))) == ["x"]


@given(st.recursive(st.integers() | st.text(), lambda inner: st.dictionaries(st.text(min_size=1), inner, min_size=1)))
def test_a_pointer_leads_to_every_member(document: object) -> None:
    path, value = "", document
    while isinstance(value, dict):
        key = next(iter(value))
        path += "/" + key.replace("~", "~0").replace("/", "~1")
        value = value[key]
    if path:
        assert list(values_at(document, read_path(path))) == [value]


@pytest.mark.parametrize(
    ("value", "expected"), [("ä", "ä"), (1, "1"), (True, "true"), (None, "null"), ({"ä": [1]}, '{"ä": [1]}')]
)
def test_values_as_text(value: object, expected: str) -> None:
    assert as_text(value) == expected
