"""Guarantee: what the registry and ``__all__`` name has a page, a stub, a golden file and a docstring."""

from __future__ import annotations

import ast
import doctest
import inspect
import json
import re
from pathlib import Path

from cases import for_each

import fullbloom
from fullbloom import theory

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ROWS = fullbloom.variants()
STUB = ROOT / "src" / "fullbloom" / "_core.pyi"
CLASSES = [*(getattr(fullbloom, str(row["class"])) for row in ROWS), fullbloom.FilterBank]


def by_name(row: dict[str, object]) -> str:
    return str(row["name"])


def stub_members() -> dict[str, set[str]]:
    """Top-level names of the stub, with the methods of the classes among them."""
    tree = ast.parse(STUB.read_text(encoding="utf-8"))
    found: dict[str, set[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            bases = [ast.unparse(base) for base in getattr(node, "bases", [])]
            own = {inner.name for inner in getattr(node, "body", []) if isinstance(inner, ast.FunctionDef)}
            found[node.name] = own.union(*(found[base] for base in bases))
    return found


@for_each("row", ROWS, ids=by_name)
def test_a_variant_has_a_page_with_its_law(row):
    page = DOCS / "filters" / f"{row['name']}.md"
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {row['name']}\n")
    assert row["class"] in text
    assert all(layout in text for layout in row["layouts"] if row["name"] == "bloom")
    # The law of the row, or its first line where the row adds a remark.
    assert row["formula"].split(";")[0].split(",")[0] in text
    assert row["paper"].split(",")[0].split(" ")[0] in text


@for_each("row", ROWS, ids=by_name)
def test_a_variant_has_a_class_a_stub_and_a_golden_file(row):
    assert row["class"] in fullbloom.__all__
    cls = getattr(fullbloom, row["class"])
    public = {name for name in vars(cls) if not name.startswith("_") and hasattr(cls, name)}
    assert public <= stub_members()[row["class"]], "run make stubs"
    golden = ROOT / "tests" / "golden"
    names = [f"{row['name']}-{layout}" for layout in row["layouts"]] or [row["name"]]
    assert all((golden / f"{name}.bloom").is_file() for name in names), "run tests/golden/make.py"


def test_every_registry_row_has_a_page_and_every_page_a_row():
    # A bank of filters has no row: its keys come with owners.
    others = {"index", "bank"}
    assert {page.stem for page in (DOCS / "filters").glob("*.md")} == {row["name"] for row in ROWS} | others
    table = (DOCS / "filters" / "index.md").read_text(encoding="utf-8")
    assert all(f"[{row['name']}]({row['name']}.md)" in table for row in ROWS), "run python -m scripts.pages"


@for_each("row", ROWS, ids=by_name)
def test_a_page_states_the_guarantee_and_the_meaning_of_merging(row):
    text = " ".join((DOCS / "filters" / f"{row['name']}.md").read_text(encoding="utf-8").split())
    assert f"False negatives: {row['false_negatives']}" in text, "run python -m scripts.pages"
    assert " ".join(row["merging"].split()) in text


def test_every_public_name_is_exported_and_every_export_exists():
    found = {
        name
        for name, value in vars(fullbloom).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    # A star import leaves the built-in open() alone.
    assert found == set(fullbloom.__all__) - {"__version__"} | {"open"}
    assert list(fullbloom.__all__) == sorted(fullbloom.__all__)


@for_each("name", [name for name in fullbloom.__all__ if not name.startswith("_")])
def test_every_public_name_is_documented(name):
    value = getattr(fullbloom, name)
    assert inspect.getdoc(value), f"{name} has no docstring"
    pages = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    assert re.search(rf"\b{name}\b", pages), f"no page mentions {name}"


@for_each("name", [name for name in fullbloom.__all__ if not name.startswith("_")])
def test_every_public_name_has_an_example(name):
    assert ">>>" in (inspect.getdoc(getattr(fullbloom, name)) or ""), (
        f"the docstring of {name} has no example"
    )


@for_each("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_public_method_is_documented(cls):
    names = [name for name in vars(cls) if not name.startswith("_") and hasattr(cls, name)]
    bare = [name for name in names if not inspect.getdoc(getattr(cls, name))]
    assert not bare


def test_every_function_of_theory_is_on_its_page_or_has_an_example():
    missing = [
        name
        for name in theory.__all__
        if inspect.isfunction(getattr(theory, name))
        and ">>>" not in (inspect.getdoc(getattr(theory, name)) or "")
    ]
    assert not missing


def docstrings() -> list[tuple[str, str]]:
    """(name, docstring) of everything public that shows an example."""
    found = [(module.__name__, inspect.getdoc(module) or "") for module in (fullbloom, fullbloom.errors)]
    for name in fullbloom.__all__:
        value = getattr(fullbloom, name)
        found.append((name, inspect.getdoc(value) or ""))
        if inspect.isclass(value) and value in CLASSES:
            found += [
                (f"{name}.{member}", inspect.getdoc(getattr(value, member, None)) or "")
                for member in vars(value)
            ]
    found += [(f"theory.{name}", inspect.getdoc(getattr(theory, name)) or "") for name in theory.__all__]
    return [(name, text) for name, text in found if ">>>" in text]


@for_each(("name", "text"), docstrings(), ids=[name for name, _ in docstrings()])
def test_the_example_of_a_docstring_runs(name, text):
    case = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(
        case, out=report.append
    )
    assert not report, "".join(report)


def test_the_rule_of_the_keys_page_gives_the_golden_vectors():
    """The page's own code, against hashes that were computed once and never change."""
    page = (DOCS / "keys.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[:2]:
        exec(block, names)
    golden = json.loads((ROOT / "tests" / "golden" / "keys.json").read_text(encoding="utf-8"))
    secret, checked = bytes.fromhex(golden["secret"]), 0
    kinds = {"str": str, "bytes": bytes.fromhex, "int": int}
    for vector in golden["vectors"]:
        [(kind, text)] = vector["key"].items()
        if kind not in kinds:
            continue  # floats and tuples: the page itself holds them against the library
        key = kinds[kind](text)
        assert names["canonical"](key) == (vector["domain"], bytes.fromhex(vector["canonical"])), key
        for seed, value in vector["xxh3"].items():
            assert names["hash_key"](key, int(seed)) == int(value, 16), key
        for seed, value in vector["sip13"].items():
            assert names["hash_key_secret"](key, secret, int(seed)) == int(value, 16), key
        checked += 1
    assert checked >= 3


def test_the_page_of_the_command_line_has_every_command_and_option():
    from fullbloom.cli.completion import list_commands
    from fullbloom.cli.parser import build_parser

    page = "".join(
        (DOCS / f"cli{part}.md").read_text(encoding="utf-8") for part in ("", "-formats", "-show", "-service")
    )
    shared, _, _ = page.partition("\n## dedup\n")
    for name, _, options in list_commands(build_parser()):
        assert f"\n## {name}\n" in page, name
        section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        assert f"$ fullbloom {name}" in section or f"| fullbloom {name}" in section, f"{name} has no example"
        for flag in (flag for option in options for flag in option.names if flag.startswith("--")):
            known = f"`{flag}`" in shared + section or f"`{flag} " in shared + section
            assert known or f"`{flag}`" in section, f"{name} {flag} is not in docs/cli.md"
    assert all(f"\n| {code} | " in shared for code in (0, 1, 2, 130))
