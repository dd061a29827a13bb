"""The figures of docs/scale.md: everything between its marks, and its plots, is written from the record."""

from __future__ import annotations

from typing import Any

from benchmarks import blocks
from benchmarks.model import ROOT
from benchmarks.report import markdown
from benchmarks.scale import model, plan, plots
from benchmarks.scale.record import FITTED, PLANNED, PREDICTED
from benchmarks.units import write_bytes, write_seconds

PAGE = ROOT / "docs" / "scale.md"
IMAGES = ROOT / "docs" / "images"
Record = dict[str, Any]
#: What the page calls the parts of the record.
NOUNS = {
    "filters": "filters",
    "largest": "the filter of a billion keys",
    "probe": "accesses to memory",
    "cores": "all cores",
    "route": "routing",
    "shuffle": "shuffles",
    "simulation": "their simulation",
    "sync": "syncs",
}
#: The plan with more machines than the fewest.
FACTOR = 4


def write_hours(hours: float) -> str:
    """Hours, and minutes or seconds of less."""
    if hours >= 1:
        return f"{hours:.1f} h"
    return f"{hours * 60:.0f} min" if hours >= 1 / 20 else f"{hours * 3600:.0f} s"


def write_power(count: float) -> str:
    """1e9 rather than 1,000,000,000."""
    return f"{count:.0e}".replace("e+0", "e").replace("e+", "e")


def list_filters(record: Record) -> str:
    """The runs of filters."""
    rows = [
        [
            write_power(row["keys"]),
            write_seconds(row["build_seconds"]),
            f"{row['build_seconds'] * 1e9 / row['keys']:.1f} ns",
            f"{row['query_ns']:.1f} ns",
            write_bytes(row["filter_bytes"]),
            write_seconds(row["merge_seconds"]),
            f"{row['false_positives']:.2%}",
        ]
        for row in record["filters"] + record["largest"]
    ]
    return markdown(["keys", "build", "per key", "lookup", "bytes", "merge", "false positives"], rows)


def list_traffic(record: Record) -> str:
    """What is sent over a network."""
    files = {row["keys"]: row["container_bytes"] for row in record["filters"] + record["largest"]}
    syncs = {row["keys"]: row["sync_bytes"] for row in record["sync"]}
    rows = []
    for row in record["shuffle"]:
        count, digits = row["rows"], model.sum_rounds(row, "sent_bytes", "answered_bytes")
        sync = write_bytes(syncs[count]) if count in syncs else "not run"
        rows.append(
            [
                write_power(count),
                write_bytes(files[count]),
                sync,
                write_bytes(digits),
                f"{digits / count:.2f} B",
                write_bytes(plan.HASH_BYTES * count),
                write_bytes(plan.ROW_BYTES * count),
            ]
        )
    head = ["keys", "the file", "a sync", "duplicates: hash sets", "per row", "64-bit hashes", "whole rows"]
    return markdown(head, rows)


def list_comparisons(record: Record) -> str:
    """Predictions beside the run."""

    def write(value: float, unit: str) -> str:
        return {"B": write_bytes, "s": write_seconds}.get(unit, lambda ns: f"{ns:.1f} ns")(value)

    rows = [
        [one.what, write(one.predicted, one.unit), write(one.measured, one.unit), f"{one.error:+.1%}"]
        for one in model.compare(record, FITTED)
    ]
    return markdown([f"{write_power(PREDICTED)} keys", "predicted", "measured", "off by"], rows)


def list_plans(record: Record) -> str:
    """The plan of a filter."""
    plans: list[plan.Plan] = []
    for machine in plan.describe_machines(record):
        fewest = plan.plan_filter(record, PLANNED, machine)
        plans += [fewest, plan.plan_filter(record, PLANNED, machine, fewest.machines * FACTOR)]
    rows = [
        [
            _write_machine(one.machine),
            f"{one.machines}",
            write_bytes(one.bytes_per_machine),
            write_bytes(one.shuffle_bytes),
            write_hours(one.read_hours),
            write_hours(one.network_hours),
            write_hours(one.build_hours),
            write_hours(one.hours),
        ]
        for one in plans
    ]
    head = ["machine", "machines", "filter on each", "shuffled", "reading", "shuffle", "adding", "in all"]
    return markdown(head, rows)


