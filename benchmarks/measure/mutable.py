"""Every structure that takes keys: batches, one key at a time, load and space."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import Definition, Figure, Result, Table, count_name, number

OPERATIONS = ("add_many", "contains_many (hit)", "contains_many (miss)", "discard_many")
SCALAR = ("add", "in", "remove")
# What a counting filter's operation is held against: removing writes as adding does.
PLAIN = {
    "add_many": "add_many",
    "contains_many (hit)": "contains_many (hit)",
    "contains_many (miss)": "contains_many (miss)",
    "discard_many": "add_many",
}


def run(definition: Definition, quick: bool) -> Result:
    """One fresh process for each size, one for the scalar rows, one for loads and space."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    cpu = {clock.one_cpu()}
    for keys in settings["sizes"]:
        order = {"keys": keys, "rounds": settings["rounds"], "fpr": settings["fpr"]}
        _report_batch(result, keys, isolated("benchmarks.measure.mutable:batch", order, cpu))
    order = {"keys": settings["scalar_keys"], "rounds": settings["scalar_rounds"], "fpr": settings["fpr"]}
    _report_scalar(result, isolated("benchmarks.measure.mutable:scalar", order, cpu))
    shares = isolated("benchmarks.measure.mutable:shares", {"slots": settings["load_slots"]}, cpu)
    _report_shares(result, shares)
    return result


def makers(keys: int, fpr: float) -> dict[str, Any]:
    """An empty structure of each kind by its registry name; cuckoo as its bars ask."""
    import fullbloom
    from fullbloom import registry

    instance: dict[str, Any] = {}
    for row in fullbloom.variants():
        if not registry.is_open(row, "key"):
            continue
        cls = getattr(fullbloom, row["class"])
        options: dict[str, Any] = {"layout": "blocked"} if "blocked" in row["layouts"] else {}
        if row["name"] == "cuckoo":
            instance[row["name"]] = lambda cls=cls: cls(keys, 0.0019, fingerprint_bits=12)
        else:
            instance[row["name"]] = lambda cls=cls, options=options: cls(keys, fpr, **options)
    return instance


def batch(keys: int, rounds: int, fpr: float) -> dict[str, Any]:
    """Nanoseconds per key by structure and operation, and bits per key."""
    import numpy as np

    warnings.simplefilter("ignore")
    draw = np.random.default_rng(keys)
    members = draw.integers(-(1 << 62), 1 << 62, keys, dtype=np.int64) * 2
    absent = draw.integers(-(1 << 62), 1 << 62, keys, dtype=np.int64) * 2 + 1
    kinds = makers(keys, fpr)
    samples: dict[str, Any] = {name: {op: [] for op in OPERATIONS} for name in kinds}
    bits: dict[str, float] = {}
    for round_ in range(rounds):
        for name in clock.rotated(list(kinds), round_):
            f = kinds[name]()
            into = samples[name]
            with clock.no_gc():
                into["add_many"].append(clock.wall(lambda: f.add_many(members), keys))  # noqa: B023
                bits[name] = f.nbytes * 8 / keys
                for op, some in (("contains_many (hit)", members), ("contains_many (miss)", absent)):
                    into[op].append(clock.wall(lambda: f.contains_many(some), keys))  # noqa: B023
                if hasattr(f, "discard_many"):
                    into["discard_many"].append(clock.wall(lambda: f.discard_many(members), keys))  # noqa: B023
    return {"samples": samples, "bits": bits}


def scalar(keys: int, rounds: int, fpr: float) -> dict[str, Any]:
    """Nanoseconds a key of our counting filter and of fastbloom-rs', net of the loop."""
    from fullbloom import CountingBloomFilter

    members = list(range(10**12, 10**12 + keys))
    samples: dict[str, dict[str, list[float]]] = {}
    try:
        from fastbloom_rs import CountingBloomFilter as Rival
    except ImportError:
        Rival = None  # noqa: N806
    for _ in range(rounds):
        with clock.no_gc():
            loop = min(clock.loop_empty(members) for _ in range(3))
            ours = CountingBloomFilter(keys, fpr)
            _note(samples, "fullbloom", "add", clock.loop_call(ours.add, members) - loop)
            _note(samples, "fullbloom", "in", clock.loop_in(ours, members) - loop)
            _note(samples, "fullbloom", "remove", clock.loop_call(ours.remove, members) - loop)
            if Rival is not None:
                theirs = Rival(keys, fpr)
                _note(samples, "fastbloom-rs", "add", clock.loop_call(theirs.add_int, members) - loop)
                _note(samples, "fastbloom-rs", "in", clock.loop_call(theirs.contains_int, members) - loop)
                _note(samples, "fastbloom-rs", "remove", clock.loop_call(theirs.remove_int, members) - loop)
    return samples


