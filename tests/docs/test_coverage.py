"""Guarantee: every row of the inventory of the literature is on the page, and every name on it exists."""

from __future__ import annotations

import importlib
import importlib.util
import re
from typing import Any

from cases import for_each
from scripts.pages import coverage

import fullbloom
from fullbloom.cli import parser

ENTRIES = coverage.list_entries()
NAMES = sorted({name for entry in ENTRIES for name in entry.names.split()})
TEXT = coverage.PAGE.read_text(encoding="utf-8")


def resolve(name: str) -> Any:
    """Return the object of a name; a module whose optional package is missing gives its specification."""
    found: Any = fullbloom
    parts = name.split(".")
    for at, part in enumerate(parts):
        if hasattr(found, part):
            found = getattr(found, part)
            continue
        module = ".".join(["fullbloom", *parts[: at + 1]])
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("fullbloom"):
                raise
            return importlib.util.find_spec(module)
    return found


def test_each_row_is_there_once() -> None:
    assert [entry.number for entry in ENTRIES] == list(range(1, 113))
    rows = [int(number) for number in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)]
    assert rows == list(range(1, 113)), "run python -m scripts.pages"


@for_each("name", NAMES)
def test_the_name_exists(name: str) -> None:
    if name.startswith("$"):
        assert name[1:] in parser.COMMANDS
    else:
        assert resolve(name) is not None


def test_each_row_has_a_name_a_page_or_a_reason() -> None:
    for entry in ENTRIES:
        if entry.page == coverage.PARAGRAPH:
            body = re.search(rf"^### Row {entry.number}\n\n(.+?)(?=^#|\Z)", TEXT, re.MULTILINE | re.DOTALL)
            assert body is not None, entry
            assert len(body[1]) > 200, entry
        else:
            assert entry.names or entry.about, entry
            assert (coverage.DOCS / entry.page).exists(), entry


def test_the_page_of_a_row_mentions_what_the_row_names() -> None:
    """The page of figures names no functions, and a row with a note of its own says what to look for."""
    for entry in ENTRIES:
        if entry.page in (coverage.PARAGRAPH, "figures.md") or entry.about or not entry.names:
            continue
        text = (coverage.DOCS / entry.page).read_text(encoding="utf-8")
        names = [name.lstrip("$").rpartition(".")[2] for name in entry.names.split()]
        assert any(name in text for name in names), entry
