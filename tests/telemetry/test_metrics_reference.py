"""The table of metrics, docs/metrics.md, the dashboard and the alert rules say the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from metric_tables import add_to_all, exposed, exposed_names, rows
from prometheus_client.parser import text_string_to_metric_families
from promtool import PROMTOOL, run_promtool

from router.telemetry.catalogue import METRICS
from router.telemetry.histograms import Histograms
from router.telemetry.prometheus import SCRAPED, join
from router.telemetry.views import views

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "charts/pointsman/alerts/pointsman.yaml"
DASHBOARD = ROOT / "charts/pointsman/dashboards/pointsman.json"

AROUND = {"namespace", "pod"}
"""Labels that whoever scrapes adds."""

OF_ENVOY = {
    "envoy_http_ext_proc_failure_mode_allowed",
    "envoy_http_ext_proc_message_timeouts",
    "envoy_http_ext_proc_spurious_msgs_received",
}
"""tests/e2e/test_no_content_leaks.py finds them in a real Envoy."""

FUNCTIONS = {"sum", "min", "max", "count", "rate", "increase", "histogram_quantile"}
WORDS = {"by", "without", "ignoring", "on", "group_left", "or", "and", "unless"}

# A selector with its matchers; a list of labels after `by` and the like; what is left are names.
_MATCHERS = re.compile(r"\{([^{}]*)\}")
_MATCHER = re.compile(r'\s*([a-z_]+)\s*(?:=~|!~|!=|=)\s*"(?:[^"\\]|\\.)*"\s*(?:,|$)')
_GROUPING = re.compile(r"\b(?:by|without|ignoring|on|group_left)\s*\(([^()]*)\)")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def names_in(expression: str) -> tuple[set[str], set[str]]:
    """The metrics and the labels that an expression names."""
    labels: set[str] = set()
    for matchers in _MATCHERS.findall(expression):
        assert "".join(found.group(0) for found in _MATCHER.finditer(matchers)) == matchers, matchers
        labels |= {found.group(1) for found in _MATCHER.finditer(matchers)}
    bare = _MATCHERS.sub("", re.sub(r"\[[^\]]*\]", "", expression))
    for grouping in _GROUPING.findall(bare):
        labels |= {label.strip() for label in grouping.split(",") if label.strip()}
    bare = _GROUPING.sub("", bare)
    metrics = {name for name in _NAME.findall(bare) if name not in FUNCTIONS | WORDS}
    return metrics, labels - {"le"}


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    """The labels of every sample on the page, by its name."""
    with exposed() as (instruments, exposition):
        add_to_all(instruments)
        page = join({0: exposition.text()})
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(set(sample.labels) - {"le"})
    return found


def dashboard() -> dict[str, Any]:
    return json.loads(DASHBOARD.read_text())


def panel_expressions() -> list[str]:
    return [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def test_the_page_in_docs_has_the_metrics_that_the_code_has() -> None:
    text = (ROOT / "docs/metrics.md").read_text()
    table = [line for line in text.splitlines() if line.startswith("| `")]
    assert table == rows()


def test_what_docs_name_beside_the_table_is_there(known: dict[str, set[str]]) -> None:
    text = (ROOT / "docs/metrics.md").read_text()
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    named = set(re.findall(r"`(pointsman_[a-z_]+)", prose))
    assert named
    assert named <= known.keys()
    assert set(re.findall(r"`(pointsman\.[a-z_.]+)`", prose)) <= {metric.name for metric in METRICS}


def test_every_metric_is_exposed_with_exactly_its_labels(known: dict[str, set[str]]) -> None:
    names = exposed_names()
    assert len(set(names.values())) == len(METRICS)
    for metric in METRICS:
        exposed_as = names[metric.name]
        name = f"{exposed_as}_count" if metric.kind == "histogram" else exposed_as
        assert known[name] == {label.replace(".", "_") for label in metric.labels} | {"worker"}


def test_there_is_one_view_or_tally_a_metric_and_no_metric_is_there_twice() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS) == len(views()) + len(Histograms().tallies)
    assert all(metric.buckets == tuple(sorted(set(metric.buckets))) for metric in METRICS)
    assert all(bool(metric.buckets) == (metric.kind == "histogram") for metric in METRICS)


def used() -> Iterator[tuple[str, str]]:
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for number, expression in enumerate(panel_expressions()):
        yield f"panel query {number}", expression


@pytest.mark.parametrize("expression", [pytest.param(expression, id=name) for name, expression in used()])
def test_what_alerts_and_panels_ask_for_is_on_the_page(known: dict[str, set[str]], expression: str) -> None:
    metrics, labels = names_in(expression)
    assert metrics
    ours = metrics - OF_ENVOY
    assert ours <= known.keys()
    if ours:
        assert labels <= set.union(*(known[name] for name in ours)) | AROUND


def test_the_check_of_names_sees_what_is_not_there() -> None:
    metrics, labels = names_in(
        'sum without (worker) (rate(a_total{x="1", y!~"b|c"}[5m])) / on (z) group_left () b > 0.5'
    )
    assert (metrics, labels) == ({"a_total", "b"}, {"worker", "x", "y", "z"})


def test_every_alert_says_how_bad_what_and_what_to_do() -> None:
    assert len(rules()) >= 12
    for rule in rules():
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert rule["annotations"]["summary"].endswith((".", ")."))
        assert len(rule["annotations"]["description"]) > 80
    assert len({rule["alert"] for rule in rules()}) == len(rules())


def test_what_alerts_and_panels_ask_is_promql(tmp_path: Path) -> None:
    expressions = [rule["expr"] for rule in rules()]
    expressions += [re.sub(r"\$__rate_interval", "5m", expression) for expression in panel_expressions()]
    for expression in expressions:
        for opening, closing in ("()", "[]", "{}"):
            assert expression.count(opening) == expression.count(closing)
    recorded = [{"record": f"r:r{number}", "expr": text} for number, text in enumerate(expressions)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": recorded}]}))
    if PROMTOOL is not None:
        run_promtool("check", "rules", ALERTS)
        run_promtool("check", "rules", file)


def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    cases = yaml.safe_load(Path(__file__).with_name("alert_cases.yaml").read_text())
    alerts = {rule["alert"] for rule in rules()}
    fired = {case["alertname"] for test in cases["tests"] for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert fired == alerts
    severities = {rule["alert"]: rule["labels"]["severity"] for rule in rules()}
    for test in cases["tests"]:
        for case in test["alert_rule_test"]:
            for expected in case["exp_alerts"]:
                expected["exp_labels"]["severity"] = severities[case["alertname"]]
    # Words change, and promtool would compare them.
    silent = yaml.safe_load(ALERTS.read_text())
    for group in silent["groups"]:
        for rule in group["rules"]:
            del rule["annotations"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(silent))
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump({**cases, "rule_files": ["rules.yaml"]}))
    if PROMTOOL is not None:
        run_promtool("test", "rules", tmp_path / "cases.yaml")


def test_the_dashboard_has_its_rows_and_variables() -> None:
    board = dashboard()
    panels = board["panels"]
    assert [panel["title"] for panel in panels if panel["type"] == "row"] == [
        *("Traffic", "Decisions", "Signals", "Models and queue", "Parity", "Responses and cost", "Workers")
    ]
    assert [variable["name"] for variable in board["templating"]["list"]] == [
        *("datasource", "namespace", "pod", "decision")
    ]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["description"] for panel in panels if panel["type"] != "row")
    assert all(query.count("$namespace") == query.count("$pod") >= 1 for query in panel_expressions())


def test_panels_lie_beside_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        place = panel["gridPos"]
        across, down = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        cells = {(x, y) for x in across for y in down}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells


def test_every_metric_stands_on_the_dashboard() -> None:
    shown = set().union(*(names_in(expression)[0] for expression in panel_expressions()))
    names = exposed_names()
    missing = [
        metric.name
        for metric in METRICS
        if not shown & {names[metric.name] + end for end in ("", "_bucket", "_sum", "_count")}
    ]
    assert missing == ["pointsman.cache.entries"]
    assert SCRAPED in shown
