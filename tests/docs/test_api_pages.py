"""Guarantee: the API pages have every public name, with its signature, its contract and an example."""

from __future__ import annotations

import pkgutil
import re
import sys

import pytest
from scripts.docsite import api, npm, stand_ins

import fullbloom
import fullbloom.engines
import fullbloom.recipes

NAMES = [name for name in fullbloom.__all__ if name != "__version__"]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return api.render_pages()


def find_entry(pages: dict[str, str], name: str) -> tuple[str, str]:
    """The page of a name, and the text under its directive."""
    start = re.compile(rf"^\.\. py:(?:class|exception|function):: {name}\b", re.MULTILINE)
    found = [(path, match.start()) for path, text in pages.items() if (match := start.search(text))]
    # The page of the protocols and that of the errors may name a class again.
    own = [entry for entry in found if entry[0] == f"reference/api/{name}.rst"] or found
    assert own, f"{name} has no entry on any page"
    path, begin = own[0]
    lines = pages[path][begin:].splitlines()
    # The directive ends with the next line that is not indented.
    end = next((number for number, line in enumerate(lines[1:], 1) if line and line[0] != " "), len(lines))
    return path, "\n".join(lines[:end])


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_its_signature_its_contract_and_an_example(
    pages: dict[str, str], name: str
) -> None:
    path, entry = find_entry(pages, name)
    head, _, body = entry.partition("\n\n")
    value = getattr(fullbloom, name)
    if isinstance(value, type) and issubclass(value, Warning | BaseException):
        assert "Bases: ``" in body
    elif callable(getattr(value, "build", None)):  # made of its keys; the class is not called
        assert re.search(rf"{name}\.build\(", pages[path]), "no signature"
    else:
        assert re.search(rf"{name}\(", head), "no signature"
    prose = re.sub(r"\.\. code-block::.*", "", body, flags=re.DOTALL)
    assert len(prose.split()) >= 5, f"no contract: {prose!r}"
    assert re.search(r"^ +>>> ", body, re.MULTILINE), f"no example on {path}"


def test_no_placeholder_of_a_missing_package_is_left(pages: dict[str, str]) -> None:
    assert "reference/api/fullbloom.engines.dask.rst" in pages
    assert not [name for name, module in sys.modules.items() if type(module) is stand_ins.Placeholder]
    assert not [finder for finder in sys.meta_path if type(finder) is stand_ins.Finder]


def test_the_version_is_on_the_page_of_functions(pages: dict[str, str]) -> None:
    entry = pages["reference/api/functions.rst"].partition(".. py:data:: __version__\n")[2]
    assert (
        f"Version of the package, such as the one that built this page: ``{fullbloom.__version__}``" in entry
    )


def test_no_class_is_called_what_it_is_not() -> None:
    listed = api.render_index()
    assert "[`SignatureIndex`](api/SignatureIndex.rst): rows and documents" in listed
    for name, (about, _) in api.OTHER_CLASSES.items():
        assert ("other programs" in about or "RedisBloom" in about) == name.startswith("Foreign")
    assert api.OTHER_CLASSES.keys() == set(api.list_other_classes(api.Stub()))


@pytest.mark.parametrize(
    "package", [fullbloom.recipes, fullbloom.engines], ids=lambda package: package.__name__
)
def test_every_module_for_callers_has_a_page(package: object) -> None:
    found = {
        f"{package.__name__}.{name}"
        for _, name, _ in pkgutil.iter_modules(package.__path__)
        if not name.startswith("_")
    }
    missing = {name for name in found - api.MODULES.keys() if name not in INTERNAL}
    assert missing == set()


def test_every_export_of_the_npm_package_has_an_entry_with_its_contract() -> None:
    entries = npm.read_entries()
    assert set(npm.list_exports()) == entries.keys()
    assert all(len(entry.text.split()) >= 4 for entry in entries.values())
    methods = {member.name for member in entries["Filter"].members}
    assert {"has", "hasMany", "add", "addMany", "remove", "positions", "info", "toBytes", "free"} <= methods
    page = npm.render_section()
    assert all(f"### {name}\n" in page for name in entries)


#: Modules of engines that only their neighbours import.
INTERNAL = {"fullbloom.engines.hash_sets", "fullbloom.engines.kinds"}
