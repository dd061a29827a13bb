"""The exceptions of Fullbloom: one tree; each class also subclasses the matching built-in exception.

Every message names the invalid value and the remedy.

>>> import fullbloom
>>> try:
...     fullbloom.BloomFilter(1000, fpr=1.5)
... except ValueError as error:
...     print(error)
fpr must be between 0 and 1 (exclusive), got 1.5
"""

__all__ = [
    "CapacityWarning",
    "EngineError",
    "EngineFull",
    "EngineNameTaken",
    "EngineRefused",
    "EngineTimeout",
    "EngineUnavailable",
    "FilterFull",
    "FilterLost",
    "FilterMemoryError",
    "FilterRolledBack",
    "FormatError",
    "FullbloomError",
    "IncompatibleFilters",
    "KeyDomainWarning",
    "KeyTypeError",
    "MissingExtra",
    "MissingOperation",
    "ParameterError",
    "ParameterTypeError",
    "PeerError",
    "ReadOnlyFilter",
    "RemovedKeyError",
    "SecretError",
]


class FullbloomError(Exception):
    """Base class of all exceptions that Fullbloom raises.

    >>> import fullbloom
    >>> try:
    ...     fullbloom.loads(b"no filter")
    ... except fullbloom.FullbloomError as error:
    ...     type(error).__name__
    'FormatError'
    """


class ParameterError(FullbloomError, ValueError):
    """A parameter is out of its range.

    >>> from fullbloom import BloomFilter
    >>> BloomFilter(1000, fpr=1.5)
    Traceback (most recent call last):
    fullbloom.errors.ParameterError: fpr must be between 0 and 1 (exclusive), got 1.5
    """


class ParameterTypeError(FullbloomError, TypeError):
    """A parameter has the wrong type.

    >>> from fullbloom import BloomFilter
    >>> BloomFilter("1000")
    Traceback (most recent call last):
    fullbloom.errors.ParameterTypeError: ...
    """


class KeyTypeError(FullbloomError, TypeError):
    """A key's type has no canonical bytes; the message lists the types that do.

    >>> from fullbloom import BloomFilter
    >>> BloomFilter(1000).add({"a"})
    Traceback (most recent call last):
    fullbloom.errors.KeyTypeError: ...
    """


class MissingExtra(FullbloomError, ModuleNotFoundError):
    """An optional package is not installed; the message has the command that installs it."""


class MissingOperation(FullbloomError, AttributeError, TypeError):
    """A structure does not support this method or operator; the message names one that does.

    >>> from fullbloom import BloomFilter
    >>> BloomFilter(1000).remove("a")
    Traceback (most recent call last):
    fullbloom.errors.MissingOperation: ...
    """


class FilterMemoryError(FullbloomError, MemoryError):
    """The filter needs more memory than the machine has; raised before allocation.

    >>> from fullbloom import BloomFilter
    >>> BloomFilter(10**18)
    Traceback (most recent call last):
    fullbloom.errors.FilterMemoryError: ...
    """


class FilterFull(FullbloomError, OverflowError):
    """A strict filter is at its capacity, or a growing filter cannot grow; existing keys are unaffected.

    >>> from fullbloom import BloomFilter
    >>> seen = BloomFilter(1, strict=True)
    >>> seen.add("a")
    True
    >>> seen.add("b")
    Traceback (most recent call last):
    fullbloom.errors.FilterFull: ...
    >>> "a" in seen
    True
    """


class IncompatibleFilters(FullbloomError, ValueError):
    """Two filters cannot be combined; the message names the fields that differ.

    >>> from fullbloom import BloomFilter
    >>> BloomFilter(100) | BloomFilter(200)
    Traceback (most recent call last):
    fullbloom.errors.IncompatibleFilters: ...
    """


class FormatError(FullbloomError, ValueError):
    """The bytes or the file are not a filter, are damaged, or come from a newer release.

    >>> import fullbloom
    >>> data = fullbloom.BloomFilter(100).to_bytes()
    >>> fullbloom.loads(data[:-1])
    Traceback (most recent call last):
    fullbloom.errors.FormatError: ...
    """


