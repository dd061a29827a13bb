"""Filters on Dask: built by its workers from dataframes and bags, looked up, used to cut joins and repeats.

>>> import dask.bag
>>> from fullbloom.engines.dask import build, contains, deduplicate
>>> words = dask.bag.from_sequence(["ada", "grace", "ada", "edsger"], npartitions=2)
>>> known = build(words, capacity=100)
>>> contains(words, known).compute(scheduler="sync")
[True, True, True, True]
>>> sorted(deduplicate(words).compute(scheduler="sync"))
['ada', 'edsger', 'grace']

Needs Dask with dataframes, and distributed for worker processes (``pip install 'fullbloom[dask]'``).
"""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import fullbloom
from fullbloom import BloomFilter
from fullbloom.card import format_bytes
from fullbloom.engines.kinds import create_filter, create_mergeable
from fullbloom.errors import (
    EngineError,
    FilterMemoryError,
    KeyTypeError,
    ParameterError,
    ParameterTypeError,
    SecretError,
)
from fullbloom.extras import require_extra

with require_extra("dask"):
    import dask
    import dask.bag
    import dask.dataframe
    import distributed

    from fullbloom.engines import hash_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["bloom_join", "build", "contains", "deduplicate"]

#: Characters of names that messages show.
_SHOWN = 200
#: Filters, or sets of hashes, that one task merges.
_FAN_IN = 8
#: Keys of a partition whose types are compared with those of the filter.
_CHECKED = 100
#: A filter that keeps more of the rows costs more than it saves; its sample reads rows of some partitions.
_MOST_KEPT, _SAMPLED_PARTITIONS, _SAMPLED_ROWS = 0.5, 8, 2000
#: Repeated digits beyond which all rows are compared, in this process 1 GiB, and their share of the rows.
_MOST_DIGITS, _MOST_CANDIDATES = 1 << 27, 0.3
#: Values of digits per row, at least: there is one round only.
_SPREAD = 256
#: Kinds of NumPy types whose equal values are equal keys: integers, floats, booleans, timestamps.
_EXACT_KINDS = "iufbM"
#: Kinds of NumPy types whose values are the keys of plain values of Python.
_PLAIN_KINDS = frozenset("biufSU")


def build(
    keys: Any,
    column: str | None = None,
    *,
    capacity: int,
    fpr: float = 0.01,
    kind: str = "bloom",
    **parameters: Any,
) -> Any:
    """Return a filter of the keys in a bag, a series, a column or the rows of a dataframe.

    Nulls are skipped, and NaN among floats of NumPy is a key, as in pandas batches. Each partition becomes a
    filter for ``capacity`` keys; workers merge eight at a time, in a tree. A task that runs twice cannot
    change the filter. ``kind`` is a kind that takes ``capacity`` and ``fpr`` and can merge, or ``"spark"``
    for a filter in Spark's format; ``parameters`` are further ones of its class. Raises ParameterError,
    ParameterTypeError; KeyTypeError for values that cannot be keys, SecretError for a filter
    with a secret, FilterMemoryError if a worker has no memory to merge two, and EngineError if a worker lacks
    this package or has another version of it.
    """
    if column is not None:
        _check_frame(keys, [column])
        keys = keys[column]
    if parameters.get("secret") is not None:
        raise SecretError("workers cannot build a filter with a secret: tasks would contain the secret")
    # Refuses parameters before anything runs.
    nbytes = create_mergeable(kind, capacity, fpr, **parameters).nbytes
    _check_workers()
    fan_in = _choose_fan_in(nbytes)
    add = dask.delayed(_add_keys, pure=False)
    merge = dask.delayed(_merge_filters, pure=False)
    parts = [add(part, kind, capacity, fpr, parameters) for part in _list_partitions(keys)]
    while len(parts) > 1:
        parts = [merge(parts[start : start + fan_in]) for start in range(0, len(parts), fan_in)]
    (result,) = dask.compute(parts[0])
    return result