def list_duplicates(record: Record) -> str:
    """The plan of finding duplicates."""
    rows = []
    for machine in plan.describe_machines(record):
        machines = plan.plan_filter(record, PLANNED, machine).machines
        one = plan.plan_duplicates(record, PLANNED, machine, machines)
        rows.append(
            [
                _write_machine(machine),
                f"{one.machines}",
                write_bytes(one.bytes_per_core),
                write_bytes(one.digits_bytes),
                write_bytes(one.filter_bytes),
                write_bytes(one.hashes_bytes),
                write_bytes(one.rows_bytes),
                f"{one.core_hours:.0f} h",
                write_hours(one.hours),
            ]
        )
    head = [
        "machine",
        "machines",
        "memory per core",
        "hash sets",
        "filter on each",
        "64-bit hashes",
        "whole rows",
        "core hours",
        "in all",
    ]
    return markdown(head, rows)


def _write_machine(machine: plan.Machine) -> str:
    return f"{machine.cores} cores, {machine.memory_gib:.0f} GiB, {machine.gbit:g} Gbit/s"


def describe(record: Record) -> str:
    """Machine and dates of the parts, by machine."""
    parts: dict[str, list[str]] = {}
    for part in NOUNS:
        seen = record["machines"][part]
        machine = (
            f"{seen['cpu']}, {seen['cores']} cores, {seen['memory_gib']:.0f} GiB, {seen['simd']}, "
            f"{seen['python']}, one thread"
        )
        parts.setdefault(machine, []).append(part)
    lines = []
    for machine, names in parts.items():
        dates = " and ".join(sorted({record["dates"][name] for name in names}))
        what = "All parts" if len(parts) == 1 else ", ".join(NOUNS[name] for name in names)
        lines.append(f"* {what[0].upper()}{what[1:]}: {dates}, {machine}.")
    return "\n".join(lines)


def describe_fit(record: Record) -> str:
    """The fitted factors."""
    fitted = plan.fit_record(record)
    slower = plan.compute_slowdown(record)
    return markdown(
        ["cost", "fixed", "factor"],
        [
            ["add a key", f"{fitted.build.base:.2f} ns", f"{fitted.build.factor:.2f} random writes"],
            ["look up a key", f"{fitted.query.base:.2f} ns", f"{fitted.query.factor:.2f} random reads"],
            [
                "merge a byte",
                f"{fitted.merge.base:.3f} ns",
                f"{fitted.merge.factor:.2f} bytes of numpy.bitwise_or",
            ],
            ["route a key to its machine", f"{record['route']['ns']:.1f} ns", "-"],
            ["any of these, all cores at once", "-", f"{slower:.2f} times as long"],
            ["bytes of a filter", f"{fitted.header} B of header", f"{fitted.bits_per_key:.3f} bits per key"],
        ],
    )


BLOCKS = {
    "scale machine": describe,
    "scale filters": list_filters,
    "scale traffic": list_traffic,
    "scale fit": describe_fit,
    "scale prediction": list_comparisons,
    "scale plan": list_plans,
    "scale duplicates": list_duplicates,
}


def render(text: str, record: Record) -> str:
    """The page with the figures of the record."""
    for name, content in BLOCKS.items():
        text = blocks.replace_block(text, name, content(record))
    return text


def write(record: Record) -> None:
    """Write the page and its plots."""
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8"), record), encoding="utf-8")
    for name, draw in plots.PLOTS.items():
        (IMAGES / f"{name}.svg").write_text(draw(record), encoding="utf-8")
