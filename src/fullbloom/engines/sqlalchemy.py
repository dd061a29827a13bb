"""A filter in front of a table: lookups of absent keys cost no query.

>>> from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert
>>> from sqlalchemy.pool import StaticPool
>>> from fullbloom import BloomFilter
>>> from fullbloom.engines.sqlalchemy import PreCheck
>>> users = Table("users", MetaData(), Column("id", Integer, primary_key=True), Column("name", String))
>>> engine = create_engine("sqlite://", poolclass=StaticPool)
>>> users.metadata.create_all(engine)
>>> check = PreCheck(BloomFilter(1000, fpr=0.001), users.c.name)
>>> check.load(engine)
0
>>> with engine.begin() as connection:
...     _ = connection.execute(insert(users), [{"name": "ada"}])
>>> with engine.connect() as connection:
...     check.exists(connection, "ada"), check.exists(connection, "alan")
(True, False)
>>> check.stats().queries_saved
1

Needs SQLAlchemy 2 (``pip install fullbloom[sqlalchemy]``) and serves PostgreSQL and SQLite.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
import threading
import uuid
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.dialects.postgresql import CITEXT
from sqlalchemy.sql.elements import SavepointClause

from fullbloom.engines.pending import PendingKeys, Savepoint, Transaction
from fullbloom.errors import KeyTypeError, ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fullbloom.protocols import Addable

__all__ = ["PreCheck", "Stats"]

#: Keys that wait for a filter which refuses them; beyond these all lookups go to the database.
_MOST_UNADDED = 100_000
#: Statements in text that may write rows.
_WRITES = re.compile(r"\b(insert|update|merge|copy|replace)\b", re.IGNORECASE)
#: Types of columns whose values are equal exactly if they are in Python, and the type of those values.
_TYPES = (
    (sqlalchemy.Integer, int),
    (sqlalchemy.String, str),
    (sqlalchemy.Uuid, uuid.UUID),
    (sqlalchemy.LargeBinary, bytes),
    (sqlalchemy.Date, dt.date),
)
_REFUSED = (sqlalchemy.CHAR, sqlalchemy.NCHAR, CITEXT, sqlalchemy.Enum)


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
    raises errors, the database answers.

    Without ``normalize``, the columns must be of the types Integer, String, Uuid, LargeBinary or Date,
    without a collation. Raises ParameterError for others: rounding, padding and letter case make different
    values equal there.
    """

    def __init__(
        self, filter_: Addable, *columns: Any, normalize: Callable[[Any], Any] | None = None
    ) -> None:
        for method in ("update", "__contains__"):
            if isinstance(filter_, type) or not callable(getattr(filter_, method, None)):
                message = f"a filter that takes keys is needed, got {type(filter_).__name__}"
                raise ParameterTypeError(message)
        self._filter = filter_
        self._columns = [_find_column(column) for column in columns]
        if not columns or len({id(column.table) for column in self._columns}) != 1:
            raise ParameterError("a pre-check needs one or more columns of one table")
        self._normalize = normalize
        self._types = None if normalize else [_find_type(column) for column in self._columns]
        self._statements = _Statements(self._columns, self._types)
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
        self._listeners: list[tuple[Any, str, Any]] = []

    def watch(self, engine: Any) -> None:
        """Observe the transactions of an engine; `load` does so, too. Watching twice is no error.

        Statements of SQLAlchemy are read from their parameters: flushes, ``insert()`` and ``update()`` of
        both ORM and Core. A statement whose keys cannot be read so (``insert().from_select()``, an expression
        as a key, SQL as text) makes the filter incomplete once it commits: `load` again. Triggers, and
        programs that do not use these engines, are not seen.
        """
        engine = getattr(engine, "sync_engine", engine)
        if not isinstance(engine, sqlalchemy.Engine):
            raise ParameterTypeError(f"an engine of SQLAlchemy is needed, got {type(engine).__name__}")
        if any(target is engine for target, _, _ in self._listeners):
            return
        observer = _Observer(self, self._statements)
        events = [(engine, name) for name in observer.ENGINE_EVENTS]
        for target, name in [*events, *((engine.pool, name) for name in observer.POOL_EVENTS)]:
            listener = observer.guard(getattr(observer, name))
            event.listen(target, name, listener)
            self._listeners.append((target, name, listener))

    def close(self) -> None:
        """Stop watching; from now on every lookup goes to the database."""
        with self._lock:
            self._is_loaded = False
        for target, name, listener in self._listeners:
            event.remove(target, name, listener)
        self._listeners.clear()

    def load(self, engine: Any, *, batch: int = 50_000) -> int:
        """Watch ``engine`` and add the keys of all rows; return the number of rows with a key.

        Rows are read ``batch`` at a time. Lookups go to the database until the load is complete; if it fails,
        they continue to do so. For an asynchronous engine:
        ``await connection.run_sync(lambda inner: check.load(inner.engine))``.
        """
        if batch < 1:
            raise ParameterError(f"batch must be 1 or more, got {batch}")
        self.watch(engine)
        with self._lock:
            losses, self._is_loaded = self._losses, False
        found = 0
        with engine.connect() as connection:
            rows = connection.execution_options(yield_per=batch).execute(sqlalchemy.select(*self._columns))
            for part in rows.partitions():
                keys = [self.read_key(tuple(row)) for row in part if None not in row]
                self._filter.update(keys)
                found += len(keys)
        with self._lock:
            self._is_loaded = losses == self._losses
        return found

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
            # First the pending keys: a key leaves them only once the filter has it.
            key = self.read_key(values)
            if not self._is_loaded or key in self.pending:
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
            if value is None or not isinstance(value, accepted):
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


