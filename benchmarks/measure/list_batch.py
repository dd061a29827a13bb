"""Batches of Python objects, ours and the rivals interleaved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks import clock, rivals
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import Definition, Figure, Result, Table, count_name, number

if TYPE_CHECKING:
    from collections.abc import Callable

HIT, MISS = "contains_many (hit)", "contains_many (miss)"
OPERATIONS = ("update", "add_many", HIT, MISS)
Samples = dict[str, dict[str, list[float]]]


def run(definition: Definition, quick: bool) -> Result:
    """One fresh process for each kind of key."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    for kind in settings["kinds"]:
        order = {k: settings[k] for k in ("keys", "slow_keys", "rounds", "fpr")}
        answer = isolated("benchmarks.measure.list_batch:worker", {"kind": kind, **order}, {clock.one_cpu()})
        result.notes += [line for line in answer["missing"] if line not in result.notes]
        _report(result, kind, settings["keys"], answer["samples"], answer["emulated"])
    return result


def worker(kind: str, keys: int, slow_keys: int, rounds: int, fpr: float) -> dict[str, Any]:
    """Samples of every filter and operation."""
    ready, missing = rivals.load()
    supply = {False: _supply(kind, keys), True: _supply(kind, slow_keys)}
    samples: Samples = {rival.name: {op: [] for op in OPERATIONS} for rival in ready}
    for round_ in range(rounds):
        for rival in clock.rotated(ready, round_):
            _one(samples[rival.name], rival, kind, fpr, supply[rival.slow])
    emulated = {rival.name: sorted(rival.emulated) for rival in ready}
    return {"samples": samples, "missing": missing, "emulated": emulated}


def _supply(kind: str, count: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    from benchmarks.keys import makers

    if kind != "numpy":
        return makers(kind, count)
    import numpy as np

    numbers = np.random.default_rng(count).integers(0, 1 << 59, 2 * count, dtype=np.int64) * 2
    return numbers[:count].copy, (lambda: numbers[count:] + 1)


def _one(into: dict[str, list[float]], rival: rivals.Rival, kind: str, fpr: float, supply: Any) -> None:
    members, absent = supply
    plain = "str" if kind == "str" else "int"
    unboxed = kind == "numpy" and rival.name != rivals.OURS
    first = None
    for op in OPERATIONS:
        keys = (absent if op == MISS else members)()
        if op == "add_many" and rival.add_many is None:
            continue
        if op in ("update", "add_many"):
            f = rival.make(len(keys), fpr)
            first = first or f
            call = (rival.update if op == "update" else rival.add_many or rival.update)(f, plain)
        else:
            call = rival.contains_many(first, plain)
        with clock.no_gc():
            if unboxed:
                into[op].append(clock.wall(lambda: call(keys.tolist()), len(keys)))  # noqa: B023
            else:
                into[op].append(clock.wall(lambda: call(keys), len(keys)))  # noqa: B023


def _report(result: Result, kind: str, count: int, samples: Samples, emulated: dict[str, list[str]]) -> None:
    ours = samples[rivals.OURS]
    rows = []
    for name, ops in samples.items():
        row = [name]
        for op in OPERATIONS:
            if not ops[op]:
                row.append("-")
                continue
            mid, low = clock.median(ops[op]), min(ops[op])
            mark = "~" if op.partition(" ")[0] in emulated[name] else ""
            ratio = "" if name == rivals.OURS else f", {mid / clock.median(ours[op]):.2f}x"
            row.append(f"{mark}{number(mid)} ({number(low)}){ratio}")
        rows.append(row)
        say(f"{kind}, {count_name(count)}: " + "  ".join(row))
    for op in OPERATIONS:
        _figures(result, kind, count, op, samples)
    what = "NumPy `int64` array" if kind == "numpy" else f"list of `{kind}`"
    columns = ["filter", *OPERATIONS]
    result.tables.append(
        Table(
            f"{what}, {count_name(count)} keys",
            columns,
            rows,
            "ns per key: median (minimum), time relative to ours",
        )
    )
    result.raw[kind] = samples


def _figures(result: Result, kind: str, count: int, op: str, samples: Samples) -> None:
    ours = samples[rivals.OURS][op]
    mid, low = clock.median(ours), min(ours)
    case = f"{op}, {kind}, {count_name(count)}"
    result.figures[f"{kind}/{op}/ns"] = Figure(mid, "ns", case, low)
    others = [(clock.median(ops[op]), min(ops[op]), name) for name, ops in samples.items() if ops[op]]
    others = [other for other in others if other[2] != rivals.OURS]
    if others:
        best = min(others)
        figure = Figure(best[0] / mid, "x", f"{case}, against {best[2]}", best[1] / low)
        result.figures[f"{kind}/{op}/vs best"] = figure
