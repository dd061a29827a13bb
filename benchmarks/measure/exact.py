"""Structures that answer without a mistake: cascades of two sets, and zones of few whole numbers."""

from __future__ import annotations

from typing import Any

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import Definition, Figure, Result, Table, number

ZONE_OPERATIONS = ("add_many", "contains_many (hit)", "contains_many (miss)")


def run(definition: Definition, quick: bool) -> Result:
    """One fresh process for cascades, one for zones."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    cpu = {clock.one_cpu()}
    order = {name: settings[name] for name in ("included", "excluded", "rounds")}
    _report_cascade(result, order, isolated("benchmarks.measure.exact:cascade", order, cpu))
    order = {name: settings[name] for name in ("zones", "asked", "rounds")}
    _report_zones(result, isolated("benchmarks.measure.exact:zones", order, cpu))
    return result


def cascade(included: int, excluded: int, rounds: int) -> dict[str, Any]:
    """Seconds of builds, ns per lookup, bits, bits by the formula, keys classified wrongly."""
    import numpy as np

    from fullbloom import theory

    keys = np.random.default_rng(included).integers(-(1 << 62), 1 << 62, included + excluded, dtype=np.int64)
    keys = keys * 2 + (np.arange(len(keys)) < included)
    here, there = keys[:included], keys[included:]
    builds, looks, wrong = [], [], 0
    for _ in range(rounds):
        kept: list[Any] = []
        with clock.no_gc():
            builds.append(_build(kept, here, there))
            looks.append(clock.wall_and_cpu(lambda: kept[0].includes_many(keys), len(keys))[1])  # noqa: B023
        wrong = kept[0].verify(here, there)
    instance = kept[0]
    law = theory.cascade_bits(len(np.unique(here)), len(np.unique(there)))
    return {
        "build": builds,
        "look": looks,
        "bits": instance.num_bits,
        "law": law,
        "wrong": wrong,
        "levels": instance.num_levels,
        "nbytes": instance.nbytes,
    }


def _build(kept: list[Any], here: Any, there: Any) -> float:
    from fullbloom import FilterCascade

    return clock.wall_and_cpu(lambda: kept.append(FilterCascade.build(here, there)), 1)[1] / 1e9


def zones(zones: list[int], asked: int, rounds: int) -> dict[str, Any]:
    """By kind and zone: ns per key of batches, bits, false positives, microseconds to list the members."""
    import numpy as np

    from fullbloom import ZoneFilter

    draw = np.random.default_rng(7)
    answer: dict[str, Any] = {}
    for counting in (False, True):
        for zone in zones:
            members = draw.choice(1 << 32, zone, replace=False).astype(np.int64)
            absent = draw.integers(0, 1 << 32, asked, dtype=np.int64)
            absent = absent[~np.isin(absent, members)]
            hits = np.resize(members, asked)
            row: dict[str, Any] = {op: [] for op in ZONE_OPERATIONS} | {"list": [], "wrong": 0}
            for _ in range(rounds):
                f = ZoneFilter(zone, counting=counting)
                _zone(row, f, members, hits, absent)
            row["wrong"] = int(np.count_nonzero(f.contains_many(absent)))
            if counting and sorted(f.decode()) != sorted(members.tolist()):
                row["wrong"] += zone
            row["nbytes"] = f.nbytes
            answer[f"{'counting ' if counting else ''}{zone}"] = row
    return answer


def _zone(row: dict[str, Any], f: Any, members: Any, hits: Any, absent: Any) -> None:
    """One sample of each operation of an empty structure."""
    add, hit, miss = ZONE_OPERATIONS
    with clock.no_gc():
        row[add].append(clock.wall(lambda: f.add_many(members), len(members)))
        row[hit].append(clock.wall(lambda: f.contains_many(hits), len(hits)))
        row[miss].append(clock.wall(lambda: f.contains_many(absent), len(absent)))
        if f.counting:
            row["list"].append(clock.wall(f.decode, 1000))


def _report_cascade(result: Result, order: dict[str, int], answer: dict[str, Any]) -> None:
    build, look = answer["build"], answer["look"]
    distance = 100 * abs(answer["bits"] / answer["law"] - 1)
    label = f"{order['included']:,} against {order['excluded']:,}"
    result.figures |= {
        "cascade/distance": Figure(round(distance, 3), "%", label),
        "cascade/wrong": Figure(answer["wrong"], "keys", label),
        "cascade/build/s": Figure(clock.median(build), "s", label, min(build)),
        "cascade/look/ns": Figure(clock.median(look), "ns", label, min(look)),
    }
    cells = [
        label,
        f"{clock.median(build):.3f} ({min(build):.3f})",
        f"{number(clock.median(look))} ({number(min(look))})",
        str(answer["levels"]),
        f"{answer['bits']:,}",
        f"{answer['law']:,.0f}",
        f"{answer['wrong']:,}",
        f"{answer['nbytes']:,}",
    ]
    columns = [
        "keys",
        "build, s",
        "lookup, ns",
        "levels",
        "bits",
        "bits by the formula",
        "classified wrongly",
        "bytes",
    ]
    result.tables.append(Table("Cascade", columns, [cells], "median (minimum), CPU time"))
    result.raw["cascade"] = answer
    say("  ".join(cells))


def _report_zones(result: Result, answer: dict[str, Any]) -> None:
    rows = []
    for name, row in answer.items():
        result.figures[f"zone/{name}/wrong"] = Figure(row["wrong"], "keys", f"zone, {name}")
        cells = [name, f"{row['nbytes']:,}"]
        for op in ZONE_OPERATIONS:
            result.figures[f"zone/{name}/{op}/ns"] = Figure(
                clock.median(row[op]), "ns", f"{op}, zone, {name}", min(row[op])
            )
            cells.append(f"{number(clock.median(row[op]))} ({number(min(row[op]))})")
        listed = row["list"]
        cells.append(f"{number(clock.median(listed))} ({number(min(listed))})" if listed else "-")
        rows.append([*cells, f"{row['wrong']:,}"])
        say("  ".join(rows[-1]))
    columns = ["members", "bytes", *ZONE_OPERATIONS, "listing, us", "wrong"]
    note = "ns per key: median (minimum); listing: microseconds for all members"
    result.tables.append(Table("Zones of 32-bit integers", columns, rows, note))
    result.raw["zones"] = answer