def contains(keys: Any, filter_: Any, *, max_bytes: int | None = None) -> Any:
    """Return a lazy series, or bag, of whether the filter may contain each key.

    ``keys`` is a series, a bag, or a dataframe whose rows are looked up as tuples. A null gives ``<NA>`` in
    the series, of type ``boolean``, and None in the bag. NaN is a key among floats of NumPy, and a null in
    every other column, as in batches of pandas. Each worker process receives the filter once, as it
    is now; a process that replaces a killed one receives it again. Raises ParameterTypeError for another
    collection or what is not a filter; FilterMemoryError if the filter is larger than ``max_bytes``, or half
    of the memory of a worker if that is None; EngineError as `build` does. The result raises KeyTypeError if
    the first keys of a partition are of types that the filter does not hold, because the warning of a worker
    would not be seen.

    >>> import pandas as pd
    >>> from fullbloom import BloomFilter
    >>> known = BloomFilter(10)
    >>> known.update([1, 2])
    >>> keys = dask.dataframe.from_pandas(pd.Series([2, 7]), npartitions=1)
    >>> contains(keys, known).compute(scheduler="sync").tolist()
    [True, False]
    """
    if not callable(getattr(filter_, "contains_many", None)) or isinstance(filter_, type):
        raise ParameterTypeError(
            f"a filter is needed, such as BloomFilter(1000), got {type(filter_).__name__}"
        )
    sent = _send(filter_, max_bytes)
    if isinstance(keys, dask.bag.Bag):
        return keys.map_partitions(_look_up_items, sent)
    _check_collection(keys)
    name = None if isinstance(keys, dask.dataframe.DataFrame) else keys.name
    return keys.map_partitions(_look_up, sent, meta=(name, "boolean"))


def bloom_join(
    big: Any,
    small: Any,
    *,
    on: str | Sequence[str],
    how: str = "inner",
    fpr: float = 0.01,
    use_filter: bool | None = None,
    max_bytes: int | None = None,
) -> Any:
    """Return ``big.merge(small, on=on, how=how)``; a filter of the small keys drops rows first if it pays.

    ``how`` is "inner" or "right". The small side is counted and read now, for the filter, and again with the
    join, so both reads must give the same rows. The filter is used unless it keeps more than half of a sample
    of the large side: the first 2,000 rows of up to 8 partitions. ``use_filter`` overrides that. There is no
    filter if the columns have different types, or a type whose equal values may be different keys. Raises
    ParameterError if a column does not exist or ``how`` is another join, FilterMemoryError as `contains`
    does, and the errors of `build`.
    """
    if how not in {"inner", "right"}:
        raise ParameterError(
            f"how must be inner or right, got {str(how)[:40]!r}: others keep large rows without a partner"
        )
    columns = [on] if isinstance(on, str) else [*on]
    types = zip(_check_frame(big, columns), _check_frame(small, columns), strict=True)
    if use_filter is not False and all(_is_exact(one, other) for one, other in types):
        known = build(_select_keys(small, columns), capacity=max(1, len(small)), fpr=fpr)
        sent = _send(known, max_bytes)
        if use_filter or _sample(big, columns, sent) <= _MOST_KEPT:
            big = big.map_partitions(_keep_candidates, columns, sent, meta=big._meta)  # noqa: SLF001
    return big.merge(small, on=columns, how=how)


def deduplicate(collection: Any, columns: str | Sequence[str] | None = None) -> Any:
    """Return a dataframe or bag without repeated rows: one row for each value of ``columns``, or each item.

    The result is exact. Partitions send 1 to 3 bytes per row of its hash to the owners of these hashes, which
    find those that occur repeatedly; only candidates are compared in one place. If more than 30 % of the rows
    are candidates, this is ``drop_duplicates``, or ``distinct``. The collection is counted and read now, and
    again with the result, so both reads must give the same rows: ``persist`` one with random functions, or
    with a source that others write to. Rows of a dataframe are
    equal as in ``drop_duplicates``, which this is for columns of other types than numbers, text, booleans and
    timestamps. Items of a bag are equal if they are the same key: 1 and 1.0 are not. Raises ParameterError if
    a column does not exist, KeyTypeError if an item of a bag is not a key, and EngineError as `build` does.
    """
    is_bag = isinstance(collection, dask.bag.Bag)
    names: list[str] = []
    if is_bag:
        rows = collection.count().compute()
    else:
        _check_collection(collection)
        names = (
            [*collection.columns]
            if columns is None
            else [columns]
            if isinstance(columns, str)
            else [*columns]
        )
        if not all(_is_exact(one, one) for one in _check_frame(collection, names)):
            return collection.drop_duplicates(subset=names)
        rows = len(collection)
    _check_workers()
    shape = hash_sets.choose_shape(rows, _SPREAD)
    bits = shape.bits
    known = create_filter("bloom", 1, hash_sets.REPEATED_FPR)
    repeated = _exchange(collection, names, rows, shape)
    if repeated is None:
        return collection.distinct(key=identify) if is_bag else collection.drop_duplicates(subset=names)
    if len(repeated):
        known = create_filter("bloom", len(repeated), hash_sets.REPEATED_FPR)
        known.update(repeated)
    sent = _send(known)
    if is_bag:
        rest = collection.map_partitions(_select_items, sent, bits, candidates=False)
        candidates = collection.map_partitions(_select_items, sent, bits, candidates=True)
        return dask.bag.concat([rest, candidates.distinct(key=identify)])
    rest, candidates = (
        collection.map_partitions(_select_rows, names, sent, bits, candidates=one, meta=collection._meta)  # noqa: SLF001
        for one in (False, True)
    )
    return dask.dataframe.concat([rest, candidates.drop_duplicates(subset=names)])


