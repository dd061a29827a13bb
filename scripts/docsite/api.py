"""The API pages: native names from the stub, other modules from their signatures and docstrings."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from typing import Any

from scripts.docsite.rst import directive, heading, prose
from scripts.pages.blocks import DOCS

import fullbloom

STUB = DOCS.parent / "src" / "fullbloom" / "_core.pyi"
#: Modules with names for callers, and what each is for.
MODULES = {
    "fullbloom.theory": "formulas as pure functions",
    "fullbloom.plan": "rank the structures for a number of items, a rate and needs",
    "fullbloom.compose": "filters made from filters, and reconciliation",
    "fullbloom.protocols": "capabilities as protocols",
    "fullbloom.keys": "types for annotations",
    "fullbloom.errors": "exceptions and warnings",
    "fullbloom.client": "clients of the service",
    "fullbloom.engines.redis": "filters in Redis and Valkey",
    "fullbloom.recipes.dedup": "drop repeated items",
    "fullbloom.recipes.seen": "mark items of a stream as new or seen",
    "fullbloom.recipes.sync": "find the differences between two sets",
    "fullbloom.recipes.urls": "find the first part of a URL that is new",
    "fullbloom.recipes.scrapy": "drop duplicate requests of a Scrapy spider",
    "fullbloom.recipes.celery": "run a Celery task once per key",
    "fullbloom.recipes.textbook": "bit arrays of textbook code",
}
GUARANTEES = {
    "never": "No false negatives: an added key is always found.",
    "only on misuse": "No false negatives, unless you remove a key that you never added.",
    "by design": "Forgets keys by design.",
}


class Stub:
    """The classes and functions of the stub."""

    def __init__(self) -> None:
        """Read the stub."""
        tree = ast.parse(STUB.read_text(encoding="utf-8"))
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions.setdefault(node.name, []).append(node)

    def members(self, name: str) -> dict[str, list[ast.FunctionDef]]:
        """Return the methods of a class, those of its bases included; overloads together."""
        node, found = self.classes[name], dict[str, list[ast.FunctionDef]]()
        for base in reversed(node.bases):
            if isinstance(base, ast.Name) and base.id in self.classes:
                found |= self.members(base.id)
        own: dict[str, list[ast.FunctionDef]] = {}
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef):
                own.setdefault(inner.name, []).append(inner)
        return found | own


def _decorators(node: ast.FunctionDef) -> set[str]:
    return {ast.unparse(decorator) for decorator in node.decorator_list}


def _signature(name: str, node: ast.FunctionDef, *, method: bool = False) -> str:
    """Return ``name(parameters) -> result``, without ``self`` and the ``/`` after it."""
    arguments = node.args
    if method and "staticmethod" not in _decorators(node):
        positional = [
            arg for arg in [*arguments.posonlyargs, *arguments.args] if arg.arg not in {"self", "cls"}
        ]
        arguments = ast.arguments(
            posonlyargs=[],
            args=positional,
            vararg=arguments.vararg,
            kwonlyargs=arguments.kwonlyargs,
            kw_defaults=arguments.kw_defaults,
            kwarg=arguments.kwarg,
            defaults=arguments.defaults,
        )
    result = f" -> {ast.unparse(node.returns)}" if node.returns and name != "__new__" else ""
    return f"{name}({ast.unparse(arguments)}){result}".replace("_Series", "Series").replace(
        "_Filter", "Filter"
    )


def _parameters(nodes: list[ast.FunctionDef]) -> list[str]:
    found = [
        a.arg for node in nodes for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    ]
    return list(dict.fromkeys(name for name in found if name not in {"self", "cls"}))


def _documented(nodes: list[ast.FunctionDef]) -> str:
    return next(filter(None, (ast.get_docstring(node) for node in nodes)), "")


def _member(name: str, nodes: list[ast.FunctionDef]) -> str:
    first, text = nodes[0], prose(_documented(nodes), _parameters(nodes))
    if "property" in _decorators(first):
        assert first.returns is not None
        return directive("attribute", [name], text, (f"type: {ast.unparse(first.returns)}",))
    signatures = list(dict.fromkeys(_signature(name, node, method=True) for node in nodes))
    options = ("staticmethod",) if "staticmethod" in _decorators(first) else ()
    return directive("method", signatures, text, options)


#: Special methods that a caller writes as an operator.
OPERATORS = {
    "__contains__": "``key in f``",
    "__len__": "``len(f)``",
    "__or__": "``f | g``",
    "__and__": "``f & g``",
    "__sub__": "``f - g``",
    "__le__": "``f <= g``",
    "__eq__": "``f == g``",
    "__bool__": "``bool(f)``",
    "__buffer__": "``memoryview(f)``",
}


def class_page(stub: Stub, row: dict[str, Any]) -> str:
    """Return the page of a native class: signature, contract, example, members."""
    name = row["class"]
    members = stub.members(name)
    constructor = members.get("__new__", []) + members.get("__init__", [])
    text = ast.get_docstring(stub.classes[name]) or ""
    parameters = _parameters(constructor or members.get("build", []))
    signature = [_signature(name, node, method=True) for node in constructor[:1]] or [name]
    signature = [line.partition(" -> ")[0] for line in signature]
    operators = [spelled for special, spelled in OPERATORS.items() if special in members]
    contract = [
        f"* {GUARANTEES[row['false_negatives']]}",
        f"* Operations: {', '.join(row['capabilities'])}.",
        *(
            [f"* Layouts: {', '.join(f'``{layout}``' for layout in row['layouts'])}."]
            if row["layouts"]
            else []
        ),
        f"* Operators: {', '.join(operators)}.",
    ]
    parts = [
        heading(name),
        ".. py:currentmodule:: fullbloom\n",
        f"Kind ``{row['name']}``. :doc:`Its page </filters/{row['name']}>` explains it, with its rate.\n",
        "\n".join(contract) + "\n",
        directive("class", signature, prose(text, parameters)),
        heading("Methods and attributes", "-"),
    ]
    public = sorted(member for member in members if not member.startswith("_"))
    return "\n".join([*parts, *(_member(f"{name}.{member}", members[member]) for member in public)])


def functions_page(stub: Stub) -> str:
    """Return the page of the functions and the version."""
    names = [name for name in [*fullbloom.__all__, "open"] if name in stub.functions]
    parts = [heading("Functions"), ".. py:currentmodule:: fullbloom\n"]
    for name in sorted(names):
        nodes = stub.functions[name]
        signatures = list(dict.fromkeys(_signature(name, node) for node in nodes))
        parts.append(directive("function", signatures, prose(_documented(nodes), _parameters(nodes))))
    about = "Version of the package, such as the one that built this page: ``" + fullbloom.__version__ + "``."
    return "\n".join([*parts, directive("data", ["__version__"], about)])


def _callable(name: str, value: Any, kind: str) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return directive(kind, [name], prose(inspect.getdoc(value) or ""))
    parameters = [p for p in signature.parameters.values() if p.name not in {"self", "cls"}]
    plain = [
        p.replace(annotation=p.annotation.strip("'")) if isinstance(p.annotation, str) else p
        for p in parameters
    ]
    text = _unquoted(str(signature.replace(parameters=plain)))
    if kind == "class":
        text = text.partition(" -> ")[0]
    return directive(kind, [f"{name}{text}"], prose(inspect.getdoc(value) or "", list(signature.parameters)))


def _unquoted(signature: str) -> str:
    plain = re.sub(r"ForwardRef\((\w+)\)", r"\1", signature.replace("'", ""))
    return plain.replace("<factory>", "...").replace("collections.abc.", "")


def _members_of(cls: Any) -> list[str]:
    parts = []
    for name in sorted(dir(cls)):
        if name.startswith("_") or issubclass(cls, BaseException):
            continue
        value = inspect.getattr_static(cls, name)
        text = inspect.getdoc(getattr(cls, name, None)) or ""
        if isinstance(value, property):
            parts.append(
                directive("attribute", [f"{cls.__name__}.{name}"], prose(inspect.getdoc(value) or ""))
            )
        elif callable(getattr(cls, name, None)) and text and not inspect.isclass(value):
            parts.append(_callable(f"{cls.__name__}.{name}", getattr(cls, name), "method"))
    return parts


def _public(module: Any) -> list[str]:
    declared: list[str] | None = getattr(module, "__all__", None)
    if declared is not None:
        return declared
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and callable(value)
        and getattr(value, "__module__", "") == module.__name__
    ]


def module_page(name: str) -> str:
    """Return the page of a module written in Python."""
    module = importlib.import_module(name)
    about = (inspect.getdoc(module) or "").partition("\n\nIt may import: ")[0]
    parts = [heading(name), f".. py:module:: {name}\n", prose(about), ""]
    for member in _public(module):
        value = getattr(module, member)
        home = getattr(value, "__module__", "") or ""
        if inspect.isclass(value):
            kind = "exception" if issubclass(value, BaseException) else "class"
            if kind == "exception":
                bases = ", ".join(base.__name__ for base in value.__bases__)
                text = f"{prose(inspect.getdoc(value) or '')}\n\nBases: ``{bases}``"
                parts.append(directive(kind, [member], text))
            elif home == "fullbloom._core" or getattr(value, "_is_protocol", False):
                parts.append(directive(kind, [member], prose(inspect.getdoc(value) or "")))
            else:
                parts.append(_callable(member, value, kind))
            parts += _members_of(value) if home != "fullbloom._core" else []
        elif inspect.isroutine(value):
            parts.append(_callable(member, value, "function"))
        else:
            parts.append(directive("data", [member], "A type for annotations."))
    return "\n".join(parts)


def pages() -> dict[str, str]:
    """Return the pages by their paths below the source folder."""
    stub = Stub()
    rows = sorted(fullbloom.variants(), key=lambda row: str(row["class"]))
    found = {f"reference/api/{row['class']}.rst": class_page(stub, row) for row in rows}
    found["reference/api/functions.rst"] = functions_page(stub)
    return found | {f"reference/api/{name}.rst": module_page(name) for name in MODULES}


def index() -> str:
    """Return the Markdown list of the pages, for the page of the reference that shows it."""
    rows = sorted(fullbloom.variants(), key=lambda row: str(row["class"]))
    lines = ["| class | kind | guarantee |", "|---|---|---|"]
    lines += [
        f"| [`{row['class']}`](api/{row['class']}.rst) | [{row['name']}](../filters/{row['name']}.md) | "
        f"{GUARANTEES[row['false_negatives']].rstrip('.')} |"
        for row in rows
    ]
    more = [f"* [`{name}`](api/{name}.rst): {about}" for name, about in MODULES.items()]
    entries = ["functions", *(str(row["class"]) for row in rows), *MODULES]
    tree = "\n".join(["```{toctree}", ":hidden:", "", *(f"api/{entry}" for entry in entries), "```"])
    functions = "* [Functions](api/functions.rst): `hash_key`, `hash_many`, `loads`, `open`, `variants`"
    return "\n".join([*lines, "", functions, *more, "", tree])
