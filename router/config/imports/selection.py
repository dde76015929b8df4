"""A decision's `algorithm` and the weights of its models as the route's `select`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from router.config.imports.ledger import changed, lost, moot
from router.config.imports.models import Models
from router.config.imports.node import Node
from router.config.imports.reasons import ALGORITHMS
from router.config.selecting import MultiFactorSettings, SelectSettings

FIRST: Final = "; the first model is taken"


def read_select(algorithm: Node | None, words: Sequence[str], weights: dict[str, float], models: Models) -> Any:
    """What stands under `select`; None where the first of the models is taken."""
    if len(words) < 2:
        if algorithm is not None:
            algorithm.book(None, moot("there is one model to select"))
        return None
    if algorithm is None:
        return _weighted(words, weights)
    kind = (algorithm.text("type") or "static").lower()
    own = algorithm.node(kind)
    match kind:
        case "static":
            return None
        case "weighted" | "random":
            return _weighted(words, weights)
        case "elo":
            return "elo"
        case "rl_driven" | "bandit":
            algorithm.book("type", changed("a bandit by rewards, with no word of their own", "see `pointsman rewards`"))
            return "bandit"
        case "router_dc":
            if not all(models.has(word, "card") for word in words):
                algorithm.book(None, lost(f"similarity needs a description of each model{FIRST}"))
                return None
            return "similarity"
        case "latency_aware":
            return _fastest(own)
        case "multi_factor":
            return _multi_factor(algorithm, own, words, models)
        case "hybrid":
            algorithm.book("type", changed("ratings choose; they are the one of its parts that learns"))
            return {"hybrid": {"pick": "elo"}}
    reason = ALGORITHMS.get(kind) or lost("this algorithm is not known")
    algorithm.book(None, lost(reason.why + FIRST, reason.instead))
    return None


def _weighted(words: Sequence[str], weights: dict[str, float]) -> Any:
    if not any(weights.values()):
        return None
    return {"weighted": {"weights": {word: weights.get(word, 0.0) for word in words}}}


def _fastest(own: Node | None) -> Any:
    settings: dict[str, Any] = {}
    if own is not None:
        first, token = own.number("ttft_percentile"), own.number("tpot_percentile")
        if first is not None and 0 <= first <= 100:
            settings["percentile"] = first
            own.book_if(["tpot_percentile"], lost("one time is compared; it is the one to the first token"))
        elif token is not None and 0 <= token <= 100:
            settings |= {"measure": "latency", "percentile": token}
            own.book("tpot_percentile", changed("the time of the whole answer is compared, not that of a token"))
        own.book_if(["description"], moot("a note for people"))
    return {"fastest": settings} if settings else "fastest"


def _multi_factor(algorithm: Node, own: Node | None, words: Sequence[str], models: Models) -> Any:
    known = {
        "quality": all(models.has(word, "quality") for word in words),
        "cost": all(models.has(word, "price") for word in words),
    }
    weighing = own.node("weights") if own else None
    weights: dict[str, float] = {}
    for key in ("quality", "latency", "cost", "load"):
        value = weighing.number(key) if weighing else None
        value = (0.0 if weighing else None) if value is None else value
        if value and not known.get(key, True):
            if weighing:
                weighing.book(key, lost(f"some of the models have no {'price' if key == 'cost' else key}"))
            value = 0.0
        elif value is None:
            value = float(known.get(key, key == "latency"))
        weights[key] = value
    limits: dict[str, float] = {}
    slo = own.node("slo") if own else None
    if slo is not None:
        slo.book_if(
            ["max_tpot_ms", "max_ttft_ms", "max_cost_per_1m", "max_inflight"],
            lost(
                "limits are on other measures here", "write `limits`: min_quality, max_cost, max_latency_ms, max_load"
            ),
        )
    quality = own.node("quality") if own else None
    least = quality.number("min_score") if quality else None
    if quality is not None and least is not None and 0 < least <= 1 and known["quality"]:
        limits["min_quality"] = least
    elif quality is not None:
        quality.book_if(["min_score"], moot("it excludes no model") if not least else lost("models have no quality"))
    settings: dict[str, Any] = {"weights": weights, **({"limits": limits} if limits else {})}
    try:
        MultiFactorSettings.model_validate(settings)
        SelectSettings.model_validate({"multi_factor": settings})
    except ValueError:
        algorithm.book(None, lost(f"its weights can't be weighed here{FIRST}"))
        return None
    return {"multi_factor": settings}
