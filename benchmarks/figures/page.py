"""docs/figures.md, written from the record."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from benchmarks.figures import grid
from benchmarks.figures.model import MOST_ERRORS, Row
from benchmarks.model import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.figures.grid import Point
    from benchmarks.figures.model import Subject
    from benchmarks.figures.record import Record

PAGE = ROOT / "docs" / "figures.md"
WIDTH = 120

HEAD = """# Figures of the literature

Papers, encyclopedias and tutorials about Bloom filters print figures. This page prints them beside what
Fullbloom's filters do. `make figures` measures everything again and writes the page, its plots and
`benchmarks/figures/record.json`; a test measures some rows, chosen at random, with other keys, and fails if
one of them drifts.

## How to read it

* **measured**: a mean, with its standard error after ±. A figure without ± has no chance in it: a size or a
  formula.
* **deviation**: the difference between measured and published in standard errors. The error includes that of
  a published simulation and the rounding of the published digits. `=` means equal in all published digits.
* A row that differs by chance, without a reason, is measured again with four times the filters, and the page
  shows the second measurement.
* Where a text has only a formula, it is printed behind its value for these parameters.
* **law**: what `fullbloom.theory` computes for exactly this filter.
* A row that differs by more than three standard errors, or in a digit, has a number, and the reason is below
  its table.
