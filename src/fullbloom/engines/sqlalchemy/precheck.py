"""The pre-check: a filter, the table behind it, and the counts of queries."""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy import event

from fullbloom.engines.sqlalchemy.connections import is_autocommit
from fullbloom.engines.sqlalchemy.observer import Observer
from fullbloom.engines.sqlalchemy.pending import PendingKeys
from fullbloom.engines.sqlalchemy.statements import Statements, can_equal, find_column, find_type, is_of_type
from fullbloom.errors import KeyTypeError, ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom.protocols import Addable

#: The names of prepared transactions.
_PREPARED = "select gid from pg_prepared_xacts where database = current_database()"
#: Keys that wait for a filter which refuses them; beyond these all lookups go to the database.
_MOST_UNADDED = 100_000


@dataclass(frozen=True)
class Stats:
    """Counts since the pre-check was created.

    lookups: calls of `exists`. queries_saved: those that the filter answered. queries: those that the
    database answered. false_positives: queries that the filter allowed but that found nothing. fallbacks:
    queries made without the filter, because it was not loaded, had failed, or an open transaction had written
    the key. failures: errors of the filter. pending: keys of open transactions, now. is_complete: whether the
    filter has the keys of all rows, now.
    """

    lookups: int = 0
    queries_saved: int = 0
    queries: int = 0
    false_positives: int = 0
    fallbacks: int = 0
    failures: int = 0
    pending: int = 0
    is_complete: bool = False


