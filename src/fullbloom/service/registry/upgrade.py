"""Migration of the registry's tables by Alembic, which is imported only here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from fullbloom.service.failures import StartError

if TYPE_CHECKING:
    from sqlalchemy import Connection


def upgrade(connection: Connection, version: str = "head") -> None:
    """Run the missing migrations; ``StartError`` for tables that a newer release has written."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    scripts = ScriptDirectory.from_config(config)
    known = {script.revision for script in scripts.walk_revisions()}
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in known:
        raise StartError(
            f"the registry has version {current}, written by a newer release than this one, "
            f"which knows {scripts.get_current_head()}; use a newer release"
        )
    config.attributes["connection"] = connection
    command.upgrade(config, version)
