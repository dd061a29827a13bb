"""Folders of files that replace each other: their names on the disk, one writer at a time.

Windows opens no folder as a file and has no ``flock``; there a rename is as durable as the file system makes
it, and one writer at a time is the caller's care.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def sync(folder: Path) -> None:
    """Wait until the names in ``folder`` are on the disk, where the system lets a folder be opened."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def has_locks() -> bool:
    """Tell whether `lock` can keep others out."""
    try:
        import fcntl  # noqa: F401 - looked for
    except ImportError:
        return False
    return True


def lock(descriptor: int, *, wait: bool) -> None:
    """Lock an open file or folder until it is closed; ``BlockingIOError`` where another has it.

    A file system without locks lets everybody in.
    """
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:
        return
