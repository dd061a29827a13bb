"""A tar of a running service: the store's files, the registry if it is a file, and an index."""

from __future__ import annotations

import json
import os
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from fullbloom.service import data_folder

if TYPE_CHECKING:
    from fullbloom.service.node import Node

INDEX = "index.json"
STORE = "data"


def write(node: Node, folder: str) -> Path:
    """Write the tar into ``folder``, an empty one on the store's disk; return its path."""
    copy = Path(folder) / STORE
    copy.mkdir(mode=0o700)
    node.service.backup(copy)
    data_folder.copy_tokens_record(node.settings.data, copy)
    if not node.registry.shared:
        _copy_registry(node, copy / "registry.db")
        (copy / "node").write_text(node.id + "\n", "ascii")
    index = {"version": 1, "node": node.id, "filters": _read_manifest(copy / "manifest")}
    (Path(folder) / INDEX).write_text(json.dumps(index))
    path = Path(folder) / "backup.tar"
    with path.open("wb") as out:
        os.fchmod(out.fileno(), 0o600)
        with tarfile.open(fileobj=out, mode="w") as tar:
            tar.add(Path(folder) / INDEX, INDEX)
            tar.add(copy, STORE)
    return path


def _copy_registry(node: Node, path: Path) -> None:
    source = node.registry.engine.url.database
    with closing(sqlite3.connect(str(source))) as old, closing(sqlite3.connect(path)) as new:
        old.backup(new)


def _read_manifest(manifest: Path) -> dict[str, tuple[str, int, int]]:
    """Return each filter's file, first byte and length (0: the whole file).

    Notes are left out: they are restored with the folder.
    """
    found = {}
    for line in manifest.read_text("ascii").splitlines():
        what, *words = line.split(" ")
        if what == "filter":
            number, _, file, at, length, _, name, _, made_by, *_ = words
            if made_by == "note":
                continue
            path = f"{file}.bundle" if int(length) else f"{number}-{file}.bloom"
            found[name] = (f"{STORE}/filters/{path}", int(at), int(length))
    return found
