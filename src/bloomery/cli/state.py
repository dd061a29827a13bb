"""The filter that outlives a run."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bloomery import BloomFilter
from bloomery.cli import filters
from bloomery.cli.failures import Refusal
from bloomery.cli.units import size_text

if TYPE_CHECKING:
    import argparse


class State:
    """A filter's file, replaced as a whole when it is saved.

    Within a memory budget the filter is a writable mapping of a copy of the file, since a copy in
    memory beside the mapping would count twice; the copy takes the file's name at the end.
    """

    def __init__(self, path: str, args: argparse.Namespace) -> None:
        """Look for the file; a directory in its place is refused before any work."""
        self.path = path
        self._args = args
        self._working: Path | None = None
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise Refusal(f"{path}: is a directory; --state names a file")
        if not target.parent.is_dir():
            raise Refusal(f"{path}: its directory does not exist")
        self.exists = target.exists()
        self._target = target

    def load(self, room: int | None = None) -> filters.Seen:
        """Return yesterday's filter, every byte checked, as one that can be added to."""
        found = filters.load(self.path, self._args, verify="full")
        filters.check_options(found, self.path, self._args)
        if room is None:
            return found.copy()
        if found.nbytes > room:
            raise Refusal(
                f"{self.path}: the state has {size_text(found.nbytes)}, --memory leaves {size_text(room)}"
            )
        if not isinstance(found, BloomFilter):
            kind = filters.row_of(found)["name"]
            raise Refusal(f"{self.path}: a state of kind {kind} cannot go with --memory; drop the option")
        found.close()
        working = self._target.with_name(f".{self._target.name}.{os.getpid()}.working")
        shutil.copyfile(self._target, working)
        self._working = working
        return BloomFilter.open(working, mode="r+", secret=filters.secret_from(self._args.secret_file))

    def save(self, seen: filters.Seen) -> None:
        """Replace the file at once and for good."""
        if self._working is None or not isinstance(seen, BloomFilter):
            seen.save(self._target)
            return
        seen.flush()
        self._working.replace(self._target)
        self._working = None
        descriptor = os.open(self._target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def drop_working_copy(self) -> None:
        """Remove what is left of an unsaved copy."""
        if self._working is not None:
            with suppress(OSError):
                self._working.unlink()
            self._working = None
