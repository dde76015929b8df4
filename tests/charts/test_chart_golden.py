"""What the chart renders, one file a mode and one a gateway, kept to be read in review.

A change of the chart that changes them on purpose:  python tests/charts/test_chart_golden.py
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from chart_render import Document, render

GOLDEN = Path(__file__).parent / "golden"
MODES = {"standalone": "standalone", "extproc": "extproc-envoygateway", "sidecar": "sidecar"}
GATEWAYS = {name: f"extproc-{name}" for name in ("istio", "gke", "envoy", "inference")}
PLAIN = {"ConfigMap", "Deployment", "Service", "ServiceAccount", "NetworkPolicy", "PodDisruptionBudget", "Job", "Pod"}


class _Readable(yaml.SafeDumper):
    """Texts of several lines as they are read."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Readable.add_representer(str, _text)


def rendered(name: str) -> str:
    """The documents of a mode, or of a gateway those that the mode has not."""
    found = render({**MODES, **GATEWAYS}[name])
    if name in GATEWAYS:
        found = [d for d in found if d["kind"] not in PLAIN or d["metadata"]["name"].endswith("-envoy")]
    return yaml.dump_all([_without_files(d) for d in found], Dumper=_Readable, sort_keys=False, width=140)


def _without_files(document: Document) -> Document:
    """Scripts are read where they are."""
    if document["kind"] != "ConfigMap":
        return document
    data = {key: f"(files/{key})\n" if key.endswith((".sh", ".py")) else text for key, text in document["data"].items()}
    return {**document, "data": data}


@pytest.mark.parametrize("name", [*MODES, *GATEWAYS])
def test_it_renders_what_was_reviewed(name: str) -> None:
    assert rendered(name) == (GOLDEN / f"{name}.yaml").read_text(), f"see {__file__} for how to renew it"


if __name__ == "__main__":
    for each in [*MODES, *GATEWAYS]:
        (GOLDEN / f"{each}.yaml").write_text(rendered(each))
