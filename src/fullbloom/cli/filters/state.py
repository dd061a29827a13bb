"""The filter that outlives a run."""

from __future__ import annotations

import glob
import os
import shutil
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import fullbloom
from fullbloom import _core, _folders
from fullbloom.cli.failures import Refusal, explain
from fullbloom.cli.filters.files import check_options, load
from fullbloom.cli.filters.kinds import row_of
from fullbloom.cli.filters.secret import secret_from
from fullbloom.cli.filters.types import warn_of_types
from fullbloom.cli.io.output import NO_LINKS, beside, is_special
from fullbloom.cli.units import size_text
from fullbloom.errors import FilterFull
from fullbloom.recipes.dedup import remember
from fullbloom.recipes.seen import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.options import StateOptions


#: Of the 255 bytes that file systems take; temporary names have up to 40 more.
_LONGEST_NAME = 200
#: Saving takes no more than this share of the time.
_PAUSE = 20
_COPY = 1 << 20


def _target_of(path: str, role: str) -> Path:
    """Return the file behind the links of ``path``; what can be no state is refused before any work."""
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
    if is_special(path):
        raise Refusal(f"{path}: is a device or a pipe; {role} names a file")
    if not target.parent.is_dir():
        raise Refusal(f"{path}: its directory does not exist")
    return target


@contextmanager
def held(path: str | None, role: str = "--state") -> Iterator[None]:
    """Keep other runs from the filter at ``path``: of two, the last to save would undo the other.

    The lock is a file beside it, since the state itself is replaced. Where it cannot be made, the
    state cannot be saved either, which is told now and not after the work.
    """
    if path is None:
        yield
        return
    target = _target_of(path, role)
    lock = target.with_name(f".{target.name}.lock")
    descriptor = _locked(lock, path)
    try:
        yield
    finally:
        _folders.release(descriptor, lock)


@contextmanager
def open_state(options: StateOptions) -> Iterator[State | None]:
    """Lock --state and yield it; None without --state."""
    with held(options.state):
        yield State(options.state, options) if options.state else None


def _locked(lock: Path, path: str) -> int:
    """Return the descriptor of ``lock``, locked until it is closed."""
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
        # The run that held it may have removed it between our two calls, where the system lets it: then it
        # guards nothing.
        with suppress(FileNotFoundError):
            if not _folders.has_locks() or os.path.samestat(os.fstat(descriptor), lock.stat()):
                return descriptor
        os.close(descriptor)


def remember_printed(lines: bytes, seen: Seen) -> None:
    """Remember lines that are out; when the filter cannot take them all, tell how many will come again.

    Printed twice is better than never: the other order would lose lines when the output fails.
    """
    try:
        remember(lines, seen)
    except (FilterFull, MemoryError) as error:
        records, held_now = _core.check_lines(seen, lines, found=False, absent=False)[:2]
        told = f"{records - held_now:,} printed lines are not in the state and will come again"
        raise Refusal(f"{explain(error)}; {told}") from error


class State:
    """A filter's file, replaced as a whole when it is saved.

    Within a memory budget the filter is a writable mapping of a copy of the file, since a copy in
    memory beside the mapping would count twice; the copy takes the file's name at the end.
    """

    def __init__(self, path: str, options: StateOptions) -> None:
        """Look for the file; a directory in its place is refused."""
        self.path = path
        self._options = options
        self._working: Path | None = None
        self._target = _target_of(path, "--state")
        self.exists = self._target.exists()
        self._saved = time.monotonic()
        self._took = 0.0
        self._types: str | None = None

    def load(self, nbytes: int | None = None) -> Seen:
        """Return the filter of an earlier run, every byte checked, as one that can be added to.

        Within a memory budget it may take ``nbytes`` of it.
        """
        found = load(self.path, self._options.secret_file, verify="full")
        check_options(found, self.path, self._options)
        self._types = found.key_domains
        if nbytes is None:
            copy = found.copy()
            if getattr(copy, "window", None) is not None:
                Clock(copy).tick()  # what has expired since the state was saved
            return copy
        if found.nbytes > nbytes:
            raise Refusal(
                f"{self.path}: the state has {size_text(found.nbytes)}, --memory leaves {size_text(nbytes)}"
            )
        row = row_of(found)
        if "write-in-place" not in row["capabilities"]:
            name = row["name"]
            raise Refusal(f"{self.path}: a state of kind {name} cannot go with --memory; drop the option")
        found.close()
        for left in self._target.parent.glob(f".{glob.escape(self._target.name)}.*.working"):
            left.unlink()  # of a run that was killed: the state is ours alone
        descriptor, self._working = beside(self._target, "working")
        try:
            with self._target.open("rb") as old, os.fdopen(descriptor, "wb") as new:
                shutil.copyfileobj(old, new, _COPY)
            return fullbloom.open(self._working, mode="r+", secret=secret_from(self._options.secret_file))
        except BaseException:
            self.drop_working_copy()
            raise

    def save_in_time(self, seen: Seen) -> None:
        """Save when ``--save-every`` seconds have gone by; rarer where saving takes long."""
        begin = time.monotonic()
        if begin - self._saved < max(self._options.save_every, _PAUSE * self._took):
            return
        seen.save(self._target)
        self._saved = time.monotonic()
        self._took = self._saved - begin

    def save(self, seen: Seen) -> None:
        """Replace the file at once and for good, at the end; warn of keys of other types than it held."""
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
        """Remove what is left of an unsaved copy."""
        if self._working is not None:
            with suppress(OSError):
                self._working.unlink()
            self._working = None
