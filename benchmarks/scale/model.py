"""The cost of n keys, fitted to runs with at most `record.FITTED` keys and to probes of the machine.

A blocked filter touches one cache line per key, so its time per key is that of some instructions and of one
access at random to so many bytes. What the access costs at each size, caches and memory, is measured without
a filter (`measure.Probe`); the two factors are fitted. Duplicates are found by senders and owners that work
alike, so one of each is run with its share of the work, and the whole is their number times that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fullbloom.engines.hash_sets import REPEATED_FPR, ROWS_PER_SET

if TYPE_CHECKING:
    from collections.abc import Sequence

Record = dict[str, Any]
#: Keys of filters that are left out of the fit. They are about as large as the last cache, and how much of it
#: a filter or a probe gets depends on what else runs.
AMID = {3_000_000, 10_000_000}
#: Bits of a filter in Spark's format per digit.
DIGIT_BITS = -math.log(REPEATED_FPR) / math.log(2) ** 2


class Line(NamedTuple):
    """``base + factor * x``, neither below zero."""

    base: float
    factor: float

    def at(self, x: float) -> float:
        """The value."""
        return self.base + self.factor * x


class Model(NamedTuple):
    """The cost of a filter by its number of keys: nanoseconds per key or byte, and bytes per key."""

    build: Line
    query: Line
    merge: Line
    bits_per_key: float
    header: int
    probes: tuple[dict[str, float], ...]

    def predict_bytes(self, count: int) -> float:
        """Bytes of the filter."""
        return count * self.bits_per_key / 8

    def predict_container(self, count: int) -> float:
        """Bytes of its file."""
        return self.predict_bytes(count) + self.header

    def predict_build(self, count: int) -> float:
        """Seconds to add all keys on one core."""
        return count * self.build_ns(self.predict_bytes(count)) / 1e9

    def predict_query(self, count: int) -> float:
        """Nanoseconds of a lookup in a batch."""
        return self.query.at(self.interpolate("read_ns", self.predict_bytes(count)))

    def predict_merge(self, count: int) -> float:
        """Seconds to merge two filters of so many keys each."""
        size = self.predict_bytes(count)
        return size * self.merge.at(self.interpolate("stream_ns", size)) / 1e9

    def build_ns(self, size: float) -> float:
        """Nanoseconds per key added to a filter of so many bytes."""
        return self.build.at(self.interpolate("write_ns", size))

    def interpolate(self, name: str, size: float) -> float:
        """A probe at any size: straight lines over the logarithm of the size."""
        sizes = [math.log(one["bytes"]) for one in self.probes]
        return float(np.interp(math.log(size), sizes, [one[name] for one in self.probes]))


def fit_line(xs: Sequence[float], ys: Sequence[float]) -> Line:
    """The line with the least sum of squares of relative errors."""
    x, weight = np.asarray(xs, float), 1 / np.asarray(ys, float)

    def solve(*columns: Any) -> Any:
        return np.linalg.lstsq(np.stack(columns, axis=1) * weight[:, None], np.ones(len(x)), rcond=None)[0]

    base, factor = solve(np.ones(len(x)), x)
    if base < 0:
        return Line(0.0, float(solve(x)[0]))
    if factor < 0:
        return Line(float(solve(np.ones(len(x)))[0]), 0.0)
    return Line(float(base), float(factor))


def fit(record: Record, most: int) -> Model:
    """The model of the filters with at most ``most`` keys."""
    rows = [row for row in record["filters"] if row["keys"] <= most and row["keys"] not in AMID]
    probed = [row | {"bytes": row["filter_bytes"]} for row in record["filters"] + record["largest"]]
    names = ("bytes", "read_ns", "write_ns", "stream_ns")
    sizes = [{name: row[name] for name in names} for row in [*probed, *record["probe"]]]
    probes = tuple(sorted(sizes, key=lambda one: one["bytes"]))
    largest = rows[-1]
    return Model(
        build=fit_line(
            [row["write_ns"] for row in rows], [row["build_seconds"] * 1e9 / row["keys"] for row in rows]
        ),
        query=fit_line([row["read_ns"] for row in rows], [row["query_ns"] for row in rows]),
        merge=fit_line(
            [row["stream_ns"] for row in rows],
            [row["merge_seconds"] * 1e9 / row["filter_bytes"] for row in rows],
        ),
        bits_per_key=largest["filter_bytes"] * 8 / largest["keys"],
        header=largest["container_bytes"] - largest["filter_bytes"],
        probes=probes,
    )


class Shuffle(NamedTuple):
    """What finding the duplicates among some rows costs."""

    rows: int
    sent_bytes: float
    seconds: float
    #: Bytes of the filters of repeated digits, which each machine receives.
    filter_bytes: float


def extrapolate(simulated: Record) -> Shuffle:
    """The cost of all senders and owners in all rounds, from one of each."""
    sent = seconds = digits = 0.0
    for one in simulated["rounds"]:
        senders = max(1.0, one["rows"] / ROWS_PER_SET)  # the last one has the rest of the rows
        sent += senders * one["sender_bytes"]
        seconds += senders * one["sender_seconds"] + (1 << one["owner_bits"]) * one["owner_seconds"]
        digits += one["repeated_digits"]
    return Shuffle(simulated["rows"], sent, seconds, digits * DIGIT_BITS / 8)


def sum_rounds(row: Record, *names: str) -> float:
    """The sum of some costs of a shuffle over its rounds."""
    return sum(one[name] for one in row["rounds"] for name in names)


class Comparison(NamedTuple):
    """A prediction beside the run."""

    what: str
    unit: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """Share by which the prediction is off."""
        return self.predicted / self.measured - 1


def compare(record: Record, fitted: int) -> list[Comparison]:
    """Each prediction for the largest run, by a model of runs with at most ``fitted`` keys."""
    model, run = fit(record, fitted), record["largest"][0]
    count = run["keys"]
    shuffled = next(row for row in record["shuffle"] if row["rows"] == count)
    shuffle = extrapolate(next(row for row in record["simulation"] if row["rows"] == count))
    return [
        Comparison("build, one core", "s", model.predict_build(count), run["build_seconds"]),
        Comparison("lookup in a batch", "ns", model.predict_query(count), run["query_ns"]),
        Comparison("merge of two filters", "s", model.predict_merge(count), run["merge_seconds"]),
        Comparison("memory of the filter", "B", model.predict_bytes(count), run["filter_bytes"]),
        Comparison("network: the file", "B", model.predict_container(count), run["container_bytes"]),
        Comparison("shuffle: bytes sent", "B", shuffle.sent_bytes, sum_rounds(shuffled, "sent_bytes")),
        Comparison(
            "shuffle: filters of repeated hashes",
            "B",
            shuffle.filter_bytes,
            sum_rounds(shuffled, "filter_bytes"),
        ),
        Comparison(
            "shuffle: hash sets, one core",
            "s",
            shuffle.seconds,
            sum_rounds(shuffled, "send_seconds", "answer_seconds"),
        ),
    ]
