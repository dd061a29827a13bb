"""Follows transactions by the events of SQLAlchemy."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy.sql.elements import SavepointClause

from fullbloom.engines.sqlalchemy.pending import Savepoint, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom.engines.sqlalchemy.pending import PendingKeys
    from fullbloom.engines.sqlalchemy.statements import Statements


class KeyRecorder(Protocol):
    """What an observer reports keys to."""

    #: Keys of open transactions.
    pending: PendingKeys

    def read_key(self, values: tuple[Any, ...]) -> Any:
        """Return the key of the columns' values."""

    def add_committed(self, keys: list[Any], unreadable: int) -> None:
        """Take the keys of a committed transaction, and its number of unreadable statements."""

    def mark_incomplete(self) -> None:
        """Record that a key may have been missed."""


class Observer:
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

    def __init__(self, recorder: KeyRecorder, statements: Statements) -> None:
        self._recorder = recorder
        self._pending = recorder.pending
        self._statements = statements
        self._transactions: weakref.WeakKeyDictionary[Any, Transaction] = weakref.WeakKeyDictionary()

    def guard(self, handler: Callable[..., None]) -> Callable[..., None]:
        """Return a handler that never raises; an error makes the filter incomplete."""

        def call(*arguments: Any) -> None:
            try:
                handler(*arguments)
            except Exception:  # noqa: BLE001 - the caller's statement has nothing to do with it
                self._recorder.mark_incomplete()

        return call

    def begin(self, connection: Any) -> None:
        """Add what a commit before this transaction left."""
        self._settle(self._find(connection))

    def begin_twophase(self, connection: Any, _xid: object) -> None:
        """As `begin`."""
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
        """Record the keys that a statement is about to write, and name savepoints."""
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
        """Record the keys that the database generated."""
        context = getattr(result, "context", None)
        transaction = self._transactions.get(connection)
        if transaction is None or transaction.statement is not context or not transaction.last.unreadable:
            return
        rows = self._statements.read_generated(context)
        if rows is not None:
            self._record(transaction, rows)
            self._pending.add(transaction, unreadable=-1)

    def rollback_savepoint(self, connection: Any, name: str, _context: object) -> None:
        """Forget the keys since a savepoint."""
        self._pending.remove(*self._find(connection).take(name))

    def release_savepoint(self, connection: Any, name: str, _context: object) -> None:
        """Keep the keys since a savepoint, for the transaction."""
        self._find(connection).release(name)

    def commit(self, connection: Any) -> None:
        """Expect the outcome of a commit."""
        self._find(connection).is_committing = True

    def commit_twophase(self, connection: Any, _xid: object, _is_prepared: object) -> None:
        """As `commit`."""
        self.commit(connection)

    def rollback(self, connection: Any) -> None:
        """Forget the keys of the transaction, unless its rows are committed already."""
        transaction = self._find(connection)
        self._settle_if_idle(connection, transaction)
        self._settle(transaction, is_committed=_is_autocommit(connection))

    def rollback_twophase(self, connection: Any, _xid: object, _is_prepared: object) -> None:
        """As `rollback`."""
        self.rollback(connection)

    def handle_error(self, context: Any) -> None:
        """Forget the keys of a commit that failed, or of a lost connection."""
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
        """End the transaction of a connection that returns to the pool."""
        transaction = record.info.pop(self, None) if record is not None else None
        if transaction is not None:
            self._settle(transaction)

    def invalidate(self, connection: object, record: Any, _error: object) -> None:
        """As `checkin`, for a connection that is given up."""
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
            keys = [self._recorder.read_key(row) for row in rows or ()]
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
            self._recorder.add_committed(keys, unreadable)
        else:
            self._pending.remove(keys, unreadable)

    def _settle_if_idle(self, connection: Any, transaction: Transaction) -> None:
        """Add what SQLite committed by itself: the release of a savepoint that began the transaction."""
        if transaction.is_empty() or connection.invalidated:
            return
        driver = connection.connection.driver_connection
        if getattr(driver, "in_transaction", True) is False:
            self._settle(transaction, is_committed=True)


def _is_autocommit(connection: Any) -> bool:
    level = connection.get_execution_options().get("isolation_level")
    default = getattr(connection.dialect, "_on_connect_isolation_level", None)
    return bool((level or default) == "AUTOCOMMIT")
