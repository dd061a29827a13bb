"""Lookups of a column in a filter that each worker process maps once."""

from __future__ import annotations

import hashlib
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import functions

from fullbloom.engines.arrow import check_filter
from fullbloom.engines.spark.broadcasts import broadcast
from fullbloom.engines.spark.jvm import fits_plan, look_up_integers
from fullbloom.engines.spark.sessions import check_broadcast_size, get_session, is_classic
from fullbloom.engines.spark.shipping import ship
from fullbloom.errors import SecretError

#: Digests of the filters that sessions of Spark Connect have, which keep them until they end.
_artifacts: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()


def contains(column: Any, filter_: Any, *, max_bytes: int | None = None) -> Any:
    """Return a Column that is True where the filter may contain the key, False where it does not.

    ``column`` is a name or a Column; a struct is looked up as the tuple of its fields. A null gives null, so
    ``where`` drops it, and NaN is a key. The column is a snapshot: keys added later are not in it. A filter
    that was sent lately is not sent again.

    Longs and ints are looked up in the JVM, as by `might_contain`, if the filter has Spark's format
    (``build(kind="spark")``), at most 16 MiB, and the session is a classic one. All others are sent to Python
    workers in batches of Arrow, which takes longer. For these, the filter goes to each executor once; the
    first worker there writes it to a file of the executor's folder, and every worker process maps that file.
    An executor keeps the files of the last 16 filters.

    Raises FilterMemoryError before anything runs if the filter is larger than ``max_bytes``, or half of an
    executor's memory if that is None; SecretError for a filter with a secret; EngineUnavailable without an
    active session. The query fails if the column holds no keys, or keys of a type that the filter does not
    hold, or a worker lacks this package. Its exception is one of Spark, with ours in its message;
    `TranslateErrors` around the action raises ours.
    """
    check_filter(filter_)
    session = get_session()
    key = functions.col(column) if isinstance(column, str) else column
    lookup = create_lookup(*send_filter(session, filter_, max_bytes))(key)
    if is_classic(session) and fits_plan(filter_):
        lookup = look_up_integers(key, filter_, lookup)
    # Spark would name the column by the whole expression, with all bytes of the filter.
    return lookup.alias("bloom_contains")


def create_lookup(digest: str, broadcast: Any) -> Any:
    """Return the function of columns that looks up keys in a filter that was sent."""
    return _create_function(ship("look_up", digest, broadcast))


def create_group_lookup(sent: list[tuple[str, Any]], shift: int) -> Any:
    """Return the function of columns of longs that looks up each in the filter that its digits choose."""
    digests, broadcasts = [digest for digest, _ in sent], [one for _, one in sent]
    return _create_function(ship("look_up_groups", digests, broadcasts, shift))


def _create_function(run: Any) -> Any:
    def bloom_contains(keys: Any) -> Any:
        return run(keys)

    # Spark reads the kind of a function from its annotations.
    bloom_contains.__annotations__ = {"keys": Iterator[pa.Array], "return": Iterator[pa.Array]}
    return functions.arrow_udf(bloom_contains, "boolean")


def send_filter(session: Any, filter_: Any, max_bytes: int | None = None) -> tuple[str, Any]:
    """Send a filter to the workers; return its digest and its broadcast, None over Spark Connect."""
    if getattr(filter_, "keyed", False):
        raise SecretError(
            "a filter with a secret cannot be sent to workers: its file opens with the secret only"
        )
    check_broadcast_size(session, filter_.nbytes, max_bytes)
    data = filter_.to_bytes()
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    if is_classic(session):
        return digest, broadcast(session.sparkContext, digest, data)
    sent = _artifacts.setdefault(session, set())
    if digest not in sent:
        with tempfile.TemporaryDirectory(prefix="fullbloom-") as folder:
            path = Path(folder) / f"fullbloom-{digest}.bloom"
            path.write_bytes(data)
            session.addArtifacts(str(path), file=True)
        sent.add(digest)
    return digest, None
