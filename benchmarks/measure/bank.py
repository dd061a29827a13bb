"""A bank of small filters beside one plain filter of as many keys, and the essay's users and articles."""

from __future__ import annotations

import ctypes
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import Definition, Figure, Result, Table, number

ADDITIONS = ("update", "add_many")
OPERATIONS = (*ADDITIONS, "contains_many (hit)", "contains_many (miss)")


def run(definition: Definition, quick: bool) -> Result:
    """Three fresh processes."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    essay = settings.pop("essay")
    cpu = {clock.one_cpu()}
    pairs = isolated("benchmarks.measure.bank:compare", settings, cpu, keeps_memory=True)
    texts = isolated("benchmarks.measure.bank:compare", {**settings, "text": True}, cpu, keeps_memory=True)
    # The C library gives back what the benchmark frees, so that resident memory is the bank's.
    essays = isolated("benchmarks.measure.bank:measure_essay", essay, cpu)
    result.raw = {"pairs": pairs, "texts": texts, "essay": essays}
    _report_pairs(result, settings, pairs)
    _report_times(result, f"{_title(settings)}, of texts", "text", texts["times"], [])
    _report_essay(result, essay, essays)
    return result


def compare(owners: int, keys: int, fpr: float, batch: int, text: bool = False) -> dict[str, Any]:
    """CPU time of bank and plain filter in ns per pair, batch by batch; their bytes; the rate of the bank.

    text: owners and keys are Arrow columns of texts rather than NumPy columns of integers.
    """
    import numpy as np

    import fullbloom

    draw = np.random.default_rng(1)
    pairs = draw.permutation(owners * keys)
    times: dict[str, dict[str, list[float]]] = {op: {"bank": [], "plain": []} for op in OPERATIONS}
    found = 0
    for op in OPERATIONS:
        if op in ADDITIONS:
            bank = fullbloom.FilterBank(keys, fpr)
            plain = fullbloom.BloomFilter(owners * keys, fpr, layout="blocked")
        for start in range(0, len(pairs), batch):
            some = pairs[start : start + batch]
            # Keys differ from owner to owner: with equal ones, all filters would be one.
            absent = 1 << 40 if op == OPERATIONS[-1] else 0
            columns = (some // keys, some + absent)
            if text:
                columns = (_texts("user ", columns[0]), _texts("article ", columns[1]))
            of_bank, of_plain = (getattr(filter_, op.partition(" ")[0]) for filter_ in (bank, plain))
            calls: dict[str, Any] = {
                "bank": partial(of_bank, *columns),
                "plain": partial(of_plain, columns[1]),
            }
            order = ["bank", "plain"] if start // batch % 2 else ["plain", "bank"]
            with clock.no_gc():
                for name in order:
                    kept: list[Any] = []
                    spent = clock.wall_and_cpu(lambda: kept.append(calls[name]()), len(some))[1]  # noqa: B023
                    times[op][name].append(spent)
                    if name == "bank" and absent:
                        found += int(np.sum(np.asarray(kept[0])))
                    elif name == "bank" and op not in ADDITIONS and not np.all(np.asarray(kept[0])):
                        raise AssertionError("a key of the bank was not found")
    info = bank.info()
    return {
        "times": times,
        "rate": found / len(pairs),
        "bytes": {"bank": bank.nbytes, "plain": plain.nbytes, "tables": info["directory_bytes"]},
        "owners": len(bank),
        "later": info["later_stages"],
    }


def _texts(prefix: str, numbers: Any) -> Any:
    """Return an Arrow column of the numbers as texts."""
    import pyarrow as pa
    from pyarrow import compute

    return compute.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def measure_essay(users: int, articles: int, fpr: float, batch: int) -> dict[str, Any]:
    """The case of the essay: each user has read some of the articles, evenly from 1/250 of them to all."""
    import numpy as np

    import fullbloom

    before = _resident()
    bank = fullbloom.FilterBank(articles, fpr)
    read = (np.arange(users) % 250 + 1) * articles // 250
    spent, pairs = 0.0, 0
    at = 0
    while at < users:
        end = at
        while end < users and (end == at or read[at : end + 1].sum() <= batch):
            end += 1
        owners = np.repeat(np.arange(at, end), read[at:end])
        keys = np.concatenate([np.arange(count) * 2 for count in read[at:end]])
        shuffled = np.random.default_rng(at).permutation(len(keys))
        owners, keys = owners[shuffled], keys[shuffled]
        spent += clock.wall_and_cpu(lambda: bank.update(owners, keys), 1)[1]  # noqa: B023
        pairs += len(keys)
        at = end
    full = np.flatnonzero(read == articles)
    owners = keys = shuffled = read = None
    ctypes.CDLL(None).malloc_trim(0)
    resident = _resident() - before
    draw = np.random.default_rng(2)
    asked = draw.choice(full, 1_000_000)
    rate = float(bank.contains_many(asked, draw.integers(0, 1 << 40, 1_000_000) * 2 + 1).mean())
    mean = float(
        bank.contains_many(
            draw.integers(0, users, 1_000_000), draw.integers(0, 1 << 40, 1_000_000) * 2 + 1
        ).mean()
    )
    return {
        "pairs": pairs,
        "ns": spent / pairs,
        "bytes": bank.nbytes,
        "resident": resident,
        **_time_files(bank),
        "planned": fullbloom.FilterBank.nbytes_for(users, articles, fpr),
        "planned_whole": fullbloom.FilterBank.nbytes_for(100 * users, articles, fpr),
        "rate_full": rate,
        "rate_mean": mean,
    }


def _time_files(bank: Any) -> dict[str, float]:
    """Seconds to save the bank, to open its file, and to copy what is mapped."""
    import fullbloom

    with tempfile.TemporaryDirectory() as folder:
        path, seconds = Path(folder) / "bank", {}
        calls: dict[str, Any] = {
            "save": lambda: bank.save(path),
            "open": lambda: fullbloom.FilterBank.open(path),
            "copy": lambda: fullbloom.FilterBank.open(path).copy(),
        }
        for name, call in calls.items():
            seconds[name] = clock.wall_and_cpu(call, 1)[0] / 1e9
    return seconds


def _resident() -> int:
    """Return the bytes of resident memory."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - not a file of ours
        return int(file.read().split()[1]) * 4096


