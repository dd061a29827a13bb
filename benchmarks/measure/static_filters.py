"""Static filters: build and batch lookups of each, with one and two threads, beside the C originals."""

from __future__ import annotations

import os
from typing import Any

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import Definition, Figure, Result, Table, count_name, number
from benchmarks.rivals import static_filters as rivals

OPERATIONS = ("build", "contains_many (hit)", "contains_many (miss)")
SORTED = "contains_many (hit, sorted)"


def run(definition: Definition, quick: bool) -> Result:
    """One fresh process for each size."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    rows: list[list[str]] = []
    for case in settings["cases"]:
        order = {**case, "threads": settings["threads"], "asked": settings["asked"], "cpu": clock.one_cpu()}
        order |= {"operations": _operations(settings), "beside": settings["rivals"]}
        answer = isolated("benchmarks.measure.static_filters:worker", order, keeps_memory=True)
        result.notes += [line for line in answer["missing"] if line not in result.notes]
        result.raw[str(case["keys"])] = answer
        rows += _report(result, case["keys"], answer)
    note = "ns per key: median (minimum); CPU time with one thread, wall time with more"
    columns = ["structure", "keys", "threads", *_operations(settings), "bits per key"]
    result.tables.append(Table(settings["table"], columns, rows, note))
    return result


def _operations(settings: dict[str, Any]) -> list[str]:
    return [*OPERATIONS, SORTED] if settings["sorted"] else [*OPERATIONS]


def makers(asked: dict[str, float]) -> dict[str, Any]:
    """How each is built of hashes, by registry name, and by cells per key where that can be chosen."""
    import fullbloom
    from fullbloom import registry

    instance: dict[str, Any] = {}
    for row in fullbloom.variants():
        names = {name for name, _, _ in row["parameters"]}
        if not registry.is_built(row, "key") or "fpr" not in names:
            continue
        options: dict[str, Any] = dict(asked)
        build = getattr(fullbloom, row["class"]).build_hashed
        instance[row["name"]] = (build, options)
        if "arity" in names:
            instance[f"{row['name']} arity 4"] = (build, options | {"arity": 4})
    return instance


def worker(
    keys: int,
    rounds: int,
    threads: list[int],
    asked: dict[str, float],
    operations: list[str],
    beside: str,
    cpu: int,
) -> dict[str, Any]:
    """Samples [wall, cpu] by structure, threads and operation; bits per key; those of the rivals."""
    import numpy as np

    draw = np.random.default_rng(keys)
    hashes = draw.integers(0, 1 << 64, keys, dtype=np.uint64)
    absent = draw.integers(0, 1 << 64, keys, dtype=np.uint64)
    ours = makers(asked)
    others, missing = rivals.load(beside)
    batches = {OPERATIONS[1]: hashes, OPERATIONS[2]: absent}
    if SORTED in operations:
        batches[SORTED] = np.sort(hashes)
    samples: dict[str, Any] = {
        name: {str(t): {op: [] for op in operations} for t in threads} for name in ours
    }
    samples |= {rival.name: {"1": {op: [] for op in operations}} for rival in others}
    sizes: dict[str, float] = {}
    for round_ in range(rounds):
        with clock.no_gc():
            for name in clock.rotated(list(ours), round_):
                for t in threads:
                    _ours(samples[name][str(t)], ours[name], batches, t, cpu, sizes, name)
            with clock.pinned({cpu}):
                for rival in others:
                    _theirs(samples[rival.name]["1"], rival, (hashes, absent), sizes)
    return {"samples": samples, "bits": sizes, "missing": missing}


def _ours(
    into: dict[str, Any], how: Any, batches: Any, threads: int, cpu: int, sizes: dict[str, float], name: str
) -> None:
    build, options = how
    hashes = batches[OPERATIONS[1]]
    cpus = {cpu} if threads == 1 else os.sched_getaffinity(0)
    with clock.pinned(set(cpus)):
        if threads > 1:
            # Not timed: after a pause a virtual machine's other processors take some 20 ms to come back.
            build(hashes[: len(hashes) // 8], **options, threads=threads)
        kept: list[Any] = []
        spent = clock.wall_and_cpu(
            lambda: kept.append(build(hashes, **options, threads=threads)), len(hashes)
        )
        into["build"].append(spent)
        instance = kept[0]
        for op, keys in batches.items():
            into[op].append(clock.wall_and_cpu(lambda: instance.contains_hashed(keys), len(hashes)))  # noqa: B023
        sizes[name] = 8 * instance.nbytes / len(hashes)


def _theirs(into: dict[str, Any], rival: rivals.StaticRival, arrays: Any, sizes: dict[str, float]) -> None:
    hashes, absent = arrays
    if rival.slow:
        hashes, absent = (array[: len(array) // 10].tolist() for array in arrays)
    else:
        hashes = hashes.copy()  # the C code may sort what it is given
    kept: list[Any] = []
    into["build"].append(clock.wall_and_cpu(lambda: kept.append(rival.build(hashes)), len(hashes)))
    if rival.nbytes is not None:
        sizes[rival.name] = 8 * rival.nbytes(kept[0]) / len(hashes)
    if rival.contains_many is not None:
        for op, keys in (("contains_many (hit)", hashes), ("contains_many (miss)", absent)):
            into[op].append(clock.wall_and_cpu(lambda: rival.contains_many(kept[0], keys), len(keys)))  # type: ignore[misc]  # noqa: B023


def _report(result: Result, keys: int, answer: dict[str, Any]) -> list[list[str]]:
    size, rows = count_name(keys), []
    samples = answer["samples"]
    for name, by_threads in samples.items():
        bits = answer["bits"].get(name)
        if bits is not None:
            result.figures[f"{name}/{keys}/bits"] = Figure(round(bits, 4), "bits", f"{name}, {size}")
        for t, ops in by_threads.items():
            row = [name, size, t]
            for op, pairs in ops.items():
                times = [pair[1] if t == "1" else pair[0] for pair in pairs]
                if not times:
                    row.append("-")
                    continue
                figure = Figure(clock.median(times), "ns", f"{op}, {name}, {size}", min(times))
                result.figures[f"{name}/{keys}/{t}/{op}/ns"] = figure
                row.append(f"{number(figure.value)} ({number(min(times))})")
            rows.append([*row, "-" if bits is None else f"{bits:.2f}"])
        _ratios(result, name, keys, samples)
    for row in rows:
        say("  ".join(row))
    return rows


def _ratios(result: Result, name: str, keys: int, samples: dict[str, Any]) -> None:
    """Two threads against one by wall time, and the build against that of the C original."""
    label = f"build, {name}, {count_name(keys)}"
    one = samples[name]["1"]["build"]
    for t, ops in samples[name].items():
        if t != "1":
            walls, many = [pair[0] for pair in one], [pair[0] for pair in ops["build"]]
            ratio = clock.median(walls) / clock.median(many)
            figure = Figure(ratio, "x", f"{label}, {t} threads", min(walls) / min(many))
            result.figures[f"{name}/{keys}/{t}/build/speed-up"] = figure
    original = samples.get(rivals.ORIGINALS.get(name, ""))
    if original:
        ours, theirs = ([pair[1] for pair in pairs] for pairs in (one, original["1"]["build"]))
        ratio = clock.median(ours) / clock.median(theirs)
        result.figures[f"{name}/{keys}/1/build/against C"] = Figure(
            ratio, "x", label, min(ours) / min(theirs)
        )
