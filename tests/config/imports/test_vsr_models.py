from __future__ import annotations

from typing import Any

import pytest
from vsr_example import MODELS, imported, plain, routing, told


def upstreams(text: str) -> dict[str, Any]:
    return {each["model"]: each for each in plain(imported("version: v0.3\n" + text))["upstreams"]}


def backend(fields: str) -> str:
    return f"providers: {{models: [{{name: m, backend_refs: [{{{fields}}}]}}]}}\nrouting: {{}}\n"


@pytest.mark.parametrize(
    ("fields", "endpoint"),
    [
        ('endpoint: "10.0.0.1:8000"', "http://10.0.0.1:8000"),
        ('endpoint: "10.0.0.1:8443", protocol: HTTPS', "https://10.0.0.1:8443"),
        ("endpoint: models.local", "http://models.local:80"),
        ("base_url: https://api.example.com/v1", "https://api.example.com:443"),
        ('endpoint: "http://[fd00::1]:8000/"', "http://[fd00::1]:8000"),
    ],
)
def test_a_backend_becomes_the_endpoint(fields: str, endpoint: str) -> None:
    assert upstreams(backend(fields))["m"]["endpoint"] == endpoint


@pytest.mark.parametrize("fields", ['endpoint: "http://u:pw@h:1"', 'endpoint: "h:99999999"', 'endpoint: "://"'])
def test_an_address_that_envoy_could_not_use_is_lost(fields: str) -> None:
    result = imported("version: v0.3\n" + backend(fields))
    assert "endpoint" not in plain(result)["upstreams"][0]
    assert "providers.models[0].backend_refs[0].endpoint" in told(result, "lost")
    assert "pw" not in result.text + str(told(result, "lost").values())


def test_a_path_of_its_own_is_told() -> None:
    result = imported("version: v0.3\n" + backend("base_url: https://h/openai/v2"))
    assert "path" in told(result, "changed")["providers.models[0].backend_refs[0].base_url"]


def test_names_are_normalised_and_never_collide() -> None:
    models = upstreams(
        "providers:\n"
        "  defaults: {default_model: a b}\n"
        "  models: [{name: a b}, {name: a-b}, {name: 模型}, {name: pointsman_again}]\n"
        "routing: {}\n"
    )
    assert list(models) == ["a-b", "a-b_2", "model", "pointsman_again"]
    assert models["a-b"]["rewrite_model"] == "a b"
    assert models["model"]["rewrite_model"] == "模型"
    assert len({each["cluster"] for each in models.values()}) == 4
    assert models["pointsman_again"]["cluster"] != "pointsman_again"


def test_cards_give_abilities_and_words() -> None:
    result = routing(
        """\
        modelCards:
          - name: small
            description: Sees things.
            capabilities: [chat, vision]
            context_window_size: 8192
            quality_score: 0.5
            modalities: {input: [text, image, smell], output: [text]}
          - {name: painter, modality: diffusion, quality_score: 50, context_window_size: 0}
        """
    )
    models = {each["model"]: each for each in plain(result)["upstreams"]}
    assert models["small"]["modalities"] == ["text", "image"]
    assert models["small"]["card"] == "Sees things. Capabilities: chat, vision."
    assert (models["small"]["context_tokens"], models["small"]["quality"]) == (8192, 0.5)
    assert models["painter"]["outputs"] == ["image"]
    assert told(result, "lost").keys() == {
        "routing.modelCards[0].modalities.input[2]",
        "routing.modelCards[1].quality_score",
    }


def test_adapters_that_decisions_take_become_upstreams_at_the_same_cluster() -> None:
    result = routing(
        """\
        modelCards: [{name: small, loras: [{name: law, description: Contracts.}, {name: idle}]}]
        decisions:
          - {name: d, rules: {conditions: []}, modelRefs: [{model: small, lora_name: law}, {model: small}]}
        """
    )
    models = {each["model"]: each for each in plain(result)["upstreams"]}
    assert models["law"]["cluster"] == models["small"]["cluster"]
    assert models["law"]["rewrite_model"] == "law"
    assert models["law"]["endpoint"] == models["small"]["endpoint"]
    assert plain(result)["decisions"][0]["route"]["models"] == ["law", "small"]
    assert "routing.modelCards[0].loras[1]" in told(result, "moot")


def test_only_one_backend_is_carried_and_the_others_are_listed() -> None:
    result = imported(
        "version: v0.3\nrouting: {}\n"
        "providers: {models: [{name: m, backend_refs: [{endpoint: a}, {endpoint: b}, {endpoint: c}]}]}\n"
    )
    assert plain(result)["upstreams"][0]["endpoint"] == "http://a:80"
    assert [key for key in told(result, "lost") if "backend_refs" in key] == [
        "providers.models[0].backend_refs[1]",
        "providers.models[0].backend_refs[2]",
    ]


def test_without_a_default_the_first_model_is_taken_and_told() -> None:
    result = imported("version: v0.3\nproviders: {models: [{name: one}, {name: two}]}\nrouting: {}\n")
    assert plain(result)["default_model"] == "one"
    assert "no default model" in told(result, "changed")["providers"]


def test_a_model_that_nothing_describes_is_made_and_told() -> None:
    result = routing("decisions: [{name: d, rules: {conditions: []}, modelRefs: [{model: ghost}]}]\n")
    assert "ghost" in [each["model"] for each in plain(result)["upstreams"]]
    assert "nothing describes" in told(result, "changed")["routing.decisions[0].modelRefs[0].model"]


def test_prices_are_carried() -> None:
    text = MODELS.replace("{name: small,", "{name: small, pricing: {currency: EUR, prompt_per_1m: 1.5},")
    model = plain(imported(text + "routing: {}\n"))["upstreams"][0]
    assert model["price"] == {"input_per_million": 1.5, "output_per_million": 0}
