"""The filter that is saved from run to run (--state)."""

from __future__ import annotations

import os
import shutil
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import fullbloom
from fullbloom import _core, _folders
from fullbloom.cli.failures import Refusal, explain
from fullbloom.cli.filters.files import check_options, load, warn_of_types
from fullbloom.cli.filters.kinds import get_row
from fullbloom.cli.io.output import NO_LINKS, create_beside, find_beside, is_special
from fullbloom.cli.units import size_text
from fullbloom.errors import FilterFull
from fullbloom.recipes.dedup import remember
from fullbloom.recipes.seen import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.options import StateOptions


#: File systems allow 255 bytes; temporary names are up to 40 longer.
_LONGEST_NAME = 200
#: Saving takes at most this share of the time.
_PAUSE = 20
_COPY = 1 << 20


def _resolve_target(path: str, role: str) -> Path:
    """Return the file behind the links of ``path``; refuse what cannot be a state, before any work."""
    target = Path(os.path.realpath(path))
    if not path:
        raise Refusal(f"{role} names a file, got an empty text; name one, or drop it")
    if len(os.fsencode(target.name)) > _LONGEST_NAME:
        raise Refusal(
            f"{path}: its name is longer than {_LONGEST_NAME} bytes, and it is saved beside itself under a "
            "longer one; shorten it"
        )
    if target.is_dir():
        raise Refusal(f"{path}: is a directory; {role} names a file")
    with suppress(FileNotFoundError):  # a loop of links is another error
        if not stat.S_ISREG(target.stat().st_mode):
            raise Refusal(f"{path}: is a device or a pipe; {role} names a file")
    if not target.parent.is_dir():
        raise Refusal(f"{path}: its directory does not exist")
    return target


@contextmanager
def lock_file(path: str | None, role: str = "--state") -> Iterator[None]:
    """Lock the filter at ``path`` against other runs: of two, the last to save would undo the other.

    The lock is a file beside it, since the state itself is replaced. If the lock cannot be created, the
    state could not be saved either, and is refused before the work.
    """
    if path is None:
        yield
        return
    target = _resolve_target(path, role)
    lock = target.with_name(f".{target.name}.lock")
    descriptor = _lock(lock, path)
    try:
        yield
    finally:
        _folders.release(descriptor, lock)


@contextmanager
def lock_output(path: str, role: str = "OUT") -> Iterator[None]:
    """Lock the file that a command replaces. Devices, pipes and standard output are not replaced."""
    with lock_file(None if path == "-" or is_special(path) else path, role):
        yield


@contextmanager
def open_state(options: StateOptions) -> Iterator[State | None]:
    """Lock --state and yield it; None without --state."""
    with lock_file(options.state):
        yield State(options.state, options) if options.state else None


def _lock(lock: Path, path: str) -> int:
    """Return the descriptor of ``lock``, which is locked until it is closed."""
    flags = os.O_RDONLY | os.O_CREAT | NO_LINKS
    while True:
        try:
            descriptor = os.open(lock, flags, 0o666)
        except OSError as error:
            raise Refusal(f"{path}: its directory cannot be written: {error.strerror}") from error
        try:
            _folders.lock(descriptor, wait=False)
        except BlockingIOError:
            os.close(descriptor)
            raise Refusal(f"{path}: another run uses this file; wait for it, or name another") from None
        # Another run may have removed the file between the two calls, if the system allows that: then this
        # lock protects nothing.
        with suppress(FileNotFoundError):
            if not _folders.has_locks() or os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        os.close(descriptor)


@contextmanager
def count_forgotten(seen: Filter, lines: Callable[[], bytes]) -> Iterator[None]:
    """Add printed ``lines`` inside; if the filter cannot take all, report how many will be printed again.

    Printed twice is better than never: the other order would lose lines if the output fails.
    """
    try:
        yield
    except (FilterFull, MemoryError) as error:
        records, found = _core.check_lines(seen, lines(), found=False, absent=False)[:2]
        text = f"{records - found:,} printed lines are not in the state and will come again"
        raise Refusal(f"{explain(error)}; {text}") from error


def remember_printed(lines: bytes, seen: Filter) -> None:
    """Add printed lines, within `count_forgotten`."""
    with count_forgotten(seen, lambda: lines):
        remember(lines, seen)


class State:
    """A filter's file, replaced as a whole when it is saved.

    Within a memory budget the filter is a writable mapping of a copy of the file, since a copy in
    memory beside the mapping would count twice; the copy takes the file's name at the end.
    """

    def __init__(self, path: str, options: StateOptions) -> None:
        """Find the file; a directory in its place is refused."""
        self.path = path
        self._options = options
        self._working: Path | None = None
        self._target = _resolve_target(path, "--state")
        self.exists = self._target.exists()
        self._saved = time.monotonic()
        self._took = 0.0
        self._types: str | None = None

    def load(self, nbytes: int | None = None) -> Filter:
        """Return the filter of an earlier run, fully checked, open for adding.

        Within a memory budget it may take ``nbytes`` of it.
        """
        found = load(self.path, self._options.secret_file, verify="full")
        check_options(found, self.path, self._options)
        self._types = found.key_domains
        if nbytes is None:
            copy = found.copy()
            if getattr(copy, "window", None) is not None:
                Clock(copy).tick()  # forget lines that expired since the state was saved
            return copy
        if found.nbytes > nbytes:
            raise Refusal(
                f"{self.path}: the state has {size_text(found.nbytes)}, --memory leaves {size_text(nbytes)}"
            )
        row = get_row(found)
        if "write-in-place" not in row["capabilities"]:
            name = row["name"]
            raise Refusal(f"{self.path}: a state of kind {name} cannot go with --memory; drop the option")
        found.close()
        for stale in find_beside(self._target, "working"):
            stale.unlink()  # of a run that was killed: this run has the lock
        descriptor, self._working = create_beside(self._target, "working")
        try:
            with self._target.open("rb") as old, os.fdopen(descriptor, "wb") as new:
                shutil.copyfileobj(old, new, _COPY)
            return fullbloom.open(self._working, mode="r+", secret=self._options.hash_keywords["secret"])
        except BaseException:
            self.drop_working_copy()
            raise

    def save_in_time(self, seen: Filter) -> None:
        """Save when ``--save-every`` seconds have gone by; rarer where saving takes long."""
        begin = time.monotonic()
        if begin - self._saved < max(self._options.save_every, _PAUSE * self._took):
            return
        seen.save(self._target)
        self._saved = time.monotonic()
        self._took = self._saved - begin

    def save(self, seen: Filter) -> None:
        """Replace the file at the end, atomically; warn of keys of other types than it held."""
        if self._types is not None:
            warn_of_types(self._types, seen)
        if self._working is None:
            seen.save(self._target)
            return
        # Closed first: under the state's name, a file that is marked as open would be refused after a kill.
        seen.close()
        self._working.replace(self._target)
        self._working = None
        _folders.sync(self._target.parent)

    def drop_working_copy(self) -> None:
        """Remove an unsaved copy."""
        if self._working is not None:
            with suppress(OSError):
                self._working.unlink()
            self._working = None
