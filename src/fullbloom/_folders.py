"""Folders of files that replace each other: their names on the disk, one writer at a time.

Windows opens no folder as a file: there a rename is as durable as the file system makes it, and files are
locked by ``msvcrt``, folders not at all. Where neither is, one writer at a time is the caller's care.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

#: Descriptors locked by this process. A forked child inherits the descriptors, not the duty to unlock them.
_locked: set[int] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locked.clear)


def sync(folder: Path) -> None:
    """Wait until the names in ``folder`` are on disk, if the system can open a folder."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def has_locks() -> bool:
    """Return whether `lock` can lock a folder against other processes, and wait for them."""
    try:
        import fcntl  # noqa: F401 - looked for
    except ImportError:
        return False
    return True


def lock(descriptor: int, *, wait: bool) -> None:
    """Lock an open file or folder until `close`; ``BlockingIOError`` where another has it.

    On a file system without locks it always succeeds; on a system without ``flock``, if it would wait.
    """
    if not has_locks():
        if not wait:
            _lock_first_byte(descriptor)
        return
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:
        return
    _locked.add(descriptor)


def close(descriptor: int) -> None:
    """Unlock a file or folder and close it.

    Closing alone would leave it locked while a child lives that was forked under the lock, because ``flock``
    belongs to the open file, which both share. Such a child only closes it: the lock is its parent's.
    """
    if descriptor in _locked:
        import fcntl

        _locked.discard(descriptor)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _lock_first_byte(descriptor: int) -> None:
    """Lock a file, which may be empty, as Windows does; do nothing if the system has no locks."""
    try:
        import msvcrt
    except ImportError:
        return
    windows: Any = msvcrt  # its names are declared for Windows alone
    try:
        windows.locking(descriptor, windows.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in {errno.EACCES, errno.EDEADLK, errno.EAGAIN}:
            raise BlockingIOError(error.errno, os.strerror(error.errno)) from error


def release(descriptor: int, path: Path) -> None:
    """Unlock, close and delete a locked file: first the one or first the other, as the system lets us.

    Elsewhere the name goes while the lock is held, so that it is nobody else's; Windows deletes no open
    file, and so none that another has opened since.
    """
    with suppress(OSError):
        path.unlink()
    close(descriptor)
    if not has_locks():
        with suppress(OSError):
            path.unlink()
