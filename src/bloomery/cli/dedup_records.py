"""``bloomery dedup --select``: the key is a part of the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bloomery import BloomFilter, hash_many
from bloomery.cli import filters
from bloomery.cli.inputs import sources
from bloomery.cli.records import Batch, Records
from bloomery.recipes.dedup import Load, add_new

if TYPE_CHECKING:
    from bloomery.cli.dedup_job import Job


def select_pass(job: Job) -> None:
    """Sift all records; ``--verify`` reads them twice."""
    judge = _exact_judge(job) if job.args.verify else (_stateful if job.state else _plain)
    load = Load(job.seen)
    for batch in _records(job):
        new = judge(job, batch)
        kept = b"".join(raw for raw, is_new in zip(batch.raws, new, strict=True) if is_new)
        old = b"".join(raw for raw, is_new in zip(batch.raws, new, strict=True) if not is_new)
        _emit(job, batch, new, kept, old)
        job.without_key += batch.keys.count(None)
        job.tally.count(len(new), sum(new), 0.0 if job.args.verify else load.lost(sum(new)))
        job.progress.show()


def _records(job: Job) -> Records:
    return Records(job.args, job.blocks, job.inputs, job.stops)


def _emit(job: Job, batch: Batch, new: list[bool], kept: bytes, old: bytes) -> None:
    keys = [key for key, is_new in zip(batch.keys, new, strict=True) if is_new]
    before = job.output.written if job.output else 0
    try:
        if job.output:
            job.output.write(batch.header + kept)
    except OSError:
        if job.state and job.output:
            out = job.output.written - before - len(batch.header)
            raws = (raw for raw, is_new in zip(batch.raws, new, strict=True) if is_new)
            for raw, key in zip(raws, keys, strict=True):
                out -= len(raw)
                if out < 0:
                    break
                if key is not None:
                    job.seen.add(key)
        raise
    if job.state:
        job.seen.update([key for key in keys if key is not None])
    if job.dupes:
        job.dupes.write(batch.header + old)


def _plain(job: Job, batch: Batch) -> list[bool]:
    """Add at once; a record without a key is always kept."""
    return [mark is not False for mark in _marks(job.seen, batch.keys)]


def _marks(seen: filters.Seen, keys: list[Any]) -> list[bool | None]:
    marks = iter(add_new([key for key in keys if key is not None], seen))
    return [None if key is None else next(marks) for key in keys]


def _stateful(job: Job, batch: Batch) -> list[bool]:
    """Look up now, remember once it is written."""
    within = BloomFilter(len(batch.keys) + 1, 1e-12, layout="classic")
    return [key is None or (key not in job.seen and within.add(key)) for key in batch.keys]


def _exact_judge(job: Job) -> Any:
    suspects: set[int] = set()
    how = filters.common(job.args)
    for batch in _records(job):
        marks = _marks(job.seen, batch.keys)
        again = [key for key, mark in zip(batch.keys, marks, strict=True) if mark is False]
        suspects.update(hash_many(again, **how))
        job.progress.show()
    job.inputs = sources(job.args.files)
    met: set[Any] = set()

    def judge(_job: Job, batch: Batch) -> list[bool]:
        hashes = iter(hash_many([key for key in batch.keys if key is not None], **how))
        new = []
        for key in batch.keys:
            if key is None or next(hashes) not in suspects:
                new.append(True)
                continue
            exact = _exact(key)
            new.append(exact not in met)
            met.add(exact)
        return new

    return judge


def _exact(key: Any) -> Any:
    """Return what two keys share exactly when the filter takes them for one."""
    if isinstance(key, str):
        return key.encode("utf-8", "surrogatepass")
    return ("float", repr(key + 0.0)) if isinstance(key, float) else key
