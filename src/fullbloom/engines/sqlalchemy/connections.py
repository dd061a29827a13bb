"""What a connection and its driver say about the transaction."""

from __future__ import annotations

from typing import Any

#: libpq's numbers of states: no transaction, one in which statements run, one of which a statement failed.
_IDLE, _OPEN, _FAILED = 0, 2, 3


def is_autocommit(connection: Any) -> bool:
    """Return whether the next statement of a connection is committed by itself."""
    level = connection.get_execution_options().get("isolation_level")
    default = getattr(connection.dialect, "_on_connect_isolation_level", None)
    if (level or default) == "AUTOCOMMIT":
        return True
    if connection.invalidated:
        return False
    adapter = connection.connection
    return any(_is_autocommit(one) for one in (adapter.dbapi_connection, adapter.driver_connection))


def _is_autocommit(driver: Any) -> bool:
    # sqlite3 has -1 for autocommit if its isolation level decides.
    if getattr(driver, "autocommit", None) is True:
        return True
    return getattr(driver, "isolation_level", "") is None and getattr(driver, "in_transaction", None) is False


def is_idle(driver: Any) -> bool:
    """Return whether the connection of a driver is in no transaction; False if the driver does not say."""
    return getattr(driver, "in_transaction", None) is False or _read_status(driver) == _IDLE


def is_in_transaction(connection: Any) -> bool:
    """Return whether a connection is in a transaction; False if the driver does not say."""
    if connection.invalidated:
        return False
    driver = connection.connection.driver_connection
    return getattr(driver, "in_transaction", None) is True or _read_status(driver) in {_OPEN, _FAILED}


def rolls_back_on_return(pool: Any) -> bool:
    """Return whether a pool rolls back the transaction of a connection that returns to it."""
    return getattr(getattr(pool, "_reset_on_return", None), "name", None) == "reset_rollback"


def _read_status(driver: Any) -> int | None:
    status: int | None = getattr(getattr(driver, "info", None), "transaction_status", None)
    return status