def _title(settings: dict[str, Any]) -> str:
    return f"{settings['owners']:,} owners of {settings['keys']} keys at {settings['fpr']:.0%}"


def _report_times(
    result: Result,
    title: str,
    prefix: str,
    all_times: dict[str, dict[str, list[float]]],
    more: list[list[str]],
) -> None:
    rows = []
    for op, times in all_times.items():
        middles = {name: clock.median(some) for name, some in times.items()}
        ratio = middles["bank"] / middles["plain"]
        least = min(times["bank"]) / min(times["plain"])
        for name, some in times.items():
            label = f"{op}, {name}"
            result.figures[f"{prefix}/{op}/{name}/ns"] = Figure(middles[name], "ns", label, min(some))
        result.figures[f"{prefix}/{op}/ratio"] = Figure(round(ratio, 3), "x", op)
        result.figures[f"{prefix}/{op}/least ratio"] = Figure(round(least, 3), "x", f"{op}, of minima")
        rows.append([op, *(f"{number(middles[name])} ({number(min(some))})" for name, some in times.items())])
        rows[-1].append(f"{ratio:.2f} ({least:.2f})")
    rows += more
    note = "ns per pair: median (minimum), CPU time"
    result.tables.append(Table(title, ["", "bank", "one plain filter", "ratio"], rows, note))
    for row in rows:
        say("  ".join(row))


def _report_pairs(result: Result, settings: dict[str, Any], answer: dict[str, Any]) -> None:
    size = answer["bytes"]
    ratio = size["bank"] / size["plain"]
    result.figures["bank/bytes/ratio"] = Figure(round(ratio, 4), "x", "bytes")
    result.figures["bank/rate"] = Figure(round(answer["rate"] / settings["fpr"], 4), "x", "measured rate")
    rows = [["bytes", f"{size['bank']:,}", f"{size['plain']:,}", f"{ratio:.3f}"]]
    rows.append(["of these, tables", f"{size['tables']:,}", "", ""])
    _report_times(result, _title(settings), "bank", answer["times"], rows)


def _report_essay(result: Result, settings: dict[str, Any], answer: dict[str, Any]) -> None:
    users = settings["users"]
    rows = [
        ["users", f"{users:,}"],
        ["pairs", f"{answer['pairs']:,}"],
        ["planned bytes", f"{answer['planned']:,}"],
        ["bytes", f"{answer['bytes']:,}"],
        ["resident bytes", f"{answer['resident']:,}"],
        ["planned bytes of 100 times as many users", f"{answer['planned_whole']:,}"],
        ["ns per pair, `update`", number(answer["ns"])],
        ["seconds to save", f"{answer['save']:.2f}"],
        ["seconds to open", f"{answer['open']:.4f}"],
        ["seconds to open and copy", f"{answer['copy']:.2f}"],
        ["rate of users who have read all", f"{answer['rate_full']:.3%}"],
        ["rate of all users", f"{answer['rate_mean']:.3%}"],
    ]
    for name in ("bytes", "resident", "planned", "planned_whole"):
        result.figures[f"essay/{name}"] = Figure(answer[name], "bytes", name)
    result.figures["essay/rate"] = Figure(
        round(answer["rate_full"] / settings["fpr"], 4), "x", "measured rate"
    )
    result.tables.append(
        Table("Articles that users have read, with a hundredth of the users", ["", ""], rows, "")
    )
    for row in rows:
        say("  ".join(row))
