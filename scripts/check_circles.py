"""Looks for circles of imports between files, in src/fullbloom and in each crate.

Python: every import counts, also inside functions and for types only. Rust: paths in `use` and in code count,
a re-export (`pub use`) does not: whoever names it depends on the file that it leads to. Tests are left out.
Prints the files of each circle; exit code 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent

Graph = dict[str, set[str]]
Module = tuple[str, ...]


def find_circles(graph: Graph) -> list[list[str]]:
    """The sets of nodes of which each reaches all others (Tarjan's algorithm), those of two and more."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
            if target in stack:
                low[node] = min(low[node], low[target])
        if low[node] == index[node]:
            circle = stack[stack.index(node) :]
            del stack[-len(circle) :]
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def read_python_graph() -> Graph:
    """Who imports whom in the package."""
    graph = grimp.build_graph("fullbloom", exclude_type_checking_imports=False, cache_dir=None)
    arrows = {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules}
    for name, targets in arrows.items():
        lines = graph.get_import_details(importer=name, imported="fullbloom")
        # The extension is no file of the package, so that its name counts for the package itself.
        if all(re.search(r"import _core(, registry)?$", line["line_contents"]) for line in lines):
            targets.discard("fullbloom")
    return arrows


NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|\bb?r(#+)".*?"\1|(?:\bb?r?)?"(?:\\.|[^"\\])*"|b?\'(?:\\[^\']+|[^\'\\])\'', re.DOTALL
)
TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*([;{])")
USE = re.compile(r"(\bpub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")
PATH = re.compile(r"\$?\b([a-z_]\w*)((?:\s*::\s*\w+)+)")
DEFINED = re.compile(r"\b(?:fn|struct|enum|union|trait|type|const|static|macro_rules!)\s+(\w+)")


@dataclass
class RustFile:
    """One file: the module it is, what it defines, and the paths it names."""

    name: str
    module: Module
    text: str
    uses: list[tuple[Module, str]] = field(default_factory=list)
    exports: list[tuple[Module, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Take the text apart."""
        for public, tree in USE.findall(self.text):
            (self.exports if public else self.uses).extend(split_branches(re.sub(r"\s+as\s+", "@", tree)))
        self.defined = set(DEFINED.findall(self.text))
        rest = USE.sub("", self.text)
        self.paths = [(first, *re.findall(r"\w+", more)) for first, more in PATH.findall(rest)]


def split_branches(tree: str) -> list[tuple[Module, str]]:
    """The paths of a `use` tree, each with the name it gets here ("*" for all)."""
    tree = re.sub(r"\s+", "", tree)
    head, brace, inner = tree.partition("{")
    prefix = tuple(part for part in head.split("::") if part)
    if not brace:
        *path, last = prefix
        last, _, alias = last.partition("@")
        ends = (*path,) if last == "self" else (*path, last)
        return [(ends, alias or ends[-1])] if ends else []
    found, depth, start = [], 0, 0
    inner = inner.removesuffix("}")
    for at, char in enumerate(f"{inner},"):
        depth += (char == "{") - (char == "}")
        if char == "," and not depth:
            found += [((*prefix, *path), name) for path, name in expand_branches(inner[start:at], prefix)]
            start = at + 1
    return found


def expand_branches(tree: str, prefix: Module) -> list[tuple[Module, str]]:
    """As `split_branches`, where `self` is the path before the brace."""
    if tree.partition("@")[0] == "self":
        return [((), tree.partition("@")[2] or prefix[-1])]
    return split_branches(tree) if tree else []


def remove_tests(text: str) -> tuple[str, list[str]]:
    """The text without its inline tests, and the names of the test modules in files of their own."""
    text = NOISE.sub(" ", text)
    elsewhere = []
    while match := TESTS.search(text):
        end = match.end()
        if match[2] == ";":
            elsewhere.append(match[1])
        else:
            depth = 1
            while depth and end < len(text):
                depth += (text[end] == "{") - (text[end] == "}")
                end += 1
        text = text[: match.start()] + text[end:]
    return text, elsewhere


class Crate:
    """The modules of a crate, and which file a path leads to."""

    def __init__(self, source: Path) -> None:
        """Read all files below ``source``."""
        self.files: dict[Module, RustFile] = {}
        tests: set[Module] = set()
        for path in sorted(source.rglob("*.rs")):
            parts = path.relative_to(source).with_suffix("").parts
            if any(part == "tests" or part.endswith("_tests") for part in parts):
                continue
            module = parts[:-1] if parts[-1] in {"lib", "main", "mod"} else parts
            text, elsewhere = remove_tests(path.read_text(encoding="utf-8"))
            tests |= {(*module, name) for name in elsewhere}
            self.files[module] = RustFile(path.relative_to(source).as_posix(), module, text)
        for module in list(self.files):
            if any(module[: len(test)] == test for test in tests):
                del self.files[module]
        #: A macro is known in the whole crate.
        self.macros = {
            name: file
            for file in self.files.values()
            for name in re.findall(r"\bmacro_rules!\s+(\w+)", file.text)
        }

    def absolute(self, file: RustFile, path: Module) -> Module | None:
        """The path from the root of the crate; None for one that leads out of it."""
        module = file.module
        while path and path[0] in {"self", "super"}:
            module = module[:-1] if path[0] == "super" else module
            path = path[1:]
            if not path or path[0] != "super":
                return (*module, *path)
        if path[0] == "crate":
            return path[1:]
        return (*module, *path) if (*module, path[0]) in self.files else None

    def find_file(self, path: Module, seen: frozenset[Module] = frozenset()) -> RustFile | None:
        """The file in which the item of an absolute path is written, past re-exports."""
        depth = max((n for n in range(len(path) + 1) if path[:n] in self.files), default=None)
        if depth is None or path in seen:
            return None
        file, rest = self.files[path[:depth]], path[depth:]
        if not rest or rest[0] in file.defined:
            return file
        for target, name in [*file.exports, *file.uses]:
            start = self.absolute(file, target)
            if start is None or name not in {rest[0], "*"}:
                continue
            further = (*start[:-1], *rest) if name == "*" else (*start, *rest[1:])
            found = self.find_file(further, seen | {path})
            if found and (name != "*" or rest[0] in found.defined):
                return found
        return self.macros.get(rest[0], file)

    def graph(self) -> Graph:
        """Return the graph of files: which file uses definitions of which."""
        graph: Graph = {}
        for file in self.files.values():
            targets = graph.setdefault(file.name, set())
            for path in [*(path for path, _ in file.uses), *file.paths]:
                start = self.absolute(file, path)
                if start is None:
                    continue
                # `use x::*` is of the module x.
                target = self.find_file(start[:-1] if start[-1:] == ("*",) else start)
                if target and target is not file:
                    targets.add(target.name)
        return graph


def main() -> int:
    """Runs both checks; 0 if there is no circle."""
    breaches = 0
    graphs = {"src/fullbloom": read_python_graph()}
    for source in sorted(ROOT.glob("crates/*/src")):
        graphs[source.relative_to(ROOT).as_posix()] = Crate(source).graph()
    for place, graph in graphs.items():
        found = find_circles(graph)
        breaches += len(found)
        print(f"{place}: {len(graph)} files, {sum(map(len, graph.values()))} arrows, {len(found)} circles")
        for circle in found:
            arrows = [f"{name} -> {other}" for name in circle for other in sorted(graph[name] & set(circle))]
            print(f"{place} has a circle: {', '.join(arrows)}")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
