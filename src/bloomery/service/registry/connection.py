"""The registry's database: reached and brought up to date; each table has a file of its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from bloomery.service.failures import StartError
from bloomery.service.registry.filters import Filters
from bloomery.service.registry.migrations import LATEST
from bloomery.service.registry.nodes import Nodes
from bloomery.service.registry.snapshots import Snapshots
from bloomery.service.registry.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Callable

#: Any number: processes that migrate one PostgreSQL at a time hold the lock of this number.
_MIGRATING = 0x626C6F6F6D


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Registry:
    """Filters, statistics, tokens and nodes in SQL. Every call waits for the database."""

    def __init__(self, url: str) -> None:
        """Connect, and bring the tables up to date; ``StartError`` says what stands in the way."""
        try:
            parsed = make_url(url)
            self.shared = parsed.get_backend_name() != "sqlite"
            self.engine = create_engine(parsed, pool_pre_ping=self.shared)
            if not self.shared:
                event.listen(self.engine, "connect", _prepare_sqlite)
            _migrate(self.engine, wait=self.shared)
        except (NoSuchModuleError, ImportError) as error:
            raise StartError(f"the registry's URL needs another driver: {error}") from None
        except ArgumentError as error:
            raise StartError(f"the registry's URL cannot be read: {error}") from None
        except SQLAlchemyError as error:
            shown = parsed.render_as_string(hide_password=True)
            said = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise StartError(f"the registry {shown} cannot be reached: {said}") from None
        session: Callable[[], Any] = sessionmaker(self.engine)
        self.session: Callable[[], Session] = session
        self.filters = Filters(session)
        self.nodes = Nodes(session)
        self.snapshots = Snapshots(session)
        self.tokens = Tokens(session)

    def answers(self) -> bool:
        """Tell whether the database does."""
        try:
            with self.engine.connect() as connection:
                connection.execute(text("SELECT 1"))
        except SQLAlchemyError:
            return False
        return True

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()


def _prepare_sqlite(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for line in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "busy_timeout=10000"):
        cursor.execute(f"PRAGMA {line}")
    cursor.close()


def _migrate(engine: Engine, *, wait: bool) -> None:
    with engine.begin() as connection:
        if wait:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATING})"))
        if _version(connection) != LATEST:
            # Alembic takes 11 MB and a third of a second that a start has no need of.
            from bloomery.service.registry.upgrade import upgrade

            upgrade(connection)


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return found
