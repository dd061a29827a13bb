"""The security page shows what its script measures, and every page of a filter points to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.attacks import page, rows

import fullbloom

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
    text = page.written(page.PAGE.read_text(), page.table([row]))
    assert page.shown_in(text) == [["a", "b", "c", "d", "e", "f"]]
    assert page.written(text, page.table([row])) == text


@pytest.mark.parametrize(
    "name", sorted(p.name for p in (DOCS / "filters").glob("*.md") if p.name not in KEYLESS)
)
def test_every_filter_page_names_the_secret(name: str) -> None:
    lines = (DOCS / "filters" / name).read_text().splitlines()
    assert any("secret=" in line and "security.md" in line for line in lines)


def test_the_seed_is_no_secret() -> None:
    made = fullbloom.BloomFilter(100, seed=987654321)
    assert fullbloom.loads(made.to_bytes()).seed == made.info()["seed"] == 987654321
