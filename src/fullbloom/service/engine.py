"""The native half, opened on a folder that no other process has open."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any

from fullbloom import _folders
from fullbloom.service import rests
from fullbloom.service.failures import StartError

if TYPE_CHECKING:
    from pathlib import Path

    from fullbloom.service.settings import Settings

try:
    import fullbloom_server as native
except ImportError:  # pragma: no cover - what a person without the extra meets
    text = "the service needs the extra server"
    raise StartError(
        f"{text}; install it with: pip install 'fullbloom[server]'"
        if sys.platform == "linux"
        else f"{text}, whose wheels exist for Linux only: run it in a Linux container, or under WSL"
    ) from None

_LOG = logging.getLogger("fullbloom.engine")
Fault = native.Fault
Service = native.Service
#: Keys of a body as hashes, and answers as texts, without the interpreter's lock.
hash_body, flags_text, numbers_text = native.hash_body, native.flags_text, native.numbers_text


class Engine:
    """The store of filters; `Engine.service` has its calls."""

    def __init__(self, settings: Settings) -> None:
        """Lock the folder and read it; ``StartError`` where either cannot be done."""
        folder = settings.data
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _locked(folder)
            for rest in rests.remove(folder):
                text = "removed what a backup left that did not end; it held a copy of secret.key"
                _LOG.warning(text, extra={"folder": str(rest)})
        except OSError as error:
            raise StartError(f"{error.filename or folder}: {error.strerror}") from None
        limits = settings.limits.model_dump(exclude={"requests", "file_bytes"})
        try:
            self.service: Any = Service(
                folder,
                durability=settings.durability,
                limits=limits,
                salvage=settings.salvage,
                plain=settings.plain,
                checkpoint_bytes=settings.checkpoint_bytes,
            )
        except Fault as fault:
            self.close()
            raise StartError(str(fault)) from None

    def close(self) -> None:
        """Let another process have the folder."""
        os.close(self._lock)


def _locked(folder: Path) -> int:
    path = folder / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if _folders.has_locks():
            _folders.lock(descriptor, wait=False)
    except BlockingIOError:
        os.close(descriptor)
        raise StartError(
            f"{folder}: another process has this data folder open; give another with --data"
        ) from None
    return descriptor
