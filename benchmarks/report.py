"""Writes results: to the terminal, to records, and into README.md and pages of docs/.

`record/` has one record per release: `unreleased.json` until the release, which renames it to
`VERSION.json`. A record is a list of runs; a newer run of a benchmark replaces the older one in the record.
`python -m benchmarks.report` refreshes the pages from the records; with `--check` it writes nothing and exits
with 1 if a page is out of date. Each benchmark is shown from its newest run.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.highlights import COLUMNS, highlights
from benchmarks.model import HERE, ORDER, ROOT, Definition, Result, Table, Verdict

if TYPE_CHECKING:
    from pathlib import Path

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
README, PAGE = ROOT / "README.md", ROOT / "docs" / "benchmarks.md"
# Pages that explain what a benchmark measured: its tables are between the marks, on a page written by hand.
EXPLAINED = {"base-hashes": ROOT / "docs" / "explanation" / "base-hashes.md"}
# Pages of their own: what they are of, and which benchmarks.
APART = {
    "commands": ("the command line", {"dedup", "records"}),
    "structures": (
        "the other structures",
        {"mutable", "static", "static-percent", "maps", "exact", "reconcile", "bank", "large-build"},
    ),
}
Shown = list[tuple[Result, dict[str, Any]]]


def markdown(columns: list[str], rows: list[list[str]]) -> str:
    """A Markdown table: first column left, the others right."""
    rule = [":--"] + ["--:"] * (len(columns) - 1)
    lines = [columns, rule, *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def columns_of_text(columns: list[str], rows: list[list[str]]) -> str:
    """The same for a terminal."""
    lines = [columns, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "\n".join(
        "  ".join(
            c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def bar_rows(verdicts: list[Verdict]) -> list[list[str]]:
    """One row a bar: its hardest figure, and how many of its figures met it."""
    rows = []
    for what, bar in dict.fromkeys((v.what, v.bar) for v in verdicts):
        group = [v for v in verdicts if (v.what, v.bar) == (what, bar)]
        worst = max(group, key=lambda v: v.strain)
        met = sum(v.verdict == "met" for v in group)
        verdict = worst.verdict if len(group) == 1 else f"{worst.verdict} ({met} of {len(group)} met)"
        measured = f"{worst.measured}, {worst.label}" if worst.label else worst.measured
        rows.append([what, worst.bar, measured, verdict])
    return rows


BAR_COLUMNS = ["what", "bar", "measured (the hardest of its cases)", "verdict"]


def as_text(result: Result) -> str:
    """One result for the terminal."""
    parts = [f"\n{result.name}: {result.title} ({result.seconds:g} s{', quick' if result.quick else ''})"]
    for table in result.tables:
        parts.append(f"\n{table.title}\n" + columns_of_text(table.columns, table.rows))
        parts += [table.note] if table.note else []
    parts += [f"note: {line}" for line in result.notes]
    if result.verdicts:
        rows = [
            [v.what, v.bar, f"{v.measured}, {v.label}" if v.label else v.measured, v.verdict]
            for v in result.verdicts
        ]
        parts.append("\n" + columns_of_text([*BAR_COLUMNS[:2], "measured", "verdict"], rows))
    return "\n".join(parts)


def summary(results: list[Result]) -> str:
    """All bars of a run, one line each, for the terminal."""
    rows = bar_rows([v for r in results for v in r.verdicts])
    seconds = sum(r.seconds for r in results)
    return f"\nall bars, {seconds:.0f} s\n" + columns_of_text(BAR_COLUMNS, rows)


def machine_line(facts: dict[str, Any]) -> str:
    """The machine in one line."""
    return (
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, {facts['kernel']}, "
        f"huge pages {facts['huge_pages']}, {facts['python']}, {facts['simd']}, commit {facts['commit']}"
    )


def versions_line(facts: dict[str, Any]) -> str:
    """Who was measured, with versions."""
    programs = [facts[name] for name in ("sort", "awk") if facts.get(name)]
    return ", ".join([*(f"{name} {version}" for name, version in facts["versions"].items()), *programs])


def _tables(tables: list[Table]) -> list[str]:
    parts = []
    for table in tables:
        note = f"\n\n{table.note}" if table.note else ""
        parts.append(f"**{table.title}**\n\n{markdown(table.columns, table.rows)}{note}")
    return parts


def section(result: Result, facts: dict[str, Any], date: str) -> str:
    """One benchmark as a section of a page."""
    parts = [
        f"## {result.title}",
        f"`python -m benchmarks --only {result.name}`, {date}, commit {facts['commit']}.",
    ]
    parts += [Definition.load(result.name).how.replace("\n", " ")]
    if result.verdicts:
        parts.append(markdown(BAR_COLUMNS, bar_rows(result.verdicts)))
    parts += _tables(result.tables)
    if result.notes:
        parts.append("\n".join(f"- {line}" for line in result.notes))
    return "\n\n".join(parts)


def record_page(runs: list[dict[str, Any]]) -> str:
    """The readable half of a record."""
    parts = []
    for run in runs:
        facts, results = run["machine"], [Result.from_json(item) for item in run["results"]]
        parts += [f"# Run of {run['date']}", machine_line(facts), versions_line(facts)]
        parts.append(f"Load average at the start: {facts['load_average_at_start']}.")
        if verdicts := [v for r in results for v in r.verdicts]:
            parts.append(markdown(BAR_COLUMNS, bar_rows(verdicts)))
        parts += [section(result, facts, run["date"]) for result in results]
    return "\n\n".join(parts) + "\n"


def record(facts: dict[str, Any], results: list[Result], date: str) -> str:
    """Adds a run to the record of the next release, in which it replaces older results of its benchmarks."""
    target = HERE / "record" / "unreleased.json"
    runs = json.loads(target.read_text())["runs"] if target.exists() else []
    names = {result.name for result in results}
    for run in runs:
        run["results"] = [item for item in run["results"] if item["name"] not in names]
    runs = [run for run in runs if run["results"]]
    runs.append({"date": date, "machine": facts, "results": [result.to_json() for result in results]})
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({"runs": runs}, default=float, separators=(",", ":")) + "\n")
    target.with_suffix(".md").write_text(record_page(runs))
    return str(target.relative_to(ROOT))


def newest() -> Shown:
    """Each benchmark with its newest run."""
    records = [json.loads(path.read_text())["runs"] for path in (HERE / "record").glob("*.json")]
    runs = sorted((run for runs in records for run in runs), key=lambda run: run["date"])
    found = {item["name"]: (Result.from_json(item), run) for run in runs for item in run["results"]}
    return [found[name] for name in ORDER if name in found]


def readme_part(shown: Shown) -> str:
    """What README shows: six lines, and where the others are."""
    facts = shown[-1][1]["machine"]
    return (
        markdown(COLUMNS, highlights({result.name: result for result, _ in shown}))
        + f"\n\nMedians of `make bench` on {facts['cpu']}, one core, {facts['python']}, "
        + f"{shown[-1][1]['date'].partition(' ')[0]}: every filter in one interleaved run. "
        + "[All figures, losses included](docs/benchmarks.md)."
    )


def docs_part(shown: Shown) -> str:
    """What docs/benchmarks.md shows: all bars, and the sections that are not of commands."""
    facts = shown[-1][1]["machine"]
    verdicts = [v for result, _ in shown for v in result.verdicts]
    missed = sum(row[3].startswith("missed") for row in bar_rows(verdicts))
    parts = [machine_line(facts), versions_line(facts), f"Bars missed: {missed}."]
    parts.append(markdown(BAR_COLUMNS, bar_rows(verdicts)))
    links = [f"[{subject}](benchmarks-{name}.md)" for name, (subject, _) in APART.items()]
    parts.append(f"Pages of their own have {' and '.join(links)}.")
    apart = set(EXPLAINED).union(*(names for _, names in APART.values()))
    return "\n\n".join([*parts, *_sections(shown, {result.name for result, _ in shown} - apart)])


def _sections(shown: Shown, names: set[str]) -> list[str]:
    return [section(result, data["machine"], data["date"]) for result, data in shown if result.name in names]


def explained_part(result: Result, data: dict[str, Any]) -> str:
    """What a page that explains a benchmark shows: where and how it was measured, and the tables."""
    facts = data["machine"]
    command = f"`python -m benchmarks --only {result.name}`"
    measured = f"Measured by {command} on {facts['cpu']}, {facts['python']}, {data['date']}."
    return "\n\n".join([measured, *_tables(result.tables)])


def _between(text: str, part: str) -> str:
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{BEGIN} and {END} are missing")
    return f"{head}{BEGIN}\n{part}\n{END}{tail}"


def _pages() -> list[tuple[Path, str]]:
    shown = newest()
    if not shown:
        return []
    pages = []
    if README.exists() and BEGIN in README.read_text():
        pages.append((README, _between(README.read_text(), readme_part(shown))))
    else:
        print(f"README.md has no line {BEGIN}; its table is not written", file=sys.stderr)
    parts = [(PAGE, "Benchmarks", docs_part(shown))]
    for name, (subject, names) in APART.items():
        path = PAGE.with_name(f"benchmarks-{name}.md")
        parts.append((path, f"Benchmarks of {subject}", "\n\n".join(_sections(shown, names))))
    for path, title, part in parts:
        start = f"# {title}\n\nWritten by `make bench`; edits between the marks are lost.\n\n{BEGIN}\n{END}\n"
        pages.append((path, _between(path.read_text() if path.exists() else start, part)))
    for result, data in shown:
        if (page := EXPLAINED.get(result.name)) is not None:
            pages.append((page, _between(page.read_text(), explained_part(result, data))))
    return pages


def publish() -> list[str]:
    """Writes the pages from the records; returns what was written."""
    written = []
    for path, text in _pages():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        written.append(str(path.relative_to(ROOT)))
    return written


def stale() -> list[str]:
    """The pages that do not show the newest runs."""
    return [
        str(path.relative_to(ROOT))
        for path, text in _pages()
        if not path.exists() or path.read_text() != text
    ]


def main() -> int:
    """See the top of this file."""
    if "--check" in sys.argv[1:]:
        old = stale()
        for name in old:
            print(f"{name} does not show the newest runs; run `python -m benchmarks.report`", file=sys.stderr)
        return 1 if old else 0
    for name in publish():
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