def identify(item: Any) -> Any:
    """Return a value that is equal for two items exactly if they are the same key.

    >>> identify(1) == identify(True), identify(1) == identify(1.0), identify("a") == identify(b"a")
    (True, False, True)
    """
    # Numbers and texts of NumPy are the keys of plain ones. Its times are compared by hash, like all times.
    if getattr(getattr(item, "dtype", None), "kind", "") in _PLAIN_KINDS:
        item = item.item()
    if isinstance(item, str | bytes | bytearray | memoryview | UUID):
        return "text", _read_bytes(item)
    if isinstance(item, int):
        return "integer", int(item)
    if isinstance(item, float):
        return "float", "nan" if math.isnan(item) else float(item)
    if isinstance(item, tuple):
        return "tuple", tuple(identify(part) for part in item)
    if item is None or isinstance(item, Decimal):
        return type(item).__name__, item
    # Dates, times and durations are eight bytes, of which this hash maps no two to one value.
    return "time", fullbloom.hash_key(item)


def _read_bytes(item: str | bytes | bytearray | memoryview | UUID) -> bytes:
    if isinstance(item, UUID):
        return item.bytes
    return item.encode("utf-8", "surrogatepass") if isinstance(item, str) else bytes(item)


def _check_workers() -> None:
    """Raise EngineError if a worker of the current client has no fullbloom, or another version of it."""
    try:
        client = distributed.default_client()
    except ValueError:
        return  # the tasks run in this process, or in children of it

    def read_version() -> str:
        # Pickled by value, because a worker without the package could not unpickle it otherwise.
        import importlib

        try:
            return str(importlib.import_module("fullbloom").__version__)
        except ImportError:
            return "not installed"

    for worker, version in client.run(read_version).items():
        if version != fullbloom.__version__:
            raise EngineError(
                f"worker {worker} cannot run fullbloom: it is {version} there, {fullbloom.__version__} here; "
                f"install it on every worker: pip install 'fullbloom[dask]=={fullbloom.__version__}'"
            )


def _read_memory() -> int | None:
    """Return the least memory of a worker of the current client; None if no worker has a limit."""
    try:
        workers = distributed.default_client().scheduler_info(n_workers=-1)["workers"].values()
    except ValueError:
        return None
    return min((limit for one in workers if (limit := one.get("memory_limit"))), default=None)


