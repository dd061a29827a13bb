"""Passes over records (``--select``): the key is a part of the record, None where it has none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import compress
from typing import TYPE_CHECKING, Any

from bloomery import hash_many
from bloomery.cli.filters.secret import hashing
from bloomery.cli.io.records import Batch, Records
from bloomery.recipes.dedup import Load, add_new, scratch

if TYPE_CHECKING:
    from bloomery.cli.dedup.job import Job
    from bloomery.cli.filters.kinds import Seen


class _Pass(ABC):
    """What the passes share; a record without a key is always kept."""

    def __init__(self, job: Job) -> None:
        """Work for ``job``."""
        self._job = job
        self._load = Load(job.seen)

    def run(self) -> None:
        """Read to the end."""
        job = self._job
        for batch in self._records():
            new, keyless = self._is_new(batch), batch.keys.count(None)
            self._write(batch, new)
            job.without_key += keyless
            job.tally.count(len(new), sum(new), self._lost(sum(new) - keyless))
            job.save_in_time()
            job.progress.show()

    def _records(self) -> Records:
        return Records(self._job.args, self._job.inputs, self._job.stops, longest=self._job.longest)

    @abstractmethod
    def _is_new(self, batch: Batch) -> list[bool]:
        """Tell of each record whether it is kept."""

    @abstractmethod
    def _lost(self, kept: int) -> float:
        """Return how many new keys of a batch, so many being kept, were probably taken for known."""

    def _write(self, batch: Batch, new: list[bool]) -> None:
        self._keep(batch, new)
        dropped = b"".join(compress(batch.raws, (not is_new for is_new in new)))
        self._job.outputs.drop(batch.header + dropped)

    def _keep(self, batch: Batch, new: list[bool]) -> None:
        self._job.outputs.keep(batch.header + b"".join(compress(batch.raws, new)))


class Direct(_Pass):
    """A key is added as it is looked up."""

    def __init__(self, job: Job) -> None:
        """Work for ``job``."""
        super().__init__(job)
        self._found = 0.0

    def _is_new(self, batch: Batch) -> list[bool]:
        answers: list[bool | None] = []
        self._found = 0.0
        while len(answers) < len(batch.keys):
            added = _added(self._job.seen, batch.keys[len(answers) :][: self._load.step()])
            self._found += self._load.lost(added.count(True))
            answers += added
        return [is_new is not False for is_new in answers]

    def _lost(self, kept: int) -> float:  # noqa: ARG002 - the rate was followed key by key
        return self._found


class Deferred(_Pass):
    """A key is added once its record is written."""

    def _lost(self, kept: int) -> float:
        return self._load.lost(kept, deferred=True)

    def _is_new(self, batch: Batch) -> list[bool]:
        within = scratch(len(batch.keys))
        return [key is None or (key not in self._job.seen and within.add(key)) for key in batch.keys]

    def _keep(self, batch: Batch, new: list[bool]) -> None:
        """Write; what a failed write did get out is remembered."""
        seen, outputs, before = self._job.seen, self._job.outputs, self._job.outputs.written
        keys = list(compress(batch.keys, new))
        try:
            super()._keep(batch, new)
        except OSError:
            out = outputs.written - before - len(batch.header)
            for raw, key in zip(compress(batch.raws, new), keys, strict=True):
                out -= len(raw)
                if out < 0:
                    break
                if key is not None:
                    seen.add(key)
            raise
        seen.update([key for key in keys if key is not None])


class Verified(_Pass):
    """Exact: the first pass collects hashes of candidate duplicates, the second compares their keys."""

    def __init__(self, job: Job) -> None:
        """Work for ``job``."""
        super().__init__(job)
        self._hashing = hashing(job.args)
        self._candidates: set[int] = set()
        self._met: set[Any] = set()

    def run(self) -> None:
        """Read to the end, twice."""
        for batch in self._records():
            added = _added(self._job.seen, batch.keys)
            again = [key for key, is_new in zip(batch.keys, added, strict=True) if is_new is False]
            self._candidates.update(hash_many(again, **self._hashing))
            self._job.progress.show()
        self._job.rewind()
        super().run()

    def _is_new(self, batch: Batch) -> list[bool]:
        hashes = iter(hash_many([key for key in batch.keys if key is not None], **self._hashing))
        return [key is None or next(hashes) not in self._candidates or self._meet(key) for key in batch.keys]

    def _meet(self, key: Any) -> bool:
        """Tell whether a candidate was not met before."""
        exact = _exact(key)
        new = exact not in self._met
        self._met.add(exact)
        return new

    def _lost(self, kept: int) -> float:  # noqa: ARG002 - none are
        return 0.0


def _added(seen: Seen, keys: list[Any]) -> list[bool | None]:
    """Add the keys; tell of each whether it was new, None for None."""
    answers = iter(add_new([key for key in keys if key is not None], seen))
    return [None if key is None else next(answers) for key in keys]


def _exact(key: Any) -> Any:
    """Return what two keys share exactly when the filter takes them for one."""
    if isinstance(key, str):
        return key.encode("utf-8", "surrogatepass")
    return ("float", repr(key + 0.0)) if isinstance(key, float) else key
