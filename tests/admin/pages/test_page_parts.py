"""Small things that views are made of: texts, trees, times, images, parity's scale."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.admin.pages.evidence import Bound, bounds_of, seen
from router.admin.pages.listing import LIMIT, filter_of, is_narrowed
from router.admin.pages.parity import parity_view
from router.admin.pages.pictures import pictures_of, silent_images
from router.admin.pages.rendering import breaks, clock, cut, milliseconds, percent, score, size, visible
from router.admin.pages.trees import steps_of
from router.admin.pages.waterfall import waterfall

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


@given(st.text())
def test_what_is_visible_has_nothing_hidden_and_keeps_what_is_not(text: str) -> None:
    shown = str(visible(text))
    assert not any(char in shown for char in "\u202e\u200b\u2066\x00\x1b")
    if text.isprintable():
        assert shown == text


@given(st.text(), st.integers(1, 50))
def test_cut_is_never_longer(text: str, most: int) -> None:
    assert len(cut(text, most)) <= most


@given(st.text())
def test_breaks_escapes(text: str) -> None:
    plain = str(breaks(text)).replace("<wbr>", "")
    assert "<" not in plain
    assert '"' not in plain


@given(st.floats(allow_nan=False))
def test_percent_is_a_length(share: float) -> None:
    assert 0 <= float(percent(share)[:-1]) <= 100


@pytest.mark.parametrize(
    ("value", "told"),
    [(None, "–"), (0.0, "0.00"), (0.001, "<0.01"), (0.5, "0.50"), (0.9999, ">0.99"), (1.0, "1.00")],
)
def test_scores_do_not_round_to_certainty(value: float | None, told: str) -> None:
    assert score(value) == told


def test_units_are_those_that_read_best() -> None:
    assert [milliseconds(each) for each in (None, 0.061, 24.54, 1200.0)] == ["–", "0.06 ms", "24.5 ms", "1.20 s"]
    assert [size(each) for each in (None, 812, 244_155, 3_100_000)] == ["–", "812 B", "244 kB", "3.1 MB"]


def test_the_clock_names_another_day() -> None:
    assert clock("2026-03-04T09:08:07.123Z", NOW) == "09:08:07"
    assert clock("2026-03-03T23:59:59.000Z", NOW) == "03 Mar 23:59"
    assert clock("soon", NOW) == clock(None, NOW) == "–"


def test_a_filter_takes_only_words_of_its_own() -> None:
    assert not is_narrowed(filter_of({}))
    assert not is_narrowed(filter_of({"outcome": "x", "since": "x", "failed": "x", "limit": "5"}))
    assert is_narrowed(filter_of({"signal": "image/x"}))
    assert filter_of({}).limit == LIMIT


leaves = st.sampled_from(["a/b", "c/d"]).map(lambda name: {"kind": "signal", "state": "true", "signal": name})
trees = st.recursive(
    leaves,
    lambda below: st.lists(below, min_size=1, max_size=4).map(
        lambda children: {"kind": "all", "state": "true", "children": children}
    ),
)


@given(trees)
def test_steps_open_and_close_as_the_tree_nests(tree: dict[str, Any]) -> None:
    def nested(node: dict[str, Any]) -> list[str]:
        inner = [word for child in node.get("children", ()) for word in nested(child)]
        return [f"open {node.get('signal', '')}", *inner, "close"]

    steps = list(steps_of(tree, {}))
    assert [f"open {step.signal}" if step.turn == "open" else "close" for step in steps] == nested(tree)
    depth = [step.within for step in steps]
    assert sum(depth) % 2 == 0


class TestBounds:
    def test_a_threshold_or_where_matching_begins(self) -> None:
        rows = [
            {"name": "a/a", "threshold": 0.7, "matching": [0.7, None]},
            {"name": "a/b", "threshold": None, "matching": [0.2, None]},
            {"name": "a/c", "threshold": 0.3, "matching": [None, 0.3]},
            {"name": "a/d", "threshold": None, "matching": None},
        ]
        assert bounds_of({"signals": rows}) == {
            "a/a": Bound(0.7),
            "a/b": Bound(0.2),
            "a/c": Bound(0.3, below=True),
        }
        assert bounds_of(None) == {}

    def test_evidence_speaks_for_a_match_on_the_matching_side_alone(self) -> None:
        rows = [{"pointer": "/a", "score": 0.2, "image": 0}, {"pointer": "/b", "score": 0.8, "image": 1}]
        told: dict[str, Any] = {"status": "observed", "matched": True, "score": 0.8, "evidence": rows}
        assert seen("image/a", told, Bound(0.5)).images == (2,)
        assert seen("agreement/a", told, Bound(0.5, below=True)).images == (1,)
        assert seen("image/a", told).images == (2,)
        assert seen("image/a", {**told, "matched": False}, Bound(0.5)).images == ()


TIMES = {"duration_ms": 10.0, "parse_ms": 1.0, "decide_ms": 8.0, "select_ms": 2.0}


class TestWaterfall:
    def test_bars_begin_where_things_began(self) -> None:
        told = {"status": "observed", "matched": True, "ms": 4.0, "at_ms": 1.0, "waited_ms": 2.0}
        derived = {"status": "observed", "matched": True, "ms": 0.5}
        answers = [seen("score/s", derived), seen("image/i", told)]
        bars = {bar.name: (bar.start, bar.length, bar.waited) for bar in waterfall(TIMES, answers)}
        assert list(bars) == ["read the body", "decide", "image/i", "score/s", "select a model", "write the answer"]
        assert bars["image/i"] == pytest.approx((0.2, 0.4, 0.2))
        assert bars["score/s"] == pytest.approx((0.65, 0.05, 0.0))
        assert bars["select a model"] == pytest.approx((0.7, 0.2, 0.0))
        assert bars["write the answer"] == pytest.approx((0.9, 0.1, 0.0))

    @given(st.lists(st.tuples(st.floats(0.001, 1e5), st.floats(0, 1e5), st.floats(0, 1e5)), max_size=8))
    def test_no_bar_leaves_the_scale(self, times: list[tuple[float, float, float]]) -> None:
        answers = [
            seen(f"image/{n}", {"status": "observed", "matched": True, "ms": ms, "at_ms": at, "waited_ms": waited})
            for n, (ms, at, waited) in enumerate(times)
        ]
        for bar in waterfall(TIMES, answers):
            assert -1e-9 <= bar.start <= bar.start + bar.length <= 1 + 1e-9

    def test_nothing_is_drawn_without_times(self) -> None:
        assert waterfall({"duration_ms": 5.0, "decide_ms": None}, []) == []


class TestPictures:
    def test_images_without_evidence_are_told_in_runs(self) -> None:
        rows = [{"pointer": "/p", "score": 0.9, "image": image} for image in (0, 3)]
        answer = seen("image/a", {"status": "observed", "matched": True, "score": 0.9, "evidence": rows})
        record = {"images": 8}
        pictures = pictures_of(record, [answer])
        assert [picture.number for picture in pictures] == [1, 4]
        assert silent_images(record, pictures) == "2–3, 5–8"

    @pytest.mark.parametrize("data", ["", "a b", '"onerror="', "<"])
    def test_what_is_no_base64_is_not_shown(self, data: str) -> None:
        row = {"index": 0, "media_type": "image/png", "data_base64": data}
        assert pictures_of({"captured": {"images": [row]}}, []) == []


class TestParity:
    def view(self, **pack: Any) -> Any:
        tower = {"kind": "text", "precision": "int8", "measure": "cosine", "gate": 0.99, "worst": 0.999, "mean": 1.0}
        whole = {"reference": "r", "name": "n", "digest": "d", "towers": [tower], "misses": [], **pack}
        return parity_view({"workers": [{"worker": 0, "interval": 600.0, "packs": [whole]}]}, NOW)

    def test_marks_stand_in_order_and_each_power_of_ten_is_as_wide(self) -> None:
        [pack] = self.view(last_check="2026-03-04T11:55:00.000Z", cosine=0.9999)["workers"][0].packs
        marks = {mark.kind: mark.at for mark in pack.towers[0].marks}
        assert marks["gate"] < marks["worst"] < marks["last"] < marks["mean"] == 1
        assert marks["worst"] - marks["gate"] == pytest.approx(marks["last"] - marks["worst"], abs=1e-6)
        assert pack.age == "5 min ago"

    def test_a_miss_is_told_and_an_unchecked_pack_has_no_mark(self) -> None:
        view = self.view(misses=["text: 0.98 under 0.99"], last_check=None, cosine=None)
        [pack] = view["workers"][0].packs
        assert (view["missed"], pack.verdict, pack.age) == (1, "false", "not checked since the start")
        assert "last" not in [mark.kind for mark in pack.towers[0].marks]

    def test_a_classifier_is_measured_by_how_far_probabilities_are_apart(self) -> None:
        tower = {"kind": "classifier", "precision": "fp32", "measure": "probability difference", "gate": 0.01}
        [pack] = self.view(towers=[tower], difference=0.0001)["workers"][0].packs
        marks = {mark.kind: mark.at for mark in pack.towers[0].marks}
        assert marks["gate"] < marks["last"]
