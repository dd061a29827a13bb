"""Guarantee: the page of figures shows the record, and rows that are measured again agree with it."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pyarrow", reason="the times of base hashes need pyarrow")

from benchmarks.figures import grid, page, record
from benchmarks.figures.drift import SHARE, bound, find_drift, off
from benchmarks.figures.model import Case, is_rounded, read_number, run_case

#: Rows that are measured again; some of these are of tables and static filters.
DRAWN, TABLES_DRAWN = 24, 4
#: Subjects whose rows build sets of a million keys: a row of them takes up to five seconds.
TABLES = {"fingerprints", "exactness"}
SUBJECTS = {subject.name: subject for subject in record.list_subjects()}
RECORD = record.load()


def list_cases() -> list[tuple[str, int, Case]]:
    return [(name, at, case) for name, subject in SUBJECTS.items() for at, case in enumerate(subject.cases)]


def test_the_page_is_written_from_the_record() -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert page.render(RECORD, [*SUBJECTS.values()]) == written, "run python -m benchmarks.figures --page"


def test_the_record_has_the_rows_of_the_code() -> None:
    assert list(RECORD.rows) == list(SUBJECTS)
    for name, subject in SUBJECTS.items():
        stored = [
            (row.what, row.parameters, row.published, row.source, row.why, row.formula)
            for row in RECORD.rows[name]
        ]
        coded = [(c.what, c.parameters, c.published, c.source, c.why, c.formula) for c in subject.cases]
        assert stored == coded, "run make figures"


def test_every_row_agrees_or_has_a_reason_on_the_page() -> None:
    written = re.sub(r"\s+", " ", page.PAGE.read_text(encoding="utf-8"))
    for rows in RECORD.rows.values():
        for row in rows:
            if not row.agrees:
                assert row.why, f"{row.what} ({row.parameters}) has no reason"
                assert f"{row.why[1:]}." in written
    assert RECORD.seconds < 600


def test_deviations_are_those_of_chance() -> None:
    """More rows beyond three standard errors than chance allows would be a hidden difference."""
    values = RECORD.chances
    assert len(values) > 80
    assert sum(abs(value) > 3 for value in values) <= 3
    square = math.fsum(value**2 for value in values) / len(values)
    assert square < 1 + 4 * math.sqrt(2 / len(values))
    points = [*RECORD.rates, *RECORD.sizes]
    assert max(abs(point.deviation) for point in points) < bound(len(points))


def test_a_reason_excuses_neither_a_bound_that_is_broken_nor_a_law_that_is_missed() -> None:
    """A reason explains a difference from the published figure; what a row claims must hold all the same."""
    bounds = laws = 0
    for name, subject in SUBJECTS.items():
        for case, row in zip(subject.cases, RECORD.rows[name], strict=True):
            beyond = row.measured - read_number(row.published)
            if row.what.endswith(("at most", "at least")):
                bounds += 1
                assert (beyond if row.what.endswith("most") else -beyond) <= 3 * row.error, row.what
            if row.law is not None and row.error:
                laws += 1
                allowed = case.law_error * abs(row.law) + bound(len(RECORD.chances)) * row.error
                assert abs(row.measured - row.law) <= allowed, (row.what, row.parameters)
    assert bounds >= 4
    assert laws > 80


def draw_rows(draw: random.Random, *, chance: bool, tables: bool, most: int) -> list[tuple[str, int, Case]]:
    """Some rows with or without chance, of tables or of other subjects."""
    found = [
        (name, at, case)
        for name, at, case in list_cases()
        if (RECORD.rows[name][at].error > 0) == chance and (name in TABLES) == tables
    ]
    return draw.sample(found, min(most, len(found)))


def test_figures_without_chance_are_computed_again() -> None:
    """All but those of tables, of which a few are drawn; test_all_figures_hold.py has the rest."""
    seed = random.SystemRandom().randrange(1 << 32)
    draw = random.Random(seed)
    rows = draw_rows(draw, chance=False, tables=False, most=1000)
    rows += draw_rows(draw, chance=False, tables=True, most=3 * TABLES_DRAWN)
    wrong = [find_drift(name, at, case, RECORD.rows[name][at], seed, DRAWN) for name, at, case in rows]
    assert not any(wrong), [each for each in wrong if each]
    assert len(rows) > 100


def test_rows_measured_again_have_not_drifted() -> None:
    """A random choice, with other keys and other filters than the record's."""
    seed = random.SystemRandom().randrange(1 << 32)
    draw = random.Random(seed)
    rows = draw_rows(draw, chance=True, tables=False, most=DRAWN - TABLES_DRAWN)
    rows += draw_rows(draw, chance=True, tables=True, most=TABLES_DRAWN)
    wrong = [find_drift(name, at, case, RECORD.rows[name][at], seed, DRAWN) for name, at, case in rows]
    assert not any(wrong), [each for each in wrong if each]


