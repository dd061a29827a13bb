"""Pages that state facts of the code: format, migrating, security, package names; and banned phrases."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from benchmarks.attacks import page, rows
from cases import for_each
from support import SECRET

import fullbloom
from fullbloom import _core, loads, variants

ROOT = Path(__file__).resolve().parents[2]
FORMAT = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.bloom"))


def reader():
    """The reader that the page shows, and its set of tags with floats."""
    names: dict[str, object] = {}
    exec(re.search(r"^```python\n(import struct.*?)^```$", FORMAT, re.MULTILINE | re.DOTALL)[1], names)
    return names["read"], names["FLOATS"]


@for_each("path", GOLDEN, ids=lambda path: path.stem)
def test_the_reader_of_the_page_reads_every_golden_file(path):
    read, _ = reader()
    data = path.read_bytes()
    header, parameters, sections = read(data)
    instance = loads(data, secret=SECRET if header["fingerprint"] else None)
    rows = {row["id"]: row["class"] for row in variants()}
    assert rows[header["variant"]] == type(instance).__name__
    assert header["seed"] == instance.seed
    assert sum(len(section) for section in sections.values()) <= len(data)
    numbers = {room: {n for n, _, _ in known} for room, known in _core.format_numbers().items()}
    assert {tag for _, tag in parameters} <= numbers["tag"]
    assert {kind for kind, _ in sections} <= numbers["kind"]
    rates = [value for (index, tag), value in parameters.items() if tag == 2 and index in {0, 0xFFFF}]
    assert instance.target_fpr in (rates or [0.0])  # what has no false positives has no rate in its file


def test_the_page_knows_which_tags_hold_floats():
    _, floats = reader()
    assert floats == {number for number, _, meaning in _core.format_numbers()["tag"] if "an f64" in meaning}


def test_a_damaged_file_is_refused_by_the_reader_of_the_page():
    read, _ = reader()
    data = bytearray(GOLDEN[0].read_bytes())
    data[70] ^= 1
    with pytest.raises(ValueError, match="damaged"):
        read(bytes(data))


RIVALS = ROOT / "tests" / "rivals"
MIGRATING = (ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
STATED = tomllib.loads((RIVALS / "differences.toml").read_text(encoding="utf-8"))


@pytest.fixture
def suites(monkeypatch):
    monkeypatch.syspath_prepend(str(RIVALS))
    yield importlib.import_module("suites").SUITES
    del sys.modules["suites"]


def test_every_package_has_a_section(suites):
    headings = " ".join(re.findall(r"^## (.*)$", MIGRATING, re.MULTILINE))
    named = {name for part in headings.split(",") for name in part.split()}
    assert {suite.package for suite in suites} <= named


def test_every_difference_belongs_to_a_tested_package(suites):
    assert STATED["packages"].keys() <= {suite.package for suite in suites}


@for_each("reason", STATED["reasons"].values(), ids=STATED["reasons"])
def test_every_reason_is_on_the_page(reason):
    assert reason in " ".join(MIGRATING.split())


def test_every_reason_is_used_by_a_difference():
    used = {reason for package in STATED["packages"].values() for reason in package}
    assert used == STATED["reasons"].keys() | STATED["apart"].keys()


DOCS = Path(page.PAGE).parent
# A bit set has no hash; pages written from docstrings alone name the secret among the parameters.
KEYLESS = {"index.md", "bit-set.md", "counting.md", "spectral.md", "variable-increment.md"}


def test_the_page_has_a_row_for_every_attack_with_what_the_script_measures() -> None:
    shown = page.shown_in(page.PAGE.read_text())
    assert len(shown) == len(rows.ATTACKS)
    quick = [rows.flood(), rows.dynamic(), rows.counters(), rows.offline()]
    assert {(row.attack, row.measured) for row in quick} <= {(cells[0], cells[1]) for cells in shown}
    by_name = {cells[0]: cells for cells in shown}
    for row in quick:
        assert [row.attack, row.measured, row.chance, row.public, row.secret] == by_name[row.attack][:5]


def test_a_table_is_written_between_the_marks_and_read_back() -> None:
    row = rows.Row("a", "b", "c", "d", "e", "f")
    text = page.insert_table(page.PAGE.read_text(), page.table([row]))
    assert page.shown_in(text) == [["a", "b", "c", "d", "e", "f"]]
    assert page.insert_table(text, page.table([row])) == text


@for_each("name", sorted(p.name for p in (DOCS / "filters").glob("*.md") if p.name not in KEYLESS))
def test_every_filter_page_names_the_secret(name: str) -> None:
    lines = (DOCS / "filters" / name).read_text().splitlines()
    assert any("secret=" in line and "security.md" in line for line in lines)


def test_the_seed_is_not_a_secret() -> None:
    instance = fullbloom.BloomFilter(100, seed=987654321)
    assert fullbloom.loads(instance.to_bytes()).seed == instance.info()["seed"] == 987654321


@pytest.mark.parametrize("name", ["theory", "plan", "errors"])
def test_modules_on_the_page_are_attributes_of_the_package(name: str) -> None:
    assert f"``fullbloom.{name}``" in (fullbloom.__doc__ or "")
    program = f"import fullbloom, sys; sys.exit(fullbloom.{name}.__name__ != 'fullbloom.{name}')"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_importing_the_package_loads_none_of_them() -> None:
    late = {"fullbloom.theory", "fullbloom.plan", "dataclasses"}
    program = f"import fullbloom, sys; sys.exit(len({late} & {{*sys.modules}}))"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plans'"):
        getattr(fullbloom, "plans")  # noqa: B009 - mypy knows that there is none


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "docs").rglob("*.md")),
    ids=lambda path: path.relative_to(ROOT / "docs").as_posix(),
)
def test_no_table_is_interrupted(path):
    """A line between two rows ends the table, such as a placeholder that nobody replaced."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"^\|.*\n(?!\||\s*$|<!--)(.*)\n(?=\|)", text, flags=re.MULTILINE)
