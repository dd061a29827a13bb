"""What was measured: subjects, rows, points and times, as one JSON file."""

from __future__ import annotations

import datetime as dt
import json
import time
import zlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.figures import (
    applications,
    counting,
    deletion,
    estimates,
    exactness,
    fingerprints,
    grid,
    layouts,
    networked,
    occupancy,
    positions,
    sizes,
    speed,
    streams,
)
from benchmarks.figures.grid import Point
from benchmarks.figures.model import Row, Subject, run_case
from benchmarks.model import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PATH = ROOT / "benchmarks" / "figures" / "record.json"
SEED = 1970
#: How many times as many filters a case gets that differs without a reason: one in 370 does, by chance.
REPEATED = 4.0
_MODULES = (
    sizes,
    occupancy,
    positions,
    layouts,
    estimates,
    counting,
    deletion,
    streams,
    fingerprints,
    exactness,
    networked,
    applications,
)


@dataclass(frozen=True)
class Record:
    """One run of `make figures`."""

    date: str
    seed: int
    seconds: float
    machine: dict[str, Any]
    rows: dict[str, list[Row]]
    rates: list[Point]
    sizes: list[Point]
    speed: dict[str, Any]
    repeated: list[str]

    @property
    def chances(self) -> list[float]:
        """The deviations of all rows that depend on chance and need no reason."""
        return [
            row.deviation
            for rows in self.rows.values()
            for row in rows
            if row.deviation is not None and not row.why
        ]


def list_subjects() -> list[Subject]:
    """The subjects in the order of the page."""
    return [module.subject() for module in _MODULES]


def make_source(seed: int, subject: str, number: int = 0) -> np.random.Generator:
    """A random source of its own for each case, so that cases can be measured alone."""
    return np.random.default_rng([seed, zlib.crc32(subject.encode()), number])


def measure(subject: Subject, number: int, repeated: list[str]) -> Row:
    """Measure a case; one that differs without a reason again, with four times the filters."""
    case = subject.cases[number]
    row = run_case(case, make_source(SEED, subject.name, number))
    if row.agrees or row.why:
        return row
    repeated.append(f"{row.what}, {row.parameters}: {row.deviation:+.1f}")
    return run_case(case, make_source(SEED + 1, subject.name, number), REPEATED)


def measure_all() -> Record:
    """Measure everything; some three minutes."""
    from benchmarks import machine

    facts, start = machine.describe(), time.perf_counter()
    rows: dict[str, list[Row]] = {}
    repeated: list[str] = []
    for subject in list_subjects():
        began = time.perf_counter()
        rows[subject.name] = [measure(subject, number, repeated) for number in range(len(subject.cases))]
        wrong = sum(not row.agrees for row in rows[subject.name])
        spent = time.perf_counter() - began
        print(f"{subject.name}: {len(subject.cases)} rows, {wrong} differ, {spent:.1f} s", flush=True)
    rates = grid.measure_rates(make_source(SEED, "rates"))
    points = grid.measure_sizes(make_source(SEED, "filter sizes"))
    print(f"grid: {len(rates)} and {len(points)} points", flush=True)
    times = speed.measure()
    return Record(
        date=dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        seed=SEED,
        seconds=round(time.perf_counter() - start, 1),
        machine=facts,
        rows=rows,
        rates=rates,
        sizes=points,
        speed=times,
        repeated=repeated,
    )


def save(record: Record) -> None:
    """Write the file."""
    PATH.write_text(json.dumps(asdict(record), separators=(",", ":")) + "\n", encoding="utf-8")


def load(path: Path = PATH) -> Record:
    """Read the file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    data["rows"] = {name: [Row(**row) for row in rows] for name, rows in data["rows"].items()}
    for name in ("rates", "sizes"):
        data[name] = [Point(**point) for point in data[name]]
    return Record(**data)
