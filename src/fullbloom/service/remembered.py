"""What a data folder remembers of its registry, so that one that was lost is not taken for an empty one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from fullbloom import _folders
from fullbloom.service.failures import StartError

if TYPE_CHECKING:
    from fullbloom.service.registry import Registry
    from fullbloom.service.settings import Settings

_TOKENS = "tokens"
_TEXT = """The service of this folder has had tokens. Without one it does not start;
remove this file to let everybody on this machine ask it without a token.
"""


def remember_tokens(folder: Path) -> None:
    """Note, on disk, that there are tokens; before one is handed out."""
    path = folder / _TOKENS
    if not path.exists():
        _write(path, _TEXT)


def check_tokens(settings: Settings, registry: Registry) -> None:
    """Refuse to start where there were tokens and the registry has none."""
    path = settings.data / _TOKENS
    if path.exists() and not registry.tokens.known():
        shown = registry.engine.url.render_as_string(hide_password=True)
        raise StartError(
            f"{path} says that the service had tokens, and the registry {shown} has none: restore it, "
            f"make a token with: fullbloom token create NAME --scope admin, or remove {path} to need none"
        )


def node_name(settings: Settings, registry: Registry) -> str:
    """Return the name of this node, drawn once; ``StartError`` if the folder's registry knows another."""
    path = settings.data / "node"
    try:
        name = path.read_bytes().decode("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        name = ""
    # A registry in the folder knows this node alone, others may know more; names of filters are a node's.
    own = _is_within(settings.data, registry)
    known = sorted(str(row["id"]) for row in registry.nodes.listed()) if own else []
    if known and name not in known:
        said = "is missing" if not path.exists() else f"says {name!r}" if name else "does not read"
        raise StartError(
            f"{path} {said}, and filters of the folder are those of node {' or '.join(known)}: "
            f"write that name there, or give it with --node"
        )
    if not name:
        name = secrets.token_hex(8)
        _write(path, f"{name}\n")
    return name


def _is_within(folder: Path, registry: Registry) -> bool:
    """Tell whether the registry is a file in a folder."""
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
