"""Output: to a stream directly, to a file atomically."""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fullbloom import _folders
from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.signatures import HEAD, is_binary
from fullbloom.cli.report import complain
from fullbloom.cli.standard import require_output
from fullbloom.cli.stops import interruptible

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.io.blocks import Block
    from fullbloom.cli.io.compression import Packer


#: If the system has it: a link put in a file's place is not followed.
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
#: Without it, Windows writes a carriage return before each newline.
_BINARY = getattr(os, "O_BINARY", 0)
#: The part of a temporary name that makes it unpredictable.
_UNIQUE_BYTES = 6
_UNIQUE = re.compile(rf"[0-9a-f]{{{2 * _UNIQUE_BYTES}}}")

#: Seconds until a message says that a named pipe has no reader, and between two tries to open it.
_SILENT, _BETWEEN = 1.0, 0.02


def is_special(path: str) -> bool:
    """Return whether ``path`` exists and is not a regular file, so it must not be replaced."""
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


def create_beside(target: Path, ending: str, *, private: bool = False) -> tuple[int, Path]:
    """Create an empty file beside ``target``, to take its name later; return its descriptor and path.

    The name is unpredictable, and no link is followed. Mode and owner are those of ``target`` if it exists,
    unless the file is ``private``: then only this user may read it, whoever could read ``target``.
    """
    path = target.with_name(f".{target.name}.{os.urandom(_UNIQUE_BYTES).hex()}.{ending}")
    former = None
    if not private:
        with suppress(OSError):
            former = target.stat()
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINKS | _BINARY
    descriptor = os.open(path, flags, 0o600 if private or former is not None else 0o666)
    if former is not None:
        with suppress(OSError, AttributeError):  # only root may, and not on every system
            os.fchown(descriptor, former.st_uid, former.st_gid)
        with suppress(OSError, AttributeError):
            os.fchmod(descriptor, stat.S_IMODE(former.st_mode))
    return descriptor, path


def find_beside(target: Path, ending: str) -> Iterator[Path]:
    """Yield the files that `create_beside` has created for ``target``, and none for a longer name."""
    start, end = f".{target.name}.", f".{ending}"
    for path in target.parent.glob(f"{glob.escape(start)}*{end}"):
        if _UNIQUE.fullmatch(path.name[len(start) : -len(end)]):
            yield path


def require_writable(path: str) -> None:
    """Refuse a ``path`` under which no file can be saved, before any work; leaves no file behind."""
    if is_special(path):
        return
    try:
        descriptor, probe = create_beside(Path(os.path.realpath(path)), "tmp")
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    os.close(descriptor)
    probe.unlink()


def require_different(
    files: Sequence[str], written: Mapping[str, str | None], *, replaced: str | None = None
) -> None:
    """Refuse a file that would be written in two roles, or written and read.

    ``written`` maps a role to its path, or None. "-" is standard input among ``files``, standard output among
    ``written``. Inputs may repeat; devices and pipes may too. The role ``replaced`` may name an input: its
    file is written beside it and renamed once all is read.
    """
    taken: dict[Hashable, str] = {}
    for path in files or ("-",):
        taken[_identity(path, 0)] = "the input"
    for role, name in written.items():
        if name is None:
            continue
        same = _identity(name, 1)
        in_place = role == replaced and name != "-" and taken.get(same) == "the input"
        if same is not None and same in taken and not in_place:
            shown = "standard output" if name == "-" else name
            raise Refusal(f"{shown}: is the file of both {taken[same]} and {role}; give each its own")
        taken[same] = role


def _identity(path: str, standard: int) -> Hashable:
    """Return a value that all names of a regular file share, whether it exists or not."""
    try:
        status = os.fstat(standard) if path == "-" else os.stat(path)  # noqa: PTH116 - the path may be "-"
    except OSError:
        return None if path == "-" else os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


class Stream:
    """Bytes to an open descriptor."""

    def __init__(self, name: str, descriptor: int) -> None:
        """Write to ``descriptor``; errors show ``name``."""
        self.name, self._descriptor = name, descriptor
        self.written = 0

    def write(self, data: Block) -> None:
        """Write all of ``data``; after an error, ``written`` counts the bytes that were written."""
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


class Output(Stream):
    """Bytes to standard output, or to a file that gets its name when `commit` is called.

    A path that exists and is not a regular file (a device, a named pipe) is written directly. A file whose
    name ends with .gz or .zst is compressed.
    """

    def __init__(self, path: str | None) -> None:
        """Open ``path``; None and "-" are standard output."""
        self._target: Path | None = None
        self._temporary: Path | None = None
        self._packer: Packer | None = None
        if path is None or path == "-":
            require_output()
            super().__init__("standard output", 1)
        elif is_special(path):
            super().__init__(path, _open_special(path))
        else:
            if path.endswith((".gz", ".zst")):
                from fullbloom.cli.io.compression import create_packer

                self._packer = create_packer(path)
            # A link stays a link: the file behind it is replaced.
            self._target = Path(os.path.realpath(path))
            try:
                descriptor, self._temporary = create_beside(self._target, "tmp")
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from error
            super().__init__(path, descriptor)

    @property
    def is_direct(self) -> bool:
        """True if written bytes are out and cannot be discarded."""
        return self._temporary is None

    def write(self, data: Block) -> None:
        """Write all of ``data``, compressed if the file is; ``written`` counts the bytes of the file."""
        super().write(data if self._packer is None else self._packer.compress(data))

    def commit(self, *, durable: bool = False) -> None:
        """Give the file its name; ``durable`` waits until its bytes, and then its name, are on the disk."""
        if self._target is None or self._temporary is None:
            return
        if self._packer is not None:
            super().write(self._packer.flush())
        try:
            if durable:
                os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._temporary.replace(self._target)
            self._temporary = None
            if durable:
                _folders.sync(self._target.parent)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.name) from error

    def discard(self) -> None:
        """Remove the file, if it does not have its name yet."""
        if self._temporary is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            with suppress(OSError):
                self._temporary.unlink()
            self._temporary = None


def save_filter(seen: Filter, path: str) -> None:
    """Save atomically: a link stays a link; a device or pipe is written, not replaced."""
    if is_special(path):
        Stream(path, _open_special(path)).write(seen.to_bytes())
    else:
        seen.save(os.path.realpath(path))