* A row of a published bound, or of a figure that depends on a language or a machine, has a reason as well.
"""


def render(record: Record, subjects: Sequence[Subject]) -> str:
    """The page."""
    parts = [
        HEAD,
        _summarize(record),
        "![Deviations of all rows, and the normal curve](images/figures-deviations.svg)",
    ]
    parts += [_render_subject(subject, record.rows[subject.name]) for subject in subjects]
    parts += [_render_grid(record), _render_sizes(record), _render_speed(record), MISSING]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _summarize(record: Record) -> str:
    rows = [row for some in record.rows.values() for row in some]
    exact = [row for row in rows if row.deviation is None]
    drawn = [row for row in rows if row.deviation is not None]
    same, near = (sum(row.agrees for row in some) for some in (exact, drawn))
    beyond = [value for value in record.chances if abs(value) > MOST_ERRORS]
    spread = math.sqrt(sum(value**2 for value in record.chances) / len(record.chances))
    machine = record.machine
    repeated = len(record.repeated)
    again = f"{repeated or 'none'} of them {'was' if repeated == 1 else 'were'} measured again"
    return wrap(
        f"{len(rows)} figures. {len(exact)} are without chance: {same} of them are "
        f"equal, the others have a reason. {len(drawn)} are measured: {near} of them "
        f"are within three standard errors, the others have a reason. Of the {len(record.chances)} measured "
        f"figures with no reason to differ, {len(beyond)} differ by more than three standard errors (chance "
        f"alone: {len(record.chances) * 0.0027:.1f}), and the root mean square of their deviations is "
        f"{spread:.2f}; {again}. Measured in {record.seconds:.0f} s with seed {record.seed} on "
        f"{machine['cpu']}, {machine['python']}, {record.date}."
    )


def wrap(text: str, indent: str = "") -> str:
    """Lines of the width of the repository."""
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def format_number(value: float) -> str:
    """A number in at most seven digits."""
    if value == int(value) and abs(value) < 1e12:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 1e-4 else f"{value:.3g}"


def format_measured(row: Row) -> str:
    """The mean and its error."""
    if row.error == 0.0:
        digits = max(4, len(row.published.lower().partition("e")[0].lstrip("0.").replace(".", "")))
        if row.measured == int(row.measured) and abs(row.measured) < 1e12:
            return f"{int(row.measured):,}"
        return f"{row.measured:.{digits}g}" if abs(row.measured) < 10**digits else f"{row.measured:,.0f}"
    places = max(0, 1 - math.floor(math.log10(row.error)))
    if abs(row.measured) < 1e-3 and row.error < 1e-3:
        power = math.floor(math.log10(row.measured)) if row.measured > 0 else -6
        scaled = 10.0**-power
        places = max(0, places + power)
        return f"({row.measured * scaled:.{places}f} ± {row.error * scaled:.{places}f})e{power}"
    return f"{row.measured:.{places}f} ± {row.error:.{places}f}"


def format_deviation(row: Row, number: int | None) -> str:
    """Standard errors, or whether the digits are equal; with the number of the reason."""
    mark = "" if number is None else f" [{number}]"
    if row.deviation is None:
        return ("=" if row.agrees else "differs") + mark
    return f"{row.deviation:+.1f}" + mark


def number_reasons(rows: Sequence[Row]) -> dict[str, int]:
    """Numbers of the reasons that are needed, in the order of the table."""
    reasons: dict[str, int] = {}
    for row in rows:
        if row.why and not row.agrees:
            reasons.setdefault(row.why, len(reasons) + 1)
    return reasons


def format_table(head: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rows])


def _render_subject(subject: Subject, rows: Sequence[Row]) -> str:
    reasons = number_reasons(rows)
    cells = [
        [
            row.what,
            row.parameters,
            f"{row.published} = {row.formula}" if row.formula else row.published,
            format_measured(row),
            format_deviation(row, None if row.agrees else reasons.get(row.why)),
            "" if row.law is None else format_number(row.law),
            row.source,
        ]
        for row in rows
    ]
    parts = [f"## {subject.title}", wrap(" ".join(subject.text.split()))]
    parts.append(
        format_table(["figure", "parameters", "published", "measured", "deviation", "law", "source"], cells)
    )
    if reasons:
        parts.append(
            "\n".join(wrap(f"{number}. {why[0].upper()}{why[1:]}.", "   ") for why, number in reasons.items())
        )
    return "\n\n".join(parts)


def _render_grid(record: Record) -> str:
    found: dict[tuple[int, int], Point] = {
        (point.num_bits // point.items, point.num_hashes): point for point in record.rates
    }
    rows = []
    for per_key in grid.BITS_PER_KEY:
        cells = [str(per_key)]
        for hashes in grid.HASHES:
            point = found.get((per_key, hashes))
            cells.append("" if point is None else f"{point.measured:.3g}")
        rows.append(cells)
    worst = max(record.rates, key=lambda point: abs(point.deviation))
    spread = math.sqrt(sum(point.deviation**2 for point in record.rates) / len(record.rates))
    text = (
        f"The table that encyclopedias and the essay print, measured: the share of {grid.PROBES:,} absent "
        "keys that filters of "
        f"{grid.ITEMS:,} keys find, mean of {grid.FILTERS} filters. Cells whose law is below "
        f"{grid.LEAST_RATE:g} are left out. Of "
        f"{len(record.rates)} cells, the largest deviation from the law is {worst.deviation:+.1f} "
        "standard errors, at m/n = "
        f"{worst.num_bits // worst.items} and k = {worst.num_hashes}; the root mean square is "
        f"{spread:.2f}. The law itself, for "
        "lower rates as well, is in [rates by bits per key](explanation/rates.md)."
    )
    head = ["m/n", *(f"k = {hashes}" for hashes in grid.HASHES)]
    picture = (
        "![The rate by k, for several m/n: curves of the law, measured points](images/figures-rates.svg)"
    )
    return "\n\n".join(
        ["## The rate by bits per key and hashes", wrap(text), format_table(head, rows), picture]
    )


def _render_sizes(record: Record) -> str:
    worst = max(record.sizes, key=lambda point: abs(point.deviation))
    text = (
        "The plot of encyclopedias: the rate p as a function of the number of keys n and of the size m, "
        "with the best number of "
        f"hashes. Curves are the law, points are {len(record.sizes)} measured rates; the largest "
        "deviation is "
        f"{worst.deviation:+.1f} standard errors, at m = {worst.num_bits:,} and n = {worst.items:,}."
    )
    picture = (
        "![The rate by keys, for several sizes: curves of the law, measured points](images/figures-sizes.svg)"
    )
    return "\n\n".join(["## The rate by keys and size", wrap(text), picture])


def _render_speed(record: Record) -> str:
    times = record.speed
    parts = ["## Throughput on this machine"]
    parts.append(
        wrap(
            "The test of the essay: 100,000 short texts are added, and 100,000 others looked up, at 1 %. "
            "Times are in ns per key, the least of seven runs on one core, with a module compiled as "
            "`make build` does; wheels are compiled with more optimisation. Absolute times depend on the "
            "machine; "
            "[benchmarks](benchmarks.md) compares packages with care. The other packages are there if "
            "they are "
            "installed."
        )
    )
    head = ["filter", "`add`", "`update`", "`in`", "`contains_many`", "M lookups/s", "rate", "missed"]
    rows = [
        [
            row["name"],
            f"{row['add']:.0f}",
            f"{row['update']:.0f}",
            f"{row['contains']:.0f}",
            _or_dash(row["contains_many"]),
            f"{1000 / (row['contains_many'] or row['contains']):.0f}",
            f"{row['rate']:.4f}",
            str(row["missed"]),
        ]
        for row in times["throughput"]
    ]
    parts.append(format_table(head, rows))
    parts.append(
        wrap(
            "The base hashes, ns per key with the reading of the column, least of five runs. Texts say "
            "that cryptographic hashes waste "
            "cycles; [speed of the base hashes](explanation/base-hashes.md) says when to choose which."
        )
    )
    columns = list(next(iter(times["hashes"].values())))
    hashes = [
        [name, *(f"{found[column]:.1f}" for column in columns)] for name, found in times["hashes"].items()
    ]
    parts.append(format_table(["hash", *columns], hashes))
    if times["redis"] is None:
        parts.append(
            "The service design's 250,000 insertions a second with pipelining: not measured, no Redis "
            "server is installed."
        )
    else:
        parts.append(
            wrap(
                "The service design reports 250,000 insertions a second into a filter in Redis with "
                "pipelining (published). "
                f"`RedisBloomFilter.update` made {times['redis'] / 1e6:.1f} million a second here, "
                "in one run, with a server on the same machine."
            )
        )
    return "\n\n".join(parts)


def _or_dash(value: Any) -> str:
    return "-" if value is None else f"{value:.0f}"


MISSING = """## Figures that are elsewhere, or nowhere

* Rates of 1e-11 and below (count thresholds of 3 and more) are only computed: no machine can measure them.
* The bytes of foreign formats (Bitcoin, Ethereum, Spark, Guava, RedisBloom, Parquet) are golden files of the
  tests, since they are equal or wrong: [formats](formats.md).
* The latency of Akamai's disks fell by 24 %, and CRLite's file had 10 MB, then 0.6 MB a day: figures of disks
  and traffic that we do not have. [Cache admission](applications/admission.md) measures other traces.
* Fan et al. (2014) compare filters of 192 MB, some of them other programs. Ours are measured above on smaller
  ones, whose rates are the same.
* Examples of ten bits (apple, banana and cherry) are in [how a filter works](explanation/how-it-works.md).
* Gigabytes of the service design were mebibytes (11.43 for 11.98 MB); its k of 6 came from cutting a
  fraction off. The formulas above are right."""
