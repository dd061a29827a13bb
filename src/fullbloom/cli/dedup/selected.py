"""Passes over records: the key may be a part of the record, and a record without a key is always kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from fullbloom import _core
from fullbloom.cli.dedup.passes import check_memory
from fullbloom.cli.filters.kinds import is_forgetful
from fullbloom.cli.io.records import Records
from fullbloom.recipes.dedup import Load, keeps_copies

if TYPE_CHECKING:
    from collections.abc import Callable

    from fullbloom.cli.dedup.job import Job
    from fullbloom.cli.io.blocks import Batch


class _Pass(ABC):
    """The common parts of the passes."""

    def __init__(self, job: Job) -> None:
        """Process the records of ``job``."""
        self._job = job
        self._load = Load(job.seen)
        self._once = keeps_copies(job.seen)

    def run(self) -> None:
        """Read to the end."""
        job = self._job
        records = self._records()
        for batch in records:
            kept = self._partition(batch)
            without = batch.records.without_key
            job.without_key += without
            read = len(batch.records) - batch.records.faults
            job.tally.count(read, kept, self._estimate_lost(kept - without))
            job.faults, job.first_fault = records.faults, records.first_fault
            job.save_in_time()
            job.progress.show()

    def _records(self) -> Records:
        job = self._job
        how = {"longest": job.longest, "size": job.block_size}
        keys_only = bool(job.options.no_output and not job.outputs.wants_dropped)
        return Records(job.options, job.inputs, job.stops, job.seen, **how, keys_only=keys_only)

    @abstractmethod
    def _partition(self, batch: Batch) -> int:
        """Write the kept and the dropped records of ``batch``; return how many are kept."""

    def _estimate_lost(self, kept: int) -> float:  # noqa: ARG002 - exact passes lose no record
        """Return how many new keys of a batch, of which ``kept`` were kept, were probably dropped."""
        return 0.0

    def _write(self, batch: Batch, kept: bytes | None, dropped: bytes | None) -> None:
        outputs = self._job.outputs
        outputs.keep(batch.join_kept(kept))
        outputs.drop(batch.join_dropped(dropped))


class Direct(_Pass):
    """A key is added when it is looked up."""

    def __init__(self, job: Job) -> None:
        """Process the records of ``job``."""
        super().__init__(job)
        self._lost = 0.0

    def _partition(self, batch: Batch) -> int:
        """Add the keys, a step of the filter's rate at a time."""
        records, keys = batch.records, len(batch.records) - batch.records.faults - batch.records.without_key
        marks, self._lost = b"", 0.0
        while len(marks) < keys:
            added = records.add_some(self._job.seen, len(marks), self._load.step(), once=self._once)
            self._lost += self._load.count_lost(added.count(1))
            marks += added
        new, kept, dropped = records.part(marks, dropped=self._job.outputs.wants_dropped)
        self._write(batch, kept, dropped)
        return new

    def _estimate_lost(self, kept: int) -> float:  # noqa: ARG002 - counted step by step
        return self._lost


class Deferred(_Pass):
    """A key is added once its record is written."""

    def __init__(self, job: Job) -> None:
        """Process the records of ``job``."""
        super().__init__(job)
        # If adding again renews a key, keys that were seen are added too.
        self._renew = is_forgetful(job.seen)

    def _estimate_lost(self, kept: int) -> float:
        return self._load.count_lost(kept, deferred=True)

    def _partition(self, batch: Batch) -> int:
        """Write, then add; records printed before a failure are added, too."""
        seen, outputs = self._job.seen, self._job.outputs
        before = outputs.bytes_written
        new, kept, dropped, marks = batch.records.select_new(seen, dropped=outputs.wants_dropped)
        try:
            self._write(batch, kept, dropped)
        except BaseException:  # a second signal, too
            batch.records.remember(seen, marks, batch.count_record_bytes(outputs.bytes_written - before))
            raise
        batch.records.remember(seen, None if self._renew else marks)
        return new


class _TwoPasses(_Pass):
    """The first pass collects hashes of keys, the second decides about the records."""

    #: The object of the core, and its two methods.
    _hashes: Any
    _collect: Callable[..., None]
    _decide: Callable[..., tuple[int, bytes | None, bytes | None]]

    def run(self) -> None:
        """Read to the end, twice."""
        for batch in self._records():
            self._collect(self._job.seen, batch.records, once=self._once)
            check_memory(self._job, self._hashes.nbytes)
            self._job.progress.show()
        self._job.rewind()
        super().run()

    def _partition(self, batch: Batch) -> int:
        wants_dropped = self._job.outputs.wants_dropped
        count, kept, dropped = self._decide(batch.records, dropped=wants_dropped)
        self._write(batch, kept, dropped)
        return count


class Verified(_TwoPasses):
    """Exact: the first pass collects hashes of candidate duplicates, the second compares their keys."""

    def __init__(self, job: Job) -> None:
        """Process the records of ``job``."""
        super().__init__(job)
        self._hashes = _core.CandidateDuplicates()
        self._collect, self._decide = self._hashes.collect_keys, self._hashes.partition_keys


class Last(_TwoPasses):
    """The last record of each key, exact except for equal 64-bit hashes."""

    def __init__(self, job: Job) -> None:
        """Process the records of ``job``."""
        super().__init__(job)
        self._hashes = _core.LastOccurrences()
        self._collect, self._decide = self._hashes.collect, self._hashes.partition