def _choose_fan_in(nbytes: int) -> int:
    """Return how many filters of this size a worker merges at a time; raise FilterMemoryError if not two."""
    memory = _read_memory()
    fan_in = _FAN_IN if memory is None else min(_FAN_IN, memory // nbytes - 2)  # beside the result and a copy
    if memory is not None and fan_in < 2:  # noqa: PLR2004
        raise FilterMemoryError(
            f"the filter has {format_bytes(nbytes)}, and a worker has {format_bytes(memory)}: it could not "
            "merge two; raise fpr, or give the workers more memory"
        )
    return fan_in


def _check_size(nbytes: int, max_bytes: int | None) -> None:
    """Raise FilterMemoryError if a filter does not fit beside the tasks of a worker."""
    reason = "max_bytes"
    if max_bytes is None:
        memory, reason = _read_memory(), "half of the memory of a worker"
        max_bytes = nbytes if memory is None else memory // 2
    elif max_bytes < 0:
        raise ParameterError(f"max_bytes must be 0 or more, got {max_bytes}")
    if nbytes > max_bytes:
        raise FilterMemoryError(
            f"the filter has {format_bytes(nbytes)}, and {reason} is {format_bytes(max_bytes)}: it would not "
            "fit; raise fpr, or pass max_bytes= if the workers have the memory"
        )


def _send(filter_: Any, max_bytes: int | None = None) -> Any:
    """Return a filter as an argument of tasks, which each worker process receives once."""
    if getattr(filter_, "keyed", False):
        raise SecretError("a filter with a secret stays in its process: a pickle must not contain the secret")
    _check_size(filter_.nbytes, max_bytes)
    data = filter_.to_bytes()
    try:
        client = distributed.default_client()
    except ValueError:
        return dask.delayed(fullbloom.loads(data))
    _check_workers()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")
        # A task, and not scattered data: if all workers that hold the filter die, another one runs it again.
        # Its key is its own: with that of an equal filter, released now, tasks could wait forever.
        return dask.delayed(client.submit(_open_filter, data, pure=False))


def _list_partitions(collection: Any) -> list[Any]:
    if not isinstance(collection, dask.bag.Bag):
        _check_collection(collection)
    return list(collection.to_delayed())


def _check_collection(collection: Any) -> None:
    if not isinstance(collection, dask.dataframe.DataFrame | dask.dataframe.Series):
        raise ParameterTypeError(
            f"a dataframe, series or bag of Dask is needed, got {type(collection).__name__}"
        )


def _check_frame(frame: Any, columns: list[str]) -> list[Any]:
    """Return the types of some columns; raise if ``frame`` is not a dataframe or lacks a column."""
    if not isinstance(frame, dask.dataframe.DataFrame):
        raise ParameterTypeError(f"a dataframe of Dask is needed, got {type(frame).__name__}")
    if not columns:
        raise ParameterError("name at least one column")
    for column in columns:
        if column not in frame.columns:
            known = ", ".join(map(str, frame.columns))[:_SHOWN]
            raise ParameterError(f"column {str(column)[:_SHOWN]!r} does not exist; the columns are {known}")
        if [*frame.columns].count(column) > 1:
            raise ParameterError(f"column {str(column)[:_SHOWN]!r} is ambiguous; rename one of them")
    return [frame.dtypes[column] for column in columns]


def _is_exact(one: Any, other: Any) -> bool:
    """Return whether equal values of two types of pandas are equal keys."""
    kinds = {getattr(one, "kind", ""), getattr(other, "kind", "")}
    # pandas may join signed with unsigned integers of 64 bits as floats, in which different ones are equal.
    names = {str(one).lower().partition("[")[0], str(other).lower().partition("[")[0]}
    integers = kinds <= {"i", "u"} and (len(kinds) == 1 or "uint64" not in names)
    text = (str(one) == "str" or str(one).startswith("string")) and str(one) == str(other)
    return integers or text or (one == other and getattr(one, "kind", "O") in _EXACT_KINDS)


def _select_keys(frame: Any, columns: list[str]) -> Any:
    """Return one column, or a frame whose rows are tuples."""
    return frame[columns[0]] if len(columns) == 1 else frame[columns]


def _exchange(collection: Any, columns: list[str], rows: int, shape: hash_sets.Shape) -> Any:
    """Return the digits of hashes that occur repeatedly, as an array; None if so many do not pay."""
    bits, owner_bits = shape
    owners = range(1 << owner_bits)
    send = dask.delayed(_send_hashes, pure=False)
    pick, answer = dask.delayed(_pick_set, pure=False), dask.delayed(_find_repeated, pure=False)
    sent = [send(part, columns, bits, owner_bits) for part in _list_partitions(collection)]
    answers = [answer([pick(part, owner) for part in sent], bits - owner_bits) for owner in owners]
    answers = dask.persist(*answers)  # their sizes come first, so that this process holds no more than it can
    count = dask.delayed(hash_sets.read_size, pure=False)
    repeated = sum(dask.compute(*map(count, answers)))
    if repeated > _MOST_DIGITS or 2 * repeated > _MOST_CANDIDATES * rows:
        return None
    return hash_sets.join(zip(owners, dask.compute(*answers), strict=True), bits, owner_bits)


def _sample(big: Any, columns: list[str], sent: Any) -> float:
    """Return the share of a sample's rows that a filter keeps; 0 if the sample has no rows."""
    count = big.npartitions
    chosen = sorted({count * part // _SAMPLED_PARTITIONS for part in range(_SAMPLED_PARTITIONS)})
    measure = dask.delayed(_count_candidates, pure=False)
    parts = [measure(big.get_partition(part).to_delayed()[0], columns, sent) for part in chosen]
    counts = dask.compute(*parts)
    rows = sum(one for one, _ in counts)
    return sum(kept for _, kept in counts) / rows if rows else 0.0


# What follows runs on workers.


def _open_filter(data: bytes) -> Any:
    return fullbloom.loads(data)


def _add_keys(keys: Any, kind: str, capacity: int, fpr: float, parameters: dict[str, Any]) -> Any:
    part = create_mergeable(kind, capacity, fpr, **parameters)
    # Columns skip what is missing by themselves; NaN is a key among floats.
    part.update(keys if hasattr(keys, "dropna") else [key for key in keys if key is not None])
    return part


def _merge_filters(parts: list[Any]) -> Any:
    whole = parts[0].copy()  # a worker keeps its parts, which another run of this task may need unchanged
    for part in parts[1:]:
        whole.merge(part)
    return whole


def _look_up(keys: Any, known: Any) -> Any:
    present = keys.dropna()  # also of NaN, which is a key: a column may have nothing else
    _check_domains((present if len(present) else keys).head(_CHECKED), known)
    marks = known.contains_many(keys).astype("boolean")
    return marks.rename(None if hasattr(keys, "columns") else keys.name)


def _check_domains(keys: Any, known: Any) -> None:
    """Raise KeyTypeError if no key is of a type that the filter holds, so that it would find none of them."""
    held = {*getattr(known, "key_domains", "unknown").split(", ")}
    if held & {"none", "hashed", "unknown"} or not len(keys):
        return
    probe = BloomFilter(_CHECKED)
    probe.update(keys)
    if probe.num_added and not held & {*probe.key_domains.split(", ")}:
        raise KeyTypeError(
            f"keys of type {probe.key_domains} were looked up in a filter that holds keys of type "
            f"{known.key_domains}; cast the keys"
        )


def _look_up_items(items: Any, known: Any) -> list[bool | None]:
    listed = [*items]
    items = [item for item in listed if item is not None]
    _check_domains(items[:_CHECKED], known)
    marks = iter(known.contains_many(items))
    return [None if item is None else next(marks) for item in listed]


def _mark_candidates(rows: Any, columns: list[str], known: Any) -> Any:
    """Return which rows may have a partner; pandas joins missing values with each other."""
    return _look_up(_select_keys(rows, columns), known).fillna(value=True).to_numpy(bool)


def _keep_candidates(rows: Any, columns: list[str], known: Any) -> Any:
    return rows[_mark_candidates(rows, columns, known)]


def _count_candidates(rows: Any, columns: list[str], known: Any) -> tuple[int, int]:
    sampled = rows.head(_SAMPLED_ROWS)
    return len(sampled), int(_mark_candidates(sampled, columns, known).sum())


def _hash_rows(rows: Any, columns: list[str]) -> Any:
    """Return one hash per row or item as an array; rows with a missing value have the hash 0."""
    if not columns:
        hashes = iter(fullbloom.hash_many([item for item in rows if item is not None]))
        return hash_sets.read_hashes([0 if item is None else next(hashes) for item in rows])
    hashes = fullbloom.hash_many(_select_keys(rows, columns))
    missing = rows[columns].isna().any(axis=1)
    return hash_sets.read_hashes(hashes.mask(missing, 0).to_numpy("uint64"))


def _send_hashes(rows: Any, columns: list[str], bits: int, owner_bits: int) -> dict[int, tuple[bytes, bytes]]:
    collected = hash_sets.Collector(bits=bits)
    collected.add(_hash_rows(rows if columns else [*rows], columns))
    return {owner: (sent, repeated) for owner, sent, repeated in collected.split(owner_bits)}


def _pick_set(sets: dict[int, tuple[bytes, bytes]], owner: int) -> tuple[bytes, bytes] | None:
    return sets.get(owner)


def _find_repeated(parts: list[tuple[bytes, bytes] | None], bits: int) -> bytes:
    return hash_sets.find_repeated([part for part in parts if part is not None], bits)


def _select_rows(rows: Any, columns: list[str], known: Any, bits: int, *, candidates: bool) -> Any:
    digits = hash_sets.take_digits(_hash_rows(rows, columns), bits)
    return rows[known.contains_many(digits) == candidates]


def _select_items(items: Any, known: Any, bits: int, *, candidates: bool) -> list[Any]:
    listed = [*items]
    digits = hash_sets.take_digits(_hash_rows(listed, []), bits)
    marks = known.contains_many(digits)
    return [item for item, mark in zip(listed, marks, strict=True) if mark == candidates]
