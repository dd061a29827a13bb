"""Rests: what a process that was killed amid a backup has left in the data folder."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: What the name of a folder begins with, in the data folder, while a copy is made in it; it holds the secret.
PREFIX = "backup-"


def remove(data: Path) -> list[Path]:
    """Remove the folders of copies that a crash has left: their paths.

    Nobody else may have the data folder open.
    """
    rests = [path for path in data.glob(f"{PREFIX}*") if path.is_dir() and not path.is_symlink()]
    for path in rests:
        shutil.rmtree(path)
    return rests
