"""Every document that the chart renders, against Kubernetes' own schemas and those of the kinds that others define."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import yaml
from chart_render import CASES, KUBERNETES, Document, render

CRDS = {
    (crd["apiVersion"], crd["kind"]): crd["spec"]
    for path in sorted((Path(__file__).parent / "crds").glob("*.yaml"))
    for crd in [yaml.safe_load(path.read_text())]
}

MATRIX = {
    **{case: (case, ()) for case in CASES},
    "gke traffic": ("extproc-gke", ("--set", "binding.gke.extension=traffic,binding.routes=null")),
    "istio, server TLS": ("extproc-istio", ("--set", "tls.mode=server")),
    "istio, in a mesh": ("extproc-istio", ("--set", "tls.mode=insecure,tls.certManager.enabled=false")),
    "istio, pools": (
        "extproc-istio",
        ("--set-json", 'binding.routes=[{"model": "small", "inferencePool": "pool"}]'),
    ),
    "envoy gateway, no routes": ("extproc-envoygateway", ("--set", "binding.routes=null")),
    "envoy, no TLS": ("extproc-envoy", ("--set", "tls.mode=insecure")),
    "no binding": ("extproc-envoy", ("--set", "binding.kind=none")),
    "bare": (
        "standalone",
        ("--set", "networkPolicy.enabled=false,pdb.enabled=false,serviceAccount.create=false,admin.enabled=false"),
    ),
    "one worker": ("standalone", ("--set", "workers=1,replicas=1,pdb.maxUnavailable=50%")),
    "autoscaling by CPU": ("extproc-envoygateway", ("--set", "autoscaling.enabled=true")),
    "other names": ("standalone", ("--set", "fullnameOverride=judge,nameOverride=judge")),
    "packs behind a gateway": (
        "extproc-gke",
        ("-f", str(Path(__file__).parents[2] / "charts/pointsman/ci/packs-pull-values.yaml")),
    ),
}


@pytest.fixture(scope="module", autouse=True)
def schemas_read_once() -> Iterator[None]:
    """The library reads its megabytes of definitions anew for every document."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            kubernetes_validate.utils, "schema_contents", functools.cache(kubernetes_validate.utils.schema_contents)
        )
        yield


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("name", MATRIX)
def test_kubernetes_takes_every_document(name: str, version: str) -> None:
    case, words = MATRIX[name]
    found = [document for document in render(case, *words) if (document["apiVersion"], document["kind"]) not in CRDS]
    assert found
    for document in found:
        if "oci" in name and version == KUBERNETES[0]:
            document = without_image_volumes(document)
        kubernetes_validate.validate(document, version, strict=True)


def without_image_volumes(document: Document) -> Document:
    """Kubernetes has them from 1.31 on."""
    spec = document.get("spec", {}).get("template", {}).get("spec")
    if not spec:
        return document
    volumes = [volume for volume in spec["volumes"] if "image" not in volume]
    return {
        **document,
        "spec": {**document["spec"], "template": {"metadata": {}, "spec": {**spec, "volumes": volumes}}},
    }


@pytest.mark.parametrize("name", MATRIX)
def test_kinds_of_others_have_the_fields_that_these_know(name: str) -> None:
    case, words = MATRIX[name]
    for document in render(case, *words):
        spec = CRDS.get((document["apiVersion"], document["kind"]))
        if spec is not None:
            jsonschema.validate(document["spec"], spec)
            assert set(document) == {"apiVersion", "kind", "metadata", "spec"}


def test_every_kind_of_others_is_rendered_somewhere() -> None:
    seen = {(d["apiVersion"], d["kind"]) for case, words in MATRIX.values() for d in render(case, *words)}
    assert set(CRDS) <= seen


@pytest.mark.parametrize("name", MATRIX)
def test_no_two_documents_are_the_same_object(name: str) -> None:
    case, words = MATRIX[name]
    found = [(d["kind"], d["metadata"]["name"]) for d in render(case, *words)]
    assert len(found) == len(set(found))
    assert all(d["metadata"]["namespace"] == "llm" for d in render(case, *words))
