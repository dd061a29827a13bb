"""Guarantee: filters of Dask are those of one process, and its joins and repeats are exactly its own."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import os
import random
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from engines import bounds, pages
from hostile.container import File

import fullbloom
from fullbloom import BloomFilter
from fullbloom.errors import (
    EngineError,
    FilterMemoryError,
    FormatError,
    KeyTypeError,
    ParameterError,
    ParameterTypeError,
    SecretError,
)

pytest.importorskip("distributed", reason="Dask is not installed: pip install -r requirements/engines.txt")

import dask.bag
import dask.dataframe as dd
import distributed
import psutil

from fullbloom.engines.dask import _is_exact as is_exact
from fullbloom.engines.dask import bloom_join, build, contains, deduplicate, identify

FPR = 1e-9
#: Seconds of the start, of each test and of the end; a test takes 5 at most on a quiet machine.
SECONDS = 120


@pytest.fixture(scope="module", autouse=True)
def client():
    """Two workers in processes of their own, which have ended after the tests."""
    processes = []
    try:
        with contextlib.ExitStack() as stack:
            with bounds.bound(SECONDS):
                cluster = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
                    )
                )
                one = stack.enter_context(distributed.Client(cluster))
                processes += [psutil.Process(number) for number in one.run(os.getpid).values()]
            yield one
            with bounds.bound(SECONDS):
                stack.close()
    finally:
        bounds.kill(processes)


@pytest.fixture(autouse=True)
def bound(client):  # noqa: ARG001 - the cluster has a bound of its own
    with bounds.bound(SECONDS):
        yield


def frame_of(table, parts=3):
    return dd.from_pandas(pd.DataFrame(table), npartitions=parts)


def rows(frame):
    table = frame.compute() if hasattr(frame, "compute") else frame
    return sorted(repr(tuple(row)) for row in table.itertuples(index=False))


def test_a_build_has_the_bits_of_one_batch_and_runs_on_workers(client):
    local = BloomFilter(20_000)
    local.update(range(20_000))
    frame = frame_of({"k": range(20_000)}, parts=20)
    assert build(frame, "k", capacity=20_000) == local
    assert build(frame.k, capacity=20_000) == local
    assert build(dask.bag.range(20_000, npartitions=11), capacity=20_000) == local
    assert os.getpid() not in client.run(os.getpid).values()


def test_every_key_counts_once():
    built = build(frame_of({"k": [*range(1000)] * 3}, parts=10), "k", capacity=3000, fpr=FPR, kind="counting")
    assert set(built.count_many(list(range(1000)))) == {3}


KEYS = {
    "int64": [1, -1, 2**40],
    "float64": [1.5, 0.0, -2.0],
    "bool": [True, False],
    "str": ["a", "café"],
    "datetime64[ns]": ["2024-02-29", "2024-03-01"],
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type_are_found(kind):
    keys = dd.from_pandas(pd.Series(KEYS[kind], dtype=kind, name="k"), npartitions=1)
    found = contains(keys, build(keys, capacity=100, fpr=FPR))
    assert (found.dtype, found.name) == ("boolean", "k")
    assert found.compute().tolist() == [True] * len(KEYS[kind])


def test_missing_values_are_no_keys():
    keys = dd.from_pandas(pd.Series([1, None, 7], dtype="Int64"), npartitions=2)
    built = build(keys, capacity=10, fpr=FPR)
    assert built.num_added == 2
    assert contains(keys, built).compute().tolist() == [True, pd.NA, True]
    bag = dask.bag.from_sequence(["a", None, "b"], npartitions=2)
    assert contains(bag, build(bag, capacity=10, fpr=FPR)).compute() == [True, None, True]


NULLS = [None] * 150  # more than a lookup compares


@pytest.mark.parametrize(
    "keys",
    [
        pd.Series([*NULLS, "1"], name="k"),
        pd.Series([*NULLS, "1"], name="k", dtype=object),
        pd.Series([*NULLS, 1.5], name="k", dtype="float64"),
        pd.Series([math.nan], name="k"),
        pd.DataFrame({"a": [*NULLS, "1"], "b": ["x"] * 151}),
        [*NULLS, "1"],
    ],
    ids=["text", "objects", "floats", "nan alone", "rows", "bag"],
)
def test_keys_of_another_type_are_an_error_also_behind_nulls(keys):
    known = BloomFilter(10)
    known.update([1, 2])
    is_bag = isinstance(keys, list)
    whole = dask.bag.from_sequence(keys, npartitions=1) if is_bag else dd.from_pandas(keys, npartitions=1)
    with pytest.raises(KeyTypeError, match="in a filter that holds keys of type integer"):
        contains(whole, known).compute()


def test_nulls_alone_are_looked_up_in_a_filter_of_any_type():
    known = BloomFilter(10)
    known.update([1, 2])
    keys = dd.from_pandas(pd.Series([None, None], dtype="string"), npartitions=1)
    assert contains(keys, known).compute().tolist() == [pd.NA, pd.NA]


def test_nan_is_a_key_among_floats_as_in_one_process():
    table = pd.DataFrame({"k": [1.5, math.nan, 2.5], "n": [1, 2, 3]})
    frame = dd.from_pandas(table, npartitions=2)
    for keys, local in ((frame["k"], table["k"]), (frame, table)):
        alone = BloomFilter(10, fpr=FPR)
        alone.update(local)
        built = build(keys, capacity=10, fpr=FPR)
        assert built == alone
        assert built.num_added == 3
        assert contains(keys, built).compute().tolist() == [True, True, True]
    # Null and NaN of Arrow's floats are two things.
    arrow = pd.Series(pa.array([1.5, None, math.nan]), dtype="double[pyarrow]")
    built = build(dd.from_pandas(arrow, npartitions=1), capacity=10, fpr=FPR)
    assert built.num_added == 2
    assert contains(dd.from_pandas(arrow, npartitions=1), built).compute().tolist() == [True, pd.NA, True]


def test_rows_are_looked_up_as_tuples():
    known = BloomFilter(10, fpr=FPR)
    known.update([(1, "x")])
    found = contains(frame_of({"a": [1, 1], "b": ["x", "y"]}, parts=1), known).compute()
    assert found.tolist() == [True, False]


def test_parameters_are_refused_before_anything_runs():
    frame = frame_of({"k": [1]}, parts=1)
    with pytest.raises(ParameterError, match="column 'nope' does not exist; the columns are k"):
        build(frame, "nope", capacity=10)
    with pytest.raises(ParameterError, match="kind must be one of"):
        build(frame, "k", capacity=10, kind="stable")
    with pytest.raises(ParameterTypeError, match="got list"):
        build([1], capacity=10)
    with pytest.raises(ParameterTypeError, match="a filter is needed, such as"):
        contains(frame.k, {1})
    with pytest.raises(SecretError, match="cannot build a filter with a secret"):
        build(frame, "k", capacity=10, secret=b"x" * 16)
    with pytest.raises(SecretError, match="stays in its process"):
        contains(frame.k, BloomFilter(10, secret=b"x" * 16))
    for how in ("left", "outer"):
        with pytest.raises(ParameterError, match="how must be inner or right"):
            bloom_join(frame, frame, on="k", how=how)
    with pytest.raises(ParameterError, match="name at least one column"):
        deduplicate(frame, [])


def test_keys_of_another_type_are_an_error_of_the_query():
    known = BloomFilter(10)
    known.update([1, 2])
    texts = dask.bag.from_sequence(["1", None, "2"], npartitions=1)
    for keys in (frame_of({"k": ["1", "2"]}, parts=1)["k"], frame_of({"a": [1], "b": [2]}, parts=1), texts):
        for _ in range(2):  # also in a process that has warned
            with pytest.raises(KeyTypeError, match="in a filter that holds keys of type integer"):
                contains(keys, known).compute()
    mixed = dask.bag.from_sequence(["1", 2, None], npartitions=1)
    assert contains(mixed, known).compute() == [False, True, None]
    ready, empty = BloomFilter(10), BloomFilter(10)
    ready.add_hashed([fullbloom.hash_key("1")])
    assert contains(texts, ready).compute() == [True, None, False]
    assert contains(texts, empty).compute() == [False, None, False]


def test_values_that_are_no_keys_are_an_error():
    with pytest.raises(KeyTypeError):
        build(dask.bag.from_sequence([["a list"]], npartitions=1), capacity=10)


CALLS = {
    "build": lambda frame: build(frame, "k", capacity=10),
    "contains": lambda frame: contains(frame["k"], BloomFilter(10)),
    "contains, bag": lambda frame: contains(frame["k"].to_bag(), BloomFilter(10)),
    "join": lambda frame: bloom_join(frame, frame, on="k", use_filter=True),
    "deduplicate": deduplicate,
    "deduplicate, bag": lambda frame: deduplicate(frame["k"].to_bag()),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_worker_of_another_version_is_one_error(monkeypatch, call):
    frame = frame_of({"k": [1]}, parts=1)
    monkeypatch.setattr(fullbloom, "__version__", "9.9.9")
    with pytest.raises(EngineError, match=r"is 0\S+ there, 9.9.9 here; install it on every worker"):
        call(frame)


def test_a_filter_of_another_key_rule_is_refused_before_anything_runs():
    file = File.parse(BloomFilter(10).to_bytes())
    file.rule = 2

    class Newer:
        """A filter of a later release, whose keys have other hashes."""

        nbytes = 64

        def contains_many(self, keys):
            raise NotImplementedError

        def to_bytes(self):
            return file.build()

    keys = frame_of({"k": [1]}, parts=1)["k"]
    with pytest.raises(FormatError, match="key rule 2, this release knows 1"):
        contains(keys, fullbloom.loads(file.build()))
    with pytest.raises(FormatError, match="key rule 2, this release knows 1"):
        contains(keys, Newer()).compute()


def test_what_does_not_fit_says_so_before_it_runs(client, monkeypatch):
    keys = frame_of({"k": [1]}, parts=1)["k"]
    with pytest.raises(FilterMemoryError, match=r"max_bytes is 10 B: it would not fit"):
        contains(keys, BloomFilter(1000), max_bytes=10)
    with pytest.raises(FilterMemoryError, match=r"max_bytes is 10 B"):
        bloom_join(keys.to_frame(), keys.to_frame(), on="k", use_filter=True, max_bytes=10)
    with pytest.raises(ParameterError, match="max_bytes must be 0 or more, got -1"):
        contains(keys, BloomFilter(10), max_bytes=-1)
    described = client.scheduler_info(n_workers=-1)
    for one in described["workers"].values():
        one["memory_limit"] = 4096
    monkeypatch.setattr(client, "scheduler_info", lambda **_: described)
    with pytest.raises(FilterMemoryError, match=r"half of the memory of a worker is 2\.0 KiB"):
        contains(keys, BloomFilter(10_000))
    with pytest.raises(FilterMemoryError, match="could not merge two; raise fpr"):
        build(keys, capacity=2000)
    # A kibibyte of four is merged with one other at a time.
    frame = frame_of({"k": range(600)}, parts=7)
    assert all(build(frame, "k", capacity=700).contains_many(range(600)))


def test_many_repeats_are_left_to_dask(monkeypatch):
    """More than 30 % candidates, or more than this process holds, are compared by Dask."""
    from fullbloom.engines import dask as engine

    frame = frame_of({"k": [*range(1000)] * 2}, parts=4)
    items = dask.bag.from_sequence([*range(1000)] * 2, npartitions=4)
    for _ in range(2):
        assert sorted(deduplicate(frame).compute()["k"]) == [*range(1000)]
        assert sorted(deduplicate(items).compute()) == [*range(1000)]
        frame, items = frame_of({"k": [*range(1000), 5]}), dask.bag.from_sequence([*range(1000), 5])
        monkeypatch.setattr(engine, "_MOST_DIGITS", 0)


@pytest.mark.parametrize("how", ["inner", "right"])
@pytest.mark.parametrize("on", ["k", ["k", "name"]])
@pytest.mark.parametrize("use_filter", [True, None])
def test_a_join_is_that_of_dask(how, on, use_filter):
    numbers = range(5000)
    big = frame_of({"k": numbers, "name": [f"n{one % 7}" for one in numbers], "value": numbers}, parts=4)
    small = frame_of({"k": range(0, 10_000, 500), "name": [f"n{one % 5}" for one in range(20)]}, parts=2)
    names = [on] if isinstance(on, str) else on
    small = small[[*names]]
    joined = bloom_join(big, small, on=on, how=how, use_filter=use_filter)
    assert rows(joined) == rows(big.merge(small, on=names, how=how))


def test_missing_values_and_zeros_join_as_pandas_joins_them():
    table = {"k": [0.0, -0.0, math.nan, 1.5, 2.5]}
    big, small = frame_of(table, parts=2), frame_of({"k": [-0.0, math.nan, 1.5]}, parts=1)
    expected = pd.DataFrame(table).merge(pd.DataFrame({"k": [-0.0, math.nan, 1.5]}), on="k")
    assert len(bloom_join(big, small, on="k", use_filter=True)) == len(expected) == 4


def test_columns_of_other_types_are_joined_without_a_filter():
    big, small = frame_of({"k": [1, 2, 3]}, parts=1), frame_of({"k": [1.0, 2.0]}, parts=1)
    assert len(bloom_join(big, small, on="k", use_filter=True)) == 2


@pytest.mark.parametrize("signed", ["int64", "Int64"])
@pytest.mark.parametrize("unsigned", ["uint64", "UInt64"])
def test_integers_that_pandas_joins_as_floats_are_joined_without_a_filter(signed, unsigned):
    big = frame_of({"k": pd.Series([2**53, 5], dtype=signed)}, parts=1)
    small = frame_of({"k": pd.Series([2**53 + 1, 5], dtype=unsigned)}, parts=1)
    assert len(bloom_join(big, small, on="k", use_filter=True)) == len(big.merge(small, on="k"))


def test_rows_without_repeats_are_those_of_drop_duplicates():
    draw = random.Random(3)
    pool = [(float(one), f"t{one}") for one in range(3000)]
    pool += [(math.nan, "x"), (0.0, None), (-0.0, None), (math.nan, None)]
    table = [*pool, *draw.choices(pool, k=200), *pool[-4:]]
    draw.shuffle(table)
    local = pd.DataFrame(table, columns=["a", "b"])
    frame = dd.from_pandas(local, npartitions=5)
    kept = deduplicate(frame).compute()
    assert len(kept) == len(local.drop_duplicates())
    assert not kept.duplicated().any()
    assert len(deduplicate(frame, "b")) == local["b"].nunique(dropna=False)


def test_items_without_repeats_are_the_distinct_keys():
    items = [
        "a",
        b"a",
        1,
        True,
        1.0,
        None,
        None,
        ("a", 1),
        ("a", True),
        "b",
        *range(2, 500),
        *range(490, 600),
    ]
    kept = deduplicate(dask.bag.from_sequence(items, npartitions=6)).compute()
    assert len(kept) == 1 + 1 + 1 + 1 + 1 + 1 + len(range(2, 600))
    assert deduplicate(dask.bag.from_sequence([], npartitions=1)).compute() == []


def die_once(item, flag):
    """End the process of the first worker that comes here, without a word."""
    with contextlib.suppress(FileExistsError):
        Path(flag).touch(exist_ok=False)
        os._exit(1)
    return item


def test_a_worker_that_dies_mid_build_changes_nothing(client, tmp_path):
    flag = tmp_path / "died"
    before = {*client.run(os.getpid).values()}
    keys = dask.bag.from_sequence(range(3000), npartitions=6).map(die_once, str(flag))
    known, alone = build(keys, capacity=3000, fpr=FPR), BloomFilter(3000, FPR)
    alone.update(range(3000))
    assert flag.exists()
    assert known.bits() == alone.bits()
    client.wait_for_workers(2)
    assert {*client.run(os.getpid).values()} != before


def kill_workers(client):
    """Kill the processes of all workers; return when others are in their place."""

    def list_workers():
        return {*client.scheduler_info(n_workers=-1)["workers"]}

    before = list_workers()
    for number in client.run(os.getpid).values():
        os.kill(number, signal.SIGKILL)
    while len(now := list_workers()) < 2 or now & before:
        time.sleep(0.1)


LOOKUPS = {
    "series": lambda known: contains(dd.from_pandas(pd.Series(range(2000)), npartitions=4), known).sum(),
    "bag": lambda known: contains(dask.bag.range(2000, npartitions=4), known).sum(),
    "join": lambda known: bloom_join(  # noqa: ARG005
        frame_of({"k": range(2000)}), frame_of({"k": range(1000)}), on="k", use_filter=True
    )["k"].count(),
    "deduplicate": lambda known: (  # noqa: ARG005
        deduplicate(frame_of({"k": [*range(1000), *range(10)]}))["k"].count()
    ),
}


@pytest.mark.parametrize("look_up", LOOKUPS.values(), ids=LOOKUPS)
def test_a_filter_outlives_all_workers_that_hold_it(client, look_up):
    known = BloomFilter(1000, fpr=FPR)
    known.update(range(1000))
    found = look_up(known)
    assert found.compute() == 1000
    kill_workers(client)
    assert found.compute() == 1000


def test_a_worker_that_dies_in_a_lookup_changes_nothing(tmp_path):
    flag = tmp_path / "died"
    known = BloomFilter(1000, fpr=FPR)
    known.update(range(1000))
    keys = dask.bag.from_sequence(range(3000), npartitions=6).map(die_once, str(flag))
    assert contains(keys, known).sum().compute() == 1000
    assert flag.exists()


EQUAL_KEYS = {
    "integers": [1, True, np.int64(1), np.uint8(1), np.bool_(True)],
    "floats": [1.0, np.float64(1), np.float32(1), np.float16(1)],
    "missing": [math.nan, np.float64("nan"), np.float32("nan")],
    "text": ["a", b"a", np.str_("a"), np.bytes_(b"a")],
    "bytes": [UUID(int=1), UUID(int=1).bytes],
    "dates": [dt.date(2020, 1, 1), np.datetime64("2020-01-01")],
    "times": [dt.datetime(2020, 1, 1), pd.Timestamp(2020, 1, 1), np.datetime64("2020-01-01T00", "ns")],
    "moments": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), pd.Timestamp("2020-01-01 01:00", tz="Europe/Berlin")],
    "durations": [dt.timedelta(1), np.timedelta64(1, "D"), pd.Timedelta(days=1)],
    "decimals": [Decimal("1.0"), Decimal("1.00")],
    "tuples": [(1, "a"), (np.int64(1), np.str_("a"))],
}


def test_items_of_several_types_that_are_one_key_are_repeats():
    items = [item for group in EQUAL_KEYS.values() for item in group]
    for item in items:
        for other in items:
            is_equal = fullbloom.hash_key(item) == fullbloom.hash_key(other)
            assert (identify(item) == identify(other)) == is_equal, (item, other)
    kept = deduplicate(dask.bag.from_sequence(items, npartitions=4)).compute()
    assert {fullbloom.hash_key(item) for item in kept} == {fullbloom.hash_key(item) for item in items}
    assert len(kept) == len(EQUAL_KEYS)


def test_a_column_that_occurs_twice_is_refused():
    frame = dd.from_pandas(pd.DataFrame([[1, 2], [1, 2]], columns=["a", "a"]), npartitions=1)
    for call in (lambda: deduplicate(frame, "a"), lambda: build(frame, "a", capacity=10)):
        with pytest.raises(ParameterError, match="'a' is ambiguous"):
            call()


def test_a_frame_of_other_types_is_left_to_dask():
    frame = frame_of({"k": np.array([1, 1.0, "1"], object)}, parts=1)
    assert len(deduplicate(frame, "k")) == len(frame.drop_duplicates(subset=["k"]))


def test_structs_are_no_texts():
    """A struct with a missing field has no hash that a filter could hold, because it is not a key."""
    kind = pd.ArrowDtype(pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    assert not is_exact(kind, kind)
    assert is_exact(pd.StringDtype(), pd.StringDtype())


def test_without_a_cluster_tasks_run_in_this_process():
    """The examples of the module, in a process without a client."""
    program = (
        "import doctest, fullbloom.engines.dask as module\n"
        "found = doctest.testmod(module)\n"
        "print(found.failed, found.attempted > 10)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True"], done.stdout


def test_the_examples_of_the_page_run():
    report, count = pages.run("engines/dask.md", {})
    assert not report, report
    assert count > 10
