"""The API pages: native names from the stub, other modules from their signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

from scripts.docsite.rst import format_directive, format_docstring, format_heading
from scripts.docsite.stand_ins import import_documented
from scripts.pages.blocks import DOCS

import fullbloom

STUB = DOCS.parent / "src" / "fullbloom" / "_core.pyi"
#: Modules with names for callers, and what each is for.
MODULES = {
    "fullbloom.theory": "formulas as pure functions",
    "fullbloom.plan": "rank the structures for a number of items, a rate and needs",
    "fullbloom.viz": "plots, with the extra ``viz``",
    "fullbloom.cells": "the cells of a filter's file",
    "fullbloom.compose": "filters made from filters, and reconciliation",
    "fullbloom.compose.networked": "filters of several machines",
    "fullbloom.protocols": "capabilities as protocols",
    "fullbloom.keys": "types for annotations",
    "fullbloom.errors": "exceptions and warnings",
    "fullbloom.client": "clients of the service",
    "fullbloom.formats": "files of other programs",
    "fullbloom.formats.parquet": "the filters in Parquet files",
    "fullbloom.engines.redis": "filters in Redis and Valkey",
    "fullbloom.engines.spark": "filters built and used by Spark",
    "fullbloom.engines.dask": "filters built and used by Dask",
    "fullbloom.engines.duckdb": "filters in queries of DuckDB",
    "fullbloom.engines.polars": "filters in expressions of Polars",
    "fullbloom.engines.arrow": "filters as compute functions of PyArrow",
    "fullbloom.engines.sqlalchemy": "a filter in front of a table",
    "fullbloom.recipes.dedup": "drop repeated items",
    "fullbloom.recipes.seen": "mark items of a stream as new or seen",
    "fullbloom.recipes.sync": "find the differences between two sets",
    "fullbloom.recipes.already_read": "recommend what a user has not read",
    "fullbloom.recipes.urls": "find the first part of a URL that is new",
    "fullbloom.recipes.scrapy": "drop duplicate requests of a Scrapy spider",
    "fullbloom.recipes.celery": "run a Celery task once per key",
    "fullbloom.recipes.textbook": "bit arrays of textbook code",
    "fullbloom.recipes.fleet": "a filter in Redis, and one in memory while the server is away",
    "fullbloom.recipes.admission": "store objects in a cache on their second request",
    "fullbloom.recipes.blocks": "find the blocks that may have a key",
    "fullbloom.recipes.digests": "exchange the content of caches between proxies",
    "fullbloom.recipes.hyphenation": "Bloom's hyphenation program of 1970",
    "fullbloom.recipes.join": "join two Arrow tables with a filter in front",
    "fullbloom.recipes.lsm": "a log-structured store with a filter for each table",
    "fullbloom.recipes.names": "check whether user names are free",
    "fullbloom.recipes.novelty": "the novelty filter of the fruit fly",
    "fullbloom.recipes.prefix_set": "prefixes of URL hashes, as in Safe Browsing",
    "fullbloom.recipes.rate_limit": "limit the events of each client",
    "fullbloom.recipes.squid": "the cache digest of Squid",
    "fullbloom.recipes.state_search": "search the states of a program",
    "fullbloom.recipes.tokens": "tokens that were revoked before they expire",
    "fullbloom.recipes.traces": "traces of requests, drawn or from access logs",
    "fullbloom.recipes.url_check": "check URLs against a large list",
    "fullbloom.recipes.venti": "the filter of a Venti archive",
}
#: What classes without a row in the registry hold, and where they are explained.
FOREIGN = ":doc:`Its page </formats>` has the formats, and how each was verified."
OTHER_CLASSES = {
    "FilterBank": (
        "many filters, one for each owner",
        ":doc:`Its page </filters/bank>` explains it, with its rate.",
    ),
    "ForeignCuckooFilter": ("cuckoo filters of RedisBloom", FOREIGN),
    "ForeignFilter": ("Bloom filters of other programs", FOREIGN),
    "ForeignScalableFilter": ("growing filters of RedisBloom", FOREIGN),
    "ForeignStaticFilter": ("xor and binary fuse filters of other programs", FOREIGN),
    "SignatureIndex": (
        "rows and documents that are found by their signatures",
        ":doc:`Its guide </how-to/signatures>` shows each use, with its rate.",
    ),
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

    def collect_members(self, name: str) -> dict[str, list[ast.FunctionDef]]:
        """Return the methods of a class, those of its bases included; overloads together."""
        node, found = self.classes[name], dict[str, list[ast.FunctionDef]]()
        for base in reversed(node.bases):
            if isinstance(base, ast.Name) and base.id in self.classes:
                found |= self.collect_members(base.id)
        own: dict[str, list[ast.FunctionDef]] = {}
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef):
                own.setdefault(inner.name, []).append(inner)
        return found | own


def _list_decorators(node: ast.FunctionDef) -> set[str]:
    return {ast.unparse(decorator) for decorator in node.decorator_list}


def _format_signature(name: str, node: ast.FunctionDef, *, method: bool = False) -> str:
    """Return ``name(parameters) -> result``, without ``self`` and the ``/`` after it."""
    arguments = node.args
    if method and "staticmethod" not in _list_decorators(node):
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


def _list_parameters(nodes: list[ast.FunctionDef]) -> list[str]:
    found = [
        a.arg for node in nodes for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    ]
    return list(dict.fromkeys(name for name in found if name not in {"self", "cls"}))


def _find_docstring(nodes: list[ast.FunctionDef]) -> str:
    return next(filter(None, (ast.get_docstring(node) for node in nodes)), "")


def _render_member(name: str, nodes: list[ast.FunctionDef]) -> str:
    first, text = nodes[0], format_docstring(_find_docstring(nodes), _list_parameters(nodes))
    if "property" in _list_decorators(first):
        assert first.returns is not None
        return format_directive("attribute", [name], text, (f"type: {ast.unparse(first.returns)}",))
    signatures = list(dict.fromkeys(_format_signature(name, node, method=True) for node in nodes))
    options = ("staticmethod",) if "staticmethod" in _list_decorators(first) else ()
    return format_directive("method", signatures, text, options)


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


def render_class(stub: Stub, row: dict[str, Any]) -> str:
    """Return the page of a structure's class: signature, contract, example, members."""
    contract = [
        f"* {GUARANTEES[row['false_negatives']]}",
        f"* Operations: {', '.join(row['capabilities'])}.",
        *(
            [f"* Layouts: {', '.join(f'``{layout}``' for layout in row['layouts'])}."]
            if row["layouts"]
            else []
        ),
    ]
    about = f"Kind ``{row['name']}``. :doc:`Its page </filters/{row['name']}>` explains it, with its rate."
    return render_native(stub, row["class"], about, contract)


