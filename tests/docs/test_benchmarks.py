"""Records of benchmarks: the pages show each benchmark once, from its newest run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from benchmarks import report
from benchmarks.model import Figure, Result

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FACTS = json.loads((report.HERE / "record" / "unreleased.json").read_text())["runs"][0]["machine"]


def make_result(name: str, value: float) -> Result:
    """A result of one figure."""
    return Result(name, name, figures={"a": Figure(value, "ns", "a")})


def test_pages_show_the_newest_runs() -> None:
    assert report.stale() == []


def test_each_benchmark_is_in_the_records_once() -> None:
    names = [result.name for result, _ in report.newest()]
    assert len(names) == len(set(names)) > 10
    records = [json.loads(path.read_text()) for path in (report.HERE / "record").glob("*.json")]
    recorded = [item["name"] for record in records for run in record["runs"] for item in run["results"]]
    assert sorted(recorded) == sorted(names)


def test_a_newer_run_replaces_the_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "HERE", tmp_path)
    monkeypatch.setattr(report, "ROOT", tmp_path)
    report.record(FACTS, [make_result("space", 1), make_result("scalar", 2)], "2026-01-01 00:00 UTC")
    assert report.record(FACTS, [make_result("space", 3)], "2026-01-02 00:00 UTC") == "record/unreleased.json"
    (tmp_path / "record" / "unreleased.json").rename(tmp_path / "record" / "1.0.0.json")
    report.record(FACTS, [make_result("scalar", 4)], "2026-02-01 00:00 UTC")
    shown = {result.name: (result.figures["a"].value, run["date"]) for result, run in report.newest()}
    assert shown == {"space": (3, "2026-01-02 00:00 UTC"), "scalar": (4, "2026-02-01 00:00 UTC")}
    page = (tmp_path / "record" / "unreleased.md").read_text()
    assert page.count("# Run of") == 1
