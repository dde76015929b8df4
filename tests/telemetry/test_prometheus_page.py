"""The page that Prometheus scrapes: what a worker gives, and the pages of all workers joined."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_tables import add_to_all, exposed, sample_page
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict_families
from prometheus_client.parser import text_string_to_metric_families
from promtool import PROMTOOL, run_promtool

from router.telemetry.prometheus import SCRAPED, join


@pytest.fixture(scope="module")
def page() -> bytes:
    return sample_page()


def samples(text: bytes) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Every sample by its name."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def as_openmetrics(text: bytes) -> str:
    """The page in the stricter format, which knows counters without `_total` and ends with a line of its own."""
    lines = []
    for line in text.decode().splitlines():
        kept = line
        if line.startswith("# "):
            words = line.split(" ", 3)
            if words[1] not in ("HELP", "TYPE"):
                continue
            words[2] = words[2].removesuffix("_total")
            kept = " ".join(words)
        lines.append(kept)
    return "\n".join([*lines, "# EOF", ""])


def test_a_page_of_all_workers_is_what_prometheus_reads(page: bytes) -> None:
    joined = join({0: page, 1: page})
    if PROMTOOL is not None:
        run_promtool("check", "metrics", given=joined)
    families = list(strict_families(as_openmetrics(joined)))
    assert len(families) > 30
    assert all(sample.labels["worker"] in ("0", "1") for family in families for sample in family.samples)


def test_a_family_stands_once_with_the_samples_of_all_workers(page: bytes) -> None:
    joined = join({3: page, 0: page})
    assert joined.count(b"# TYPE pointsman_requests_total counter\n") == 1
    found = [labels["worker"] for labels, _ in samples(joined)["pointsman_requests_total"]]
    assert found == ["0", "3"]


def test_units_and_suffixes_are_those_that_prometheus_wants(page: bytes) -> None:
    text = page.decode()
    for kind in (
        "pointsman_decision_duration_seconds histogram",
        "pointsman_request_body_size_bytes histogram",
        "pointsman_exchange_failures_total counter",
        "pointsman_worker_ready gauge",
        "gen_ai_client_token_usage histogram",
    ):
        assert f"# TYPE {kind}\n" in text


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe\n",
        b"no sample\n",
        b"a_total 1\n",
        b"# TYPE a_total counter\na_total 1",
        b"# TYPE a_total counter\nb_total 1\n",
        b"# TYPE a_total counter\na_total one\n",
        b"# TYPE a_total counter\na_total 1\na_total 1\n",
        b'# TYPE a_total counter\na_total{x="1} 1\n',
        b'# TYPE a_total counter\na_total{x="1",worker="5"} 1\n',
        b"# TYPE a_total counter\na_total_bucket 1\n",
        b"# TYPE a_total thing\na_total 1\n",
        b"# TYPE a_total counter\n# TYPE a_total gauge\n",
        b"# HELP a_total help\n",
        b"# TYPE a_total counter\n# TYPE b gauge\n# TYPE a_total counter\na_total 1\n",
        b"# TYPE pointsman_worker_scraped gauge\npointsman_worker_scraped 1\n",
        b"# TYPE pointsman_requests_total gauge\npointsman_requests_total 1\n",
        b"<html>\n",
    ],
)
def test_a_text_that_is_none_costs_its_worker_alone_its_place(page: bytes, text: bytes) -> None:
    joined = join({0: page, 1: text})
    assert joined.startswith(b"# worker 1 is left out: ")
    found = samples(joined)
    assert found.pop(SCRAPED) == [({"worker": "0"}, 1.0), ({"worker": "1"}, 0.0)]
    assert {labels["worker"] for each in found.values() for labels, _ in each} == {"0"}
    assert len(found) == len(samples(join({0: page}))) - 1


def test_a_worker_that_gave_nothing_is_said_to_be_missing(page: bytes) -> None:
    assert samples(join({0: page, 1: b""}))[SCRAPED] == [({"worker": "0"}, 1.0), ({"worker": "1"}, 0.0)]
    assert samples(join({0: b""})) == {SCRAPED: [({"worker": "0"}, 0.0)]}
    assert samples(join({})) == {}


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(lambda name: name != "worker")
VALUES = st.floats(allow_nan=False) | st.integers(-(10**9), 10**9)
LABELS = st.dictionaries(NAMES.filter(lambda name: name != "le"), st.text(max_size=12), max_size=3)


class Families:
    """What a worker might expose: metrics of any names, labels and values."""

    def __init__(self, drawn: dict[str, list[tuple[dict[str, str], float]]], kind: str) -> None:
        self._drawn = drawn
        self._kind = kind

    def collect(self) -> list[object]:
        families: list[object] = []
        for name, points in self._drawn.items():
            keys = sorted({key for labels, _ in points for key in labels})
            rows = {tuple(labels.get(key, "") for key in keys): value for labels, value in points}
            family: CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily
            if self._kind == "histogram":
                family = HistogramMetricFamily(name, "help \\ \n text", labels=keys)
                for row, value in rows.items():
                    family.add_metric(row, [("1.0", 1), ("+Inf", 3)], value)
            else:
                family = (CounterMetricFamily if self._kind == "counter" else GaugeMetricFamily)(name, "", labels=keys)
                for row, value in rows.items():
                    family.add_metric(row, value)
            families.append(family)
        return families


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(NAMES.map("m_{}".format), st.lists(st.tuples(LABELS, VALUES), min_size=1, max_size=3), min_size=1),
    st.sampled_from(["counter", "gauge", "histogram"]),
)
def test_joining_loses_and_changes_nothing_but_adds_the_worker(
    drawn: dict[str, list[tuple[dict[str, str], float]]], kind: str
) -> None:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Families(drawn, kind))  # type: ignore[arg-type]
    text = generate_latest(registry)
    joined = samples(join({0: text, 7: text}))
    assert joined.pop(SCRAPED) == [({"worker": "0"}, 1.0), ({"worker": "7"}, 1.0)]
    alone = samples(text)
    assert joined == {
        name: [({**labels, "worker": worker}, value) for worker in ("0", "7") for labels, value in points]
        for name, points in alone.items()
    }


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_text_of_a_worker_breaks_the_page(text: bytes) -> None:
    page = b"# HELP a_total help\n# TYPE a_total counter\na_total 1.0\n"
    assert samples(join({0: page, 1: text}))["a_total"][0] == ({"worker": "0"}, 1.0)


def test_two_expositions_share_nothing() -> None:
    with exposed() as (one, first), exposed() as (_, second):
        add_to_all(one)
        assert b"pointsman_requests_total{" in first.text()
        assert b"pointsman_requests_total{" not in second.text()