def render_native(stub: Stub, name: str, about: str, contract: list[str]) -> str:
    """Return the page of a native class, with what is said of it and of its contract."""
    members = stub.collect_members(name)
    constructor = members.get("__new__", []) + members.get("__init__", [])
    text = ast.get_docstring(stub.classes[name]) or ""
    parameters = _list_parameters(constructor or members.get("build", []))
    signature = [_format_signature(name, node, method=True) for node in constructor[:1]] or [name]
    signature = [line.partition(" -> ")[0] for line in signature]
    operators = [spelled for special, spelled in OPERATORS.items() if special in members]
    parts = [
        format_heading(name),
        ".. py:currentmodule:: fullbloom\n",
        f"{about}\n",
        "\n".join([*contract, f"* Operators: {', '.join(operators)}."]) + "\n",
        format_directive("class", signature, format_docstring(text, parameters)),
        format_heading("Methods and attributes", "-"),
    ]
    public = sorted(member for member in members if not member.startswith("_"))
    return "\n".join([*parts, *(_render_member(f"{name}.{member}", members[member]) for member in public)])


def list_other_classes(stub: Stub) -> list[str]:
    """Return the public native classes without a row in the registry; each has one in OTHER_CLASSES."""
    structures = {row["class"] for row in fullbloom.variants()}
    return [name for name in fullbloom.__all__ if name in stub.classes and name not in structures]


def render_functions(stub: Stub) -> str:
    """Return the page of the functions and the version."""
    names = [name for name in [*fullbloom.__all__, "open"] if name in stub.functions]
    parts = [format_heading("Functions"), ".. py:currentmodule:: fullbloom\n"]
    for name in sorted(names):
        nodes = stub.functions[name]
        signatures = list(dict.fromkeys(_format_signature(name, node) for node in nodes))
        parts.append(
            format_directive(
                "function", signatures, format_docstring(_find_docstring(nodes), _list_parameters(nodes))
            )
        )
    about = "Version of the package, such as the one that built this page: ``" + fullbloom.__version__ + "``."
    return "\n".join([*parts, format_directive("data", ["__version__"], about)])


