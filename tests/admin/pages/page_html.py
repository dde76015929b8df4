"""Holds a page against what every page of ours must be: well-formed, unique ids, labelled, nothing inline."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = frozenset({"base", "br", "hr", "img", "input", "link", "meta", "wbr"})
INLINE = frozenset({"b", "bdi", "code", "wbr", "u"})
LABELLED = frozenset({"input", "select", "textarea"})


class Page(HTMLParser):
    """What was found in a page; `problems` is empty for a good one."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.problems: list[str] = []
        self.ids: list[str] = []
        self.labels: set[str] = set()
        self.tags: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self._unlabelled: list[str] = []
        self._references: list[str] = []
        self.feed(text)
        self.close()
        self._end()

    def text(self) -> str:
        """What a reader sees, in one line."""
        return " ".join("".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self._part(tag)
        if not self._open or self._open[-1] != tag:
            self.problems.append(f"</{tag}> at line {self.getpos()[0]} closes {self._open[-1:] or 'nothing'}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._open[-1:] == ["script"] and data.strip():
            self.problems.append("there is a script in the page")

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._part(tag)
        given = dict(attrs)
        if len(given) != len(attrs):
            self.problems.append(f"<{tag}> has an attribute twice")
        for name, value in attrs:
            if name == "style" or name.startswith("on"):
                self.problems.append(f"<{tag}> has {name}")
            if name in ("href", "src", "action") and not _is_ours(value or ""):
                self.problems.append(f"<{tag}> leads away: {value}")
            if name == "href" and (value or "").startswith("#") and tag in ("a", "use"):
                self._references.append((value or "")[1:])
        if tag == "style":
            self.problems.append("there is a style in the page")
        if tag == "img" and "alt" not in given:
            self.problems.append("<img> without alt")
        if given.get("id"):
            self.ids.append(given["id"] or "")
        if tag == "label":
            self.labels.add(given.get("for") or "")
        inside = "label" in self._open
        if tag in LABELLED and not inside and "aria-label" not in given:
            self._unlabelled.append(given.get("id") or "?")

    def _part(self, tag: str) -> None:
        if tag not in INLINE:
            self.words.append(" ")

    def _end(self) -> None:
        if self._open:
            self.problems.append(f"left open: {self._open}")
        self.problems += [f"id twice: {each}" for each in sorted({i for i in self.ids if self.ids.count(i) > 1})]
        self.problems += [f"no label: {each}" for each in self._unlabelled if each not in self.labels]
        if "html" in self.tags:
            self.problems += [f"no such id: {each}" for each in self._references if each not in self.ids]


def _is_ours(target: str) -> bool:
    return target.startswith(("#", "data:image/")) or (target.startswith("/") and not target.startswith("//"))