def test_a_published_figure_that_a_text_has_as_a_formula_is_the_value_of_the_formula() -> None:
    """Its law is computed by the library, and rounds to the figure that is written in the source."""
    checked = 0
    for _, _, case in list_cases():
        if case.formula and case.law is not None and "at most" not in case.what and not case.why:
            checked += 1
            assert is_rounded(case.law, case.published), case.what
    assert checked >= 4


def test_points_of_the_grid_have_not_drifted() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    points = random.Random(seed).sample(RECORD.rates, 8)
    source = record.make_source(seed, "rates")
    for point in points:
        again = grid.measure_point(source, point.num_bits, point.items, point.num_hashes, 2, 50_000)
        assert again.law == pytest.approx(point.law)
        assert abs(again.deviation) <= bound(len(points)), (seed, point)


def test_a_share_of_zero_is_written_with_its_error() -> None:
    rows = {row.what: row for some in RECORD.rows.values() for row in some}
    row = next(row for row in rows.values() if row.error)
    for measured, error, text in (
        (0.0, 0.024, "0.000 ± 0.024"),
        (0.0, 2e-6, "(0.0 ± 2.0)e-6"),
        (4e-4, 0.01, "0.000 ± 0.010"),
        (4e-4, 1e-5, "(4.00 ± 0.10)e-4"),
    ):
        assert page.format_measured(replace(row, measured=measured, error=error)) == text


def test_a_drift_is_detected() -> None:
    """The test above must be able to fail: a rate that is doubled is beyond its bound."""
    name, at, case = next(item for item in list_cases() if item[2].what == "rate with k = 7")
    again = run_case(case, record.make_source(7, name, at), SHARE)
    assert off(again, case, again) <= bound(DRAWN)
    assert off(again, case, replace(again, measured=again.measured * 2)) > bound(DRAWN)
    assert case.law is not None
    assert not is_rounded(case.law * 2, case.published)
    assert read_number("5/8") == 0.625


def test_plots_are_drawn_from_the_record() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from benchmarks.figures import plots

    for name in plots.PLOTS:
        file = plots.IMAGES / f"{name}.svg"
        drawn, committed = (
            list_numbers(text) for text in (plots.render(name, RECORD), file.read_text("utf-8"))
        )
        # Another version of matplotlib may add a tick; the curves and points are most of the numbers.
        assert abs(len(drawn) - len(committed)) <= 0.1 * len(committed), (
            "run python -m benchmarks.figures --page"
        )
        common = set(drawn) & set(committed)
        assert len(common) >= 0.8 * len(set(committed)), "run python -m benchmarks.figures --page"
        assert file.stat().st_size < 150_000


def list_numbers(svg: str) -> list[str]:
    """The coordinates of a plot's paths and marks, rounded."""
    return [f"{float(number):.0f}" for number in re.findall(r"-?\d+\.\d+", svg)]