class PreCheck:
    """Answers whether a row with a key exists, from a filter where the filter rules the key out.

    filter_: a filter that takes keys at any time, in memory or on a server. columns: the column of the key,
    or several, whose key is the tuple of their values: columns of a table or attributes of a mapped class.
    normalize: a function from a value (or the tuple) to its key, for columns whose equality is not that of
    Python's values.

    The pre-check never changes an answer, as long as all rows are written through engines that it watches. A
    key is added to the filter after the commit of its row, and until then lookups of that key go to the
    database. A rollback, also to a savepoint, adds nothing. The filter fails open: while it is not loaded or
    raises errors, the database answers. It is the filter of one table: with ``schema_translate_map``, create
    a check per schema, load it with an engine of that map, and ask it in sessions of that map only. A process
    sees only its own writes: after a fork, all lookups of the child go to the database until it calls `load`.

    Without ``normalize``, the columns must be of the types Integer, String, Uuid, LargeBinary or Date,
    without a collation, and of no class that converts values. Raises ParameterError for others: rounding,
    padding and letter case make different values equal there.
    """

    def __init__(
        self, filter_: Addable, *columns: Any, normalize: Callable[[Any], Any] | None = None
    ) -> None:
        for method in ("update", "__contains__"):
            if isinstance(filter_, type) or not callable(getattr(filter_, method, None)):
                message = f"a filter that takes keys is needed, got {type(filter_).__name__}"
                raise ParameterTypeError(message)
        self._filter = filter_
        self._columns = [find_column(column) for column in columns]
        if not columns or len({id(column.table) for column in self._columns}) != 1:
            raise ParameterError("a pre-check needs one or more columns of one table")
        self._normalize = normalize
        self._types = None if normalize else [find_type(column) for column in self._columns]
        self._statements = Statements(self._columns, self._types)
        conditions = [
            column == sqlalchemy.bindparam(f"key{place}") for place, column in enumerate(self._columns)
        ]
        self._query = sqlalchemy.select(sqlalchemy.literal(1)).where(*conditions).limit(1)
        #: Keys of open transactions.
        self.pending = PendingKeys()
        self._unadded: list[Any] = []
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(("saved", "queries", "false_positives", "fallbacks", "failures"), 0)
        self._is_loaded = False
        #: How often the filter became incomplete, so that a load sees it.
        self._losses = 0
        #: Held by `watch` and `close`, so that no engine is watched twice.
        self._watching = threading.Lock()
        self._listeners: list[tuple[Any, str, Any]] = []
        self._observers: list[Observer] = []
        _checks.add(self)

    def watch(self, engine: Any) -> None:
        """Observe the transactions of an engine; `load` does so, too. Watching twice changes nothing.

        Statements of SQLAlchemy are read from their parameters: flushes, ``insert()`` and ``update()`` of
        both ORM and Core. A statement whose keys cannot be read so (``insert().from_select()``, an expression
        as a key, SQL as text, a change of the table's definition) makes the filter incomplete once it
        commits: `load` again. So does the commit of a transaction that began before this call, because its
        rows may be older. Writes by triggers and functions of the database, through views and partitions, by
        cursors of the driver, and by programs that do not use these engines are not seen. Nor is a statement
        that another thread has sent already, so call this before other threads write.
        """
        engine = getattr(engine, "sync_engine", engine)
        if not isinstance(engine, sqlalchemy.Engine):
            raise ParameterTypeError(f"an engine of SQLAlchemy is needed, got {type(engine).__name__}")
        with self._watching:
            if any(target is engine for target, _, _ in self._listeners):
                return
            observer = Observer(self, self._statements, engine)
            self._observers.append(observer)
            # `begin` last: a transaction whose begin was seen counts as one whose statements were seen.
            events: list[tuple[object, str]] = [(engine.pool, name) for name in observer.POOL_EVENTS]
            events += [(engine, name) for name in reversed(observer.ENGINE_EVENTS)]
            for target, name in events:
                listener = observer.guard(getattr(observer, name))
                event.listen(target, name, listener)
                self._listeners.append((target, name, listener))

    def close(self) -> None:
        """Stop watching; from now on every lookup goes to the database, also after a load that still runs."""
        self.mark_incomplete()
        with self._watching:
            for target, name, listener in self._listeners:
                event.remove(target, name, listener)
            self._listeners.clear()
            for observer in self._observers:
                observer.close()
            self._observers.clear()

    def load(self, engine: Any, *, batch: int = 50_000) -> int:
        """Watch ``engine`` and add the keys of all rows; return the number of rows with a key.

        Rows are read ``batch`` at a time. Lookups go to the database until the load is complete; if it fails,
        they continue to do so, and also while PostgreSQL has prepared transactions that no watched connection
        holds, because SQLAlchemy does not report ``commit_prepared``. For an asynchronous engine:
        ``await connection.run_sync(lambda inner: check.load(inner.engine))``.

        Without ``normalize``, raises ParameterError if different texts are equal in a column of the database,
        as with ``citext``, ``char(n)`` or a collation that ignores case; and KeyTypeError if it returns
        values of another type than the declared one.
        """
        if batch < 1:
            raise ParameterError(f"batch must be 1 or more, got {batch}")
        # Before the watch: a close after it must leave the filter incomplete.
        with self._lock:
            losses, self._is_loaded = self._losses, False
        self.watch(engine)
        found, is_whole = 0, True
        with engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                if is_autocommit(connection):
                    connection.exec_driver_sql("BEGIN")  # a cursor on the server lives in a transaction
                is_whole = {*connection.exec_driver_sql(_PREPARED).scalars()} <= self._list_xids()
            self._check_equality(connection)
            rows = connection.execution_options(yield_per=batch).execute(sqlalchemy.select(*self._columns))
            for part in rows.partitions():
                keys = [self._read_row(tuple(row)) for row in part if None not in row]
                self._filter.update(keys)
                found += len(keys)
        with self._lock:
            self._is_loaded = is_whole and losses == self._losses
        return found

    def _check_equality(self, connection: Any) -> None:
        for column, kind in zip(self._columns, self._types or (), strict=False):
            if kind is str and can_equal(connection, column):
                raise ParameterError(
                    f"different texts are equal in the column {column.name} of the database, by its "
                    "collation or type; pass normalize=, a function from a value to its key"
                )

    def _read_row(self, values: tuple[Any, ...]) -> Any:
        try:
            self._check_key(values)
        except KeyTypeError as error:
            raise KeyTypeError(
                f"{error} from the database; declare the column as it is there, or pass normalize="
            ) from None
        return self.read_key(values)

    def _list_xids(self) -> set[str]:
        with self._watching:
            return set().union(*(observer.list_xids() for observer in self._observers))

    def exists(self, session: Any, key: Any) -> bool:
        """Return whether a row with ``key`` exists, as a query of ``session`` would.

        ``session`` is a Session or a Connection. With several columns, ``key`` is the tuple of their values.
        A session that flushes automatically is flushed first, as before a query. For an AsyncSession: ``await
        session.run_sync(check.exists, key)``. Raises KeyTypeError if the key is not of the column's type or
        is None, which equals no row in SQL; and the errors of the database.

        A saved query takes about a microsecond, any other as long as the query.
        """
        values = key if len(self._columns) > 1 else (key,)
        self._check_key(values)
        if getattr(session, "autoflush", False):
            session.flush()
        is_allowed, is_fallback = self._ask_filter(values)
        if not is_allowed:
            self._count("saved")
            return False
        parameters = {f"key{place}": value for place, value in enumerate(values)}
        found = session.execute(self._query, parameters).first() is not None
        self._count("queries", *(["fallbacks"] if is_fallback else [] if found else ["false_positives"]))
        return found

    def stats(self) -> Stats:
        """Return the counts."""
        with self._lock:
            counts, is_complete = dict(self._counts), self._is_loaded
        saved = counts.pop("saved")
        lookups = saved + counts["queries"]
        pending = len(self.pending)
        return Stats(lookups=lookups, queries_saved=saved, pending=pending, is_complete=is_complete, **counts)

    def _ask_filter(self, values: tuple[Any, ...]) -> tuple[bool, bool]:
        """Return whether a row may exist, and whether that is so without the filter's answer."""
        try:
            # First the pending keys: one leaves them only once the filter has it, or is marked incomplete.
            key = self.read_key(values)
            if key in self.pending or not self._is_loaded:
                return True, True
            is_allowed = key in self._filter
        except Exception:  # noqa: BLE001 - whatever fails in a filter, the database can answer
            self._count("failures")
            return True, True
        return is_allowed, False

    def _check_key(self, values: Any) -> None:
        count = len(self._columns)
        if not isinstance(values, tuple) or len(values) != count:
            raise KeyTypeError(f"the key is a tuple of {count} values, one for each column")
        for column, value, accepted in zip(
            self._columns, values, self._types or [object] * count, strict=True
        ):
            if value is None or not is_of_type(value, accepted):
                raise KeyTypeError(
                    f"a key of the column {column.name} is of the type {accepted.__name__}, got "
                    f"{type(value).__name__}"
                )

    def read_key(self, values: tuple[Any, ...]) -> Any:
        """Return the key of the columns' values."""
        key = values[0] if len(values) == 1 else values
        return self._normalize(key) if self._normalize else key

    def _count(self, *names: str) -> None:
        with self._lock:
            for name in names:
                self._counts[name] += 1

    def mark_incomplete(self) -> None:
        """Send all lookups to the database until the next `load`, because the filter may lack a key."""
        with self._lock:
            self._losses += 1
            self._is_loaded = False

    def reset_after_fork(self) -> None:
        """Replace the parent's locks, and mark the filter incomplete: it misses what the parent commits."""
        self._lock, self._watching = threading.Lock(), threading.Lock()
        self.pending.reset_lock()
        self.mark_incomplete()

    def add_committed(self, keys: list[Any], unreadable: int) -> None:
        """Add the keys of a committed transaction to the filter, and those that an earlier error kept out."""
        if unreadable:
            self.mark_incomplete()
        with self._lock:
            keys, self._unadded = self._unadded + keys, []
        try:
            if keys:
                self._filter.update(keys)
        except Exception:  # noqa: BLE001 - the rows are committed, and pending keys keep the answers right
            self._count("failures")
            if len(keys) <= _MOST_UNADDED:
                with self._lock:
                    self._unadded += keys
                keys = []
            else:
                self.mark_incomplete()
        self.pending.remove(keys, unreadable)


#: All checks of this process.
_checks: weakref.WeakSet[PreCheck] = weakref.WeakSet()


def _reset_checks() -> None:
    for check in list(_checks):
        check.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_checks)
