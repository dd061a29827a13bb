"""The native module, opened on a folder that no other process has open."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from fullbloom.service import data_folder
from fullbloom.service.failures import StartError

if TYPE_CHECKING:
    from fullbloom.service.settings import Settings

try:
    import fullbloom_server as native
except ImportError:  # pragma: no cover - the extra is not installed
    text = "the service needs the extra server"
    raise StartError(
        f"{text}; install it with: pip install 'fullbloom[server]'"
        if sys.platform == "linux"
        else f"{text}, whose wheels exist for Linux only: run it in a Linux container, or under WSL"
    ) from None

_LOG = logging.getLogger("fullbloom.engine")
Fault = native.Fault
Service = native.Service
#: Keys of a body as hashes, and results as text, without the interpreter's lock.
hash_body, flags_text, numbers_text = native.hash_body, native.flags_text, native.numbers_text
#: Kinds that only the service has, as rows of the registry.
more_kinds = native.more_kinds


class Engine:
    """The store of filters; `Engine.service` has its calls."""

    def __init__(self, settings: Settings) -> None:
        """Lock the folder and read it; ``StartError`` if either fails."""
        folder = settings.data
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = data_folder.lock(folder)
            for backup in data_folder.remove_unfinished_backups(folder):
                text = "removed an unfinished backup, which contained a copy of secret.key"
                _LOG.warning(text, extra={"folder": str(backup)})
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
        """Unlock the folder."""
        data_folder.unlock(self._lock)


_DIGITS = bytes(49 if number else 48 for number in range(256))


def pack_flags(flags: bytes) -> bytes:
    r"""Return eight flags per byte, the first in its lowest bit.

    >>> pack_flags(bytes([1, 0, 0, 0, 0, 0, 0, 0, 1]))
    b'\x01\x01'
    """
    missing = -len(flags) % 8
    bits = (flags + bytes(missing))[::-1].translate(_DIGITS)
    return int(bits, 2).to_bytes(len(bits) // 8, "little") if bits else b""
