"""The record of Spark's benchmarks, from which docs/engines/spark.md shows its figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import blocks, machine
from benchmarks.isolation import isolated
from benchmarks.model import ROOT
from benchmarks.report import markdown
from benchmarks.storage import load_record, save_record, today
from benchmarks.units import write_bytes, write_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(__file__).with_name("record.json")
PAGE = ROOT / "docs" / "engines" / "spark.md"
PARTS = ["build", "contains", "joins", "duplicates"]
#: Names of what is compared.
OWN, SAME, BLOCKED = "Spark's own", "ours, the same bits", 'ours, kind="bloom"'
PLAIN, RUNTIME_FILTER, BLOOM_JOIN = "shuffle join", "Spark's runtime filter", "bloom_join"
DROP, DEDUPLICATE = "dropDuplicates", "deduplicate"
#: Tables with duplicates.
TABLES = {"longs": "consecutive longs", "random": "random longs", "texts": "texts of 32 letters"}
Figures = dict[str, Any]


def load() -> Figures:
    """The record, empty if nothing was measured yet."""
    return load_record(FILE)


def measure(name: str, part: str = "") -> Iterator[str]:
    """Measure the parts of a table, save them, and yield their lines."""
    if name == "digits":
        from benchmarks.engines import digits

        figures = isolated("benchmarks.engines.digits:measure", {})
        _save("digits", figures)
        yield from digits.describe(figures)
    elif name == "spark":
        from benchmarks.engines import spark

        for one in [part] if part else PARTS:
            figures = isolated("benchmarks.engines.spark:measure", {"part": one})
            _save(one, figures)
            yield from spark.describe(one, figures)
    else:
        raise SystemExit(f"only spark and digits are recorded, not {name}")


def _save(name: str, figures: Figures) -> None:
    described = machine.describe()
    kept = {key: described[key] for key in ("cpu", "cores", "memory_gib", "python", "commit")}
    kept["load_average_at_end"] = described["load_average_at_start"]
    save_record(FILE, load() | {name: {"date": today(), "machine": kept, "figures": figures}})


def list_times(record: Figures) -> str:
    """The table of builds, lookups and joins, each beside Spark's own."""
    rows = []
    for part, what in (("build", "build of 10M longs"), ("contains", "lookups of 20M longs")):
        runs = record[part]["figures"]["runs"]
        rows += [[f"{what}, {name}", *_write_pair(runs[OWN], runs[name])] for name in (SAME, BLOCKED)]
    for share, runs in record["joins"]["figures"]["shares"].items():
        what = f"join of 20M x 100,000 rows, {share} match, beside"
        rows += [
            [f"{what} {base}", *_write_pair(runs[base], runs[BLOOM_JOIN])] for base in (PLAIN, RUNTIME_FILTER)
        ]
    return markdown(["what", "Spark", "Fullbloom", "ratio"], rows)


def _write_pair(own: Figures, mine: Figures) -> list[str]:
    # The ratio of each turn, which a change of the machine's speed between turns does not change.
    ratio = mine["ratio"] / own["ratio"]
    return [write_seconds(own["seconds"]), write_seconds(mine["seconds"]), f"{ratio:.2f}"]


def list_duplicates(record: Figures) -> str:
    """The table of duplicates."""
    rows = []
    for name, runs in record["duplicates"]["figures"]["tables"].items():
        own, mine = runs[DROP], runs[DEDUPLICATE]
        rows.append(
            [
                f"20M {TABLES[name]}, 1 % repeat",
                f"{write_bytes(own['shuffled'])}, {write_seconds(own['seconds'])}",
                f"{write_bytes(mine['shuffled'])}, {write_seconds(mine['seconds'])}",
                f"{mine['shuffled'] / own['shuffled']:.2f}",
            ]
        )
    return markdown(["what", "`dropDuplicates`", "`deduplicate`", "ratio of bytes"], rows)


def list_digits(record: Figures) -> str:
    """The table of other ways to send digits."""
    figures = record["digits"]["figures"]
    own = record["duplicates"]["figures"]["tables"]["random"][DROP]["shuffled"]
    rows = [
        [name, write_bytes(nbytes), f"{8 * nbytes / figures['rows']:.1f}", f"{nbytes / own:.2f}"]
        for name, nbytes in figures["ways"].items()
    ]
    return markdown(["digits of 20M random longs", "bytes", "bits per row", "of `dropDuplicates`"], rows)


def describe_machine(record: Figures) -> str:
    """When and where the parts were measured."""
    seen = record["build"]["machine"]
    dates = sorted({one["date"] for one in record.values()})
    period = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    return (
        f"`python -m benchmarks.engines spark digits --record`, {period}, "
        f"`local[2]`, {seen['cpu']}, {seen['cores']} cores, {seen['memory_gib']:.0f} GiB, {seen['python']}."
    )


BLOCKS = {
    "engine spark": lambda record: "\n\n".join([list_times(record), describe_machine(record)]),
    "engine duplicates": list_duplicates,
    "engine digits": list_digits,
}


def render(text: str, record: Figures) -> str:
    """The page with the figures of the record."""
    for name, content in BLOCKS.items():
        text = blocks.replace_block(text, name, content(record))
    return text


def write() -> None:
    """Write the page."""
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8"), load()), encoding="utf-8")
