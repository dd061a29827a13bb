"""What runs on workers: adding, merging and looking up batches of Arrow. `shipping` calls it by name."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import SparkFiles, TaskContext

import fullbloom
from fullbloom.engines import hash_sets
from fullbloom.engines.kinds import create_mergeable
from fullbloom.errors import KeyDomainWarning, KeyTypeError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Filters that a worker process keeps mapped, and an executor as files.
_MOST_OPEN = 16
#: Tries to open a file that another worker may remove at the same time.
_TRIES = 8
_open: OrderedDict[str, Any] = OrderedDict()


def send_filter(
    batches: Iterator[Any], kind: str, capacity: int, fpr: float, parameters: dict[str, Any], groups: int
) -> Iterator[Any]:
    """Yield a filter of the keys in the first column, with the number of the group that merges it."""
    part = _build(batches, kind, capacity, fpr, parameters)
    if part is not None:
        yield _pack_filter(part, TaskContext.get().partitionId() % groups)


def write_filter(
    batches: Iterator[Any], kind: str, capacity: int, fpr: float, parameters: dict[str, Any], folder: str
) -> Iterator[Any]:
    """Yield the path of a filter of the keys in the first column, in a new file of a folder of the driver.

    Each attempt of a task has a file of its own, and the driver reads those of attempts that succeeded.
    """
    part = _build(batches, kind, capacity, fpr, parameters)
    if part is not None:
        descriptor, path = tempfile.mkstemp(suffix=".bloom", dir=folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(part.to_bytes())
        yield pa.record_batch({"path": pa.array([path], pa.string())})


def _build(
    batches: Iterator[Any], kind: str, capacity: int, fpr: float, parameters: dict[str, Any]
) -> Any | None:
    """Return a filter of the keys in the first column, None if there are no rows."""
    part = None
    for batch in batches:
        if part is None:
            part = create_mergeable(kind, capacity, fpr, **parameters)
        part.update(batch.column(0))
    return part


def merge_filters(batches: Iterator[Any], groups: int) -> Iterator[Any]:
    """Yield the union of the filters in the column ``filter``."""
    whole: Any = None
    for batch in batches:
        for value in batch.column("filter"):
            part: Any = fullbloom.loads(memoryview(value.as_buffer()).cast("B"))
            if whole is None:
                whole = part
            else:
                whole.merge(part)
    if whole is not None:
        yield _pack_filter(whole, TaskContext.get().partitionId() % groups)


def _pack_filter(part: Any, group: int) -> Any:
    data = pa.array([part.to_bytes()], pa.binary())
    return pa.record_batch({"group": pa.array([group], pa.int32()), "filter": data})


def look_up(arrays: Iterator[Any], digest: str, broadcast: Any) -> Iterator[Any]:
    """Yield one mark per key of each array; a null gives a null."""
    known, checked = open_shared(digest, broadcast), set[str]()
    for array in arrays:
        marks = known.contains_many(array)
        if str(array.type) not in checked and marks.null_count < len(array):
            first = marks.is_valid().index(pa.scalar(value=True)).as_py()  # a null has no type to compare
            check_domain(digest, broadcast, array.slice(first, 1))
            checked.add(str(array.type))
        yield marks


def look_up_groups(
    arrays: Iterator[Any], digests: list[str], broadcasts: list[Any], shift: int
) -> Iterator[Any]:
    """Yield one mark per long of each array, from the filter that its digits above ``shift`` choose."""
    for array in arrays:
        digits = array.to_numpy(zero_copy_only=False)
        groups = digits >> shift
        marks = hash_sets.create_marks(len(digits))
        for group, (digest, broadcast) in enumerate(zip(digests, broadcasts, strict=True)):
            chosen = groups == group
            if chosen.any():
                marks[chosen] = open_shared(digest, broadcast).contains_many(digits[chosen])
        yield pa.array(marks)


def sample_lookups(batches: Iterator[Any], digest: str, broadcast: Any, most: int) -> Iterator[Any]:
    """Yield the number of the first rows of a partition, ``most`` at most, and of those that are kept."""
    rows = kept = 0
    known = open_shared(digest, broadcast)
    for batch in batches:
        keys = batch.column(0)[: most - rows]
        rows += len(keys)
        kept += known.contains_many(keys).true_count
        if rows >= most:
            break
    yield pa.record_batch({"rows": pa.array([rows], pa.int64()), "kept": pa.array([kept], pa.int64())})


def send_hashes(batches: Iterator[Any], shift: int, bits: int, owner_bits: int) -> Iterator[Any]:
    """Yield the digits of the hashes of a partition, one sorted and compressed set per owner."""
    collected = hash_sets.Collector(bits=bits, shift=shift)
    for batch in batches:
        collected.add(batch.column(0).to_numpy(zero_copy_only=False))
    for owner, sent, repeated in collected.split(owner_bits):
        yield pa.record_batch(
            {
                "owner": pa.array([owner], pa.int32()),
                "sent": pa.array([sent], pa.binary()),
                "repeated": pa.array([repeated], pa.binary()),
            }
        )


def answer_hashes(batches: Iterator[Any], bits: int, owner_bits: int) -> Iterator[Any]:
    """Yield, for each owner, the set of digits that several partitions sent, or one of them repeatedly."""
    owners: dict[int, list[tuple[bytes, bytes]]] = {}
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("owner", "sent", "repeated"))
        for owner, sent, repeated in zip(*columns, strict=True):
            owners.setdefault(owner, []).append((sent, repeated))
    for owner, parts in owners.items():
        found = hash_sets.find_repeated(parts, bits - owner_bits)
        yield pa.record_batch(
            {
                "owner": pa.array([owner], pa.int32()),
                "size": pa.array([hash_sets.read_size(found)], pa.int64()),
                "repeated": pa.array([found], pa.binary()),
            }
        )


def open_shared(digest: str, broadcast: Any) -> Any:
    """Return the filter with these bytes, mapped from a file that all workers of an executor share.

    The first worker writes the file atomically; without a broadcast, Spark Connect has delivered it. The
    oldest of more than 16 files is removed, which a process that has mapped it does not notice, and written
    again if a query needs it. Spark deletes the folder with the executor.
    """
    known = _open.get(digest)
    if known is None:
        known = _open[digest] = _open_file(digest, broadcast)
        if len(_open) > _MOST_OPEN:
            _open.popitem(last=False)
    _open.move_to_end(digest)
    return known


def name_file(digest: str) -> str:
    """Return the name of the file of a filter with this digest."""
    return f"fullbloom-{digest}.bloom"


def _open_file(digest: str, broadcast: Any) -> Any:
    for _ in range(_TRIES):
        path = _provide_file(digest, broadcast)
        with suppress(FileNotFoundError):  # another worker has removed it
            return fullbloom.open(path)
    return fullbloom.open(path)


def _provide_file(digest: str, broadcast: Any) -> Path:
    path = Path(SparkFiles.get(name_file(digest)))
    if broadcast is None:
        return path
    with suppress(FileNotFoundError):
        os.utime(path)  # the last ones to be removed are those that were needed last
        return path
    descriptor, written = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(broadcast.value)
        Path(written).replace(path)
    except BaseException:
        Path(written).unlink(missing_ok=True)
        raise
    finally:
        with suppress(AttributeError):
            del broadcast._value  # noqa: SLF001 - the process would keep a second copy of the filter
    if hasattr(broadcast, "_path"):  # an encrypted broadcast can be read only once
        _remove_oldest(path.parent)
    return path


def _remove_oldest(folder: Path) -> None:
    """Remove the files of filters beyond the last 16."""
    found = []
    for path in folder.glob(name_file("*")):
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(found)[:-_MOST_OPEN]:
        path.unlink(missing_ok=True)


def check_domain(digest: str, broadcast: Any, key: Any) -> None:
    """Raise KeyTypeError if the filter holds keys of another type than an array of one key."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", KeyDomainWarning)
        try:
            # A filter warns once, so a check needs one that has not warned yet; opening takes microseconds.
            _open_file(digest, broadcast).contains_many(key)
        except KeyDomainWarning as warning:
            raise KeyTypeError(str(warning)) from None
