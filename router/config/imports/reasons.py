"""What of a vLLM Semantic Router configuration has no counterpart here, by its place in the file, and why.

A table: the longest entry that fits a place tells its reason. Numbers of list items are left out of places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from router.config.imports.ledger import Reason, lost, moot
from router.config.problems import Location

_DOCUMENTATION: Final = moot("describes the model to people, not to a router")
_RESPONSES: Final = lost("answers do not pass through Pointsman", "check answers in a filter of Envoy or in the client")
_REASONING: Final = lost(
    "Pointsman does not switch reasoning on or off in a request",
    "let the client ask for it, or make two upstreams of the model and set it in their servers",
)
_CREDENTIALS: Final = lost(
    "a policy holds no credentials", "give them to Envoy, as in its credential_injector filter of the cluster"
)
_ENVOY: Final = lost("this is Envoy's part", "write it into the Envoy bootstrap that `pointsman envoy` prints")
_PACKS: Final = lost(
    "models are packs here, and theirs are not read", "export a checkpoint with `pointsman packs export`, then name it"
)
_LOOPER: Final = lost(
    "one request goes to one model here; there are no calls in rounds",
    "do it in the application, or in a model's server",
)
_TRAINED: Final = lost("a trained selector's file cannot be read", "write `select: bandit` or `select: multi_factor`")
_CACHE: Final = lost("Pointsman gives no answers out of a cache", "cache in the application or in the model's server")
_REWRITE: Final = lost("requests are not rewritten", "write it into the application or into a filter of Envoy")
_STORE: Final = lost("Pointsman has no store of this kind", "leave it to the service that answers")

REASONS: Final[Mapping[str, Reason]] = {
    "listeners": lost(
        "Envoy listens", "give the address with `pointsman envoy --listen`; timeouts stand in its routes"
    ),
    "evaluation": lost("measurements of models are not imported", "write `quality` into the upstreams"),
    "recipes": lost(
        "further recipes are not imported",
        "import each as a file of its own, and put its decisions under `profiles`",
    ),
    "entrypoints": lost("entry points choose recipes", "write `profiles` with `models`"),
    "providers.defaults.reasoning_families": _REASONING,
    "providers.defaults.default_reasoning_effort": _REASONING,
    "providers.defaults.reasoning_effort": _REASONING,
    "providers.models.reasoning_family": _REASONING,
    "providers.models.reasoning": _REASONING,
    "providers.models.reliability": _ENVOY,
    "providers.models.catalog": lost("their catalogue of models is not read", "describe the model under `upstreams`"),
    "providers.models.pricing.cached_input_per_1m": lost("prices know question and answer, no cached input"),
    "providers.models.pricing.cache_write_per_1m": lost("prices know question and answer, no cached input"),
    "providers.models.backend_refs.api_key": _CREDENTIALS,
    "providers.models.backend_refs.api_key_env": _CREDENTIALS,
    "providers.models.backend_refs.auth_header": _CREDENTIALS,
    "providers.models.backend_refs.auth_prefix": _CREDENTIALS,
    "providers.models.backend_refs.extra_headers": _ENVOY,
    "providers.models.backend_refs.api_version": _ENVOY,
    "providers.models.backend_refs.chat_path": lost("the client's path is kept", "rewrite it in Envoy's route"),
    "providers.models.backend_refs.metrics_port": lost(
        "metrics of model servers are not read", "`pointsman serve` learns times from answers or a feed"
    ),
    "providers.models.backend_refs.metrics_path": lost("metrics of model servers are not read"),
    "providers.models.backend_refs.engine_kind": moot("every upstream is spoken to alike"),
    "providers.models.backend_refs.backend_id": moot("a name for people"),
    "providers.models.backend_refs.type": moot("every upstream is spoken to alike"),
    "providers.models.backend_refs.provider": moot("every upstream is spoken to alike"),
    "providers.models.access_key": _CREDENTIALS,
    "routing.model_bindings": _PACKS,
    "routing.fallback": _ENVOY,
    "routing.candidate_requirements": moot("candidates are always held against what a request needs"),
    "routing.data_policy": lost("records hold no content unless a policy says so"),
    "routing.modelCards.display_name": _DOCUMENTATION,
    "routing.modelCards.publisher": _DOCUMENTATION,
    "routing.modelCards.presentation": _DOCUMENTATION,
    "routing.modelCards.distribution": _DOCUMENTATION,
    "routing.modelCards.family": _DOCUMENTATION,
    "routing.modelCards.revision": _DOCUMENTATION,
    "routing.modelCards.released_at": _DOCUMENTATION,
    "routing.modelCards.knowledge_cutoff": _DOCUMENTATION,
    "routing.modelCards.lifecycle": _DOCUMENTATION,
    "routing.modelCards.max_output_tokens": lost(
        "an upstream's bound is `context_tokens`, question and answer together"
    ),
    "routing.signals.safety": lost(
        "a classifier of contents needs its pack", "export it as a pack, and write a `classifier` signal"
    ),
    "routing.signals.classifiers": lost(
        "a classifier needs its pack", "export it as a pack, and write a `classifier` signal"
    ),
    "routing.signals.kb": lost(
        "their knowledge bases are not read",
        "put the labelled examples into one file, and write a `knowledge_base` signal with `any`",
    ),
    "routing.signals.hallucination": _RESPONSES,
    "routing.signals.metadata": lost(
        "metadata of a request's body is anybody's word",
        "let a filter put it into a trusted header, and write a `metadata` or `header` signal",
    ),
    "routing.signals.decision": _PACKS,
    "routing.signals.domains.model_scores": lost("models have no scores by domain", "order the models of the route"),
    "routing.signals.embeddings.prototype_scoring": lost(
        "anchors are not thinned out", "`aggregate: top_k` comes near"
    ),
    "routing.signals.complexity.prototype_scoring": lost("examples are not thinned out"),
    "routing.signals.complexity.composer": lost("no decision asks for the rule by its verdict `hard`"),
    "routing.projections.mappings.calibration": lost("a band is met or not; it has no confidence of its own"),
    "routing.decisions.tier": lost("priorities have no tiers", "write them into `priority`"),
    "routing.decisions.output_contract": _REWRITE,
    "routing.decisions.output_contract_spec": _RESPONSES,
    "routing.decisions.annotations": moot("notes for people"),
    "routing.decisions.adaptations": lost("learning is a route's own", "write `select: bandit` or `select: elo`"),
    "routing.decisions.emits": lost("nothing is kept after the decision"),
    "routing.decisions.candidateIterations": lost("candidates are listed, not computed", "write them under `models`"),
    "routing.decisions.modelRefs.use_reasoning": _REASONING,
    "routing.decisions.modelRefs.reasoning_mode": _REASONING,
    "routing.decisions.modelRefs.reasoning_effort": _REASONING,
    "routing.decisions.modelRefs.reasoning_description": _REASONING,
    "global.router.config_source": moot("a policy is a file"),
    "global.router.auto_model_name": moot("every name that is no model's is decided by the decisions"),
    "global.router.auto_model_names": moot("every name that is no model's is decided by the decisions"),
    "global.router.include_config_models_in_list": lost(
        "Pointsman does not list models", "let a service answer /v1/models"
    ),
    "global.router.clear_route_cache": moot("always so"),
    "global.router.streamed_body": moot("bodies are always streamed to the sidecar; see `limits.body_bytes`"),
    "global.router.skip_processing": lost(
        "requests that reach the sidecar are decided", "leave the filter out of a route"
    ),
    "global.router.fallback": _ENVOY,
    "global.router.model_selection": lost("each route selects for itself", "write `select` into the routes"),
    "global.router.learning": lost("learning is a route's own", "write `select: bandit` or `select: elo`"),
    "global.router": lost("no such switch here"),
    "global.services.api": lost("Pointsman has no API for classifications", "`pointsman explain` shows a decision"),
    "global.services.response_api": lost("conversations are not stored", "leave it to the upstream"),
    "global.services.observability": lost("telemetry is set by OpenTelemetry's own environment variables"),
    "global.services.authz": lost("Pointsman authenticates nobody", "let a filter of Envoy do it, before the sidecar"),
    "global.services.ratelimit": lost("this is Envoy's part", "use its ratelimit filters"),
    "global.services.management_api": lost("there is none", "see `pointsman serve --admin`"),
    "global.services.router_replay": lost("records are kept by `pointsman serve`", "see `pointsman records`"),
    "global.services": lost("Pointsman has no service of this kind"),
    "global.stores.semantic_cache": _CACHE,
    "global.stores.response_cache": _CACHE,
    "global.stores": _STORE,
    "global.integrations.looper": _LOOPER,
    "global.integrations": _REWRITE,
    "global.model_catalog": _PACKS,
    "setup": moot("belongs to their installer"),
}

PLUGINS: Final[Mapping[str, Reason]] = {
    "semantic-cache": _CACHE,
    "semantic_cache": _CACHE,
    "response_cache": _CACHE,
    "system_prompt": _REWRITE,
    "header_mutation": lost("requests are not rewritten", "let Envoy's route add headers by `x-pointsman-decision`"),
    "request_params": _REWRITE,
    "context_compression": _REWRITE,
    "tools": _REWRITE,
    "tool_selection": _REWRITE,
    "memory": _STORE,
    "rag": lost("Pointsman fetches nothing into a request", "do it in the application"),
    "hallucination": _RESPONSES,
    "response_jailbreak": _RESPONSES,
    "router_replay": REASONS["global.services.router_replay"],
    "shadow_dispatch": lost("a request goes to one model", "use a mirror policy in Envoy's route"),
    "image_gen": _REWRITE,
    "jailbreak": lost("safety is a decision here", "write a guard on a `jailbreak` signal"),
    "pii": lost("safety is a decision here", "write a guard on a `pii` signal"),
}

ALGORITHMS: Final[Mapping[str, Reason]] = {
    **dict.fromkeys(("confidence", "ratings", "remom", "fusion", "workflows", "automix"), _LOOPER),
    **dict.fromkeys(("knn", "kmeans", "svm", "mlp", "gmtrouter"), _TRAINED),
    "prompt": lost("no model is asked which model to take", "write `select: similarity` over the models' cards"),
    "session_aware": lost(
        "there is no memory of sessions", "write `select: {weighted: ...}`; a conversation keeps its model by it"
    ),
}


_ABOVE: Final = frozenset(
    ".".join(words[:length]) for key in REASONS if (words := key.split(".")) for length in range(len(words))
)


def splits(location: Location) -> bool:
    """Whether parts of the place have reasons of their own."""
    return ".".join(key for key in location if isinstance(key, str)) in _ABOVE


def reason_of(location: Location) -> Reason | None:
    """The reason of the longest entry that the place lies in."""
    words = [key for key in location if isinstance(key, str)]
    for length in range(len(words), 0, -1):
        found = REASONS.get(".".join(words[:length]))
        if found is not None:
            return found
    return None