class _Observer:
    """Follows the transactions of an engine's connections; the methods are events of SQLAlchemy.

    The event ``commit`` precedes the commit. The next event of the connection shows that the commit
    succeeded: its return to the pool, or the next transaction. ``handle_error`` shows that it failed.
    """

    ENGINE_EVENTS = (
        "begin",
        "begin_twophase",
        "before_cursor_execute",
        "after_execute",
        "rollback_savepoint",
        "release_savepoint",
        "commit",
        "commit_twophase",
        "rollback",
        "rollback_twophase",
        "handle_error",
    )
    POOL_EVENTS = ("checkin", "invalidate")

    def __init__(self, check: PreCheck, statements: _Statements) -> None:
        self._check = check
        self._pending = check.pending
        self._statements = statements
        self._transactions: weakref.WeakKeyDictionary[Any, Transaction] = weakref.WeakKeyDictionary()

    def guard(self, handler: Callable[..., None]) -> Callable[..., None]:
        """Return a handler that never raises; an error makes the filter incomplete."""

        def call(*arguments: Any) -> None:
            try:
                handler(*arguments)
            except Exception:  # noqa: BLE001 - the caller's statement has nothing to do with it
                self._check.mark_incomplete()

        return call

    def begin(self, connection: Any) -> None:
        self._settle(self._find(connection))

    def begin_twophase(self, connection: Any, _xid: object) -> None:
        self.begin(connection)

    def before_cursor_execute(
        self,
        connection: Any,
        _cursor: object,
        statement: str,
        _parameters: object,
        context: Any,
        _executemany: object,
    ) -> None:
        if context is None:
            return
        # The event of a savepoint comes without its name.
        savepoint = getattr(context.compiled, "statement", None)
        if isinstance(savepoint, SavepointClause):
            transaction = self._find(connection)
            self._settle_if_idle(connection, transaction)
            transaction.savepoints.append(Savepoint(savepoint.ident))
            return
        if not self._statements.may_write(statement, context):
            return
        transaction = self._find(connection)
        self._settle_if_idle(connection, transaction)
        if transaction.statement is context:
            return  # another part of a statement that was read
        transaction.statement = context
        self._record(transaction, self._statements.read(context))

    def after_execute(
        self,
        connection: Any,
        _statement: object,
        _multiparams: object,
        _params: object,
        _options: object,
        result: Any,
    ) -> None:
        context = getattr(result, "context", None)
        transaction = self._transactions.get(connection)
        if transaction is None or transaction.statement is not context or not transaction.last.unreadable:
            return
        rows = self._statements.read_generated(context)
        if rows is not None:
            self._record(transaction, rows)
            self._pending.add(transaction, unreadable=-1)

    def rollback_savepoint(self, connection: Any, name: str, _context: object) -> None:
        self._pending.remove(*self._find(connection).take(name))

    def release_savepoint(self, connection: Any, name: str, _context: object) -> None:
        self._find(connection).release(name)

    def commit(self, connection: Any) -> None:
        self._find(connection).is_committing = True

    def commit_twophase(self, connection: Any, _xid: object, _is_prepared: object) -> None:
        self.commit(connection)

    def rollback(self, connection: Any) -> None:
        transaction = self._find(connection)
        self._settle_if_idle(connection, transaction)
        self._settle(transaction, is_committed=_is_autocommit(connection))

    def rollback_twophase(self, connection: Any, _xid: object, _is_prepared: object) -> None:
        self.rollback(connection)

    def handle_error(self, context: Any) -> None:
        transaction = self._transactions.get(context.connection) if context.connection is not None else None
        if transaction is None:
            return
        if transaction.is_committing:
            # The outcome is unknown if the connection broke. An absent key in the filter costs a query, but a
            # missing key would be a wrong no.
            self._settle(transaction, is_committed=context.is_disconnect)
        elif context.is_disconnect:
            self._settle(transaction, is_committed=False)

    def checkin(self, _connection: object, record: Any) -> None:
        transaction = record.info.pop(self, None) if record is not None else None
        if transaction is not None:
            self._settle(transaction)

    def invalidate(self, connection: object, record: Any, _error: object) -> None:
        self.checkin(connection, record)

    def _find(self, connection: Any) -> Transaction:
        """Return the transaction of a connection, which the pool's record holds as well."""
        transaction = self._transactions.get(connection)
        if transaction is None:
            transaction = self._transactions[connection] = Transaction()
        if not connection.invalidated:
            connection.info[self] = transaction
        return transaction

    def _record(self, transaction: Transaction, rows: list[tuple[Any, ...]] | None) -> None:
        """Record the keys of rows that were written; None if they cannot be read."""
        try:
            keys = [self._check.read_key(row) for row in rows or ()]
        except Exception:  # noqa: BLE001 - normalize() failed, so these keys cannot be read either
            rows, keys = None, []
        self._pending.add(transaction, keys, unreadable=int(rows is None))

    def _settle(self, transaction: Transaction, *, is_committed: bool | None = None) -> None:
        """End a transaction: add its keys if it was committed, by default if a commit was sent."""
        if is_committed is None:
            is_committed = transaction.is_committing
        transaction.is_committing = False
        transaction.statement = None
        keys, unreadable = transaction.take()
        if not keys and not unreadable:
            return
        if is_committed:
            self._check.add_committed(keys, unreadable)
        else:
            self._pending.remove(keys, unreadable)

    def _settle_if_idle(self, connection: Any, transaction: Transaction) -> None:
        """Add what SQLite committed by itself: the release of a savepoint that began the transaction."""
        if transaction.is_empty() or connection.invalidated:
            return
        driver = connection.connection.driver_connection
        if getattr(driver, "in_transaction", True) is False:
            self._settle(transaction, is_committed=True)


