"""Follows transactions by the events of SQLAlchemy."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy.sql.elements import SavepointClause

from fullbloom.engines.sqlalchemy import connections
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

    Where the outcome is unknown, keys are added: an absent key in the filter costs a query, but a missing key
    would be a wrong no.
    """

    ENGINE_EVENTS = (
        "begin",
        "begin_twophase",
        "before_cursor_execute",
        "after_execute",
        "rollback_savepoint",
        "release_savepoint",
        "prepare_twophase",
        "commit",
        "commit_twophase",
        "rollback",
        "rollback_twophase",
        "handle_error",
    )
    POOL_EVENTS = ("reset", "checkin", "invalidate")

    def __init__(self, recorder: KeyRecorder, statements: Statements, engine: Any) -> None:
        self._recorder = recorder
        self._pending = recorder.pending
        self._statements = statements
        self._engine = engine
        self._is_closed = False
        self._transactions: weakref.WeakKeyDictionary[Any, Transaction] = weakref.WeakKeyDictionary()

    def guard(self, handler: Callable[..., None]) -> Callable[..., None]:
        """Return a handler that never raises; an error makes the filter incomplete."""

        def call(*arguments: Any) -> None:
            if self._is_closed:
                return
            try:
                handler(*arguments)
            except Exception:  # noqa: BLE001 - the caller's statement has nothing to do with it
                self._recorder.mark_incomplete()

        return call

    def close(self) -> None:
        """Forget the keys of open transactions, whose ends are not seen any more."""
        self._is_closed = True
        for transaction in self._list_transactions():
            self._pending.remove(*transaction.end())

    def list_xids(self) -> set[str]:
        """Return the names of the transactions in two phases whose ends will be seen."""
        return {found.xid for found in self._list_transactions() if found.xid is not None}

    def _list_transactions(self) -> list[Transaction]:
        # Iterating over the values fails if another thread begins a transaction; listing references does not.
        found = [ref() for ref in self._transactions.keyrefs()]
        return [self._transactions[connection] for connection in found if connection is not None]

    def begin(self, connection: Any) -> None:
        """Add what a commit before this transaction left."""
        transaction = self._find(connection)
        # After a commit that SQLite refused, its transaction is still open: SQLAlchemy sends no rollback.
        if transaction.is_committing or not connections.is_in_transaction(connection):
            self._settle(transaction)
            transaction.is_seen_whole = True

    def begin_twophase(self, connection: Any, xid: object) -> None:
        """As `begin`."""
        self.begin(connection)
        self._find(connection).xid = str(xid)

    def before_cursor_execute(
        self,
        connection: Any,
        _cursor: object,
        statement: str,
        _parameters: object,
        context: Any,
        _executemany: object,
    ) -> None:
        """Record the keys that a statement is about to write, commits in text, and names of savepoints."""
        if context is None:
            return
        known = self._transactions.get(connection)
        if known is not None:
            if known.is_last(context):
                return  # another part of a statement that was read
            # This statement may begin the next transaction, whose end says nothing about this one.
            self._settle_if_idle(connection, known)
        # The event of a savepoint comes without its name.
        savepoint = getattr(context.compiled, "statement", None)
        if isinstance(savepoint, SavepointClause):
            self._find(connection).savepoints.append(Savepoint(savepoint.ident))
            return
        if self._statements.may_commit(statement, context):
            self._expect_commit_in_text(connection, statement)
        if not self._statements.may_write(statement, context):
            return
        transaction = self._find(connection)
        transaction.statement = weakref.ref(context)
        if connections.is_autocommit(connection):
            transaction.may_commit = True
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
        """Record the keys that the database generated, and add those that it committed by itself."""
        context = getattr(result, "context", None)
        transaction = self._transactions.get(connection)
        if transaction is None or context is None:
            return
        if transaction.is_last(context) and transaction.has_unread_statement:
            rows = self._statements.read_generated(context)
            if rows is not None:
                self._record(transaction, rows)
                self._pending.add(transaction.last, unreadable=-1)
        # Also after the release of SQLite's first savepoint, which is a commit.
        self._settle_if_idle(connection, transaction)

    def rollback_savepoint(self, connection: Any, name: str, _context: object) -> None:
        """Forget the keys since a savepoint, unless their rows may be committed already."""
        transaction = self._find(connection)
        self._settle_if_idle(connection, transaction)
        if not transaction.may_commit:
            self._pending.remove(*transaction.take(name))

    def release_savepoint(self, connection: Any, name: str, _context: object) -> None:
        """Keep the keys since a savepoint, for the transaction. For SQLite this may be the commit."""
        transaction = self._find(connection)
        self._add_unseen(transaction)
        transaction.release(name)

    def prepare_twophase(self, connection: Any, _xid: object) -> None:
        """Expect a commit by any connection, at any time."""
        transaction = self._find(connection)
        self._add_unseen(transaction)
        transaction.may_commit = True

    def commit(self, connection: Any) -> None:
        """Expect the outcome of a commit."""
        transaction = self._find(connection)
        self._add_unseen(transaction)
        transaction.is_committing = True

    def commit_twophase(self, connection: Any, _xid: object, _is_prepared: object) -> None:
        """As `commit`."""
        self.commit(connection)

    def rollback(self, connection: Any) -> None:
        """Forget the keys of the transaction, unless its rows may be committed already."""
        transaction = self._find(connection)
        self._settle_if_idle(connection, transaction)
        may_commit = transaction.may_commit or connections.is_autocommit(connection)
        self._settle(transaction, is_committed=may_commit)

    def rollback_twophase(self, connection: Any, _xid: object, is_prepared: object) -> None:
        """As `rollback`; that of a prepared transaction may fail, and another connection may commit it."""
        if is_prepared:
            self._find(connection).is_rolling_back = True
        else:
            self.rollback(connection)

    def handle_error(self, context: Any) -> None:
        """Forget the keys of a commit that failed, or of a lost connection."""
        connection = context.connection
        transaction = self._transactions.get(connection) if connection is not None else None
        if transaction is None:
            return
        if transaction.is_rolling_back:
            self._settle(transaction, is_committed=True)
        elif transaction.is_committing:
            self._settle_commit(connection, transaction, context)
        elif context.is_disconnect:
            self._settle(transaction)

    def reset(self, _connection: object, record: Any, _state: object) -> None:
        """Find out what became of a transaction that ends with the return of its connection."""
        transaction = record.info.get(self) if record is not None else None
        if transaction is None or transaction.is_committing or transaction.is_rolling_back:
            return
        is_ended = connections.is_idle(record.driver_connection)  # for SQLite, by the release of a savepoint
        if is_ended or not connections.rolls_back_on_return(self._engine.pool):
            transaction.may_commit = True

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
            frozenset(keys)
        except Exception:  # noqa: BLE001 - normalize() failed, so these keys cannot be read either
            rows, keys = None, []
        transaction.has_unread_statement = rows is None
        self._pending.add(transaction.last, keys, unreadable=int(rows is None))

    def _expect_commit_in_text(self, connection: Any, statement: str) -> None:
        transaction = self._find(connection)
        if transaction.is_committing:
            return  # the text is SQLAlchemy's own, for a prepared transaction
        self._add_unseen(transaction)
        if self._statements.commits_another(statement):
            self._pending.add(transaction.first, unreadable=1)
        transaction.may_commit = True

    def _add_unseen(self, transaction: Transaction) -> None:
        """Record that a transaction may have written keys before it was watched."""
        if not transaction.is_seen_whole:
            self._pending.add(transaction.first, unreadable=1)
            transaction.is_seen_whole = True

    def _settle_commit(self, connection: Any, transaction: Transaction, context: Any) -> None:
        """End a transaction whose commit was sent, after an error."""
        is_of_commit = context.statement is None and context.execution_context is None
        if not is_of_commit or context.is_disconnect or context.sqlalchemy_exception is None:
            # A later statement failed, or the connection, or it is not known what did.
            self._settle(transaction, is_committed=True)
        elif connections.is_in_transaction(connection):
            transaction.is_committing = False  # SQLite is busy, and a later commit will include these rows
        else:
            self._settle(transaction, is_committed=transaction.may_commit)

    def _settle(self, transaction: Transaction, *, is_committed: bool | None = None) -> None:
        """End a transaction: add its keys if it was committed, by default if it may have been."""
        if is_committed is None:
            may_commit = transaction.may_commit and not transaction.is_rolling_back
            is_committed = transaction.is_committing or may_commit
        keys, unreadable = transaction.end()
        if not keys and not unreadable:
            return
        if is_committed:
            self._recorder.add_committed(keys, unreadable)
        else:
            self._pending.remove(keys, unreadable)

    def _settle_if_idle(self, connection: Any, transaction: Transaction) -> None:
        """Add what was committed without an event: by autocommit, by the driver, with a savepoint."""
        if transaction.is_empty() or connection.invalidated:
            return
        if connections.is_idle(connection.connection.driver_connection):
            self._settle(transaction, is_committed=True)
