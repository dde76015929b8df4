"""Which attributes the code under router/ reads, and where: for tests that no key is there for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROUTER = Path(__file__).parents[2] / "router"


@dataclass(frozen=True)
class Read:
    """`attribute` is read within `scope`: names of classes and functions, from the outside."""

    attribute: str
    scope: tuple[str, ...]


@dataclass
class ModuleReads(ast.NodeVisitor):
    """Of one module: what is read, all names and words that occur, and how `getattr` begins names that it computes."""

    reads: list[Read] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    computed: set[str] = field(default_factory=set)
    _scope: tuple[str, ...] = ()

    def _add(self, attribute: str) -> None:
        self.reads.append(Read(attribute, self._scope))

    def _within(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        before = self._scope
        self._scope = (*before, node.name)
        self.generic_visit(node)
        self._scope = before

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._within(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._within(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        # What only a validator looks at has no effect.
        if not any("validator" in ast.unparse(each) for each in node.decorator_list):
            self._within(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load):
            self._add(node.attr)
        self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            self._add(name)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self.names.add(node.id)

    def visit_alias(self, node: ast.alias) -> None:
        self.names.add(node.name)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.words.add(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "getattr":
            match node.args[1]:
                case ast.Constant(value=str(name)):
                    self._add(name)
                case ast.JoinedStr(values=[ast.Constant(value=str(prefix)), *_]):
                    self.computed.add(prefix)
        self.generic_visit(node)


@cache
def modules() -> dict[str, ModuleReads]:
    """By the module's dotted name; generated code aside."""
    found = {}
    for path in ROUTER.rglob("*.py"):
        if "proto" in path.parts:
            continue
        reads = ModuleReads()
        reads.visit(ast.parse(path.read_text(encoding="utf-8")))
        found[".".join(path.relative_to(ROUTER.parent).with_suffix("").parts)] = reads
    return found


def is_read(attribute: str, owner: str, within: Iterator[str] | list[str]) -> bool:
    """Whether one of the modules reads the attribute.

    A method of the class `owner` counts only if its own name is read outside of the class.
    """
    return any(_reads(modules()[name], attribute, owner) for name in within)


def _reads(module: ModuleReads, attribute: str, owner: str) -> bool:
    if any(
        attribute.removeprefix(prefix) in module.words for prefix in module.computed if attribute.startswith(prefix)
    ):
        return True
    return any(
        read.attribute == attribute and (owner not in read.scope or _called(owner, read.scope)) for read in module.reads
    )


def _called(owner: str, scope: tuple[str, ...]) -> bool:
    method = scope[scope.index(owner) + 1] if scope[-1] != owner else ""
    return any(
        read.attribute == method and owner not in read.scope for module in modules().values() for read in module.reads
    )
