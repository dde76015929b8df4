"""Models: `providers.models` and `routing.modelCards` as upstreams, and adapters (LoRA) as upstreams of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from router.config.imports.cards import MAX_CARD, read_kinds, read_words
from router.config.imports.ledger import Ledger, changed, lost, moot
from router.config.imports.names import Names, cluster_names, header_word
from router.config.imports.node import Node
from router.config.imports.writing import Entry
from router.config.problems import dotted
from router.config.schema import UpstreamSettings


@dataclass(slots=True)
class Model:
    """One model of theirs, on its way to an upstream."""

    name: str
    word: str
    fields: dict[str, Any] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)
    adapters: dict[str, Node] = field(default_factory=dict)
    deployed: bool = False


class Models:
    """All models of a configuration, by their names there."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._words = Names()
        self._clusters = cluster_names()
        self._models: dict[str, Model] = {}
        self._adapters: dict[tuple[str, str], str] = {}
        self._upstreams: dict[str, Entry] = {}
        self._currencies: set[str] = set()

    def read(self, providers: Node | None, routing: Node) -> None:
        """Read deployments and cards; a model may have either or both."""
        for node in providers.nodes("models") if providers else []:
            model = self._named(node)
            if model:
                self._deployment(model, node)
        carded: set[str] = set()
        for node in routing.nodes("modelCards"):
            model = self._named(node)
            if model and model.name in carded:
                node.book(None, lost("another card has the same name"))
            elif model:
                carded.add(model.name)
                self._card(model, node)
        for model in self._models.values():
            self._upstreams[model.word] = self._entry(model.fields, model.comments)

    def word(self, name: str, adapter: str | None = None) -> str:
        """The upstream of a model that something refers to; it is made where nothing describes it."""
        if name not in self._models:
            found = next((each for each in self._models.values() if name in each.adapters), None)
            if found is not None and adapter is None:
                return self.word(found.name, name)
            model = self._new(name)
            model.fields["cluster"] = self._clusters.give(header_word(name, "model"))
            self._upstreams[model.word] = self._entry(model.fields, ["No part of the imported file describes it."])
        model = self._models[name]
        if adapter is None:
            return model.word
        key = (name, adapter)
        if key not in self._adapters:
            self._adapters[key] = word = self._words.give(header_word(adapter, "adapter"))
            fields = {**model.fields, "model": word, "rewrite_model": adapter}
            comments = [f"The adapter of {model.name}: its server takes the adapter's name for a model's."]
            node = model.adapters.get(adapter)
            if node is not None:
                comments.insert(0, f"{dotted(node.location)}: {node.text('name')}")
                fields["card"] = (node.text("description") or fields.get("card", ""))[:MAX_CARD]
            fields = {key: value for key, value in fields.items() if value}
            self._upstreams[word] = self._entry(fields, comments)
        return self._adapters[key]

    def knows(self, name: str) -> bool:
        """Whether the file describes the model, or an adapter of this name."""
        return name in self._models or any(name in each.adapters for each in self._models.values())

    def has(self, word: str, key: str) -> bool:
        """Whether the upstream has the key."""
        return key in self._upstreams[word].value

    def first(self) -> str | None:
        """The first upstream, if there is one."""
        return next(iter(self._upstreams), None)

    def upstreams(self) -> list[Entry]:
        """Every upstream; adapters that no one asked for are listed as moot."""
        for model in self._models.values():
            for adapter, node in model.adapters.items():
                if (model.name, adapter) not in self._adapters:
                    node.book(None, moot("no decision takes this adapter"))
        return list(self._upstreams.values())

    def _named(self, node: Node) -> Model | None:
        name = node.text("name")
        if not name:
            if isinstance(node.data, dict):
                self._ledger.problem(node.location, 'needs the key "name"')
            return None
        model = self._models.get(name) or self._new(name)
        model.comments.append(dotted(node.location))
        if "cluster" not in model.fields:
            model.fields["cluster"] = self._clusters.give(header_word(name, "model"))
        return model

    def _new(self, name: str) -> Model:
        model = Model(name, self._words.give(header_word(name, "model")))
        model.fields["model"] = model.word
        if model.word != name:
            model.fields["rewrite_model"] = name
        self._models[name] = model
        return model

    def _deployment(self, model: Model, node: Node) -> None:
        if model.deployed:
            node.book(None, lost("another deployment has the same name"))
            return
        model.deployed = True
        backends = node.nodes("backend_refs")
        if backends:
            self._backend(model, backends[0], len(backends))
        for other in backends[1:]:
            other.book(
                None,
                lost(
                    "an upstream has one endpoint",
                    f"put all of them behind one address, or give them to Envoy's cluster {model.fields['cluster']}",
                ),
            )
        self._rewrite(model, node, backends[:1])
        form = node.text("api_format")
        if form is not None:
            node.book(
                "api_format",
                moot("clients speak to the upstream in its own words")
                if form == "openai"
                else lost("APIs are not translated into each other", "let clients speak what the upstream speaks"),
            )
        pricing = node.node("pricing")
        if pricing:
            self._price(model, pricing)

    def _backend(self, model: Model, node: Node, count: int) -> None:
        name = node.text("name")
        if name is not None:
            model.comments.append(f"backend {name}")
        if count == 1:
            node.book_if(["weight"], moot("there is one backend"))
        else:
            node.book_if(["weight"], lost("an upstream has one endpoint"))
        base, address, protocol = node.text("base_url"), node.text("endpoint"), node.text("protocol")
        key = "endpoint" if address else "base_url"
        written = address or base
        if address and base:
            node.book("base_url", lost("`endpoint` stands beside it"))
        if not written:
            return
        scheme = (protocol or "http").lower()
        endpoint, path = _endpoint(written if "://" in written else f"{scheme}://{written}")
        if endpoint is None:
            node.book(key, lost("is no address that Envoy could be given", "write `endpoint: http://host:port`"))
            node.book_if(["protocol"], lost("its address is not carried"))
            return
        if protocol is not None and "://" in written:
            node.book("protocol", moot("the address has its own"))
        elif scheme not in ("http", "https"):
            node.book("protocol", lost("upstreams speak http or https; http is taken"))
        if path.rstrip("/") not in ("", "/v1"):
            node.book(key, changed("the client's path is kept", "rewrite the path in Envoy's route"))
        model.fields["endpoint"] = endpoint

    def _rewrite(self, model: Model, node: Node, backends: list[Node]) -> None:
        ids = node.node("external_model_ids")
        own = node.text("provider_model_id")
        kinds = [backend.peek(key) for backend in backends for key in ("type", "provider")]
        keys = [str(kind) for kind in kinds if kind] or ["vllm"]
        chosen = None
        for key in ids.keys() if ids else []:
            if ids and key in keys and chosen is None:
                chosen = ids.text(key)
            elif ids:
                ids.book(key, moot("the name of the model at another provider"))
        if chosen and own and chosen != own:
            node.book("provider_model_id", moot("`external_model_ids` names the model for this provider"))
        name = chosen or own
        if name:
            model.fields["rewrite_model"] = name

    def _price(self, model: Model, node: Node) -> None:
        currency = node.text("currency")
        if currency is not None:
            self._currencies.add(currency)
            model.comments.append(f"prices in {currency}")
            if len(self._currencies) > 1:
                node.book("currency", changed("prices are compared as numbers", "convert them into one currency"))
        price: dict[str, float] = {}
        for theirs, ours in (("prompt_per_1m", "input_per_million"), ("completion_per_1m", "output_per_million")):
            value = node.number(theirs)
            if value is not None and value < 0:
                node.book(theirs, lost("a price is at least 0"))
            elif value is not None:
                price[ours] = value
        if price:  # what is left out costs nothing there
            model.fields["price"] = {"input_per_million": 0, "output_per_million": 0, **price}

    def _card(self, model: Model, node: Node) -> None:
        fields = model.fields
        size = node.text("param_size")
        if size is not None:
            model.comments.append(f"{size} parameters")
        window = node.number("context_window_size")
        if window is not None and window >= 1:
            fields["context_tokens"] = int(window)
        elif window is not None:
            node.book("context_window_size", moot("without bound, as when it is left out"))
        quality = node.number("quality_score")
        if quality is not None and 0 <= quality <= 1:
            fields["quality"] = quality
        elif quality is not None:
            node.book("quality_score", lost("`quality` lies in 0-1", "write it into the upstream on that scale"))
        read_kinds(model.fields, node)
        read_words(model.fields, node)
        for lora in node.nodes("loras"):
            name = lora.text("name")
            if name and name not in model.adapters:
                model.adapters[name] = lora
            elif name:
                lora.book(None, lost("another adapter has the same name"))

    def _entry(self, fields: dict[str, Any], comments: list[str]) -> Entry:
        ordered = {key: fields[key] for key in UpstreamSettings.model_fields if key in fields}
        return Entry(ordered, ("; ".join(comments),))


def _endpoint(url: str) -> tuple[str | None, str]:
    """`scheme://host:port` of an address, with the usual port where it has none, and its path."""
    try:
        parts = urlsplit(url)
        scheme = "https" if parts.scheme in ("https", "grpcs") else "http"
        port = parts.port or (443 if scheme == "https" else 80)
        host = parts.hostname or ""
        if not host or parts.username or parts.password or header_word(host, "") != host:
            return None, ""
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}", parts.path
    except ValueError:
        return None, ""
