"""Static maps: build and batch lookups of each, beside a dict and other packages."""

from __future__ import annotations

from typing import Any

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import Definition, Figure, Result, Table, count_name, number
from benchmarks.rivals import static_maps as rivals

OPERATIONS = ("build", "get_many (hit)", "get_many (miss)")


def run(definition: Definition, quick: bool) -> Result:
    """One fresh process for each size."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    rows: list[list[str]] = []
    for case in settings["cases"]:
        order = {**case, "value_bits": settings["value_bits"], "check_bits": settings["check_bits"]}
        answer = isolated("benchmarks.measure.maps:worker", order, {clock.one_cpu()}, keeps_memory=True)
        result.notes += [line for line in answer["missing"] if line not in result.notes]
        result.raw[str(case["keys"])] = answer
        rows += _report(result, case["keys"], settings["value_bits"] + settings["check_bits"], answer)
    columns = ["structure", "keys", *OPERATIONS, "bits per key"]
    note = "ns per key: median (minimum), CPU time"
    title = f"Values of {settings['value_bits']} bits behind {settings['check_bits']} check bits"
    result.tables.append(Table(title, columns, rows, note))
    return result


def makers(value_bits: int, check_bits: int) -> dict[str, Any]:
    """How each is built of keys and values, by registry name; with values that may change, too."""
    import fullbloom
    from fullbloom import registry

    instance: dict[str, Any] = {}
    for row in fullbloom.variants():
        names = {name for name, _, _ in row["parameters"]}
        if not registry.is_built(row, "key", "value"):
            continue
        build = getattr(fullbloom, row["class"]).build
        options: dict[str, Any] = {"value_bits": value_bits, "check_bits": check_bits}
        instance[row["name"]] = (build, options)
        if "mutable" in names:
            instance[f"{row['name']}, mutable"] = (build, options | {"mutable": True})
    return instance


def worker(keys: int, rounds: int, value_bits: int, check_bits: int) -> dict[str, Any]:
    """CPU time of each structure and operation, ns per key; bits per key."""
    import numpy as np

    draw = np.random.default_rng(keys)
    members = draw.integers(-(1 << 62), 1 << 62, keys, dtype=np.int64) * 2
    absent = draw.integers(-(1 << 62), 1 << 62, keys, dtype=np.int64) * 2 + 1
    values = draw.integers(0, 1 << value_bits, keys, dtype=np.uint64)
    ours = makers(value_bits, check_bits)
    others, missing = rivals.load()
    samples: dict[str, Any] = {
        name: {op: [] for op in OPERATIONS} for name in [*ours, *(r.name for r in others)]
    }
    bits: dict[str, float] = {}
    batches = {OPERATIONS[1]: members, OPERATIONS[2]: absent}
    for round_ in range(rounds):
        with clock.no_gc():
            for name in clock.rotated(list(ours), round_):
                build, options = ours[name]
                bits[name] = _time(
                    samples[name],
                    lambda: build(members, values, **options),  # noqa: B023
                    lambda instance, some: instance.get_many(some),
                    batches,
                    lambda instance: instance.nbytes,
                )
            for rival in others:
                few = keys // 10
                lists = {op: rival.keys(some[:few]) for op, some in batches.items()}
                some = values[:few].tolist()
                bits[rival.name] = _time(
                    samples[rival.name],
                    lambda: rival.build(lists[OPERATIONS[1]], some),  # noqa: B023
                    rival.get_many,
                    lists,
                    rival.nbytes,
                )
    return {"samples": samples, "bits": bits, "missing": missing}


def _time(into: dict[str, Any], build: Any, get_many: Any, batches: dict[str, Any], nbytes: Any) -> float:
    """Appends one sample of each operation; bits per key."""
    kept: list[Any] = []
    count = len(batches[OPERATIONS[1]])
    into["build"].append(clock.wall_and_cpu(lambda: kept.append(build()), count)[1])
    for op, some in batches.items():
        into[op].append(clock.wall_and_cpu(lambda: get_many(kept[0], some), count)[1])  # noqa: B023
    return float(8 * nbytes(kept[0]) / count)


def _report(result: Result, keys: int, paid: int, answer: dict[str, Any]) -> list[list[str]]:
    size, rows = count_name(keys), []
    for name, ops in answer["samples"].items():
        bits = answer["bits"][name]
        result.figures[f"{name}/{keys}/bits"] = Figure(round(bits, 4), "bits", f"{name}, {size}")
        result.figures[f"{name}/{keys}/space"] = Figure(round(bits / paid, 4), "x", f"{name}, {size}")
        row = [name, size]
        for op, times in ops.items():
            figure = Figure(clock.median(times), "ns", f"{op}, {name}, {size}", min(times))
            result.figures[f"{name}/{keys}/{op}/ns"] = figure
            row.append(f"{number(figure.value)} ({number(min(times))})")
        rows.append([*row, f"{bits:.2f}"])
        say("  ".join(rows[-1]))
    return rows
