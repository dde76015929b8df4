"""`routing.projections`: partitions over rivals, weighted scores, and mappings of scores to named ranges."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final

from router.config.conditions import BOUNDS, read_interval
from router.config.imports.ledger import changed, lost, moot
from router.config.imports.names import Names, header_word, signal_word
from router.config.imports.node import Node
from router.config.imports.signals import Condition, Signals
from router.config.imports.writing import Entry
from router.config.problems import dotted
from router.config.projections import MAX_WEIGHT
from router.policy.projection import NO_MEMBER
from router.signals.registry import FAMILIES

_PREDICATES: Final = (*BOUNDS, "label")


class Projections:
    """The policy's projections. Reading them changes what names of rivals mean, and gives outputs a meaning."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._names = {kind: Names() for kind in ("partition", "score", "band")}
        self._scores: dict[str, str] = {}
        self.sections: dict[str, dict[str, Entry]] = {"partition": {}, "score": {}, "band": {}}

    def read(self, node: Node | None) -> None:
        """Partitions first: scores and decisions see rivals through them."""
        if node is None:
            return
        for rule in node.nodes("partitions"):
            self._partition(rule)
        for rule in node.nodes("scores"):
            self._score(rule)
        for rule in node.nodes("mappings"):
            self._mapping(rule)

    def _partition(self, rule: Node) -> None:
        name = rule.text("name") or "partition"
        members = list(dict.fromkeys(rule.texts("members")))
        semantics = (rule.text("semantics") or "exclusive").lower()
        if semantics not in ("exclusive", "softmax_exclusive"):
            rule.book("semantics", lost("this kind of partition is not known; the best of those that match wins"))
        rule.book_if(["temperature"], moot("the winner is the same; it only spreads the confidence"))
        found: dict[str, tuple[str, Condition]] = {}
        for member in members:
            for kind in ("domain", "embedding"):
                condition = self._signals.meaning(kind, member)
                if condition is not None and member not in found and _is_signal(condition):
                    found[member] = (kind, condition)
        refs = ["/".join(next(iter(condition.items()))) for _, condition in found.values()]
        kinds = {FAMILIES[ref.split("/")[0]].scores for ref in refs}
        if len(set(refs)) < 2 or len(set(refs)) < len(refs) or len(kinds) != 1:
            rule.book(None, lost("rivals need two signals or more with scores of one kind, carried by themselves"))
            return
        for index, member in enumerate(rule.texts("members")):
            if member not in found:
                rule.book_item("members", index, lost("no signal of this name is carried by itself"))
        word = self._names["partition"].give(signal_word(name, "partition"))
        self.sections["partition"][word] = Entry({"of": refs}, (_told(rule, name, word),))
        short = [ref.split("/")[1] for ref in refs]
        default = rule.text("default")
        for (member, (kind, _)), ref in zip(found.items(), refs, strict=True):
            own = ref.split("/")[1]
            label = ref if short.count(own) > 1 or own == NO_MEMBER else own
            labels: Any = [label, NO_MEMBER] if member == default else label
            self._signals.remean(kind, member, {"partition": word, "label": labels})
        if default is not None and default not in found:
            rule.book("default", lost("it is none of the members that are carried"))

    def _score(self, rule: Node) -> None:
        name = rule.text("name") or "score"
        method = rule.text("method") or "weighted_sum"
        if method != "weighted_sum" or name in self._scores:
            why = "another score has the same name" if name in self._scores else "scores are weighted sums here"
            rule.book(None, lost(why))
            return
        offset = 0.0
        summands = []
        for row in rule.nodes("inputs"):
            read = self._summand(row)
            if read is not None:
                offset += read[0]
                summands.append(read[1])
        if not summands:
            rule.book(None, lost("none of its inputs is carried"))
            return
        word = self._names["score"].give(signal_word(name, "score"))
        settings: dict[str, Any] = {"inputs": summands, "missing": "skip"}
        if offset:
            settings["offset"] = round(offset, 9)
        self.sections["score"][word] = Entry(settings, (_told(rule, name, word),))
        self._scores[name] = word

    def _summand(self, row: Node) -> tuple[float, Condition] | None:
        """What the input adds whatever happens, and the summand; None where it is lost."""
        kind, name = row.text("type") or "", row.text("name") or ""
        weight = row.number("weight")
        source = (row.text("value_source") or "binary").lower()
        condition = self._signals.meaning(kind, name)
        if condition is None:
            row.book(None, lost(f"{self._signals.why_not(kind, name)}, so that it adds nothing to the sum"))
            return None
        if kind == "complexity" and name.partition(":")[0] in self._signals.composed:
            row.book("name", changed("in a sum it counts without its composer"))
        match, miss = row.number("match"), row.number("miss")
        weight = 0.0 if weight is None else float(weight)
        inverse = "not" in condition
        leaf = condition["not"] if inverse else condition
        if not _is_leaf(leaf):
            row.book(None, lost("it takes several signals here, and a summand is one", "write one for each"))
            return None
        if source in ("binary", ""):
            yes = weight * (1.0 if match is None else match)
            no = weight * (miss or 0.0)
            if inverse:
                yes, no = no, yes
            return _checked(row, no, {**leaf, "weight": round(yes - no, 9), "by": "match"})
        row.book_if(["match", "miss"], moot("the score is taken, not the match"))
        if source not in ("confidence", "score", "raw"):
            row.book("value_source", lost("this source is not known; a match adds the weight"))
        family = next(iter(leaf))
        by = "match"
        if source == "raw" and not inverse and family in FAMILIES and FAMILIES[family].counts and not _asks(leaf):
            by = "value"
        elif source != "raw" and not inverse and _scored(family) and not _asks(leaf):
            by = "score"
            row.book("value_source", changed("the score adds up whether it matched or not"))
        else:
            row.book("value_source", changed("there is no score to add; a match adds the weight"))
        sign = -1.0 if inverse else 1.0
        return _checked(row, weight if inverse else 0.0, {**leaf, "weight": sign * weight, "by": by})

    def _mapping(self, rule: Node) -> None:
        name, source = rule.text("name") or "mapping", rule.text("source") or ""
        method = (rule.text("method") or "threshold_bands").lower()
        outputs = [(output.text("name") or "", output) for output in rule.nodes("outputs")]
        score = self._scores.get(source)
        if score is None:
            rule.book(None, lost(f'the score "{source}" is not carried'))
            return
        if method not in ("threshold_bands", "multi_emit"):
            rule.book("method", lost("this kind of mapping is not known; ranges are taken as bands"))
        ranges: dict[str, tuple[str, Mapping[str, float]]] = {}
        labels = Names()
        for output, row in outputs:
            bounds = {key: value for key in BOUNDS if (value := row.number(key)) is not None}
            if not output or output in ranges or (bounds and read_interval(bounds) is None):
                row.book(None, lost("it needs a name of its own and a range with numbers in it"))
                continue
            ranges[output] = (labels.give(header_word(output, "band")), bounds)
        if not ranges:
            rule.book(None, lost("none of its outputs is carried"))
            return
        if _overlap([bounds for _, bounds in ranges.values()]):
            if method == "threshold_bands":
                rule.book("outputs", changed("ranges overlap; there the first wins, here each counts by itself"))
            rule.book("name", moot("conditions compare the score itself"))
            for output, (_, ends) in ranges.items():
                self._signals.mean("projection", output, {"score": score, **(ends or {"gte": -MAX_WEIGHT})})
            return
        word = self._names["band"].give(signal_word(name, "band"))
        bands: dict[str, Mapping[str, float]] = {label: dict(bounds) for label, bounds in ranges.values()}
        settings: dict[str, Any] = {"of": score, "bands": bands, **({} if _closed(bands) else {"gaps": "allow"})}
        self.sections["band"][word] = Entry(settings, (_told(rule, name, word),))
        for output, (label, _) in ranges.items():
            self._signals.mean("projection", output, {"band": word, "label": label})