def _render_callable(name: str, value: Any, kind: str) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return format_directive(kind, [name], format_docstring(inspect.getdoc(value) or ""))
    parameters = [p for p in signature.parameters.values() if p.name not in {"self", "cls"}]
    plain = [
        p.replace(annotation=p.annotation.strip("'")) if isinstance(p.annotation, str) else p
        for p in parameters
    ]
    text = _unquote(str(signature.replace(parameters=plain)))
    if kind == "class":
        text = text.partition(" -> ")[0]
    return format_directive(
        kind, [f"{name}{text}"], format_docstring(inspect.getdoc(value) or "", list(signature.parameters))
    )


def _unquote(signature: str) -> str:
    plain = re.sub(r"ForwardRef\((\w+)\)", r"\1", signature.replace("'", ""))
    plain = re.sub(r"<(?:built-in )?function ([\w.]+)(?: at 0x[0-9a-f]+)?>", r"\1", plain)
    return plain.replace("<factory>", "...").replace("collections.abc.", "")


def _render_members(cls: Any) -> list[str]:
    parts = []
    for name in sorted(dir(cls)):
        if name.startswith("_") or issubclass(cls, BaseException):
            continue
        value = inspect.getattr_static(cls, name)
        text = inspect.getdoc(getattr(cls, name, None)) or ""
        if isinstance(value, property):
            parts.append(
                format_directive(
                    "attribute", [f"{cls.__name__}.{name}"], format_docstring(inspect.getdoc(value) or "")
                )
            )
        elif callable(getattr(cls, name, None)) and text and not inspect.isclass(value):
            parts.append(_render_callable(f"{cls.__name__}.{name}", getattr(cls, name), "method"))
    return parts


def _list_public_names(module: Any) -> list[str]:
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


def render_module(name: str) -> str:
    """Return the page of a module written in Python."""
    module = import_documented(name)
    about = (inspect.getdoc(module) or "").partition("\n\nIt may import: ")[0]
    parts = [format_heading(name), f".. py:module:: {name}\n", format_docstring(about), ""]
    for member in _list_public_names(module):
        value = getattr(module, member)
        home = getattr(value, "__module__", "") or ""
        if inspect.isclass(value):
            kind = "exception" if issubclass(value, BaseException) else "class"
            if kind == "exception":
                bases = ", ".join(base.__name__ for base in value.__bases__)
                text = f"{format_docstring(inspect.getdoc(value) or '')}\n\nBases: ``{bases}``"
                parts.append(format_directive(kind, [member], text))
            elif home == "fullbloom._core" or getattr(value, "_is_protocol", False):
                parts.append(format_directive(kind, [member], format_docstring(inspect.getdoc(value) or "")))
            else:
                parts.append(_render_callable(member, value, kind))
            parts += _render_members(value) if home != "fullbloom._core" else []
        elif inspect.isroutine(value):
            parts.append(_render_callable(member, value, "function"))
        else:
            parts.append(format_directive("data", [member], "A type for annotations."))
    return "\n".join(parts)


def render_pages() -> dict[str, str]:
    """Return the pages by their paths below the source folder."""
    stub = Stub()
    rows = sorted(fullbloom.variants(), key=lambda row: str(row["class"]))
    found = {f"reference/api/{row['class']}.rst": render_class(stub, row) for row in rows}
    for name in list_other_classes(stub):
        _, about = OTHER_CLASSES[name]
        found[f"reference/api/{name}.rst"] = render_native(stub, name, about, [])
    found["reference/api/functions.rst"] = render_functions(stub)
    return found | {f"reference/api/{name}.rst": render_module(name) for name in MODULES}


def render_index() -> str:
    """Return the Markdown list of the pages, for the page of the reference that shows it."""
    rows = sorted(fullbloom.variants(), key=lambda row: str(row["class"]))
    lines = ["| class | kind | guarantee |", "|---|---|---|"]
    lines += [
        f"| [`{row['class']}`](api/{row['class']}.rst) | [{row['name']}](../filters/{row['name']}.md) | "
        f"{GUARANTEES[row['false_negatives']].rstrip('.')} |"
        for row in rows
    ]
    more = [f"* [`{name}`](api/{name}.rst): {about}" for name, about in MODULES.items()]
    others = list_other_classes(Stub())
    more = [
        *(f"* [`{name}`](api/{name}.rst): {OTHER_CLASSES[name][0]}" for name in others),
        *more,
    ]
    entries = ["functions", *(str(row["class"]) for row in rows), *others, *MODULES]
    tree = "\n".join(["```{toctree}", ":hidden:", "", *(f"api/{entry}" for entry in entries), "```"])
    functions = "* [Functions](api/functions.rst): `hash_key`, `hash_many`, `loads`, `open`, `variants`"
    return "\n".join([*lines, "", functions, *more, "", tree])
