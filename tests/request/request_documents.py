"""Hypothesis strategies for JSON as no serialiser would write it: any white space, any escape, duplicate keys."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Members:
    """A JSON object as it is written: pairs, so that a key may come twice."""

    pairs: tuple[tuple[str, object], ...]


# Keys that matter to readers, and texts that look like structure.
KEYS = st.one_of(
    st.sampled_from(["model", "messages", "content", "a", ":", '"model":', "\\", "Model", "\\u003a", ""]),
    st.text(max_size=4),
)
TEXTS = st.one_of(
    st.sampled_from(['"model": "x"', "\\", '\\"', "a:b", ',"model":1', "\\u003a", "::", "é", "\U0001f600"]),
    st.text(max_size=8),
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)


def written_values(unique_keys: bool) -> st.SearchStrategy[object]:
    """Values whose objects are `Members`."""
    unique_by = (lambda pair: pair[0]) if unique_keys else None
    return st.recursive(
        SCALARS,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(st.tuples(KEYS, inner), max_size=4, unique_by=unique_by).map(lambda pairs: Members(tuple(pairs))),
        ),
        max_leaves=12,
    )


def written_objects(unique_keys: bool) -> st.SearchStrategy[Members]:
    """Objects at the top."""
    unique_by = (lambda pair: pair[0]) if unique_keys else None
    pairs = st.lists(st.tuples(KEYS, written_values(unique_keys)), max_size=5, unique_by=unique_by)
    return pairs.map(lambda found: Members(tuple(found)))


@st.composite
def texts_of(draw: st.DrawFn, values: st.SearchStrategy[object]) -> bytes:
    """A value in a random spelling."""
    choose = draw(st.randoms(use_true_random=False))

    def blank() -> str:
        return "".join(choose.choice(" \t\r\n") for _ in range(choose.choice([0, 0, 0, 1, 2])))

    def string(text: str) -> str:
        return '"' + "".join(map(character, text)) + '"'

    def character(c: str) -> str:
        must_escape = c in '"\\' or c < " "
        if not must_escape and choose.random() < 0.8:
            return c
        if c in '"\\/' and choose.random() < 0.7:
            return "\\" + c
        units = c.encode("utf-16-be")
        form = choose.choice(["04x", "04X"])
        return "".join(f"\\u{int.from_bytes(units[i : i + 2], 'big'):{form}}" for i in range(0, len(units), 2))

    def write(value: object) -> str:
        match value:
            case Members(pairs):
                inside = ",".join(f"{blank()}{string(k)}{blank()}:{blank()}{write(v)}{blank()}" for k, v in pairs)
                return "{" + (inside or blank()) + "}"
            case list():
                return "[" + (",".join(f"{blank()}{write(v)}{blank()}" for v in value) or blank()) + "]"
            case str():
                return string(value)
            case None:
                return "null"
            case bool():
                return str(value).lower()
            case _:
                return repr(value)

    return (blank() + write(draw(values)) + blank()).encode()