class ReadOnlyFilter(FullbloomError, TypeError):
    """The filter is mapped read-only, or closed.

    >>> import os, tempfile, fullbloom
    >>> path = os.path.join(tempfile.mkdtemp(), "seen.bloom")
    >>> fullbloom.BloomFilter(100).save(path)
    >>> with fullbloom.open(path) as seen:
    ...     seen.add("a")
    Traceback (most recent call last):
    fullbloom.errors.ReadOnlyFilter: ...
    """


class RemovedKeyError(FullbloomError, ValueError):
    """A removed key cannot be added again, because the filter of removed keys cannot remove.

    >>> from fullbloom import BloomFilter
    >>> from fullbloom.compose import WithRemovals
    >>> seen = WithRemovals(BloomFilter(100), BloomFilter(100))
    >>> seen.add("a")
    True
    >>> seen.remove("a")
    >>> seen.add("a")
    Traceback (most recent call last):
    fullbloom.errors.RemovedKeyError: ...
    """


class SecretError(FullbloomError, ValueError):
    """A secret was never retrieved, so a saved file could not be opened, or it was retrieved before.

    >>> from fullbloom import BloomFilter
    >>> seen = BloomFilter(100, secret=True)
    >>> seen.to_bytes()
    Traceback (most recent call last):
    fullbloom.errors.SecretError: ...
    >>> secret = seen.take_secret()
    >>> len(secret), len(seen.to_bytes()) > 0
    (16, True)
    """


class EngineError(FullbloomError):
    """The server of a filter returned an error; the message names the filter, never a key."""


class EngineUnavailable(EngineError, ConnectionError):
    """The server cannot be reached or is not ready: it is loading its data, or its cluster is down."""


class EngineTimeout(EngineError, TimeoutError):
    """The server did not answer in time; an add that was sent may have been applied."""


class EngineRefused(EngineError, PermissionError):
    """The server refused this client, or it is a read-only replica."""


class EngineFull(EngineError, MemoryError):
    """The server is at its memory limit; no part of the change was applied."""


class EngineNameTaken(EngineError, ValueError):
    """The server holds something else under the filter's name."""


class FilterLost(EngineError, LookupError):
    """The server no longer has the filter or a part of it: acknowledged keys are lost."""


class FilterRolledBack(FilterLost):
    """The server returned to an earlier state of the filter: the latest acknowledged keys are lost."""


class PeerError(FullbloomError, ConnectionError):
    """A processing element died, sent nothing in time or sent invalid data; ``rank`` is its rank."""

    def __init__(self, rank: int, reason: str) -> None:
        super().__init__(f"rank {rank} {reason}")
        #: The rank of the element that failed.
        self.rank = rank
        #: What it did, in a clause whose subject is the rank.
        self.reason = reason

    def __reduce__(self) -> "tuple[type[PeerError], tuple[int, str]]":
        return type(self), (self.rank, self.reason)


class KeyDomainWarning(UserWarning):
    """A lookup used keys of a type that the filter does not hold; issued once per filter.

    The HTTP client issues it for each such response of the service.

    >>> import warnings
    >>> from fullbloom import BloomFilter, KeyDomainWarning
    >>> numbers = BloomFilter(100)
    >>> numbers.update([1, 2])
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always", KeyDomainWarning)
    ...     "1" in numbers
    False
    >>> [one.category.__name__ for one in found]
    ['KeyDomainWarning']
    """


class CapacityWarning(UserWarning):
    """A filter holds more keys than it was sized for; issued once per filter.

    >>> import warnings
    >>> from fullbloom import BloomFilter, CapacityWarning
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always", CapacityWarning)
    ...     BloomFilter(10).update(range(100))
    >>> [one.category.__name__ for one in found]
    ['CapacityWarning']
    """
