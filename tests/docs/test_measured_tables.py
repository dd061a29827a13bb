"""Guarantee: pages show the tables of the records, whose figures reach their bars, and a new run agrees."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pyarrow", reason="the documents of the signatures are an Arrow column")

from benchmarks import report
from benchmarks.model import ROOT
from benchmarks.networked import __main__ as networked
from benchmarks.networked import duplicates, sums
from benchmarks.outcome import Outcome, Record, insert
from benchmarks.signatures import __main__ as signatures
from benchmarks.signatures import queries

RECORDS = {"networked": networked.RECORD, "signatures": signatures.RECORD}
OUTCOMES = [
    (f"{name} {experiment}", record, outcome)
    for name, record in RECORDS.items()
    for experiment, outcome in record.read().items()
]
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def test_every_experiment_is_recorded() -> None:
    assert networked.RECORD.read().keys() == networked.EXPERIMENTS.keys()
    assert signatures.RECORD.read().keys() == {"queries"}


@pytest.mark.parametrize(("name", "record", "outcome"), OUTCOMES, ids=[name for name, *_ in OUTCOMES])
def test_a_page_shows_the_recorded_tables(name: str, record: Record, outcome: Outcome) -> None:
    for table in outcome.tables:
        text = (record.pages / table.page).read_text(encoding="utf-8")
        assert insert(text, table) == text, f"run python -m benchmarks.{name.split(maxsplit=1)[0]} --write"


@pytest.mark.parametrize(
    "outcome", [outcome for *_, outcome in OUTCOMES], ids=[name for name, *_ in OUTCOMES]
)
def test_recorded_figures_reach_their_bars(outcome: Outcome) -> None:
    assert outcome.bars
    assert not outcome.list_failures()


def test_the_bars_are_those_of_the_project() -> None:
    """Ten million keys in eight processes within 5 % of the formula; queries five times as fast as NumPy."""
    large = networked.RECORD.read()["duplicates_large"]
    assert large.parameters["items"] == 10_000_000
    assert large.parameters["elements"] == 8
    assert large.bars["whole_off"] == large.bars["filters_off"] == (-0.05, 0.05)
    assert large.bars["exact"] == (1.0, 1.0)
    found = signatures.RECORD.read()["queries"]
    assert found.parameters["documents"] == 1_000_000
    assert all(found.bars[f"{shape}_ratio"][0] == 5.0 for shape in queries.SHAPES)


def test_bits_that_are_sent_again_are_those_of_the_record() -> None:
    recorded = networked.RECORD.read()
    assert sums.measure() == recorded["sums"]
    case = duplicates.Case(4, 40_000, 0.1, (1 / 8,))
    assert all(abs(off) < 0.05 for off in duplicates.run(case, seed=3).off)


def test_a_small_index_answers_as_numpy_does_and_by_the_law() -> None:
    outcome = queries.measure(20_000, seeds=10)
    assert not [failure for failure in outcome.list_failures() if "law" in failure]


def test_the_page_of_banks_states_the_newest_record() -> None:
    result = next(result for result, _ in report.newest() if result.name == "bank")
    text = " ".join((ROOT / "docs" / "filters" / "bank.md").read_text(encoding="utf-8").split())
    ratios = [
        figure.value
        for name, figure in result.figures.items()
        if name.startswith("bank/") and name.endswith("ratio") and "bytes" not in name
    ]
    assert f"take {min(ratios):.2f} to {max(ratios):.2f} times as long" in text
    grown = result.figures["essay/resident"].value
    planned = result.figures["essay/planned"].value
    assert f"{planned / 1e6:.1f} MB" in text
    assert f"{grown / 1e6:.1f} MB, {grown / planned - 1:.1%}".replace("%", " %") in text
