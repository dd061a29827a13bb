"""`add` and `in`, one key at a time, ours and the rivals interleaved."""

from __future__ import annotations

from typing import Any

from benchmarks import clock, rivals
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import Definition, Figure, Result, Table, count_name, number

OPERATIONS = ("add", "in (hit)", "in (miss)")
LOOP = "(empty loop)"
Samples = dict[str, dict[str, list[float]]]


def run(definition: Definition, quick: bool) -> Result:
    """One fresh process for each kind of key and capacity."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    for capacity in settings["capacities"]:
        for kind in settings["kinds"]:
            order = {k: settings[k] for k in ("keys", "slow_keys", "rounds", "fpr")}
            answer = isolated(
                "benchmarks.measure.scalar:worker",
                {"kind": kind, "capacity": capacity, **order},
                {clock.one_cpu()},
            )
            result.notes += [line for line in answer["missing"] if line not in result.notes]
            _report(result, kind, capacity, settings["keys"], answer["samples"])
    return result


def worker(kind: str, capacity: int, keys: int, slow_keys: int, rounds: int, fpr: float) -> dict[str, Any]:
    """Samples of every filter and operation, gross, and of the empty loop."""
    from benchmarks.keys import makers

    ready, missing = rivals.load()
    supply = {False: makers(kind, keys), True: makers(kind, slow_keys)}
    samples: Samples = {LOOP: {op: [] for op in OPERATIONS}}
    samples |= {rival.name: {op: [] for op in OPERATIONS} for rival in ready}
    for round_ in range(rounds):
        for rival in clock.rotated([None, *ready], round_):
            if rival is None:
                _loop(samples[LOOP], supply[False])
            else:
                cap = slow_keys if rival.slow else capacity
                _one(samples[rival.name], rival, kind, cap, fpr, supply[rival.slow])
    return {"samples": samples, "missing": missing}


def _loop(into: dict[str, list[float]], supply: Any) -> None:
    members, absent = supply
    for op, make in zip(OPERATIONS, (members, members, absent), strict=True):
        fresh = make()
        with clock.no_gc():
            into[op].append(clock.loop_empty(fresh))


def _one(
    into: dict[str, list[float]], rival: rivals.Rival, kind: str, cap: int, fpr: float, supply: Any
) -> None:
    members, absent = supply
    f = rival.make(cap, fpr)
    fresh = members()
    with clock.no_gc():
        into["add"].append(clock.loop_call(rival.add(f, kind), fresh))
    for op, make in (("in (hit)", members), ("in (miss)", absent)):
        fresh = make()
        with clock.no_gc():
            if rival.contains is None:
                into[op].append(clock.loop_in(f, fresh))
            else:
                into[op].append(clock.loop_call(rival.contains(f, kind), fresh))


def _report(result: Result, kind: str, capacity: int, count: int, samples: Samples) -> None:
    loop = samples[LOOP]
    net = {
        name: {
            op: (clock.median(ops[op]) - clock.median(loop[op]), min(ops[op]) - min(loop[op]))
            for op in OPERATIONS
        }
        for name, ops in samples.items()
        if name != LOOP
    }
    case = f"{kind}, {count_name(capacity)}"
    ours = net[rivals.OURS]
    rows = [[LOOP] + [f"{number(clock.median(loop[op]))} ({number(min(loop[op]))})" for op in OPERATIONS]]
    for name, ops in net.items():
        row = [name]
        for op in OPERATIONS:
            mid, low = ops[op]
            ratio = mid / ours[op][0]
            row.append(f"{number(mid)} ({number(low)})" + ("" if name == rivals.OURS else f", {ratio:.2f}x"))
            key = f"{kind}/{capacity}/{op}"
            if name == rivals.OURS:
                result.figures[f"{key}/ns"] = Figure(mid, "ns", f"{op}, {case}", low)
            else:
                label = f"{op}, {case}, against {name}"
                result.figures[f"{key}/vs {name}"] = Figure(ratio, "x", label, low / ours[op][1])
        rows.append(row)
        say(f"{case}: " + "  ".join(row))
    title = f"`{kind}` keys, capacity {count_name(capacity)}, {count_name(count)} operations"
    result.tables.append(
        Table(
            title,
            ["filter", *OPERATIONS],
            rows,
            "ns net of the loop: median (minimum), time relative to ours",
        )
    )
    result.raw[f"{kind}/{capacity}"] = samples
