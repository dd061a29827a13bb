"""Files of a data folder beside the store: lock, name of the node, mark of tokens, unfinished backups."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from fullbloom import _folders
from fullbloom.service.failures import StartError

if TYPE_CHECKING:
    from fullbloom.service.registry import Registry
    from fullbloom.service.settings import Settings

#: Prefix of the name of a folder in which a backup is written; the folder contains the secret.
BACKUP_PREFIX = "backup-"
_TOKENS = "tokens"
_TEXT = """The service of this folder has had tokens. Without one it does not start;
remove this file to let everybody on this machine use it without a token.
"""


def lock(folder: Path) -> int:
    """Lock the folder for this process; return the descriptor that holds the lock."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if _folders.has_locks():
            _folders.lock(descriptor, wait=False)
    except BlockingIOError:
        os.close(descriptor)
        raise StartError(
            f"{folder}: another process has this data folder open; give another with --data"
        ) from None
    return descriptor


def unlock(descriptor: int) -> None:
    """Unlock a folder that `lock` locked."""
    _folders.close(descriptor)


def remove_unfinished_backups(folder: Path) -> list[Path]:
    """Remove the folders that a process left which was killed during a backup; return their paths.

    No other process may have the data folder open.
    """
    left = [path for path in folder.glob(f"{BACKUP_PREFIX}*") if path.is_dir() and not path.is_symlink()]
    for path in left:
        shutil.rmtree(path)
    return left


def record_tokens(folder: Path) -> None:
    """Record on disk that there are tokens, before one is handed out.

    A registry that was lost is then not mistaken for an empty one.
    """
    path = folder / _TOKENS
    if not path.exists():
        try:
            _write(path, _TEXT)
        except FileNotFoundError:  # another thread or process renamed the same new file meanwhile
            if not path.exists():
                raise
            _folders.sync(folder)


def copy_tokens_record(folder: Path, copy: Path) -> None:
    """Record in a copy of the folder that there were tokens, if the folder does."""
    if (folder / _TOKENS).exists():
        record_tokens(copy)


def check_tokens(settings: Settings, registry: Registry) -> None:
    """Refuse to start if there were tokens and the registry has none."""
    path = settings.data / _TOKENS
    if path.exists() and not registry.tokens.load():
        shown = registry.engine.url.render_as_string(hide_password=True)
        raise StartError(
            f"{path} says that the service had tokens, and the registry {shown} has none: restore it, "
            f"make a token with: fullbloom token create NAME --scope admin, or remove {path} to need none"
        )


def load_node_name(settings: Settings, registry: Registry) -> str:
    """Return this node's name, drawn once; ``StartError`` if the folder's registry knows another."""
    path = settings.data / "node"
    try:
        name = path.read_bytes().decode("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        name = ""
    # A registry in the folder knows this node only; any other may know more. Filters' names belong to a node.
    own = _is_within(settings.data, registry)
    known = sorted(str(row["id"]) for row in registry.nodes.list_all()) if own else []
    if known and name not in known:
        state = "is missing" if not path.exists() else f"says {name!r}" if name else "does not read"
        raise StartError(
            f"{path} {state}, and filters of the folder are those of node {' or '.join(known)}: "
            f"write that name there, or give it with --node"
        )
    if not name:
        name = secrets.token_hex(8)
        _write(path, f"{name}\n")
    return name


def _is_within(folder: Path, registry: Registry) -> bool:
    """Return whether the registry is a file in the folder."""
    database = None if registry.shared else registry.engine.url.database
    return bool(database) and folder.absolute() in Path(str(database)).absolute().parents


def _write(path: Path, text: str) -> None:
    new = path.with_name(f"{path.name}.new")
    with new.open("w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    _folders.sync(path.parent)
