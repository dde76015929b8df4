from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from signal_fakes import said

from router.inference.executor import Overloaded
from router.request.view import TextSpan
from router.signals.anchors import Judged
from router.signals.classify import classify


class Table:
    """Classes whose shares are given, window by window."""

    labels = ("law", "math", "other")
    pack = "a-pack"

    def __init__(self, *rows: tuple[tuple[int, int], list[float]], busy: bool = False) -> None:
        self.rows = rows
        self.busy = busy

    async def prepare(self) -> None:
        return None

    async def judge(self, texts: Iterable[TextSpan]) -> list[Judged]:
        if self.busy:
            raise Overloaded
        return [Judged(next(iter(texts)).pointer, span, np.array(shares)) for span, shares in self.rows]


TEXTS = said("anything").latest_user_texts
ALL = ("law", "math", "other")


async def test_the_likeliest_class_is_the_label_and_its_share_the_score() -> None:
    answer = await classify(Table(((0, 8), [0.7, 0.2, 0.1])), TEXTS, ALL, 0.5)
    assert (answer.matched, answer.label, answer.score, answer.pack) == (True, "law", pytest.approx(0.7), "a-pack")
    assert answer.evidence[0].span == (0, 8)
    assert answer.evidence[0].pointer == "/messages/0/content/0"


@pytest.mark.parametrize(("threshold", "matched"), [(0.7, True), (0.71, False)])
async def test_threshold(threshold: float, matched: bool) -> None:
    assert (await classify(Table(((0, 8), [0.7, 0.2, 0.1])), TEXTS, ALL, threshold)).matched is matched


async def test_a_label_that_is_not_wanted_does_not_match_and_the_score_is_the_best_wanted_one() -> None:
    answer = await classify(Table(((0, 8), [0.6, 0.3, 0.1])), TEXTS, ("math", "other"), 0.2)
    assert (answer.matched, answer.label, answer.score) == (False, "law", pytest.approx(0.3))


async def test_windows_count_by_their_length() -> None:
    table = Table(((0, 30), [0.8, 0.2, 0.0]), ((30, 40), [0.0, 1.0, 0.0]))
    answer = await classify(table, TEXTS, ALL, 0.5)
    assert (answer.label, answer.score) == ("law", pytest.approx(0.6))
    assert answer.evidence[0].span == (0, 30)


async def test_nothing_to_read_is_no_match() -> None:
    answer = await classify(Table(), TEXTS, ALL, 0.0)
    assert (answer.matched, answer.score, answer.evidence) == (False, 0.0, ())


async def test_overload_sheds() -> None:
    assert (await classify(Table(busy=True), TEXTS, ALL, 0.5)).status == "shed"


async def test_what_is_no_number_is_unknown() -> None:
    answer = await classify(Table(((0, 8), [np.nan, 0.2, 0.1])), TEXTS, ALL, 0.5)
    assert (answer.status, answer.matched, answer.reason) == ("failed", None, "no number")
