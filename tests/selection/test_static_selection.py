from __future__ import annotations

import pytest

from router.selection.static import select


@pytest.mark.parametrize(("models", "expected"), [(("a",), "a"), (("b", "a"), "b"), (["c", "c", "a"], "c")])
def test_the_first_candidate_is_taken(models: tuple[str, ...], expected: str) -> None:
    assert select(models) == expected
