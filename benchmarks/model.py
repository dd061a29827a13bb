"""What a benchmark is made of: definition, bar, figure, table, result."""

from __future__ import annotations

import fnmatch
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks"
WORK = HERE / "work"

ORDER = (
    "space",
    "import",
    "open",
    "scalar",
    "list-batch",
    "numpy-batch",
    "arrow",
    "base-hashes",
    "mutable",
    "static",
    "static-percent",
    "maps",
    "exact",
    "reconcile",
    "bank",
    "dedup",
    "records",
    "large-build",
    "accuracy",
)


@dataclass(frozen=True)
class Bar:
    """One line of the goal table: the figures it speaks of (a glob) and the limit."""

    what: str
    figures: str
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    def text(self) -> str:
        """The limit in words."""
        sign, limit = ("at most", self.at_most) if self.at_most is not None else ("at least", self.at_least)
        return f"{sign} {limit:g}{unit_suffix(self.unit)}"

    def holds(self, value: float) -> bool:
        """True if `value` is within the limit."""
        if self.at_most is not None:
            return value <= self.at_most
        return value >= float(self.at_least or 0.0)

    def strain(self, value: float) -> float:
        """How much of the limit `value` uses; above 1 is a miss."""
        if self.at_most is not None:
            return value / self.at_most if self.at_most else 1.0 + value
        return float(self.at_least or 0.0) / value if value > 0 else float("inf")


@dataclass
class Figure:
    """One number. `value` is the median (or the only value); `best` the minimum, or the ratio of minima."""

    value: float
    unit: str
    label: str
    best: float | None = None

    def text(self) -> str:
        """`median (minimum)` with its unit."""
        show = "{:.2f}".format if self.unit == "bits" else number
        best = "" if self.best is None else f" ({show(self.best)})"
        return f"{show(self.value)}{best}{unit_suffix(self.unit)}"


@dataclass
class Table:
    """A printed table; cells are text."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""


@dataclass
class Verdict:
    """One figure compared with one bar."""

    what: str
    bar: str
    label: str
    measured: str
    verdict: str
    strain: float


@dataclass
class Result:
    """All that one definition produced."""

    name: str
    title: str
    quick: bool = False
    seconds: float = 0.0
    figures: dict[str, Figure] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain data for the record."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Result:
        """The inverse of `to_json`."""
        rest = {k: v for k, v in data.items() if k not in ("figures", "tables", "verdicts")}
        return Result(
            **rest,
            figures={k: Figure(**v) for k, v in data["figures"].items()},
            tables=[Table(**t) for t in data["tables"]],
            verdicts=[Verdict(**v) for v in data["verdicts"]],
        )


@dataclass(frozen=True)
class Definition:
    """One file of `definitions/`: what is measured, with which numbers, against which bars."""

    name: str
    title: str
    how: str
    measure: str
    settings: dict[str, Any]
    quick: dict[str, Any]
    bars: tuple[Bar, ...]
    long: bool = False
    """Takes minutes: a quick run leaves it out unless it is named."""

    @staticmethod
    def load(name: str) -> Definition:
        """Reads `definitions/NAME.toml`."""
        data = tomllib.loads((HERE / "definitions" / f"{name}.toml").read_text())
        return Definition(
            name=name,
            title=data["title"],
            how=data["how"].strip(),
            measure=data["measure"],
            settings=data["settings"],
            quick=data.get("quick", {}),
            bars=tuple(Bar(**bar) for bar in data.get("bars", ())),
            long=data.get("long", False),
        )

    def effective(self, quick: bool) -> dict[str, Any]:
        """The settings, with those of `[quick]` on top when asked."""
        return {**self.settings, **(self.quick if quick else {})}

    def judge(self, result: Result) -> None:
        """Fills `result.verdicts`: every bar against every figure that its glob names."""
        for bar in self.bars:
            named = [f for key, f in result.figures.items() if fnmatch.fnmatchcase(key, bar.figures)]
            if not named:
                why = "not measured in the quick run" if result.quick else "not measured"
                result.verdicts.append(Verdict(bar.what, bar.text(), "", "-", why, 0.0))
            for f in named:
                result.verdicts.append(
                    Verdict(bar.what, bar.text(), f.label, f.text(), _verdict(bar, f), bar.strain(f.value))
                )


def _verdict(bar: Bar, figure: Figure) -> str:
    if bar.holds(figure.value):
        return "met"
    if figure.best is not None and bar.holds(figure.best):
        return "missed (met by the minimum)"
    return "missed"


def unit_suffix(unit: str) -> str:
    """The unit as it is written after a number."""
    return {"x": "x", "": ""}.get(unit, f" {unit}")


def number(value: float) -> str:
    """Three significant digits, thousands separated, no exponent in the usual range."""
    size = abs(value)
    if value == int(value) and size < 1e15:
        return f"{int(value):,}"
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 0.01:
        return f"{value:.2f}"
    return f"{value:.2g}"


def count_name(n: int) -> str:
    """100, 10k, 1M, 100M."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if n >= unit and n % unit == 0:
            return f"{n // unit}{name}"
    return f"{n:,}"
