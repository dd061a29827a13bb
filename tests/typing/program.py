"""A program as a user writes it, with annotations: clean under ``mypy --strict`` and pyright, and it runs.

Feeds of visits are de-duplicated, sessions kept and let go, and what was seen is published as a small file.
"""

from __future__ import annotations

import datetime as dt
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

import fullbloom
from fullbloom import BinaryFuseFilter, BloomFilter, CountingBloomFilter, ScalableBloomFilter
from fullbloom.errors import FormatError, FullbloomError
from fullbloom.keys import Key, Keys
from fullbloom.protocols import Addable, Countable, Filter, Removable


class Visit(NamedTuple):
    """A line of the feed; a tuple, and so a key."""

    user: str
    page: str
    at: dt.datetime


@dataclass
class Feed:
    """Passes on visits that were not seen before."""

    seen: BloomFilter = field(default_factory=lambda: BloomFilter(10_000, fpr=1e-4, layout="blocked"))
    dropped: int = 0

    def fresh(self, visits: Iterable[Visit]) -> Iterator[Visit]:
        """Yield the visits that are new."""
        for visit in visits:
            if self.seen.add((visit.user, visit.page)):
                yield visit
            else:
                self.dropped += 1


def learn(target: Addable, *batches: Keys) -> int:
    """Add batches to any filter that takes keys; how many keys it has then."""
    for batch in batches:
        target.update(batch)
    return target.num_added


def list_known(f: Filter, keys: Iterable[Key]) -> list[Key]:
    """List the keys that any filter knows."""
    return [key for key in keys if key in f]


def let_go(sessions: Removable, ended: Collection[str]) -> int:
    """Take sessions out; how many were there."""
    return sum(sessions.discard(session) for session in ended)


def top(counts: Countable, pages: Collection[str], least: int) -> dict[str, int]:
    """Return the pages that were visited often."""
    return {page: n for page in pages if (n := counts.count(page)) >= least}


def split(f: BloomFilter, users: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split an array into known users and others."""
    mask = f.contains_many(users, threads=2)
    return users[mask], users[~mask]


def column(f: BloomFilter, frame: pl.DataFrame) -> pl.DataFrame:
    """Keep the rows of a frame whose page is known."""
    return frame.filter(f.contains_many(frame["page"]))


def publish(pages: Collection[str], path: Path) -> BinaryFuseFilter:
    """Write a static set to a file and open it again."""
    BinaryFuseFilter.build(pages, fpr=1e-3, threads=1).save(path)
    return BinaryFuseFilter.open(path, verify="full")


def extend(path: Path, keys: Collection[str]) -> float:
    """Add keys to a filter in its file; its rate then."""
    with fullbloom.open(path, mode="r+") as f:
        f.update(keys)
        return f.fpr()


def main(folder: Path) -> int:
    """Run all of it; the number of dropped visits."""
    now = dt.datetime(2024, 1, 15, 12, tzinfo=dt.UTC)
    visits = [Visit(f"user {i % 5}", f"/{i % 3}", now + dt.timedelta(minutes=i)) for i in range(30)]
    feed, counts = Feed(), CountingBloomFilter(1000)
    pages = [visit.page for visit in feed.fresh(visits)]
    print(learn(counts, pages, (f"/{i}" for i in range(2))), top(counts, set(pages), least=6))
    growing = ScalableBloomFilter(100, fpr=0.01)
    print(learn(growing, range(50), np.arange(100), [now, now.date()]), list_known(growing, [7, 7.5, now]))
    print(let_go(counts, ["/0", "/none"]), [hits.size for hits in split(feed.seen, np.arange(4))])
    everything = feed.seen | feed.seen.copy()
    everything.update(pages)
    print(column(everything, pl.DataFrame({"page": ["/0", "/9"]})).height)
    print(publish(pages, folder / "pages.bloom").contains_many({"/0": 1, "/9": 2}))
    everything.save(folder / "all.bloom")
    print(round(extend(folder / "all.bloom", {"a", "b"}), 3))
    try:
        fullbloom.loads(b"no filter")
    except FormatError as problem:
        print(isinstance(problem, FullbloomError))
    return feed.dropped


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(main(Path(scratch)) != 15)
