"""Input: files, standard input, gzip and zstd by their first bytes; whole lines in blocks."""

from __future__ import annotations

import os
import select
import stat
from io import FileIO
from typing import TYPE_CHECKING

from bloomery.cli.failures import Refusal
from bloomery.cli.standard import require_input

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bloomery.cli.stops import Stops

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_COMPRESSED_READ = 1 << 16


Block = bytes | bytearray | memoryview


class Source:
    """One input, opened on first use and read in place.

    ``size`` is that of a regular file, else None; ``taken`` counts the bytes read from it, before
    decompression.
    """

    def __init__(self, path: str) -> None:
        """Name the input; a missing file or a directory is refused here, before any work."""
        self.name = "standard input" if path == "-" else path
        self.path = path
        self.taken = 0
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
        """True when the input can be read a second time from its start."""
        return self.size is not None and self.path != "-"

    @property
    def compressed(self) -> bool:
        """True once opened and found to be compressed."""
        return self._chunks is not None

    def open(self) -> None:
        """Open the input and look at its first bytes; they decide about decompression."""
        if self.path == "-":
            self._file = FileIO(0, "rb", closefd=False)
        else:
            self._file = FileIO(self.path, "rb")
        head = b""
        magics = (GZIP_MAGIC, ZSTD_MAGIC)
        # A live stream may give one byte at a time: wait only while it may yet become a magic.
        while len(head) < len(ZSTD_MAGIC) and any(magic.startswith(head) for magic in magics):
            more = self._file.read(len(ZSTD_MAGIC) - len(head))
            if not more:
                break
            head += more
        self._head = head
        self.taken += len(head)
        if head.startswith(magics):
            from bloomery.cli import compressed

            unpack = compressed.gunzip if head.startswith(GZIP_MAGIC) else compressed.unzstd
            self._chunks = unpack(self._raw_chunks(), self.name)

    def _raw_chunks(self) -> Iterator[bytes]:
        yield self._take_head()
        while chunk := self._raw().read(_COMPRESSED_READ):
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
        """Fill ``target`` as far as one read goes; 0 at the end."""
        raw = self._raw()
        try:
            if self._chunks is None and not self._head:
                count = raw.readinto(target) or 0
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

    def ready(self, timeout: float | None) -> bool:
        """Tell whether a read would answer within ``timeout`` seconds (None: however long)."""
        if self.size is not None or self._rest or self._head or self._chunks is not None:
            return True
        raw = self._raw()
        return bool(self._head) or bool(select.select([raw], [], [], timeout)[0])

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
        self._file, self._chunks, self._head, self._rest = None, None, b"", memoryview(b"")


def sources(paths: Sequence[str]) -> list[Source]:
    """Return the inputs, standard input when none is named; refuses missing ones at once."""
    return [Source(path) for path in (paths or ["-"])]


def require_repeatable(inputs: Sequence[Source], why: str) -> None:
    """Refuse inputs that cannot be read twice."""
    for source in inputs:
        if not source.repeatable:
            raise Refusal(
                f"{source.name}: {why} reads its input twice, so it needs a regular file, not a pipe"
            )


class Blocks:
    """Whole lines of all inputs, in blocks of about ``size`` bytes.

    A line longer than a block makes its block as long as it needs to be. A last line without
    newline is completed when another input follows. A live input is answered with what is there:
    a block never waits to be full. With ``tick``, an empty block comes after so many idle seconds.
    """

    def __init__(
        self, inputs: Sequence[Source], stops: Stops, *, size: int = 1 << 20, tick: float | None = None
    ) -> None:
        """Read ``inputs`` in order."""
        self._inputs = inputs
        self._stops = stops
        self._size = size
        self._tick = tick
        self._buffer = bytearray(size)
        self._filled = 0

    @property
    def taken(self) -> int:
        """Bytes read so far, before decompression."""
        return sum(source.taken for source in self._inputs)

    @property
    def total(self) -> int | None:
        """Bytes of all inputs, when every one has a size."""
        sizes = [source.size for source in self._inputs]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def __iter__(self) -> Iterator[memoryview]:
        """Yield views that are valid until the next one is asked for."""
        self._filled = 0
        unfinished = False
        for source in self._inputs:
            if unfinished:
                self._reserve()
                self._buffer[self._filled : self._filled + 1] = b"\n"
                self._filled += 1
            yield from self._lines_of(source, completed=unfinished)
            unfinished = bool(self._filled)
            source.close()
        if self._filled:
            with memoryview(self._buffer) as view:
                yield view[: self._filled]

    def _lines_of(self, source: Source, *, completed: bool) -> Iterator[memoryview]:
        cut = self._filled if completed else 0  # the completing newline ends a line, if data follows
        while True:
            while self._tick is not None and not cut and not self._ready(source, self._tick):
                yield memoryview(b"")
            count = self._fill(source)
            if count == 0:
                if completed and cut == self._filled:  # nothing followed: take the newline back
                    self._filled -= 1
                    return
            else:
                completed = False
                start = self._filled - count
                cut = max(cut, self._buffer.rfind(b"\n", start, self._filled) + 1)
                if self._filled < self._size and self._ready(source, 0):
                    continue
            if cut:
                with memoryview(self._buffer) as view, view[:cut] as block:
                    yield block
                self._drop(cut)
                cut = 0
            if count == 0:
                return

    def _ready(self, source: Source, timeout: float | None) -> bool:
        self._stops.wait()
        try:
            return source.ready(timeout)
        finally:
            self._stops.go()

    def _fill(self, source: Source) -> int:
        self._reserve()
        self._stops.wait()
        try:
            with memoryview(self._buffer) as view, view[self._filled :] as room:
                count = source.readinto(room)
        finally:
            self._stops.go()
        self._filled += count
        return count

    def _reserve(self) -> None:
        if self._filled == len(self._buffer):  # one line fills it: a quarter more each time
            self._buffer.extend(bytes(max(self._size, len(self._buffer) // 4)))

    def _drop(self, cut: int) -> None:
        rest = self._filled - cut
        self._buffer[:rest] = self._buffer[cut : self._filled]
        self._filled = rest
        if len(self._buffer) > 2 * self._size and rest < self._size:
            del self._buffer[self._size :]
