"""Names, labels and keys that are legal and odd: Kubernetes takes what is rendered, and each key is written once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest
import yaml
from chart_render import CHART, ROOT, ChartError, case_file, run_helm

POLICY = ("--set-file", f"policy.text={ROOT / 'examples' / 'demo' / 'policy.yaml'}")


class _Once(yaml.SafeLoader):
    """Refuses a key that is there twice, and one that is no text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert all(isinstance(key, str) for key in keys), keys
        assert len(keys) == len(set(keys)), sorted(keys)
        return super().construct_mapping(node, deep)


def rendered(release: str, *words: str) -> list[dict[str, Any]]:
    text = run_helm("template", release, str(CHART), "--namespace", "llm", *POLICY, *words)
    return [document for document in yaml.load_all(text, _Once) if document]


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("r" * 53, ()),
        ("pm", ("--set", f"fullnameOverride={'f' * 63}")),
        ("pm", ("--set", f"nameOverride={'n' * 63}")),
    ],
)
def test_names_that_are_as_long_as_can_be_fit(release: str, words: tuple[str, ...]) -> None:
    """A Job's name becomes a label of its pod, a Service's a label in DNS: 63 characters."""
    found = rendered(release, *words)
    assert {"Job", "Service"} <= {document["kind"] for document in found}
    for document in found:
        assert len(document["metadata"]["name"]) <= 63


@pytest.mark.parametrize("release", ["true", "null", "on"])
def test_a_release_that_yaml_would_read_as_something_else_stays_a_text(release: str) -> None:
    for document in rendered(release):
        chosen = document.get("spec", {}).get("selector", {})
        for labels in (document["metadata"]["labels"], chosen.get("matchLabels", chosen)):
            assert labels.get("app.kubernetes.io/instance", release) == release


@pytest.mark.parametrize("release", ["my.release", "7b"])
def test_a_release_that_no_service_can_be_named_after_needs_a_name(release: str) -> None:
    with pytest.raises(ChartError, match="set fullnameOverride"):
        rendered(release)
    assert rendered(release, "--set", "fullnameOverride=pointsman")


@pytest.mark.parametrize("word", ["nameOverride=My App", "fullnameOverride=a_b"])
def test_a_name_that_is_none_is_refused(word: str) -> None:
    with pytest.raises(ChartError, match="values don't meet the specifications of the schema"):
        rendered("pm", "--set", word)


def test_labels_that_are_given_twice_are_written_once_and_the_charts_own_stay() -> None:
    given = (
        r"labels.app\.kubernetes\.io/component=x,podLabels.app\.kubernetes\.io/name=x,labels.team=all,podLabels.team=pods,"
        "labels.release=a,metrics.podMonitor.enabled=true,metrics.podMonitor.labels.release=b,"
        r"podAnnotations.kubectl\.kubernetes\.io/default-container=envoy,podAnnotations.checksum/envoy=x"
    )
    found = rendered("pm", "-f", case_file("standalone"), "--set", given)
    [deployment] = [document for document in found if document["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["metadata"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= pod["labels"].items()
    assert pod["labels"]["team"] == "pods"
    assert pod["annotations"]["kubectl.kubernetes.io/default-container"] == "envoy"
    assert len(pod["annotations"]["checksum/envoy"]) == 64
    [monitor] = [document for document in found if document["kind"] == "PodMonitor"]
    assert monitor["metadata"]["labels"]["release"] == "b"


@pytest.mark.parametrize("key", ["on", "1.10"])
def test_a_policys_key_is_a_text(key: str) -> None:
    files = 'policy.files={"1.20": "x", "off": "y"}'
    found = rendered("pm", "--set-string", f"policy.key={key}", "--set-json", files)
    maps = [document["data"] for document in found if document["kind"] == "ConfigMap" and "off" in document["data"]]
    assert [set(data) for data in maps] == [{key, "1.20", "off"}] * 2