def _note(samples: dict[str, dict[str, list[float]]], who: str, op: str, ns: float) -> None:
    samples.setdefault(who, {}).setdefault(op, []).append(ns)


def shares(slots: int) -> dict[str, float]:
    """Loads at which cuckoo filters first refuse a key, and the bits per key of the tables."""
    import numpy as np

    import fullbloom

    warnings.simplefilter("ignore")
    answer: dict[str, float] = {}
    draw = np.random.default_rng(7)
    for b in (2, 4, 8):
        loads = []
        for seed in range(5):
            f = fullbloom.CuckooFilter(slots, 0.0019, bucket_size=b, fingerprint_bits=16, seed=seed)
            room = f.num_buckets * b
            keys = draw.integers(-(1 << 62), 1 << 62, room + room // 8, dtype=np.int64)
            with contextlib.suppress(fullbloom.FilterFull):
                f.update(keys)
            loads.append(100 * f.num_added / room)
        answer[f"load/{b}"] = min(loads)
    n = 1_000_000
    answer["space/cuckoo"] = fullbloom.CuckooFilter(n, 0.0019).nbytes * 8 / n
    classic = fullbloom.BloomFilter(n, 0.01, layout="classic").nbytes
    counting = fullbloom.CountingBloomFilter(n, 0.01, layout="classic").nbytes
    answer["space/counting"] = counting / classic
    answer["space/d-left"] = fullbloom.DLeftCountingFilter(n, 0.01).nbytes / counting
    return answer


def _report_batch(result: Result, keys: int, answer: dict[str, Any]) -> None:
    rows, name = [], count_name(keys)
    plain = answer["samples"]["bloom"]
    for kind, ops in answer["samples"].items():
        row = [kind, f"{answer['bits'][kind]:.2f}"]
        for op in OPERATIONS:
            times = ops[op]
            if not times:
                row.append("-")
                continue
            mid, low = clock.median(times), min(times)
            row.append(f"{number(mid)} ({number(low)})")
            key, label = f"batch/{keys}/{kind}/{op}", f"{op}, {kind}, {name}"
            result.figures[f"{key}/ns"] = Figure(mid, "ns", label, low)
            base = plain[PLAIN[op]]
            ratio = Figure(mid / clock.median(base), "x", f"{label}, over bloom", low / min(base))
            result.figures[f"{key} vs bloom"] = ratio
        rows.append(row)
        say("  ".join(row))
    note = "ns per key: median (minimum), one processor"
    columns = ["structure", "bits per key", *OPERATIONS]
    result.tables.append(Table(f"{name} NumPy `int64` keys, capacity {name}", columns, rows, note))
    result.raw[f"batch/{keys}"] = answer


def _report_scalar(result: Result, samples: dict[str, Any]) -> None:
    ours, rows = samples["fullbloom"], []
    for who, ops in samples.items():
        row = [who]
        for op in SCALAR:
            mid, low = clock.median(ops[op]), min(ops[op])
            row.append(f"{number(mid)} ({number(low)})")
            if who != "fullbloom":
                ratio = mid / clock.median(ours[op])
                row[-1] += f", {ratio:.2f}x"
                key = f"scalar/{op}/vs {who}"
                result.figures[key] = Figure(ratio, "x", f"{op}, int, against {who}", low / min(ours[op]))
        rows.append(row)
        say("  ".join(row))
    if len(samples) == 1:
        result.notes.append("rival fastbloom-rs: not installed")
    note = "ns net of the loop: median (minimum), time relative to ours"
    result.tables.append(Table("Counting filters, one `int` at a time", ["filter", *SCALAR], rows, note))
    result.raw["scalar"] = samples


def _report_shares(result: Result, shares: dict[str, float]) -> None:
    units = {"load": "%", "space/cuckoo": "bits", "space/counting": "x", "space/d-left": "x"}
    for key, value in shares.items():
        unit = units.get(key, units.get(key.split("/")[0], "x"))
        result.figures[key] = Figure(value, unit, key.replace("/", " "))
    result.raw["shares"] = shares
