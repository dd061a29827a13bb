"""Passes over records: the key may be a part of the record, and a record without one is always kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from fullbloom import _core
from fullbloom.cli.dedup.passes import check_memory
from fullbloom.cli.filters.kinds import forgets
from fullbloom.cli.io.records import Records
from fullbloom.recipes.dedup import Load, keeps_copies

if TYPE_CHECKING:
    from fullbloom.cli.dedup.job import Job
    from fullbloom.cli.io.batch import Batch


class _Pass(ABC):
    """What the passes share."""

    def __init__(self, job: Job) -> None:
        """Work for ``job``."""
        self._job = job
        self._load = Load(job.seen)
        self._once = keeps_copies(job.seen)

    def run(self) -> None:
        """Read to the end."""
        job = self._job
        records = self._records()
        for batch in records:
            kept = self._part(batch)
            without = batch.records.without_key
            job.without_key += without
            read = len(batch.records) - batch.records.faults
            job.tally.count(read, kept, self._lost(kept - without))
            job.faults, job.first_fault = records.faults, records.first_fault
            job.save_in_time()
            job.progress.show()

    def _records(self) -> Records:
        job = self._job
        how = {"longest": job.longest, "size": job.block_size}
        keys_only = bool(job.options.no_output and not job.outputs.wants_dropped)
        return Records(job.options, job.inputs, job.stops, job.seen, **how, keys_only=keys_only)

    @abstractmethod
    def _part(self, batch: Batch) -> int:
        """Write the records of ``batch``, each where it belongs; return how many are kept."""

    @abstractmethod
    def _lost(self, kept: int) -> float:
        """Return how many new keys of a batch, so many being kept, were probably taken for known."""

    def _write(self, batch: Batch, kept: bytes | None, dropped: bytes | None) -> None:
        outputs = self._job.outputs
        outputs.keep(batch.kept(kept))
        outputs.drop(batch.dropped(dropped))


class Direct(_Pass):
    """A key is added as it is looked up."""

    def __init__(self, job: Job) -> None:
        """Work for ``job``."""
        super().__init__(job)
        self._found = 0.0

    def _part(self, batch: Batch) -> int:
        """Add the keys, a step of the filter's rate at a time."""
        records, keys = batch.records, len(batch.records) - batch.records.faults - batch.records.without_key
        marks, self._found = b"", 0.0
        while len(marks) < keys:
            added = records.add_some(self._job.seen, len(marks), self._load.step(), once=self._once)
            self._found += self._load.lost(added.count(1))
            marks += added
        new, kept, dropped = records.part(marks, dropped=self._job.outputs.wants_dropped)
        self._write(batch, kept, dropped)
        return new

    def _lost(self, kept: int) -> float:  # noqa: ARG002 - the rate was followed key by key
        return self._found


class Deferred(_Pass):
    """A key is added once its record is written."""

    def __init__(self, job: Job) -> None:
        """Work for ``job``."""
        super().__init__(job)
        # Where adding again renews a key, keys that were seen are added too.
        self._renew = forgets(job.seen)

    def _lost(self, kept: int) -> float:
        return self._load.lost(kept, deferred=True)

    def _part(self, batch: Batch) -> int:
        """Write; what a failed write did get out is remembered."""
        seen, outputs = self._job.seen, self._job.outputs
        before = outputs.written
        new, kept, dropped, marks = batch.records.fresh(seen, dropped=outputs.wants_dropped)
        try:
            self._write(batch, kept, dropped)
        except OSError:
            batch.records.remember(seen, marks, batch.printed(outputs.written - before))
            raise
        batch.records.remember(seen, None if self._renew else marks)
        return new


class Verified(_Pass):
    """Exact: the first pass collects hashes of candidate duplicates, the second compares their keys."""

    def __init__(self, job: Job) -> None:
        """Work for ``job``."""
        super().__init__(job)
        self._candidates = _core.CandidateDuplicates()

    def run(self) -> None:
        """Read to the end, twice."""
        for batch in self._records():
            self._candidates.collect_keys(self._job.seen, batch.records, once=self._once)
            check_memory(self._job, self._candidates.nbytes)
            self._job.progress.show()
        self._job.rewind()
        super().run()

    def _part(self, batch: Batch) -> int:
        wants_dropped = self._job.outputs.wants_dropped
        new, kept, dropped = self._candidates.partition_keys(batch.records, dropped=wants_dropped)
        self._write(batch, kept, dropped)
        return new

    def _lost(self, kept: int) -> float:  # noqa: ARG002 - none are
        return 0.0


class Last(_Pass):
    """The last record of each key: the first pass notes where keys occur again, the second asks."""

    def __init__(self, job: Job) -> None:
        """Work for ``job``."""
        super().__init__(job)
        self._last = _core.LastOccurrences()

    def run(self) -> None:
        """Read to the end, twice."""
        for batch in self._records():
            self._last.collect(self._job.seen, batch.records, once=self._once)
            check_memory(self._job, self._last.nbytes)
            self._job.progress.show()
        self._job.rewind()
        super().run()

    def _part(self, batch: Batch) -> int:
        wants_dropped = self._job.outputs.wants_dropped
        kept_records, kept, dropped = self._last.partition(batch.records, dropped=wants_dropped)
        self._write(batch, kept, dropped)
        return kept_records

    def _lost(self, kept: int) -> float:  # noqa: ARG002 - none are, but by 64-bit hashes
        return 0.0
