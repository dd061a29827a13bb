"""Duplicate requests of a Scrapy crawl, found by a filter: 5 bytes each, 4 with a capacity, instead of 98.

In the project's ``settings.py``::

    DUPEFILTER_CLASS = "fullbloom.recipes.scrapy.DupeFilter"

Further settings, all optional:

* ``FULLBLOOM_FPR``: the share of new requests that are taken for seen, and so never fetched; default 1e-6.
* ``FULLBLOOM_CAPACITY``: requests that the filter is sized for; by default it grows.
* ``FULLBLOOM_SAVE_EVERY``: seconds between saves into ``JOBDIR``; default 300, and once at the end.
* ``FULLBLOOM_SEED``: seed of the hash; random by default.
* ``FULLBLOOM_REDIS_URL``: a Redis server whose filter several spiders share; none by default.
* ``FULLBLOOM_REDIS_NAME``: the filter's name there; default ``scrapy:NAME``, with the spider's name.

With ``JOBDIR`` and no Redis the filter is saved there as ``requests.bloom``, which ``fullbloom.open`` reads.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.job import job_dir

import fullbloom
from fullbloom import registry
from fullbloom.errors import FullbloomError, ParameterError
from fullbloom.recipes.dedup import Load
from fullbloom.recipes.fleet import Fleet

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http.request import Request
    from scrapy.settings import BaseSettings
    from scrapy.statscollectors import StatsCollector

__all__ = ["DupeFilter", "Options"]

_LOG = logging.getLogger(__name__)
_FILE = "requests.bloom"
#: The file of Scrapy's own filter.
_SCRAPY_FILE = "requests.seen"
#: Initial capacity of a growing filter: 1.4 MB at the default rate.
_FIRST_CAPACITY = 400_000
#: Saving takes at most 1/20 of the time.
_PAUSE = 20
#: An expected loss of this many pages or more is logged as a warning.
_WORTH_A_WARNING = 0.5


class Options(NamedTuple):
    """The settings; `Options.read` checks them."""

    fpr: float = 1e-6
    #: Requests it is sized for; None lets it grow.
    capacity: int | None = None
    #: Seconds between two saves.
    save_every: float = 300.0
    seed: int | None = None
    #: Redis server of a shared filter, and the filter's name there.
    redis_url: str | None = None
    redis_name: str = "scrapy:"

    @classmethod
    def read(cls, settings: BaseSettings, spider: str = "") -> Self:
        """Read ``FULLBLOOM_*`` for a spider; raise ``ParameterError`` with the name of an invalid setting."""
        fpr = _number(settings, "FULLBLOOM_FPR", float, cls._field_defaults["fpr"])
        if not 0.0 < fpr < 1.0:
            raise ParameterError(f"FULLBLOOM_FPR must be between 0 and 1 (exclusive), got {fpr!r}")
        capacity = _number(settings, "FULLBLOOM_CAPACITY", _parse_whole, None)
        if capacity is not None and capacity < 1:
            raise ParameterError(f"FULLBLOOM_CAPACITY must be at least 1, got {capacity}")
        every = _number(settings, "FULLBLOOM_SAVE_EVERY", float, cls._field_defaults["save_every"])
        if not every > 0.0:
            raise ParameterError(f"FULLBLOOM_SAVE_EVERY must be above 0 seconds, got {every!r}")
        url = settings.get("FULLBLOOM_REDIS_URL") or None
        if url is not None and capacity is None:
            raise ParameterError(
                "FULLBLOOM_CAPACITY must say how many requests the filter in Redis is sized for"
            )
        name = settings.get("FULLBLOOM_REDIS_NAME") or f"scrapy:{spider}"
        return cls(fpr, capacity, every, _number(settings, "FULLBLOOM_SEED", _parse_whole, None), url, name)

    def create_filter(self) -> Any:
        """Create a filter from the settings; a filter in Redis may already exist."""
        if self.redis_url is not None:
            return _shared(self.redis_url, self.redis_name, self.capacity or 0, self.fpr)
        seed = secrets.randbits(64) if self.seed is None else self.seed
        role = "growing" if self.capacity is None else "plain"
        make = registry.get_class(registry.find_by_role(role))
        return make(self.capacity or _FIRST_CAPACITY, self.fpr, seed=seed)


class DupeFilter(RFPDupeFilter):
    """Scrapy's duplicate filter in bounded memory, with the fingerprints, log and statistics of Scrapy's own.

    A request is fetched once, by the fingerprint of ``REQUEST_FINGERPRINTER_CLASS``; ``dont_filter=True``
    bypasses the filter. A seen request is never fetched again. A new request is wrongly taken for seen, and
    its page lost, with a probability of at most ``FULLBLOOM_FPR`` up to ``FULLBLOOM_CAPACITY`` requests. At
    the end the log reports the expected number of lost pages. If every page counts, use Scrapy's own filter.

    The statistics ``dupefilter/filtered`` (as Scrapy's own), ``dupefilter/fullbloom/expected_lost``,
    ``.../fpr``, ``.../requests`` and ``.../bytes`` report the same. With ``JOBDIR`` the filter is read when
    the spider opens, and saved atomically when it closes and every ``FULLBLOOM_SAVE_EVERY`` seconds. After a
    kill the requests since the last save are unknown, so their pages may be fetched twice. Requests that
    were saved and not fetched are lost, as Scrapy writes the state of its queue only when it closes.

    With ``FULLBLOOM_REDIS_URL`` spiders on many machines share a filter, which remains until you delete it
    (``RedisBloomFilter(client, name).delete()``). Each request costs a round trip, for which the crawler
    waits. While the server is unreachable, each spider continues with its own filter in memory
    (`fullbloom.recipes.fleet`).

    Raises ``ParameterError`` for settings out of range, ``FormatError`` and ``OSError`` for a file in
    ``JOBDIR`` that is not a filter or cannot be read. Costs one scalar add per request, in addition to a
    fingerprint of some 10 us.
    """

    def __init__(
        self, path: str | None = None, debug: bool = False, *, options: Options | None = None, **rest: Any
    ) -> None:
        """Store the folder of the job and the settings; `open` creates or reads the filter."""
        super().__init__(None, debug, **rest)
        self.options = options or Options()
        in_memory = self.options.redis_url is None
        self._file = Path(path, _FILE) if path is not None and in_memory else None
        self._stats: StatsCollector | None = None
        self._seen: Any = None
        self._lost = self._took = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the filter from a crawler's settings."""
        settings = crawler.settings
        created = cls(
            job_dir(settings),
            settings.getbool("DUPEFILTER_DEBUG"),
            options=Options.read(settings, crawler.spidercls.name),
            fingerprinter=crawler.request_fingerprinter,
        )
        created._stats = crawler.stats
        return created

    def open(self) -> None:
        """Read the filter of the job's last run, or create one; log the share of requests it may lose."""
        read = self._read()
        self._seen = self.options.create_filter() if read is None else read  # an empty filter is falsy
        self._load = Load(self._seen)
        self._new = 0
        self._step = self._load.step()
        self._saved = time.monotonic()
        capacity = self.options.capacity
        most = math.inf if capacity is None else capacity * self._seen.target_fpr
        _LOG.log(
            logging.WARNING if most >= _WORTH_A_WARNING else logging.INFO,
            "A Bloom filter finds duplicates: up to %(rate).2g of new requests%(when)s are taken for "
            "seen and never fetched (FULLBLOOM_FPR)",
            {
                "rate": self._seen.target_fpr,
                "when": "" if capacity is None else f", at {capacity:,} of them,",
            },
        )

    def request_seen(self, request: Request) -> bool:
        """Return whether a request was seen, and add it."""
        if not self._seen.add(self.fingerprinter.fingerprint(request)):
            return True
        self._new += 1
        if self._new >= self._step:
            self._count()
        if self._file is not None and time.monotonic() - self._saved > self._pause:
            self._save(self._file)
        return False

    def close(self, reason: str) -> None:
        """Save the filter, and log the expected loss."""
        del reason
        if self._seen is None:  # the spider did not open
            return
        self._count()
        if self._file is not None:
            self._save(self._file)
        seen, lost = self._seen, self._lost
        if self._stats is not None:
            values = {
                "expected_lost": lost,
                "fpr": seen.fpr(),
                "requests": seen.num_added,
                "bytes": seen.nbytes,
            }
            for name, value in values.items():
                self._stats.set_value(f"dupefilter/fullbloom/{name}", value)
        _LOG.log(
            logging.WARNING if lost >= _WORTH_A_WARNING else logging.INFO,
            "The filter holds %(requests)d requests in %(bytes)d bytes; of this run's new requests "
            "%(lost).2g were probably taken for seen and not fetched",
            {"requests": seen.num_added, "bytes": seen.nbytes, "lost": lost},
        )

    def _count(self) -> None:
        """Add the expected loss since the last call."""
        self._lost += self._load.count_lost(self._new)
        self._new, self._step = 0, self._load.step()

    def _read(self) -> Any:
        """Return the filter of an earlier run; None if there is no file."""
        if self._file is None:
            return None
        if not self._file.exists():
            if self._file.with_name(_SCRAPY_FILE).exists():
                _LOG.warning(
                    "JOBDIR has %s of Scrapy's own filter, which is not read: its requests are new",
                    _SCRAPY_FILE,
                )
            return None
        seen: Any = fullbloom.open(self._file, verify="full").copy()
        wanted = self.options
        if seen.target_fpr != wanted.fpr or wanted.capacity not in {None, seen.capacity}:
            _LOG.warning(
                "%s keeps its size of %d requests at %g: FULLBLOOM_CAPACITY and FULLBLOOM_FPR apply to new "
                "jobs only",
                *(self._file, seen.capacity, seen.target_fpr),
            )
        return seen

    @property
    def _pause(self) -> float:
        return max(self.options.save_every, _PAUSE * self._took)

    def _save(self, path: Path) -> None:
        begun = time.monotonic()
        self._seen.save(path)
        self._saved = time.monotonic()
        self._took = self._saved - begun


def _shared(url: str, name: str, capacity: int, fpr: float) -> Fleet:
    try:
        return Fleet.open(url, name, capacity, fpr)
    except FullbloomError:
        raise
    except ValueError:  # its message may contain the password
        raise ParameterError("FULLBLOOM_REDIS_URL must be redis://[USER:PASSWORD@]HOST:PORT/DB") from None


def _parse_whole(value: Any) -> int:
    number = float(value) if isinstance(value, str) and "e" in value.lower() else value
    whole = int(number)
    if isinstance(number, float) and whole != number:
        raise ValueError
    return whole


def _number(settings: BaseSettings, name: str, kind: Any, default: Any) -> Any:
    value = settings.get(name)
    if value is None:
        return default
    try:
        return kind(None if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{name} must be a number, got {value!r}") from None