class _Statements:
    """Reads the keys that statements write to the columns of one table."""

    def __init__(self, columns: list[Any], types: list[type] | None) -> None:
        self._table = columns[0].table
        self._names = [column.key for column in columns]
        self._types = types
        self._in_text = re.compile(rf"(?<!\w){re.escape(self._table.name)}(?!\w)", re.IGNORECASE)
        generated = list(self._table.primary_key.columns)
        #: Places of the columns in the primary key, if they are all part of it.
        self._places = [generated.index(column) for column in columns] if {*columns} <= {*generated} else None

    def may_write(self, statement: str, context: Any) -> bool:
        """Return whether a statement may write to the table."""
        written = self._find_statement(context)
        if written is None:
            return bool(_WRITES.search(statement) and self._in_text.search(statement))
        is_write = context.isinsert or context.isupdate
        return bool(is_write and written.table.fullname == self._table.fullname)

    def read(self, context: Any) -> list[tuple[Any, ...]] | None:
        """Return the keys of a statement that may write; None if its parameters do not have them."""
        written = self._find_statement(context)
        if written is None:
            return None
        if context.isupdate:
            changed = {getattr(name, "key", name) for name in getattr(written, "_values", None) or ()}
            if not {*self._names} & (changed | {*(context.compiled.column_keys or ())}):
                return []
        elif written.select is not None or self._has_conflict_update(written):
            return None
        found = [row for row in context.compiled_parameters for row in self._read_parameters(row)]
        lists = getattr(written, "_multi_values", ())
        expected = sum(map(len, lists)) if lists else len(context.compiled_parameters)
        return self._check(found) if len(found) == expected else None

    def read_generated(self, context: Any) -> list[tuple[Any, ...]] | None:
        """Return the keys that the database generated for an insert; None if it did not return them."""
        if self._places is None or not context.isinsert or self._find_statement(context) is None:
            return None
        rows = context.inserted_primary_key_rows
        if not rows or len(rows) != len(context.compiled_parameters) or any(None in row for row in rows):
            return None
        return self._check([tuple(row[place] for place in self._places) for row in rows])

    def _find_statement(self, context: Any) -> Any:
        """Return the statement as an expression; None if it is text."""
        statement = getattr(context.compiled, "statement", None)
        return None if isinstance(statement, sqlalchemy.TextClause) else statement

    def _read_parameters(self, parameters: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        if all(name in parameters for name in self._names):
            yield tuple(parameters[name] for name in self._names)
            return
        for place in itertools.count():  # of insert().values([row, row])
            names = [f"{name}_m{place}" for name in self._names]
            if not all(name in parameters for name in names):
                return
            yield tuple(parameters[name] for name in names)

    def _check(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]] | None:
        """Return the rows without nulls; None if the database may have converted a value."""
        found = [row for row in rows if None not in row]
        if self._types and not all(
            _is_of_type(value, kind) for row in found for value, kind in zip(row, self._types, strict=True)
        ):
            return None
        return found

    def _has_conflict_update(self, statement: Any) -> bool:
        clause = getattr(statement, "_post_values_clause", None)
        changes = dict(getattr(clause, "update_values_to_set", None) or ())
        return any(getattr(name, "key", name) in self._names for name in changes)


