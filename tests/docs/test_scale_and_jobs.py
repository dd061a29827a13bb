"""Guarantee: the pages about scale and the seven jobs show their records, from which the model follows."""

from __future__ import annotations

import os
import re

import pytest
from benchmarks import blocks
from benchmarks.engines import record as engines
from benchmarks.jobs import record as jobs
from benchmarks.model import ROOT
from benchmarks.scale import model, page, plan, plots
from benchmarks.scale import record as scale
from cases import for_each

RECORD = scale.load()
JOBS = jobs.load()
SPARK = engines.load()
WITHIN = 0.2


def test_the_page_of_scale_shows_its_record() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.render(text, RECORD) == text, "run python -m benchmarks.scale page"


@pytest.mark.parametrize("name", plots.PLOTS)
def test_the_plots_of_scale_are_drawn_from_the_record(name: str) -> None:
    drawn = (page.IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == plots.PLOTS[name](RECORD), "run python -m benchmarks.scale page"


def test_the_model_predicts_a_billion_keys_from_smaller_runs() -> None:
    compared = model.compare(RECORD, scale.FITTED)
    assert RECORD["largest"][0]["keys"] == scale.PREDICTED > scale.FITTED
    assert {one.unit for one in compared} == {"s", "ns", "B"}
    missed = {one.what: one.error for one in compared if abs(one.error) > WITHIN}
    assert not missed


def test_the_model_is_close_to_the_runs_that_it_was_fitted_to() -> None:
    fitted = plan.fit_record(RECORD)
    for row in RECORD["filters"]:
        count = row["keys"]
        assert fitted.predict_bytes(count) == pytest.approx(row["filter_bytes"], rel=0.01)
        assert fitted.predict_build(count) == pytest.approx(row["build_seconds"], rel=0.5)
        assert fitted.predict_query(count) == pytest.approx(row["query_ns"], rel=0.5)


def test_the_model_ignores_runs_beyond_the_size_it_is_fitted_to() -> None:
    altered = {**RECORD, "filters": [dict(row) for row in RECORD["filters"]]}
    for row in altered["filters"]:
        if row["keys"] > scale.FITTED:
            row["build_seconds"] *= 10
    altered["largest"] = [{**RECORD["largest"][0], "build_seconds": 1.0}]
    assert model.fit(altered, scale.FITTED) == model.fit(RECORD, scale.FITTED)


def test_a_line_is_fitted_exactly_to_points_of_a_line() -> None:
    line = model.fit_line([1, 2, 5, 9], [5, 7, 13, 21])
    assert (line.base, line.factor) == (pytest.approx(3), pytest.approx(2))
    assert model.fit_line([1, 2, 3], [1, 3, 5]).base == 0  # no cost is below zero


def test_four_times_the_machines_take_a_quarter_of_the_memory_and_less_time() -> None:
    machine = plan.describe_machines(RECORD)[0]
    few = plan.plan_filter(RECORD, scale.PLANNED, machine)
    many = plan.plan_filter(RECORD, scale.PLANNED, machine, 4 * few.machines)
    assert few.bytes_per_machine <= machine.memory_gib * 2**30 * plan.FILTER_SHARE
    assert many.bytes_per_machine == pytest.approx(few.bytes_per_machine / 4)
    assert many.hours < few.hours / 2
    assert few.shuffle_bytes < many.shuffle_bytes < plan.HASH_BYTES * scale.PLANNED


@for_each("name", jobs.MEASURED)
def test_the_page_of_a_job_shows_its_record_and_its_picture(name: str) -> None:
    file = ROOT / jobs.find_job(name).PAGE
    text = file.read_text(encoding="utf-8")
    assert jobs.render(name, text, JOBS) == text, "run python -m benchmarks.jobs page"
    picture = jobs.picture_of(name)
    assert f"({os.path.relpath(picture, file.parent)})" in text
    assert picture.read_text(encoding="utf-8") == jobs.find_job(name).draw(JOBS[name]["figures"])


@pytest.mark.parametrize(
    "name",
    ["Polars, in memory", "Polars, streaming", "DuckDB, a query as a batch", "DuckDB, keep_candidates"],
)
def test_the_ways_that_the_page_calls_fast_take_at_most_two_batches_of_numpy(name: str) -> None:
    assert JOBS["columns"]["figures"]["runs"][name]["ratio"] <= jobs.find_job("columns").BAR


def test_the_page_of_spark_shows_its_record() -> None:
    text = engines.PAGE.read_text(encoding="utf-8")
    assert engines.render(text, SPARK) == text, "run python -m benchmarks.engines page"


def test_spark_s_record_is_within_the_bounds_that_its_page_claims() -> None:
    """As ratios of one run: to Spark's own aggregate, lookup and joins, and of shuffled bytes."""
    assert SPARK["build"]["figures"]["runs"][engines.SAME]["ratio"] <= 0.7
    assert SPARK["contains"]["figures"]["runs"][engines.SAME]["ratio"] <= 1.3
    few, every = SPARK["joins"]["figures"]["shares"].values()
    assert few[engines.BLOOM_JOIN]["ratio"] <= 1 / 1.5
    assert few[engines.BLOOM_JOIN]["ratio"] <= few[engines.RUNTIME_FILTER]["ratio"]
    assert every[engines.BLOOM_JOIN]["ratio"] <= 1.1
    texts = SPARK["duplicates"]["figures"]["tables"]["texts"]
    assert texts[engines.DEDUPLICATE]["shuffled"] <= 0.1 * texts[engines.DROP]["shuffled"]


@for_each("name", jobs.JOBS)
def test_the_page_of_a_job_has_an_example_that_runs_and_the_cost_of_a_false_positive(name: str) -> None:
    text = (ROOT / jobs.find_job(name).PAGE).read_text(encoding="utf-8")
    assert re.search(r"^```(?:console|python|pycon)$", text, re.MULTILINE)
    assert "## What it saves\n" in text
    assert "## What a false positive costs\n" in text


def test_the_index_names_the_jobs_in_the_order_of_the_record() -> None:
    text = jobs.INDEX.read_text(encoding="utf-8")
    assert jobs.render_index(text, JOBS) == text, "run python -m benchmarks.jobs page"
    pages = re.findall(r"\]\(([\w-]+\.md)\)", blocks.read_block(text, "jobs"))
    assert pages == [jobs.find_job(name).PAGE.rpartition("/")[2] for name in jobs.JOBS]


def test_a_block_is_replaced_between_its_marks_only() -> None:
    text = "a\n<!-- x begin -->\nold\n<!-- x end -->\nb\n"
    changed = blocks.replace_block(text, "x", "new")
    assert changed == text.replace("old", "new")
    assert blocks.read_block(changed, "x") == "new"
    with pytest.raises(ValueError, match="no marks"):
        blocks.replace_block(text, "y", "new")
