"""Output: a stream as it is, a file only when it is whole."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.signatures import HEAD, is_binary
from fullbloom.cli.report import complain
from fullbloom.cli.standard import require_output
from fullbloom.cli.stops import interruptible

if TYPE_CHECKING:
    from fullbloom.cli.io.blocks import Block
    from fullbloom.cli.io.packed import Packer


#: Of systems that have it: a link put in a file's place is not followed.
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
#: Windows would else write a carriage return before each newline.
_BINARY = getattr(os, "O_BINARY", 0)


#: Seconds after which a person is informed that a named pipe has no reader, and between two looks for one.
_SILENT, _BETWEEN = 1.0, 0.02


def is_special(path: str) -> bool:
    """Tell whether ``path`` exists and is no regular file, so that it must not be replaced."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - follows links, no Path needed
    except FileNotFoundError:
        return False


def _open_special(path: str) -> int:
    """Open a device or a named pipe for writing; a pipe once it has a reader."""
    flags = os.O_WRONLY | _BINARY
    if not stat.S_ISFIFO(os.stat(path).st_mode):  # noqa: PTH116 - follows links, no Path needed
        return os.open(path, flags)
    began, informed = time.monotonic(), False
    while True:
        try:
            descriptor = os.open(path, flags | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # which says that there is no reader
                raise
        else:
            os.set_blocking(descriptor, True)
            return descriptor
        if not informed and time.monotonic() - began >= _SILENT:
            complain(f"waiting for a reader of {path}")
            informed = True
        with interruptible():
            time.sleep(_BETWEEN)


def beside(target: Path, ending: str) -> tuple[int, Path]:
    """Create an empty file beside ``target``, to take its name later; return its descriptor and path.

    The name is one that nobody can foresee, and no link is followed. Mode and owner are those of
    ``target`` where it exists.
    """
    path = target.with_name(f".{target.name}.{os.urandom(6).hex()}.{ending}")
    try:
        former = target.stat()
    except OSError:
        former = None
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINKS | _BINARY
    descriptor = os.open(path, flags, 0o666 if former is None else 0o600)
    if former is not None:
        with suppress(OSError, AttributeError):  # only root gives files away, and not on every system
            os.fchown(descriptor, former.st_uid, former.st_gid)
        with suppress(OSError, AttributeError):
            os.fchmod(descriptor, stat.S_IMODE(former.st_mode))
    return descriptor, path


def require_writable(path: str) -> None:
    """Refuse a ``path`` that no file can be saved under, before any work; leaves nothing behind."""
    if is_special(path):
        return
    try:
        descriptor, probe = beside(Path(os.path.realpath(path)), "tmp")
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    os.close(descriptor)
    probe.unlink()


class Output:
    """Bytes to standard output, or to a file that appears under its name when `commit` is called.

    A path that exists and is no regular file (a device, a named pipe) is written directly.
    ``direct`` says that what was written is out and cannot be taken back. A file whose name ends with .gz or
    .zst is packed.
    """

    def __init__(self, path: str | None) -> None:
        """Open ``path``; None and "-" are standard output."""
        self.name = "standard output" if path in {None, "-"} else str(path)
        self.written = 0
        self._target: Path | None = None
        self._temporary: Path | None = None
        self._packer: Packer | None = None
        if path is None or path == "-":
            require_output()
            self._descriptor = 1
        elif is_special(path):
            self._descriptor = _open_special(path)
        else:
            if path.endswith((".gz", ".zst")):
                from fullbloom.cli.io.packed import packer

                self._packer = packer(path)
            # A link stays a link: the file behind it is replaced.
            self._target = Path(os.path.realpath(path))
            try:
                self._descriptor, self._temporary = beside(self._target, "tmp")
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from error

    @property
    def direct(self) -> bool:
        """True when nothing can be taken back."""
        return self._temporary is None

    def write(self, data: Block) -> None:
        """Write all of ``data``; on an error ``written`` says how far it came."""
        self._put(data if self._packer is None else self._packer.compress(data))

    def _put(self, data: Block) -> None:
        with memoryview(data) as view:
            done = 0
            if self._descriptor == 1 and not self.written and os.isatty(1) and is_binary(view[:HEAD]):
                raise Refusal("binary data does not go to a terminal; name a file, or pipe it into a program")
            try:
                while done < len(view):
                    done += os.write(self._descriptor, view[done:])
            except OSError as error:
                raise type(error)(error.errno, error.strerror, self.name) from error
            finally:
                self.written += done

    def commit(self, *, durable: bool = False) -> None:
        """Give the file its name; ``durable`` waits for the disk first."""
        if self._target is None or self._temporary is None:
            return
        if self._packer is not None:
            self._put(self._packer.flush())
        try:
            if durable:
                os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._temporary.replace(self._target)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.name) from error
        self._temporary = None

    def discard(self) -> None:
        """Remove what was written, if the file has not got its name yet."""
        if self._temporary is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            with suppress(OSError):
                self._temporary.unlink()
            self._temporary = None