def _told(rule: Node, name: str, word: str) -> str:
    return dotted(rule.location) + ("" if word == name else f', "{name}"')


def _is_leaf(condition: Condition) -> bool:
    return not {"all", "any", "not"} & condition.keys()


def _is_signal(condition: Condition) -> bool:
    return len(condition) == 1 and next(iter(condition)) in FAMILIES


def _asks(leaf: Condition) -> bool:
    return any(key in _PREDICATES for key in leaf)


def _scored(family: str) -> bool:
    return family in FAMILIES and FAMILIES[family].scores != "none"


def _checked(row: Node, offset: float, summand: Condition) -> tuple[float, Condition] | None:
    if abs(summand["weight"]) > MAX_WEIGHT or abs(offset) > MAX_WEIGHT:
        row.book(None, lost(f"a weight is at most {MAX_WEIGHT:g}"))
        return None
    return offset, summand


def _ends(bounds: Mapping[str, float]) -> tuple[float, bool, float, bool]:
    """Low end and whether it belongs to the range, high end and the same."""
    low = bounds.get("gte", bounds.get("gt", float("-inf")))
    high = bounds.get("lte", bounds.get("lt", float("inf")))
    return low, "gt" not in bounds, high, "lt" not in bounds


def _overlap(ranges: list[Mapping[str, float]]) -> bool:
    ends = sorted(map(_ends, ranges), key=lambda each: (each[0], not each[1]))
    return any(
        left[2] > right[0] or (left[2] == right[0] and left[3] and right[1]) for left, right in itertools.pairwise(ends)
    )


def _closed(bands: Mapping[str, Mapping[str, float]]) -> bool:
    """Whether every number lies in a band, given that none lies in two."""
    ends = sorted(map(_ends, bands.values()), key=lambda each: (each[0], not each[1]))
    inner = all(left[2] == right[0] and (left[3] or right[1]) for left, right in itertools.pairwise(ends))
    return inner and ends[0][0] == float("-inf") and ends[-1][2] == float("inf")
