"""Guarantee: pages of applications show what was measured, and the measured figures reach their bars."""

from __future__ import annotations

import importlib

import pytest
from benchmarks.outcome import insert
from benchmarks.recipes import __main__ as runs

RECORD = runs.RECORD.read()
#: The experiment, its figure, and the least and the most that it may be.
BARS = [
    ("hyphenation", "deviation_300000", -3.0, 3.0),
    ("admission", "one_hit_share", 0.735, 0.745),
    *(("admission", f"writes_saved_{size}", 0.44, 1.0) for size in (1_000, 10_000, 40_000)),
    *(("admission", f"hit_ratio_gained_{size}", 0.0, 1.0) for size in (1_000, 10_000, 40_000)),
    *(("state_search", f"{model}_compaction", 0.99999, 1.0) for model in ("puzzle", "philosophers")),
    *(("state_search", f"{model}_bitstate_8", 0.9905, 0.9925) for model in ("puzzle", "philosophers")),
    ("digests", "digest_5_1000_hits", 0.16, 0.177),
    ("digests", "digest_5_1000_bytes", 0, 278 / 4),
    *(("lsm", f"saved_{bits}", 0.2, 1.0) for bits in (5, 10)),
    *(("join", f"deviation_{rate}", -4.0, 4.0) for rate in (0.1, 0.01, 0.001)),
    ("join", "kept_0.01", 0.05, 0.0605),
    ("novelty", "fly_2", 0.0, 0.1),
    ("novelty", "fly_6", 0.5, 1.0),
    ("checks", "urls_right", 1.0, 1.0),
    ("checks", "urls_questions", 0.001, 0.004),
    ("checks", "names_wrong", 0, 0),
    ("checks", "tokens_missed", 0, 0),
    ("rate_limit", "beyond", 0, 0),
    ("rate_limit", "wrongly", 0, 0.001),
    ("blocks", "archive_lookups", 0.0, 0.04),
    ("blocks", "blocks_missed", 0, 0),
    ("blocks", "blocks_read", 1.0, 1.6),
]


def test_every_experiment_is_recorded():
    assert RECORD.keys() == set(runs.NAMES)


@pytest.mark.parametrize("table", runs.RECORD.list_tables(), ids=lambda table: table.name)
def test_a_page_shows_the_recorded_table(table):
    text = (runs.RECORD.pages / table.page).read_text(encoding="utf-8")
    assert insert(text, table) == text, "run python -m benchmarks.recipes --write"


@pytest.mark.parametrize(("experiment", "figure", "least", "most"), BARS, ids=str)
def test_a_bar_is_reached(experiment, figure, least, most):
    assert least <= RECORD[experiment].figures[figure] <= most


def test_the_bars_of_the_record_are_reached():
    assert not [failure for outcome in RECORD.values() for failure in outcome.list_failures()]


@pytest.mark.parametrize("experiment", ["already_read", "blocks", "hyphenation", "join", "lsm"])
def test_a_second_run_gives_the_recorded_figures(experiment):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'fullbloom[arrow]'")
    found = importlib.import_module(f"benchmarks.recipes.{experiment}").measure().figures
    assert found == pytest.approx(RECORD[experiment].figures, rel=1e-9)
