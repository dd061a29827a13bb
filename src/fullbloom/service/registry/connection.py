"""Connection to the registry's database, and migration; each table has a file of its own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from fullbloom.service.failures import StartError
from fullbloom.service.registry.filters import Filters
from fullbloom.service.registry.migrations import LATEST
from fullbloom.service.registry.models import METADATA, STAMP
from fullbloom.service.registry.nodes import Nodes
from fullbloom.service.registry.shared import Shared
from fullbloom.service.registry.snapshots import Snapshots
from fullbloom.service.registry.tokens import Tokens

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

#: Number of the advisory lock of a process that migrates a PostgreSQL database; any number serves.
_MIGRATING = 0x626C6F6F6D
#: Each connection has a cache; rows are read and written by the hundred, so half a megabyte is enough.
_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=NORMAL",
    "foreign_keys=ON",
    "busy_timeout=10000",
    "cache_size=-512",
)


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Registry:
    """Filters, statistics, tokens and nodes in SQL. Every call waits for the database."""

    def __init__(self, url: str) -> None:
        """Connect, and migrate the tables; ``StartError`` says why that fails."""
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
            raise StartError(_explain(error, parsed, "reached")) from None
        self.filters = Filters(self.engine)
        self.nodes = Nodes(self.engine)
        self.shared_filters = Shared(self.engine)
        self.snapshots = Snapshots(self.engine)
        self.tokens = Tokens(self.engine)

    def answers(self) -> bool:
        """Return whether the database responds."""
        try:
            with self.engine.connect() as connection:
                connection.execute(text("SELECT 1"))
        except SQLAlchemyError:
            return False
        return True

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        """Return the registry, to be closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections; raise ``StartError`` for an error of the database."""
        self.close()
        if isinstance(error, SQLAlchemyError):
            raise StartError(_explain(error, self.engine.url, "used")) from None


def _explain(error: SQLAlchemyError, url: URL, done: str) -> str:
    """Return what is wrong with a database, and which one it is, without its password."""
    shown = url.render_as_string(hide_password=True)
    reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    return f"the registry {shown} cannot be {done}: {reason}"


def _prepare_sqlite(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    for line in _PRAGMAS:
        cursor.execute(f"PRAGMA {line}")
    cursor.close()


def _migrate(engine: Engine, *, wait: bool) -> None:
    with engine.begin() as connection:
        if wait:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATING})"))
        version = _version(connection)
        if version == LATEST:
            return
        if not wait:
            file = Path(engine.url.database or "")
            if file.is_file():
                # It will hold secrets of filters in Redis; SQLite gives its mode to the files beside it.
                file.chmod(0o600)
            # SQLite recreates a table to change it: dropping the old one would drop dependent rows.
            connection.execute(text("PRAGMA foreign_keys=OFF"))
            # The driver begins no transaction for tables: a process that is killed would leave some of them,
            # and another one that starts now would make the same.
            connection.execute(text("BEGIN IMMEDIATE"))
            version = _version(connection)
        if version is None:
            _create_tables(connection)
        elif version != LATEST:
            # Imported only here: Alembic takes 11 MB and a third of a second.
            from fullbloom.service.registry.upgrade import upgrade

            upgrade(connection)
    engine.dispose()  # new connections enforce foreign keys again


def _create_tables(connection: Connection) -> None:
    """Create the tables of the newest version at once, as Alembic would step by step."""
    METADATA.create_all(connection, checkfirst=False)
    STAMP.create(connection)
    connection.execute(insert(STAMP).values(version_num=LATEST))


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(select(STAMP.c.version_num)).scalar()
    return found