def _is_of_type(value: object, kind: type) -> bool:
    if kind is dt.date and isinstance(value, dt.datetime):
        return False  # another key, and the column keeps its date only
    return isinstance(value, kind)


def _is_autocommit(connection: Any) -> bool:
    level = connection.get_execution_options().get("isolation_level")
    default = getattr(connection.dialect, "_on_connect_isolation_level", None)
    return bool((level or default) == "AUTOCOMMIT")


def _find_column(column: Any) -> Any:
    """Return the column of a table for itself or a mapped attribute."""
    columns = getattr(getattr(column, "property", None), "columns", None)
    found = columns[0] if columns else column
    if not isinstance(found, sqlalchemy.Column) or not isinstance(found.table, sqlalchemy.Table):
        raise ParameterTypeError(f"a column of a table is needed, got {type(column).__name__}")
    return found


def _find_type(column: Any) -> type:
    """Return the type of a column's values; ParameterError if equal values can be different keys."""
    kind = column.type
    for accepted, values in _TYPES:
        if isinstance(kind, accepted) and not isinstance(kind, _REFUSED):
            if getattr(kind, "collation", None) or getattr(kind, "as_uuid", True) is False:
                break
            return values
    raise ParameterError(
        f"column {column.name} has the type {kind!r}, in which values that differ in Python may be equal; "
        "pass normalize=, a function from a value to its key"
    )
