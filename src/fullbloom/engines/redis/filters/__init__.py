"""The filters, for threads and for asyncio, and what both have in common."""

from __future__ import annotations

import asyncio
import copy
import math
import warnings
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from fullbloom import _core
from fullbloom.engines.redis.protocol.manifest import MODULE, make_cells
from fullbloom.errors import CapacityWarning, FullbloomError, KeyDomainWarning, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fullbloom._core import BloomFilter
    from fullbloom.engines.redis.protocol import Steps
    from fullbloom.engines.redis.protocol.manifest import Manifest
    from fullbloom.engines.redis.protocol.open import OpenOptions
    from fullbloom.engines.redis.storage.counters import Counters
    from fullbloom.engines.redis.storage.strings import LoadEstimate, Strings

#: Frames from a warning to the caller: two or three here, a filter's public method; and for the load, the
#: transport and a filter's own method.
_DOMAIN_LEVEL, _CAPACITY_LEVEL = 4, 6
#: What two filters must have in common to be merged.
_MERGED = ("layout", "scheme", "hash", "num_bits", "num_hashes", "seed", "secret")


class _Storage(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def manifest(self) -> Manifest: ...


class StoredFilter:
    """A filter that a server stores under a name; nothing here sends a request."""

    #: Parameters that the representation shows.
    _SHOWN: ClassVar[tuple[str, ...]] = ("capacity", "fpr")
    _storage: _Storage

    @property
    def name(self) -> str:
        """The filter's name on the server."""
        return self._storage.name

    @property
    def manifest(self) -> Manifest:
        """The parameters that the server stores."""
        return self._storage.manifest

    @property
    def capacity(self) -> int:
        """Keys the filter was sized for."""
        return self.manifest.capacity

    def _parameters(self) -> dict[str, Any]:
        """Class, name and parameters, without the present load."""
        manifest = self.manifest
        sized = {"backend": manifest.backend, "capacity": manifest.capacity, "target_fpr": manifest.fpr}
        return {"class": type(self).__name__, "name": self.name, **sized, **manifest.describe()}

    def __repr__(self) -> str:
        """Show the name and the main parameters."""
        shown = "".join(f", {field}={getattr(self.manifest, field)}" for field in self._SHOWN)
        return f"{type(self).__name__}({self.name!r}{shown})"


class KeyBatcher:
    """Sends each single key at once, as a blocking caller waits for it."""

    def __init__(self, send_hashes: Callable[[bytes], bytes]) -> None:
        """Take the function that sends hashes and returns a byte for each."""
        self._send = send_hashes

    def put(self, hash_: bytes) -> int:
        """Return the answer."""
        return self._send(hash_)[0]


#: Keys of concurrent tasks that are sent together at most.
_LARGEST_BATCH = 4096


class AsyncKeyBatcher:
    """Sends single keys of concurrent tasks as batches: keys that arrive during a batch form the next one.

    The first batch leaves at the end of the event loop's iteration. Each batch is a task of its own, so that
    cancelling a caller takes nothing from the others; its key is sent all the same, unless it was cancelled
    before the batch left.
    """

    def __init__(self, send_hashes: Callable[[bytes], Awaitable[bytes]]) -> None:
        """Take the function that sends hashes and returns a byte for each."""
        self._send = send_hashes
        self._waiting: list[tuple[bytes, asyncio.Future[int]]] = []
        self._task: asyncio.Task[None] | None = None

    def put(self, hash_: bytes) -> asyncio.Future[int]:
        """Return a future of the answer."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()
        if self._task is not None and self._task.get_loop() is not loop:
            self._waiting, self._task = [], None  # what is left there belongs to a loop that has ended
        self._waiting.append((hash_, answer))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._send_waiting())
        return answer

    async def _send_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            first, self._waiting = self._waiting[:_LARGEST_BATCH], self._waiting[_LARGEST_BATCH:]
            batch = [(hash_, answer) for hash_, answer in first if not answer.done()]
            if not batch:
                continue
            answers = [answer for _, answer in batch]
            try:
                results = await self._send(b"".join(hash_ for hash_, _ in batch))
            except Exception as error:  # noqa: BLE001 - every task gets it
                if loop.is_closed():  # which runs no task: this one is only destroyed
                    return
                _resolve(answers, [_copy_error(error) for _ in answers])
            except BaseException:  # the loop ends
                left = [] if loop.is_closed() else [*answers, *(answer for _, answer in self._waiting)]
                for answer in left:
                    answer.cancel()
                self._waiting.clear()
                raise
            else:
                _resolve(answers, list(results))


def _resolve(answers: list[asyncio.Future[int]], results: Sequence[int | Exception]) -> None:
    """Give each task its own result, unless it was cancelled."""
    for answer, result in zip(answers, results, strict=True):
        if answer.done():
            continue
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)


def _copy_error(error: Exception) -> Exception:
    """Return a copy for each task, so that tracebacks do not mix."""
    try:
        return copy.copy(error)
    except Exception:  # noqa: BLE001 - some classes cannot be copied
        return error


#: Parts of the capacity after which the load is measured: the largest part, and the smallest.
_PARTS, _MAX_PARTS = 16, 256
#: The estimate of the keys is within so many deviations in 999 of 1,000 filters.
_DEVIATIONS = 3


class LoadWatch:
    """The load of a filter as one client knows it.

    Only the cells show that a filter holds more keys than it was sized for, since other clients add keys,
    too. So an object measures the load now and then: with its first key, and again after at most a sixteenth
    of the capacity in new or removed keys of its own, sooner near the capacity.
    """

    def __init__(self, storage: Strings | Counters) -> None:
        """Watch a filter."""
        self._storage = storage
        # A filter of the server's own grows.
        self._is_watched = storage.manifest.backend != MODULE
        self._due = 1
        self._is_measuring = self._is_outdated = False
        self._has_warned = False
        #: True if the filter was over capacity when the load was measured last.
        self.is_over = False

    def is_due(self) -> bool:
        """Return whether to measure; of the tasks that add keys together, one does."""
        return self._is_watched and not self._is_measuring and self._storage.num_changed >= self._due

    def measure(self) -> Steps[None]:
        """Measure the load; warn once if the filter is over capacity. After a failure the next key tries."""
        self._is_measuring, self._is_outdated = True, False
        num_changed = self._storage.num_changed
        try:
            with suppress(FullbloomError):
                load = yield from self._storage.estimate_load()
                if not self._is_outdated:
                    self._take(load, num_changed)
        finally:
            self._is_measuring = False

    def _take(self, load: LoadEstimate, num_changed: int) -> None:
        capacity, fpr = self._storage.manifest.capacity, self._storage.manifest.fpr
        certain = load.keys - _DEVIATIONS * load.keys_sd if math.isfinite(load.keys) else math.inf
        self.is_over = certain > capacity and load.fpr > fpr
        step = capacity // _PARTS
        if load.keys < capacity:
            step = min(step, int(capacity - load.keys))
        elif not self.is_over:
            step = 0
        self._due = num_changed + max(step, capacity // _MAX_PARTS, 1)
        if self.is_over and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"filter {self._storage.name!r} holds more keys than its capacity {capacity:,}: its "
                f"false-positive rate is {load.fpr:.3g}, above {fpr:.3g}; create a larger one",
                CapacityWarning,
                stacklevel=_CAPACITY_LEVEL,
            )

    def forget(self) -> None:
        """Measure with the next new key, because the filter has other contents."""
        self.is_over, self._is_outdated = False, True
        self._due = self._storage.num_changed + 1


#: Types of single keys; other keys are hashed once more, by a filter in memory that names their type.
_DOMAINS = {
    str: frozenset({"text"}),
    bytes: frozenset({"text"}),
    int: frozenset({"integer"}),
    bool: frozenset({"integer"}),
    float: frozenset({"float"}),
    tuple: frozenset({"tuple"}),
}
_UNKNOWN = frozenset[str]()
#: Types of the keys of columns, by the column's own type, and how many are remembered: a probe takes 20 us.
_COLUMNS: dict[tuple[Any, Any], frozenset[str]] = {}
_MAX_COLUMNS = 256
_HASHED = "hashed"
#: Answers of a batch that are inspected.
_SAMPLE = 64


class KnownDomains:
    """The types of the keys that a client added to a filter, or found there.

    The server does not record them. So an object knows those of its own adds and of its successful lookups,
    and warns once if keys of another type are looked up: equal texts and numbers are different keys.
    """

    def __init__(self, name: str) -> None:
        """Take the filter's name."""
        self._name = name
        self._known = _UNKNOWN
        self._has_warned = False

    def record_key(self, key: Any) -> None:
        """Take the type of a key that was added."""
        self._record(_DOMAINS.get(type(key)) or _probe([key]))

    def record_batch(self, keys: Any) -> None:
        """Take the types of the first and the last of keys that were added."""
        self._record(_find_domains(keys))

    def record_hashes(self) -> None:
        """Record that hashes were added, which may be of keys of any type."""
        self._record(frozenset({_HASHED}))

    def record_filter(self, filter_: Any) -> None:
        """Take the types of the keys of a filter in memory."""
        self._record(_parse(filter_.key_domains))

    def forget(self) -> None:
        """Forget all types: the filter is empty."""
        self._known = _UNKNOWN

    def look_up_key(self, key: Any, found: object) -> None:
        """Take the type of a key that was found, or warn if the filter has keys of other types only."""
        domains = _DOMAINS.get(type(key)) or _probe([key])
        if found:
            self._record(domains)
        elif self._is_surprising(domains):
            self._warn(domains)

    def look_up_batch(self, keys: Any, answers: Any) -> None:
        """Take the types of keys most of which were found, or warn if the filter has others only."""
        domains = _find_domains(keys)
        if domains <= self._known:
            return
        sample = _to_list(answers[:_SAMPLE])
        if 2 * sum(map(bool, sample)) > len(sample):
            self._record(domains)
        elif self._is_surprising(domains):
            self._warn(domains)

    def _record(self, domains: frozenset[str]) -> None:
        if not domains <= self._known:
            self._known |= domains

    def _is_surprising(self, domains: frozenset[str]) -> bool:
        known = self._known
        return bool(known) and not self._has_warned and _HASHED not in known and not domains <= known

    def _warn(self, domains: frozenset[str]) -> None:
        self._has_warned = True
        wanted, known = (", ".join(sorted(some)) for some in (domains - self._known, self._known))
        warnings.warn(
            f"filter {self._name!r}: keys of type {wanted} were looked up, but this client has added or "
            f'found keys of type {known} only: equal texts and numbers are different keys (1 is not "1"); '
            "look up keys of the type that was added",
            KeyDomainWarning,
            stacklevel=_DOMAIN_LEVEL,
        )


def _find_domains(keys: Any) -> frozenset[str]:
    """Return the types of the first and the last key of a batch; none if it cannot be read twice."""
    if isinstance(keys, (list, tuple)):
        ends = (keys[0], keys[-1]) if keys else ()
        return _UNKNOWN.union(*(_DOMAINS.get(type(key)) or _probe([key]) for key in ends))
    if isinstance(keys, (range, set, frozenset, dict)):
        return _probe([next(iter(keys))]) if keys else _UNKNOWN
    column = type(keys), getattr(keys, "dtype", None)
    try:
        if column in _COLUMNS:
            return _COLUMNS[column]
        domains = _probe(keys.slice(0, 1) if hasattr(keys, "slice") else keys[:1])
    except Exception:  # noqa: BLE001 - an iterator, or another stream of columns
        return _UNKNOWN
    if domains and column[1] is not None and "object" not in str(column[1]).lower():
        if len(_COLUMNS) >= _MAX_COLUMNS:
            _COLUMNS.clear()
        _COLUMNS[column] = domains
    return domains


def _probe(keys: Any) -> frozenset[str]:
    """Return the types of keys by the rule of filters in memory; none for what is not a key."""
    probe = _core.BloomFilter(_SAMPLE)
    try:
        probe.update(keys)
    except (TypeError, ValueError):
        return _UNKNOWN
    return _parse(probe.key_domains)


def _parse(names: str) -> frozenset[str]:
    return _UNKNOWN if names == "none" else frozenset(names.split(", "))


def _to_list(answers: Any) -> list[Any]:
    """Return answers as a list, whatever the container of the keys was."""
    for method in ("tolist", "to_pylist", "to_list"):
        if hasattr(answers, method):
            return list(getattr(answers, method)())
    return list(answers)


def require_same_secret(options: OpenOptions, filter_: BloomFilter) -> None:
    """Raise IncompatibleFilters if a filter in memory has another secret."""
    new = options.make_manifest()
    make_cells(new, options.secret).memory(new.capacity, new.fpr).isdisjoint(filter_)


def require_same_parameters(name: str, manifest: Manifest, other: Manifest) -> None:
    """Raise IncompatibleFilters unless two filters can be merged."""
    theirs = asdict(other)
    manifest.require_match(name, {field: theirs[field] for field in _MERGED})


def read_memory(strings: Strings, other: Any) -> memoryview:
    """Return the cells of a filter in memory, which must have the same parameters."""
    if not hasattr(other, "num_bits") or not hasattr(other, "isdisjoint"):
        raise ParameterTypeError(
            f"other must be a BloomFilter or a RedisBloomFilter, got {type(other).__name__}"
        )
    manifest = strings.manifest
    # Raises IncompatibleFilters with every field that differs, including the secret.
    strings.cells.memory(manifest.capacity, manifest.fpr).isdisjoint(other)
    return memoryview(other).cast("B")
