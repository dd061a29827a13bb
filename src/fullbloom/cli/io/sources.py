"""Sources: files and standard input, gzip and zstd by their first bytes."""

from __future__ import annotations

import os
import select
import stat
from functools import partial
from io import FileIO
from typing import TYPE_CHECKING, TypeVar

from fullbloom.cli.failures import Refusal
from fullbloom.cli.io.frames import LARGEST_WINDOW, MAGIC, SKIPPABLE
from fullbloom.cli.standard import require_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")

GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGICS = (MAGIC, *SKIPPABLE)
#: The first bytes of compressed inputs.
MAGICS = (GZIP_MAGIC, *_ZSTD_MAGICS)
_COMPRESSED_READ = 1 << 16


class Source:
    """One input, opened on first use and read in place.

    ``size`` is that of a regular file, else None; ``taken`` counts the bytes read from it, before
    decompression.
    """

    def __init__(self, path: str, *, window: int = LARGEST_WINDOW) -> None:
        """Check the input: a missing file or a directory is refused before any work."""
        self.name = "standard input" if path == "-" else path
        self.path = path
        self.taken = 0
        self._window = window
        if path == "-":
            require_input()
        status = os.fstat(0) if path == "-" else os.stat(path)  # noqa: PTH116 - the path may be "-"
        if stat.S_ISDIR(status.st_mode):
            raise Refusal(f"{self.name}: is a directory; name its files, or pipe them in")
        self.size = status.st_size if stat.S_ISREG(status.st_mode) else None
        self._file: FileIO | None = None
        self._head = b""
        self._chunks: Iterator[bytes] | None = None
        self._rest = memoryview(b"")

    @property
    def repeatable(self) -> bool:
        """True if the input can be read a second time from its start."""
        return self.size is not None and self.path != "-"

    @property
    def has_window(self) -> bool:
        """True for zstd, which the first bytes show; waits for them."""
        self._raw()
        found = self._head.startswith(_ZSTD_MAGICS)
        if self.repeatable:  # many files must not all stay open
            self.rewind()
        return found

    @property
    def is_packed(self) -> bool:
        """True once the first bytes showed that the input is compressed."""
        return self._chunks is not None

    def open(self) -> None:
        """Open the input and read its first bytes; they decide about decompression."""
        if self.path == "-":
            self._file = FileIO(0, "rb", closefd=False)
        else:
            self._file = FileIO(self.path, "rb")
        head = b""
        # A live stream may deliver one byte at a time: wait only while a magic is still possible.
        while len(head) < len(MAGIC) and any(magic.startswith(head) for magic in MAGICS):
            more = _wait_for(self._file, partial(self._file.read, len(MAGIC) - len(head)))
            if not more:
                break
            head += more
        self._head = head
        self.taken += len(head)
        if head.startswith(MAGICS):
            from fullbloom.cli.io import compression

            if head.startswith(GZIP_MAGIC):
                self._chunks = compression.gunzip(self._raw_chunks(), self.name)
            else:
                self._chunks = compression.unzstd(self._raw_chunks(), self.name, self._window)

    def _raw_chunks(self) -> Iterator[bytes]:
        yield self._take_head()
        raw = self._raw()
        while chunk := _wait_for(raw, partial(raw.read, _COMPRESSED_READ)):
            self.taken += len(chunk)
            yield chunk

    def _raw(self) -> FileIO:
        if self._file is None:
            self.open()
        if self._file is None:
            raise Refusal(f"{self.name}: cannot be opened")
        return self._file

    def _take_head(self) -> bytes:
        head, self._head = self._head, b""
        return head

    def readinto(self, target: memoryview) -> int:
        """Fill ``target`` by one read; return 0 at the end."""
        raw = self._raw()
        try:
            if self._chunks is None and not self._head and not self._rest:
                count: int = _wait_for(raw, partial(raw.readinto, target))
                self.taken += count
                return count
            if not self._rest:
                chunk = self._take_head() if self._chunks is None else next(self._chunks, b"")
                self._rest = memoryview(chunk)
            count = min(len(self._rest), len(target))
            target[:count] = self._rest[:count]
            self._rest = self._rest[count:]
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.name) from error
        return count

    def is_ready(self, timeout: float | None) -> bool:
        """Return whether a read would return within ``timeout`` seconds (None: any time)."""
        if self.size is not None or self._rest or self._head or self._chunks is not None:
            return True
        raw = self._raw()
        try:
            return bool(self._head) or bool(select.select([raw], [], [], timeout)[0])
        except OSError:  # Windows supports sockets only: a block is taken as it is, and a wait is a read
            return timeout != 0

    def rewind(self) -> None:
        """Read from the start next, as a repeatable input can be."""
        self.close()
        self.taken = 0

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file, self._chunks, self._head, self._rest = None, None, b"", memoryview(b"")


def _wait_for(raw: FileIO, read: Callable[[], T | None]) -> T:
    """Return what ``read`` returns, once there is something: None is not the end of the input.

    Any process that shares a pipe can make it non-blocking.
    """
    while (found := read()) is None:
        select.select([raw], [], [])
    return found


def open_sources(paths: Sequence[str], *, window: int = LARGEST_WINDOW) -> list[Source]:
    """Return the inputs, standard input if none is named; refuse missing ones at once.

    ``window`` bounds the memory of zstd.
    """
    return [Source(path, window=window) for path in (paths or ["-"])]


def require_repeatable(inputs: Sequence[Source], why: str) -> None:
    """Refuse inputs that cannot be read twice."""
    for source in inputs:
        if not source.repeatable:
            raise Refusal(
                f"{source.name}: {why} reads its input twice, so it needs a regular file, not a pipe"
            )
